// Where caches may lie and how long they may be, for every kernel that reads or writes one, on both
// targets.

#include "AttentionReference.h"

#include "gtest/gtest.h"

#include <sys/mman.h>

using namespace moec_test;

namespace {

struct CacheCase {
  const char *name;
  bool isCUDA;
  bool shared;        ///< keys hold the values
  int64_t indexWidth; ///< 0: all positions are seen

  AttentionCase getShape() const {
    AttentionCase shape;
    shape.heads = 2;
    shape.kvHeads = 1;
    shape.keyDim = 16;
    shape.valueDim = shared ? 12 : 16;
    shape.block = 64;
    shape.shared = shared;
    shape.indexWidth = indexWidth;
    if (isCUDA)
      shape.strategy = "cuda.attention.warps";
    else if (shared || indexWidth)
      shape.strategy = "cpu.attention.rows";
    return shape;
  }
  StrategyKernel compile() const {
    return StrategyKernel(
        [shape = getShape()](std::string tokens) { return shape.getAttentionText(tokens); },
        isCUDA ? "cuda:sm_80" : "cpu");
  }
};

void PrintTo(const CacheCase &named, std::ostream *stream) { *stream << named.name; }

class Cache : public testing::TestWithParam<CacheCase> {};

/// Around 2048 positions, where others stop to choose and to page.
TEST_P(Cache, LongContextsInShuffledBlocks) {
  CacheCase named = GetParam();
  if (named.indexWidth)
    named.indexWidth = 2048;
  StrategyKernel kernel = named.compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  for (int64_t context : {257, 2047, 2048, 2049, 2113}) {
    AttentionStep step(named.getShape(), {{context, 1, 3}, {70, 1, 4}}, context);
    EXPECT_LE(step.compare(step.run(kernel)), 1) << "context " << context;
  }
}

TEST_P(Cache, APoolMayBeASliceOfALargerOne) {
  StrategyKernel kernel = GetParam().compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  AttentionStep step(GetParam().getShape(), {{130, 2, 3}, {65, 1, 4}});
  TestBuffer expected = step.run(kernel), result = step.makeResult();
  // A block before the pool and one behind it belong to others.
  int64_t blockElements = step.shape.getBlockElements();
  TestBuffer larger("f32", step.cache.size() + 2 * blockElements);
  for (int64_t i = 0; i < step.cache.size(); ++i)
    larger.set(blockElements + i, step.cache.get(i));
  std::vector<Binding> bindings = step.getBindings(result);
  bindings[1].data = static_cast<float *>(larger.data()) + blockElements;
  Unchanged unchanged{&larger};
  ASSERT_TRUE(kernel.run(step.getTokens(), bindings));
  EXPECT_TRUE(result.getBytes() == expected.getBytes());
}

/// Elements beyond 2^31 of a pool, most of which no memory stands behind.
TEST_P(Cache, FarBlocksAreFound) {
  StrategyKernel kernel = GetParam().compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  AttentionStep step(GetParam().getShape(), {{130, 2, 3}, {65, 1, 4}});
  TestBuffer expected = step.run(kernel), result = step.makeResult();
  int64_t blockElements = step.shape.getBlockElements();
  int64_t shift = (int64_t(1) << 31) / blockElements + 1, blocks = shift + step.poolBlocks;
  size_t bytes = blocks * blockElements * sizeof(float);
  void *pool = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pool, MAP_FAILED);
  std::memcpy(static_cast<float *>(pool) + shift * blockElements, step.cache.data(),
              step.cache.getBytes().size());
  for (int32_t &block : step.blockTable)
    if (block >= 0 && block < step.poolBlocks)
      block += shift;
  std::vector<Binding> bindings = step.getBindings(result);
  bindings[1] = {pool, {blocks}};
  EXPECT_TRUE(kernel.run(step.getTokens(), bindings));
  EXPECT_TRUE(result.getBytes() == expected.getBytes());
  munmap(pool, bytes);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Cache,
                         testing::Values(CacheCase{"AttentionOnCPU", false, false, 0},
                                         CacheCase{"LatentOnCPU", false, true, 0},
                                         CacheCase{"ListedOnCPU", false, true, 24},
                                         CacheCase{"AttentionOnGPU", true, false, 0},
                                         CacheCase{"LatentOnGPU", true, true, 0},
                                         CacheCase{"ListedOnGPU", true, true, 24}),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
