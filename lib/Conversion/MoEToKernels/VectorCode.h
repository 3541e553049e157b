//===- VectorCode.h - numbers in vectors: rounding, partial rows, flat views ------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_VECTORCODE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_VECTORCODE_H

#include "CodeBuilder.h"

namespace mlir::moec {

/// Rows of a weight panel: the lanes of the vectors that products work on.
constexpr int64_t panelRows = 16;
/// Columns that are summed on their own before they join a row's sum: the block of MXFP4.
constexpr int64_t blockColumns = 32;

/// f32 (scalar or vector) to `element` and back to f32: what storing and loading it would give.
Value roundThrough(CodeBuilder &code, Value value, Type element);

/// Loads `lanes` neighbours of a memref of floats as f32. bf16 is widened with integer instructions, which every x86 has.
Value loadWidened(CodeBuilder &code, Value memref, ValueRange indices, int64_t lanes);
Value loadWidened(CodeBuilder &code, Value memref, ValueRange indices);

/// Stores f32 (scalar or vector), rounded to the memref's element type, ties to even.
void storeRounded(CodeBuilder &code, Value value, Value memref, ValueRange indices);

/// The memref, of static shape and identity layout, as one row.
Value flatten(CodeBuilder &code, Value memref);

/// Reinterprets the bits of a scalar or a vector of the same width.
Value bitcastTo(CodeBuilder &code, Value value, Type element);

Value shiftLeft(CodeBuilder &code, Value vector, int64_t bits);
Value shiftRight(CodeBuilder &code, Value vector, int64_t bits);
Value bitAnd(CodeBuilder &code, Value vector, uint32_t mask);

/// a * b + c, fused where the target has it: without, a call of the C library would take its place.
Value multiplyAdd(CodeBuilder &code, bool fused, Value a, Value b, Value c);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_VECTORCODE_H
