//===- ProductCase.h - weights of every format for tests of products --------------------------===//

#ifndef MOEC_TEST_UNIT_KERNELS_PRODUCTCASE_H
#define MOEC_TEST_UNIT_KERNELS_PRODUCTCASE_H

#include "StrategyKernel.h"
#include "TestBuffer.h"

namespace moec_test {

/// A random weight [N, K], or [E, N, K] with `experts` > 0, in the checkpoint's form and in panels.
class TestWeight {
public:
  /// `type` is f32, bf16, f16 or mxfp4.
  TestWeight(std::string type, int64_t experts, int64_t n, int64_t k, std::mt19937 &generator);

  /// The number behind element (expert, row, column); not a number under scale byte 255.
  double get(int64_t expert, int64_t row, int64_t column) const;
  /// Replaces the scale byte of one block.
  void setScale(int64_t expert, int64_t row, int64_t block, uint8_t scale);
  void setCode(int64_t expert, int64_t row, int64_t column, uint8_t code);

  bool isMXFP4() const { return type == "mxfp4"; }
  /// How far a kernel that turns bf16 activations into integers, block by block, may be from the
  /// sum over `row`.
  double getIntegerTolerance(int64_t expert, int64_t n, const std::vector<double> &row) const;
  /// Types without and with the layout, and the storage of the latter.
  std::string getLogicalType() const;
  std::string getPackedType() const;
  std::string getStorageType() const;
  /// The weight in its layout, built here element by element from the layout's definition.
  std::vector<std::byte> pack() const;

  /// What a checkpoint holds.
  TestBuffer dense;
  std::vector<uint8_t> codes, scales;

private:
  int64_t rowIndex(int64_t expert, int64_t row) const { return expert * n + row; }
  int64_t countMatrices() const { return std::max<int64_t>(experts, 1); }
  std::string getDimensions() const;
  std::string getLayout() const;
  std::vector<std::byte> packBlocks() const;
  std::vector<std::byte> packDense() const;

  std::string type;
  int64_t experts, n, k;
};

/// What a strategy is compiled for in a test. Targets that this machine lacks are emulated.
struct TestTarget {
  std::string name = "cpu";
  bool matrixUnit = false;

  std::string getStrategy(const std::string &op) const {
    return "cpu." + op + (matrixUnit ? ".amx" : ".vector");
  }
  HarnessOptions getOptions(bool batchInvariant) const {
    return {.emulate = !canRun(name), .batchInvariant = batchInvariant};
  }
};

/// Room for `count` results behind which nothing may be written.
class GuardedResult {
public:
  GuardedResult(std::string type, int64_t count)
      : buffer(std::move(type), count + guard), count(count) {}

  TestBuffer buffer;
  bool isGuardIntact() const;

private:
  static constexpr int64_t guard = 64;
  int64_t count;
};

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_PRODUCTCASE_H
