#include "KernelTexts.h"

using namespace moec_bench;

static constexpr int64_t tileSteps = 20000;

double moec_bench::countTileFlops() { return 2.0 * tileSteps * 4 * 16 * 16 * 32; }
bool moec_bench::hasTiles(const mlir::moec::TargetDescription &target) {
  return target.has("amx-bf16");
}

static std::string repeat(int64_t count, const std::string &pattern,
                          const std::string &separator = ", ") {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    std::string one = pattern;
    for (size_t at; (at = one.find('#')) != std::string::npos;)
      one.replace(at, 1, std::to_string(i));
    text += (i ? separator : "") + one;
  }
  return text;
}

static std::string makeFunction(const std::string &name, const std::string &arguments,
                                const std::string &body) {
  return "func.func @" + name + "(" + arguments +
         ", %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {\n"
         "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n" +
         body + "return\n}\n";
}

std::string moec_bench::makeTilesText() {
  std::string sum = "!amx.tile<16x16xf32>", operand = "!amx.tile<16x32xbf16>";
  return makeFunction(
      "tiles", "%in: memref<16x32xbf16>, %out: memref<?x16x16xf32>",
      "%steps = arith.constant " + std::to_string(tileSteps) + " : index\n" +
          repeat(4, "%z# = amx.tile_zero : " + sum + "\n", "") +
          "%a = amx.tile_load %in[%c0, %c0] : memref<16x32xbf16> into " + operand +
          "\n"
          "%b = amx.tile_load %in[%c0, %c0] : memref<16x32xbf16> into " +
          operand +
          "\n"
          "%sum:4 = scf.for %i = %c0 to %steps step %c1 iter_args(" +
          repeat(4, "%s# = %z#") + ") -> (" + repeat(4, sum) + ") {\n" +
          repeat(4,
                 "%t# = amx.tile_mulf %a, %b, %s# : " + operand + ", " + operand + ", " + sum +
                     "\n",
                 "") +
          "scf.yield " + repeat(4, "%t#") + " : " + repeat(4, sum) + "\n}\n" + [&] {
            std::string stores;
            for (int64_t i = 0; i < 4; ++i)
              stores += "amx.tile_store %out[%workgroup, %c0, %c0], %sum#" + std::to_string(i) +
                        " : memref<?x16x16xf32>, " + sum + "\n";
            return stores;
          }());
}

static std::string makeProduct(const ExpertsShape &shape, const std::string &name, std::string rows,
                               const std::string &pairs, int64_t n, int64_t k, int64_t columns,
                               const std::string &attributes, const std::string &strategy) {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string e = number(shape.experts);
  std::string weight = "!moe.block_tensor<[" + e + ", " + number(n) + ", " + number(k) +
                       "], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>";
  std::string storage =
      "memref<" + e + "x" + number((n + 15) / 16) + "x" + number(k / 32) + "x272xi8>";
  struct {
    std::string name, shape;
  } tensors[] = {{"x", rows + "x" + number(k) + "xbf16"},
                 {"o", number(shape.experts + 1) + "xi32"},
                 {"p", pairs + "xi32"},
                 {"b", e + "x" + number(n) + "xbf16"},
                 {"y", pairs + "x" + number(columns) + "xbf16"}};
  auto memref = [&](int i) { return "memref<" + tensors[i].shape + ">"; };
  auto tensor = [&](int i) { return "tensor<" + tensors[i].shape + ">"; };
  std::string body;
  for (int i : {0, 1, 2, 3})
    body += "%" + tensors[i].name + " = bufferization.to_tensor %in_" + tensors[i].name +
            " restrict : " + memref(i) + " to " + tensor(i) + "\n";
  body += "%w = builtin.unrealized_conversion_cast %in_w : " + storage + " to " + weight +
          "\n%r = moe.grouped_linear "
          "%x by %o, %p weight(%w : " +
          weight + ") bias(%b : " + tensor(3) + ") {strategy = \"" + strategy +
          "\", top_k = " + number(shape.topK) + " : i64, " + attributes + "} : " + tensor(0) +
          ", " + tensor(1) + ", " + tensor(2) + " -> " + tensor(4) +
          "\nbufferization.materialize_in_destination %r in restrict writable %out : (" +
          tensor(4) + ", " + memref(4) + ") -> ()\n";
  return makeFunction(name,
                      "%in_x: " + memref(0) + ", %in_o: " + memref(1) + ", %in_p: " + memref(2) +
                          ", %in_w: " + storage + ", %in_b: " + memref(3) + ", %out: " + memref(4),
                      body);
}

std::string moec_bench::makeExpertsText(const ExpertsShape &shape, std::string tokens,
                                        std::string strategy) {
  std::string pairs = tokens == "?" ? "?" : std::to_string(std::stoll(tokens) * shape.topK);
  std::string activation =
      "activation = #moe.activation<swiglu, alpha = 1.702e+00, beta = 1.0e+00, limit = 7.0e+00, "
      "interleaved = true>";
  return makeProduct(shape, "gate_up", tokens, pairs, 2 * shape.inter, shape.hidden, shape.inter,
                     activation + ", gather", strategy) +
         makeProduct(shape, "down", pairs, pairs, shape.hidden, shape.inter, shape.hidden,
                     "scatter", strategy);
}

std::string moec_bench::makeLinearText(const ExpertsShape &shape, std::string tokens,
                                       std::string strategy) {
  std::string n = std::to_string(2 * shape.inter), k = std::to_string(shape.hidden);
  std::string weight = "tensor<" + n + "x" + k +
                       "xbf16, #moe.layout<tile = [16, 2], order = [1, 0], swizzle = pairs>>";
  std::string storage = "memref<" + std::to_string((2 * shape.inter + 15) / 16) + "x" +
                        std::to_string((shape.hidden + 1) / 2) + "x1x16x2xbf16>";
  std::string input = "<" + tokens + "x" + k + "xbf16>", result = "<" + tokens + "x" + n + "xbf16>";
  return makeFunction(
      "linear", "%in_x: memref" + input + ", %in_w: " + storage + ", %out: memref" + result,
      "%x = bufferization.to_tensor %in_x restrict : memref" + input + " to tensor" + input +
          "\n%w = builtin.unrealized_conversion_cast %in_w : " + storage + " to " + weight +
          "\n%r = moe.linear %x, %w {strategy = \"" + strategy + "\"} : tensor" + input + ", " +
          weight + " -> tensor" + result +
          "\nbufferization.materialize_in_destination %r in restrict writable %out : (tensor" +
          result + ", memref" + result + ") -> ()\n");
}
