// hopper-kernels FOLDER: writes a program in phase kernel for each building block of Hopper
// kernels, FOLDER/NAME.mlir.
//
// The lit suite looks at the PTX that they become; the device check runs them. They do with a block
// what a matrix kernel does with it and nothing else, so that a fault shows where it is.

#include "lib/Conversion/MoEToKernels/CUDA/Hopper/HopperCode.h"

#include "moec/InitDialects.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Elements of a row of a box, which 128 bytes hold, and rows of a box.
constexpr int64_t depth = 64, rows = 64, rowBytes = 128, boxBytes = rows * rowBytes;
constexpr int64_t warpgroup = HopperCode::warpgroupSize;

struct Tensor {
  std::string name, shape; ///< such as "64x128xbf16"
};

using Build = llvm::function_ref<void(HopperCode &code, ValueRange bindings)>;

class Writer {
public:
  Writer(std::string folder) : folder(std::move(folder)) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// A program of one launch of one block of `threads`; the last of `tensors` is its output.
  void write(const std::string &name, ArrayRef<Tensor> tensors, int64_t threads,
             int64_t sharedBytes, Build build);
  bool hasFailed() const { return failed; }

private:
  std::string folder;
  MLIRContext context;
  bool failed = false;
};

std::string makeText(const std::string &name, ArrayRef<Tensor> tensors, int64_t threads,
                     int64_t sharedBytes) {
  std::string arguments, buffers, inputs;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    bool isOutput = i + 1 == tensors.size();
    arguments += llvm::formatv("%a{0}: memref<{1}>, ", i, tensor.shape).str();
    SmallVector<StringRef> sizes;
    StringRef(tensor.shape).split(sizes, 'x');
    sizes.pop_back();
    buffers += llvm::formatv("%{0} = plan.{1} \"{2}\" : tensor<{3}> dims affine_map<() -> ({4})>\n",
                             i, isOutput ? "output" : "input", tensor.name, tensor.shape,
                             llvm::join(sizes, ", "))
                   .str();
    if (!isOutput)
      inputs += (i ? ", %" : "%") + std::to_string(i);
  }
  SmallVector<std::string> bytes;
  for (const Tensor &tensor : tensors) {
    int64_t size = StringRef(tensor.shape).ends_with("f32") ? 4 : 2;
    SmallVector<StringRef> sizes;
    StringRef(tensor.shape).split(sizes, 'x');
    for (StringRef each : ArrayRef(sizes).drop_back())
      size *= std::stoll(each.str());
    bytes.push_back(std::to_string(size));
  }
  return llvm::formatv(R"(module attributes {{moec.target = "cuda:sm_90a"} {{
plan.program load @load symbols [] {{
}
func.func private @{0}({1}%scratch: memref<?xi8>, %workgroup: index) attributes {{plan.kernel, plan.threads = {2}} {{
  return
}
plan.program @main symbols [] {{
{3}plan.launch @{0} ins({4}) outs(%{5}) dimensions affine_map<() -> ()> workgroups affine_map<() -> (1)>
    scratch affine_map<() -> (0)> bytes affine_map<() -> ({6})> "{0}" {{threads = {2}, shared_bytes = {7}}
}
})",
                       name, arguments, threads, buffers, inputs, tensors.size() - 1,
                       llvm::join(bytes, ", "), sharedBytes)
      .str();
}

void Writer::write(const std::string &name, ArrayRef<Tensor> tensors, int64_t threads,
                   int64_t sharedBytes, Build build) {
  auto module = parseSourceString<ModuleOp>(makeText(name, tensors, threads, sharedBytes),
                                            ParserConfig(&context));
  if (!module) {
    failed = true;
    return;
  }
  auto kernel = module->lookupSymbol<func::FuncOp>(name);
  OpBuilder builder(&context);
  builder.setInsertionPointToStart(&kernel.getBody().front());
  HopperCode code(kernel.getLoc(), builder, threads);
  build(code, kernel.getArguments().drop_back(2));
  std::error_code error;
  llvm::raw_fd_ostream file(folder + "/" + name + ".mlir", error);
  if (error) {
    llvm::errs() << folder << "/" << name << ".mlir: " << error.message() << "\n";
    failed = true;
    return;
  }
  module->print(file);
}

void initialize(HopperCode &code, SlotRing &ring) {
  code.when(code.isEqual(code.threadNumber(), 0), [&] { ring.initialize(); });
  code.barrier();
}

/// Calls `body` for each element of a box that this thread of a warpgroup looks at: row, column and
/// value as f32. `at`: where the box begins in dynamic shared memory.
void forEachElement(HopperCode &code, Value at, Type element,
                    function_ref<void(Value row, Value column, Value value)> body) {
  Value inGroup = code.andBits(code.threadNumber(), warpgroup - 1);
  code.loop(0, rows * depth, warpgroup, [&](Value first) {
    Value number = code.add(code.toInt32(first), inGroup);
    Value row = code.shiftedRight(number, 6), column = code.andBits(number, depth - 1);
    // The copy engine exchanges the 16-byte pieces of a row, by the row's last three bits.
    Value swizzle = code.times(code.andBits(row, 7), 16);
    Value byte = arith::XOrIOp::create(code, code.getLoc(), code.times(column, 2), swizzle);
    Value place = code.dynamicShared(code.add(at, code.add(code.times(row, rowBytes), byte)));
    Value value = LLVM::LoadOp::create(code, code.getLoc(), element, place);
    value = arith::ExtFOp::create(code, code.getLoc(), code.getF32Type(), value);
    body(code.toIndex(row), code.toIndex(column), value);
  });
}

/// One box, part of which lies outside of the tensor.
void writeBox(Writer &writer) {
  writer.write("box", {{"x", "96x128xbf16"}, {"y", "64x64xf32"}}, warpgroup, boxBytes,
               [](HopperCode &code, ValueRange bindings) {
                 Value map = code.tensorMap(bindings[0], {depth, rows});
                 SlotRing ring(code, 1, 1, 1);
                 initialize(code, ring);
                 SlotRing::Position position = ring.start();
                 code.when(code.isEqual(code.threadNumber(), 0), [&] {
                   Value barrier = ring.announce(position, code.int32(boxBytes));
                   code.loadBox(code.dynamicShared(code.int32(0)), map, barrier,
                                {code.int32(80), code.int32(48)});
                 });
                 ring.waitFull(position);
                 forEachElement(code, code.int32(0), code.getBF16Type(),
                                [&](Value row, Value column, Value value) {
                                  code.storeFloat(value, bindings[1], {row, column});
                                });
               });
}

/// A warp of a warpgroup with few registers fills slots several times over; the other warpgroup,
/// with many, adds what is in them.
void writeRing(Writer &writer) {
  constexpr int64_t slots = 3, boxes = 11;
  writer.write("ring", {{"x", "704x64xbf16"}, {"y", "64x64xf32"}}, 2 * warpgroup, slots * boxBytes,
               [](HopperCode &code, ValueRange bindings) {
                 Value map = code.tensorMap(bindings[0], {depth, rows});
                 SlotRing ring(code, slots, 1, 1);
                 initialize(code, ring);
                 SlotRing::Position start = ring.start();
                 auto forEachBox = [&](function_ref<void(Value box, SlotRing::Position)> body) {
                   code.loop(code.index(0), code.index(boxes), 1, {start.slot, start.parity},
                             [&](Value box, ValueRange carried) {
                               SlotRing::Position position = {carried[0], carried[1]};
                               body(box, position);
                               SlotRing::Position next = ring.next(position);
                               return SmallVector<Value>{next.slot, next.parity};
                             });
                 };
                 auto placeOf = [&](SlotRing::Position position) {
                   return code.times(position.slot, boxBytes);
                 };
                 code.choose(
                     code.isEqual(code.warpgroupNumber(), 0),
                     [&] {
                       code.decreaseRegisters(40);
                       code.when(code.isEqual(code.warpInWarpgroup(), 0), [&] {
                         code.when(code.electOne(), [&] {
                           forEachBox([&](Value box, SlotRing::Position position) {
                             ring.waitEmpty(position);
                             Value barrier = ring.announce(position, code.int32(boxBytes));
                             code.loadBox(code.dynamicShared(placeOf(position)), map, barrier,
                                          {code.int32(0), code.times(code.toInt32(box), rows)});
                           });
                         });
                       });
                     },
                     [&] {
                       code.increaseRegisters(232);
                       forEachBox([&](Value box, SlotRing::Position position) {
                         ring.waitFull(position);
                         Value isFirst = code.compare(arith::CmpIPredicate::eq, box, code.index(0));
                         forEachElement(code, placeOf(position), code.getBF16Type(),
                                        [&](Value row, Value column, Value value) {
                                          Value sum = code.loadFloat(bindings[1], {row, column});
                                          sum = code.select(isFirst, value, code.add(sum, value));
                                          code.storeFloat(sum, bindings[1], {row, column});
                                        });
                         // All have read before the slot is filled again.
                         code.namedBarrier(1, warpgroup);
                         Value isLeader =
                             code.isEqual(code.andBits(code.threadNumber(), warpgroup - 1), 0);
                         code.when(isLeader, [&] { ring.release(position.slot); });
                       });
                     });
               });
}

/// Two products of 64 rows of 64 elements, one after the other, added in registers.
void writeProduct(Writer &writer, StringRef element, int64_t columns) {
  std::string type = element.str(), count = std::to_string(columns);
  int64_t rightBytes = columns * rowBytes, stepBytes = boxBytes + rightBytes;
  writer.write(
      "product_" + type + "_" + count,
      {{"x", "64x128x" + type}, {"w", count + "x128x" + type}, {"y", "64x" + count + "xf32"}},
      warpgroup, 2 * stepBytes, [&](HopperCode &code, ValueRange bindings) {
        Value left = code.tensorMap(bindings[0], {depth, rows});
        Value right = code.tensorMap(bindings[1], {depth, columns});
        SlotRing ring(code, 1, 1, 1);
        initialize(code, ring);
        SlotRing::Position position = ring.start();
        code.when(code.isEqual(code.threadNumber(), 0), [&] {
          Value barrier = ring.announce(position, code.int32(2 * stepBytes));
          for (int64_t step = 0; step < 2; ++step) {
            Value k = code.int32(step * depth), zero = code.int32(0);
            code.loadBox(code.dynamicShared(code.int32(step * stepBytes)), left, barrier,
                         {k, zero});
            code.loadBox(code.dynamicShared(code.int32(step * stepBytes + boxBytes)), right,
                         barrier, {k, zero});
          }
        });
        ring.waitFull(position);
        WarpgroupProduct product(code, cast<MemRefType>(bindings[0].getType()).getElementType(),
                                 columns);
        Value base = code.toAddress(code.dynamicShared(code.int32(0))), sums = product.zeros();
        product.fence();
        for (int64_t step = 0; step < 2; ++step)
          sums = product.multiply(sums, code.plus(base, step * stepBytes),
                                  code.plus(base, step * stepBytes + boxBytes));
        product.commit();
        product.wait(0);
        for (int64_t half = 0; half < 2; ++half)
          product.forEachPair(sums, half, [&](Value column, Value first, Value second) {
            Value row = code.toIndex(product.getRow(half)), at = code.toIndex(column);
            code.storeFloat(first, bindings[2], {row, at});
            code.storeFloat(second, bindings[2], {row, code.add(at, 1)});
          });
      });
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: hopper-kernels FOLDER\n";
    return 2;
  }
  Writer writer(argv[1]);
  writeBox(writer);
  writeRing(writer);
  for (int64_t columns : {8, 16, 24, 32, 64, 96, 128, 192, 256})
    writeProduct(writer, "bf16", columns);
  writeProduct(writer, "f16", 64);
  return writer.hasFailed();
}
