//===- AttentionBench.cpp - attention over long contexts beside what the machine can do -------===//
//
//   attention_bench [--threads N (2; 0: one, in its processor time)] [--filter TEXT] [--seconds S
//   (1)]
//
// Decode steps of one sequence and prefills, 64 query heads over 8 kv heads of 64 elements, on the
// threads of the runtime. Bytes are those of the keys and values that a step must see at least
// once; operations are two for each product of a visible (query, key) pair, with keys and with
// values.
//
//===------------------------------------------------------------------------------------------===//

#include "MachineCeilings.h"
#include "runtime/device/cpu/ReadBandwidth.h"

#include "runtime/device/cpu/KernelLibrary.h"
#include "test/Unit/Kernels/AttentionReference.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace moec_bench;
using namespace moec_test;

namespace {

struct Options {
  unsigned threads = 2;
  double seconds = 1;
  std::string filter;
};

struct Ceilings {
  double bytesPerSecond, operationsPerSecond;
};

/// Visible (query, key) pairs of one head.
double countPairs(const AttentionCase &shape, const SequenceCase &sequence) {
  double pairs = 0;
  for (int64_t p = sequence.context - sequence.queries; p < sequence.context; ++p)
    pairs += shape.window > 0 ? std::min(p + 1, shape.window) : p + 1;
  return pairs;
}

double countBytes(const AttentionCase &shape, const SequenceCase &sequence) {
  int64_t keys = sequence.context;
  if (shape.window > 0)
    keys = std::min(keys, shape.window + sequence.queries - 1);
  return double(keys) * shape.getBlockElements() / shape.block * (shape.cacheType == "f32" ? 4 : 2);
}

void measureCase(const std::string &name, AttentionCase shape, SequenceCase sequence,
                 moert::ThreadPool &pool, const Options &options, const Ceilings &ceilings) {
  if (name.find(options.filter) == std::string::npos)
    return;
  StrategyKernel kernel([&](std::string tokens) { return shape.getAttentionText(tokens); });
  if (!kernel.isReady()) {
    std::printf("%s: %s\n", name.c_str(), kernel.getError().c_str());
    return;
  }
  auto library = moert::KernelLibrary::load(kernel.getSharedObject(), "kernels");
  AttentionStep step(shape, {sequence});
  TestBuffer result = step.makeResult();
  std::vector<Binding> bindings = step.getBindings(result);
  // Keys and values lie as they do in a session: aligned, on huge pages.
  auto cache = moert::AlignedMemory::allocate(step.cache.getBytes().size(), "the cache");
  if (!library.isOk() || !cache.isOk())
    return;
  std::memcpy((*cache).data(), step.cache.data(), (*cache).size());
  std::vector<void *> buffers;
  std::vector<int64_t> dimensions;
  for (const Binding &binding : bindings) {
    buffers.push_back(binding.data == step.cache.data() ? (*cache).data() : binding.data);
    dimensions.insert(dimensions.end(), binding.dimensions.begin(), binding.dimensions.end());
  }
  StrategyKernel::LaunchSize size = kernel.getLaunchSize(sequence.queries);
  moert_kernel_arguments arguments = {buffers.data(), dimensions.data()};
  moert_kernel_function function = (*library)->find("kernel");
  moert::ThreadPool::Lease lease(pool);
  if (!lease.reserveScratch(size.scratchBytes).isOk())
    return;
  double seconds =
      measureSeconds([&] { lease.launch(function, &arguments, size.workgroups); }, options.seconds);

  double operations =
      2 * shape.heads * countPairs(shape, sequence) * (shape.keyDim + shape.valueDim);
  double bytes = countBytes(shape, sequence);
  std::printf("%-28s %10.1f %8.1f %6.0f %% %8.2f %6.0f %%\n", name.c_str(), seconds * 1e6,
              operations / seconds * 1e-9,
              100 * operations / seconds / ceilings.operationsPerSecond, bytes / seconds * 1e-9,
              100 * bytes / seconds / ceilings.bytesPerSecond);
  std::fflush(stdout);
}

bool parse(int count, char **arguments, Options &options) {
  for (int i = 1; i < count; i += 2) {
    std::string name = arguments[i];
    if (i + 1 == count)
      return false;
    if (name == "--threads")
      options.threads = std::atoi(arguments[i + 1]);
    else if (name == "--seconds")
      options.seconds = std::atof(arguments[i + 1]);
    else if (name == "--filter")
      options.filter = arguments[i + 1];
    else
      return false;
  }
  return true;
}

} // namespace

int main(int count, char **arguments) {
  Options options;
  if (!parse(count, arguments, options)) {
    std::fprintf(stderr, "usage: attention_bench [--threads N] [--seconds S] [--filter TEXT]\n");
    return 2;
  }
  if (options.threads == 0) {
    useProcessorTime();
    options.threads = 1;
  }
  auto pool = moert::ThreadPool::create(options.threads);
  if (!pool.isOk())
    return 3;
  Ceilings ceilings = {moert::measureReadBandwidth(**pool), measureMultiplyAddRate(**pool)};
  std::printf("%u threads: reading %.1f GB/s, multiply-adds %.1f GFLOP/s\n\n", options.threads,
              ceilings.bytesPerSecond * 1e-9, ceilings.operationsPerSecond * 1e-9);
  std::printf("%-28s %10s %8s %8s %8s %8s\n", "", "us", "GFLOP/s", "of max", "GB/s", "of max");

  AttentionCase shape;
  shape.heads = 64;
  shape.kvHeads = 8;
  for (const char *type : {"f32", "bf16"}) {
    shape.cacheType = shape.queryType = type;
    shape.window = 0;
    for (int64_t context : {512, 4096, 32768})
      measureCase(std::string(type) + " decode at " + std::to_string(context), shape, {context, 1},
                  **pool, options, ceilings);
    for (int64_t context : {512, 2048})
      measureCase(std::string(type) + " prefill " + std::to_string(context), shape,
                  {context, context}, **pool, options, ceilings);
    shape.window = 128;
    measureCase(std::string(type) + " decode at 4096 window 128", shape, {4096, 1}, **pool, options,
                ceilings);
    measureCase(std::string(type) + " prefill 2048 window 128", shape, {2048, 2048}, **pool,
                options, ceilings);
  }
  return 0;
}
