#include "moec/Dialect/MoE/Reference/Compare.h"

#include "test/Unit/Reference/TestModules.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {
class CompareTest : public ::testing::Test {
protected:
  ReferenceTensor make(ArrayRef<double> values) {
    return *ReferenceTensor::createFrom(builder.getF32Type(), {static_cast<int64_t>(values.size())},
                                        values);
  }
  bool agree(ArrayRef<double> actual, ArrayRef<double> expected, Tolerance tolerance) {
    report.clear();
    return succeeded(compareTensors(make(actual), make(expected), tolerance, report));
  }

  TestContext test;
  Builder builder{test.get()};
  std::string report;
};
} // namespace

TEST_F(CompareTest, Tolerances) {
  EXPECT_TRUE(agree({1, 2}, {1, 2}, {}));
  EXPECT_FALSE(agree({1, 2.25}, {1, 2}, {}));
  EXPECT_NE(report.find("element 1: expected 2, got 2.25"), std::string::npos) << report;
  EXPECT_NE(report.find("1 of 2 elements differ"), std::string::npos) << report;
  EXPECT_TRUE(agree({1, 2.25}, {1, 2}, {.absolute = 0.25}));
  EXPECT_FALSE(agree({1, 2.25}, {1, 2}, {.absolute = 0.2}));
  EXPECT_TRUE(agree({1, 2.25}, {1, 2}, {.relative = 0.125}));
  EXPECT_FALSE(agree({0.1}, {0}, {.relative = 100}));
}

TEST_F(CompareTest, NumbersThatAreNotFinite) {
  double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  Tolerance wide{.absolute = 1e30, .relative = 1};
  EXPECT_TRUE(agree({nan, infinity}, {nan, infinity}, {}));
  EXPECT_FALSE(agree({1}, {nan}, wide));
  EXPECT_FALSE(agree({nan}, {1}, wide));
  EXPECT_FALSE(agree({infinity}, {1}, wide));
  EXPECT_FALSE(agree({1}, {infinity}, wide));
  EXPECT_FALSE(agree({-infinity}, {infinity}, wide));
  EXPECT_TRUE(agree({1}, {nan}, {.isUndefinedNaN = true}));
  EXPECT_FALSE(agree({nan}, {1}, {.isUndefinedNaN = true}));
}

TEST_F(CompareTest, ShapesAndTypes) {
  EXPECT_FALSE(agree({1, 2}, {1}, {.absolute = 1e9}));
  EXPECT_NE(report.find("expected f32 [1], got f32 [2]"), std::string::npos) << report;
}

TEST_F(CompareTest, DistanceIsMeasured) {
  Distance distance = measureDistance(make({3, 4.5}), make({3, 4}));
  EXPECT_DOUBLE_EQ(distance.largestAbsolute, 0.5);
  EXPECT_DOUBLE_EQ(distance.relativeRMS, 0.1);
}

TEST_F(CompareTest, CompiledResultsAgainstTheInterpreter) {
  OwningOpRef<ModuleOp> module = test.parse(R"mlir(
    func.func @twice(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
      %0 = arith.addf %x, %x : tensor<?xf32>
      return %0, %x : tensor<?xf32>, tensor<?xf32>
    })mlir");
  ReferenceTensor x = make({1, 2});
  auto compare = [&](ArrayRef<ReferenceTensor> outputs) {
    report.clear();
    return succeeded(compareWithReference(*module, nullptr, "twice", {x}, outputs, {}, report));
  };
  EXPECT_TRUE(compare({make({2, 4}), x})) << report;
  EXPECT_FALSE(compare({make({2, 5}), x}));
  EXPECT_NE(report.find("result 0: element 1: expected 4, got 5"), std::string::npos) << report;
  EXPECT_NE(report.find("result 1: 2 elements agree"), std::string::npos) << report;
  EXPECT_FALSE(compare({x}));
  EXPECT_FALSE(succeeded(compareWithReference(*module, nullptr, "thrice", {x}, {x}, {}, report)));
  EXPECT_NE(test.takeErrors().find("no function 'thrice'"), std::string::npos);
}
