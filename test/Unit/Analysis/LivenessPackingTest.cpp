#include "moec/Analysis/LivenessPacking.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir::moec;

TEST(LivenessPacking, EmptyNeedsNothing) {
  std::vector<LiveBuffer> buffers;
  EXPECT_EQ(packBuffers(buffers), 0);
  EXPECT_EQ(getMaximumLiveBytes(buffers), 0);
}

TEST(LivenessPacking, AChainAlternates) {
  std::vector<LiveBuffer> buffers = {{64, 0, 1}, {64, 1, 2}, {64, 2, 3}, {64, 3, 4}};
  EXPECT_EQ(packBuffers(buffers), 128);
  EXPECT_EQ(buffers[0].offset, buffers[2].offset);
  EXPECT_EQ(buffers[1].offset, buffers[3].offset);
  EXPECT_FALSE(findOverlap(buffers));
}

TEST(LivenessPacking, LifetimesIncludeTheirLastCommand) {
  std::vector<LiveBuffer> buffers = {{64, 0, 1}, {64, 1, 1}};
  EXPECT_EQ(packBuffers(buffers), 128);
}

TEST(LivenessPacking, OverlapIsFound) {
  std::vector<LiveBuffer> buffers = {{64, 0, 2, 0}, {64, 3, 4, 0}, {64, 4, 5, 63}};
  auto overlap = findOverlap(buffers);
  ASSERT_TRUE(overlap);
  EXPECT_EQ(*overlap, std::make_pair(size_t(1), size_t(2)));
}

TEST(LivenessPacking, RandomPlansAreSoundAndNearTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveBuffer> buffers;
    int64_t commands = 1 + random() % 60;
    for (int count = random() % 80; count > 0; --count) {
      int64_t first = random() % commands;
      buffers.push_back({int64_t(64 * (1 + random() % 40)), first,
                         std::min<int64_t>(commands - 1, first + random() % 6)});
    }
    int64_t total = packBuffers(buffers);
    EXPECT_FALSE(findOverlap(buffers));
    EXPECT_GE(total, getMaximumLiveBytes(buffers));
    for (const LiveBuffer &buffer : buffers) {
      EXPECT_GE(buffer.offset, 0);
      EXPECT_LE(buffer.offset + buffer.bytes, total);
      EXPECT_EQ(buffer.offset % 64, 0);
    }
  }
}
