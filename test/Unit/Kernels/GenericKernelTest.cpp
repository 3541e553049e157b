// Generic kernels: linalg, tensor and moe ops without a strategy, compiled and compared with plain
// loops.

#include "test/Unit/KernelHarness.h"

#include "gtest/gtest.h"

using namespace moec_test;

TEST(GenericKernel, AddsTensors) {
  KernelHarness harness(R"(
    func.func @add(%x: memref<?x40xf32>, %y: memref<?x40xf32>, %out: memref<?x40xf32>, %scratch: memref<?xi8>, %workgroup: index)
        attributes {plan.kernel} {
      %a = bufferization.to_tensor %x restrict : memref<?x40xf32> to tensor<?x40xf32>
      %b = bufferization.to_tensor %y restrict : memref<?x40xf32> to tensor<?x40xf32>
      %sum = arith.addf %a, %b : tensor<?x40xf32>
      bufferization.materialize_in_destination %sum in restrict writable %out : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
      return
    })",
                        "cpu");
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  int64_t tokens = 5;
  std::vector<float> x(tokens * 40), y(tokens * 40), out(tokens * 40);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = i;
    y[i] = 0.5f * i;
  }
  ASSERT_TRUE(
      harness.run("add", {{x.data(), {tokens}}, {y.data(), {tokens}}, {out.data(), {tokens}}}));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(out[i], x[i] + y[i]) << i;
}
