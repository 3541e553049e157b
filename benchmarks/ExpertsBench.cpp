// The MXFP4 experts of one layer (gpt-oss-20b's widths unless told otherwise), beside what the
// machine can do at all.
//
//   experts_bench [--threads N] [--target T] [--strategy S] [--hidden H] [--inter I] [--experts E]
//   [--top-k K]

#include "KernelTexts.h"
#include "Launcher.h"
#include "MachineCeilings.h"

#include "moec/Conversion/KernelStrategy.h"
#include "moec/InitDialects.h"
#include "runtime/device/cpu/ReadBandwidth.h"
#include "test/Unit/KernelHarness.h"

#include "mlir/Parser/Parser.h"

#include <cstdio>
#include <numeric>
#include <random>

using namespace moec_bench;
using namespace mlir;
using namespace mlir::moec;

namespace {

struct Options {
  int threads = 2;
  std::string target = "cpu", strategy;
  ExpertsShape shape;
};

/// Workgroups and scratch of the functions of makeExpertsText for a number of tokens.
struct LaunchSize {
  int64_t workgroups, scratchBytes;
};

class Bench {
public:
  Bench(const Options &options, const TargetDescription &target)
      : options(options), shape(options.shape), target(target), registry(makeRegistry()),
        context(registry, MLIRContext::Threading::DISABLED), gateUp(shape.countGateUpBytes()),
        down(shape.countDownBytes()) {}

  bool run() {
    strategy = options.strategy.empty() ? findBestStrategy() : options.strategy;
    moec_test::KernelHarness experts(makeExpertsText(shape, "?", strategy), options.target);
    if (!experts.isReady()) {
      fprintf(stderr, "%s\n", experts.getError().c_str());
      return false;
    }
    fillWeights();
    printf("target %s, strategy %s, %d threads, hidden %ld, inter %ld, %ld experts, top %ld\n",
           target.name.c_str(), strategy.c_str(), options.threads, long(shape.hidden),
           long(shape.inter), long(shape.experts), long(shape.topK));
    if (!measureCeilings())
      return false;
    printf("%-24s %10s %10s %8s %10s %8s\n", "", "ms", "GB/s", "share", "GFLOP/s", "share");
    Library library(experts.getSharedObject());
    measureExperts(library, "one token", 1, shape.topK, 1);
    for (int64_t each : {1, 16, 64, 128})
      measureExperts(library, std::to_string(each) + " tokens an expert",
                     each * shape.experts / shape.topK, shape.experts, each);
    return runLinear();
  }

private:
  /// A dense bf16 weight as large as one expert's gate and up, which other libraries can multiply
  /// with, too.
  bool runLinear() {
    std::string name;
    forEach<moe::LinearOp>(makeLinearText(shape, "1", ""), [&](moe::LinearOp op) {
      name = selectKernelStrategy(op, target)->getName().str();
    });
    moec_test::KernelHarness harness(makeLinearText(shape, "?", name), options.target);
    if (!harness.isReady()) {
      fprintf(stderr, "%s\n", harness.getError().c_str());
      return false;
    }
    printf("dense bf16 linear [%ld, %ld], strategy %s\n", long(2 * shape.inter), long(shape.hidden),
           name.c_str());
    Library library(harness.getSharedObject());
    int64_t bytes = 2 * shape.inter * shape.hidden * 2;
    // Weights from memory for one token; the others come from the caches anyway.
    for (int64_t tokens : {1, 16, 64, 128}) {
      std::vector<LaunchSize> sizes;
      forEach<moe::LinearOp>(
          makeLinearText(shape, std::to_string(tokens), name),
          [&](moe::LinearOp op) { sizes.push_back(getLaunchSize(*findKernelStrategy(name), op)); });
      Memory input(tokens * shape.hidden * 2), output(tokens * 2 * shape.inter * 2);
      std::vector<Launch> launches;
      int64_t copies = std::max<int64_t>(1, shape.countGateUpBytes() / bytes);
      for (int64_t copy = 0; copy < copies; ++copy)
        launches.push_back({library.find("linear"),
                            {input.as<void>(), gateUp.as<char>() + copy * bytes, output.as<void>()},
                            {tokens, tokens},
                            sizes[0].workgroups,
                            size_t(sizes[0].scratchBytes)});
      print(std::to_string(tokens) + " tokens", measure(launches, options.threads, 1),
            double(bytes) * copies, 2.0 * tokens * shape.hidden * 2 * shape.inter * copies);
    }
    return true;
  }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  template <typename Op, typename Function>
  void forEach(const std::string &text, Function function) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    module->walk([&](Op op) { function(op); });
  }

  std::string findBestStrategy() {
    std::string name;
    forEach<moe::GroupedLinearOp>(makeExpertsText(shape, "1", ""), [&](moe::GroupedLinearOp op) {
      name = selectKernelStrategy(op, target)->getName().str();
    });
    return name;
  }

  LaunchSize getLaunchSize(const KernelStrategy &found, Operation *op) {
    OpBuilder builder(op);
    return {*getConstantIntValue(found.countWorkgroups(builder, op, target)),
            *getConstantIntValue(found.countScratchBytes(builder, op, target))};
  }

  std::vector<LaunchSize> getLaunchSizes(int64_t tokens) {
    std::vector<LaunchSize> sizes;
    forEach<moe::GroupedLinearOp>(
        makeExpertsText(shape, std::to_string(tokens), strategy), [&](moe::GroupedLinearOp op) {
          sizes.push_back(getLaunchSize(*findKernelStrategy(strategy), op));
        });
    return sizes;
  }

  void fillWeights() {
    std::mt19937_64 random(1);
    struct {
      Memory &memory;
      int64_t bytes;
    } weights[] = {{gateUp, shape.countGateUpBytes()}, {down, shape.countDownBytes()}};
    for (auto &[memory, bytes] : weights) {
      for (int64_t i = 0; i < bytes / 8; ++i)
        memory.as<uint64_t>()[i] = random();
      for (int64_t panel = 0; panel < bytes; panel += 272)
        for (int64_t row = 0; row < 16; ++row)
          memory.as<uint8_t>()[panel + 256 + row] = 115 + random() % 6;
    }
  }

  bool measureCeilings() {
    auto pool = moert::ThreadPool::create(unsigned(options.threads));
    if (!pool.isOk()) {
      fprintf(stderr, "%s\n", pool.status().message().c_str());
      return false;
    }
    bandwidth = moert::measureReadBandwidth(**pool);
    rate = measureMultiplyAddRate(**pool);
    printf("reading %.1f GB/s, f32 multiply-add %.0f GFLOP/s", bandwidth / 1e9, rate / 1e9);
    if (hasTiles(target)) {
      moec_test::KernelHarness harness(makeTilesText(), options.target);
      Library library(harness.getSharedObject());
      Memory results(64 * 1024);
      Launch tiles = {library.find("tiles"), {results.as<void>(), results.as<void>()}, {16}, 16, 0};
      rate = 16 * countTileFlops() / measure({tiles}, options.threads);
      printf(", bf16 tiles %.0f GFLOP/s", rate / 1e9);
    }
    printf("\n");
    return true;
  }

  /// Steps of `active` experts with `each` tokens, one after the other, until all experts had their
  /// turn: as in a model with many layers, a step finds none of its weights in a cache.
  void measureExperts(const Library &library, const std::string &name, int64_t tokens,
                      int64_t active, int64_t each) {
    const int64_t pairs = active * each, steps = shape.experts / active;
    std::vector<int32_t> order(pairs);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    std::vector<std::vector<int32_t>> offsets(steps, {0});
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t e = 0; e < shape.experts; ++e)
        offsets[step].push_back(offsets[step].back() + int32_t(e % steps == step ? each : 0));

    Memory input(tokens * shape.hidden * 2 + 64), inner(pairs * shape.inter * 2 + 64),
        output(pairs * shape.hidden * 2 + 64),
        bias(shape.experts * 2 * std::max(shape.inter, shape.hidden) * 2);
    for (int64_t i = 0; i < tokens * shape.hidden; ++i)
      input.as<uint16_t>()[i] = 0x3c00 + i * 2654435761u % 0x300;
    std::vector<LaunchSize> sizes = getLaunchSizes(tokens);
    std::vector<Launch> launches;
    for (std::vector<int32_t> &offset : offsets) {
      launches.push_back({library.find("gate_up"),
                          {input.as<void>(), offset.data(), order.data(), gateUp.as<void>(),
                           bias.as<void>(), inner.as<void>()},
                          {tokens, pairs, pairs},
                          sizes[0].workgroups,
                          size_t(sizes[0].scratchBytes)});
      launches.push_back({library.find("down"),
                          {inner.as<void>(), offset.data(), order.data(), down.as<void>(),
                           bias.as<void>(), output.as<void>()},
                          {pairs, pairs, pairs},
                          sizes[1].workgroups,
                          size_t(sizes[1].scratchBytes)});
    }
    double bytes =
        double(shape.countGateUpBytes() + shape.countDownBytes()) * active / shape.experts;
    print(name, measure(launches, options.threads, 2) / double(steps), bytes,
          shape.countFlops(pairs));
  }

  void print(const std::string &name, double time, double bytes, double flops) {
    printf("%-24s %10.3f %10.1f %7.0f%% %10.0f %7.0f%%\n", name.c_str(), time * 1e3,
           bytes / time / 1e9, 100 * bytes / time / bandwidth, flops / time / 1e9,
           100 * flops / time / rate);
    fflush(stdout);
  }

  Options options;
  ExpertsShape shape;
  const TargetDescription &target;
  DialectRegistry registry;
  MLIRContext context;
  Memory gateUp, down;
  std::string strategy;
  double bandwidth = 0, rate = 0;
};

bool parseOptions(int count, char **values, Options &options) {
  for (int i = 1; i + 1 < count; i += 2) {
    std::string name = values[i], value = values[i + 1];
    struct {
      const char *name;
      int64_t *number;
    } numbers[] = {{"--hidden", &options.shape.hidden},
                   {"--inter", &options.shape.inter},
                   {"--experts", &options.shape.experts},
                   {"--top-k", &options.shape.topK}};
    bool known = true;
    if (name == "--threads")
      options.threads = atoi(value.c_str());
    else if (name == "--target")
      options.target = value;
    else if (name == "--strategy")
      options.strategy = value;
    else
      known = false;
    for (auto &entry : numbers)
      if (name == entry.name) {
        *entry.number = atoll(value.c_str());
        known = true;
      }
    if (!known) {
      fprintf(stderr, "unknown option %s\n", name.c_str());
      return false;
    }
  }
  return count % 2 == 1;
}

} // namespace

int main(int count, char **values) {
  Options options;
  if (!parseOptions(count, values, options))
    return 2;
  std::string error;
  FailureOr<TargetDescription> target = TargetDescription::parse(options.target, error);
  if (failed(target)) {
    fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }
  return Bench(options, *target).run() ? 0 : 1;
}
