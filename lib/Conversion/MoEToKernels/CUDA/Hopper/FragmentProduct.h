//===- FragmentProduct.h - products of warpgroups with the left operand in registers ----------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_FRAGMENTPRODUCT_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_FRAGMENTPRODUCT_H

#include "HopperCode.h"

namespace mlir::moec {

/// 64 rows of bf16 in the warpgroup's registers times `columns` columns in shared memory.
class FragmentProduct : public WarpgroupProduct {
public:
  FragmentProduct(HopperCode &code, int64_t columns)
      : WarpgroupProduct(code, code.getBF16Type(), columns), code(code) {}

  /// What multiply() takes for columns at the i32 address `right`: rows of 128 bytes, swizzled.
  /// A step of 16 elements is `+ 2`, `bytes` further is `+ bytes / 16`.
  Value describe(Value right);

  /// Adds the product of 16 elements of the rows, four registers (i32) in each thread, and of the
  /// columns. It runs on its own until waited for: neither `left` nor the sums may be touched.
  SmallVector<Value> multiply(ArrayRef<Value> sums, ArrayRef<Value> left, Value right);

private:
  HopperCode &code;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_FRAGMENTPRODUCT_H
