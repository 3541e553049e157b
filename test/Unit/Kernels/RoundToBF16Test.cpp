// f32 to bf16 in generic kernels, where the target has no instruction for it.

#include "test/Unit/KernelHarness.h"

#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <random>

using namespace moec_test;

/// To nearest, ties to even; NaN stays NaN with its upper bits.
static uint16_t roundToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return (bits | 0x400000) >> 16;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

TEST(RoundToBF16, MatchesOnTiesInfinitiesAndNaN) {
  KernelHarness harness(R"(
    func.func @round(%x: memref<?xf32>, %out: memref<?xbf16>, %scratch: memref<?xi8>, %workgroup: index)
        attributes {plan.kernel} {
      %a = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
      %b = arith.truncf %a : tensor<?xf32> to tensor<?xbf16>
      bufferization.materialize_in_destination %b in restrict writable %out : (tensor<?xbf16>, memref<?xbf16>) -> ()
      return
    })",
                        "cpu");
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  std::vector<float> x = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 3.4e38f, -3.4e38f, 1e-40f};
  // Exact ties with an even and an odd upper half, and their neighbours.
  for (uint32_t bits :
       {0x3f808000u, 0x3f818000u, 0x3f807fffu, 0x3f808001u, 0x7f800001u, 0xff80ffffu})
    x.push_back(std::bit_cast<float>(bits));
  std::mt19937 generator(1);
  while (x.size() < 1003)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(generator())));
  int64_t count = x.size();
  std::vector<uint16_t> out(count);
  ASSERT_TRUE(harness.run("round", {{x.data(), {count}}, {out.data(), {count}}}));
  for (int64_t i = 0; i < count; ++i)
    EXPECT_EQ(out[i], roundToBF16(x[i])) << "element " << i << ", " << x[i];
}
