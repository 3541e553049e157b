//===- LinearResults.h - what becomes of the sums of a dense product on Hopper ----------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARRESULTS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARRESULTS_H

#include "LinearShape.h"
#include "PartialSums.h"
#include "ResultBoxes.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// Bias and residual are added, and results stored: in boxes where the copy engine can, in pairs where
/// it cannot, and after warpgroups that share k have exchanged their sums.
class LinearResults {
public:
  /// `operands` are those of `op`, as memrefs.
  LinearResults(HopperCode &code, moe::LinearOp op, ValueRange operands, Value result);

  /// Whether results of this shape go through boxes.
  bool usesBoxes(const LinearShape &shape) const;
  /// At the beginning of the kernel: describes the result, where a shape uses boxes.
  void describe(ArrayRef<LinearShape> shapes);

  /// By warpgroup `group` (0 or 1), before its first tile and after its last.
  void begin(const LinearShape &shape, WarpgroupProduct &product, Value group);
  void finish();
  /// The sums of the 64 rows from `row` on.
  void store(Value sums, Value row, Value column);

private:
  void storeBoxes(Value sums, Value firstRow, Value firstColumn);
  void storeShared(Value sums, Value firstRow, Value firstColumn);
  void storePairs(Value sums, Value firstRow, Value firstColumn);
  /// Bias and residual of the pair from `column` (even) on in `row` (both i32). They are loaded long before
  /// they are needed, whether the pair is there or not: then those of some other pair.
  SmallVector<Value, 2> loadTerms(Value row, Value column);
  Value isBelow(Value a, Value b) { return code.compare(arith::CmpIPredicate::slt, a, b); }

  HopperCode &code;
  int64_t columns;
  Value bias, residual, result, rows;
  ResultBoxes::Maps maps;
  WarpgroupProduct *product = nullptr;
  std::optional<ResultBoxes> boxes;
  std::optional<PartialSums> partialSums;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARRESULTS_H
