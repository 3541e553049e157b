//===- HyperWeightsCode.h - a token's weights of hyper-connections ----------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_HYPERWEIGHTSCODE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_HYPERWEIGHTSCODE_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// Code for one token and one thread, numbers in registers, once the norm's sum is known.
class HyperWeightsCode {
public:
  /// Matrices of more numbers do not fit in registers.
  static constexpr int64_t mostStreams = 8;

  HyperWeightsCode(CodeBuilder &code, moe::HyperWeightsOp op, ValueRange operands, Value result)
      : code(code), op(op), streams(op.getStreams().getType().getDimSize(1)),
        columns(op.getProducts().getType().getDimSize(1)), products(operands[0]),
        scale(operands[2]), base(operands[3]), result(result) {}

  /// `squares`: the sum of the squares of all of the token's streams.
  void build(Value token, Value squares);

private:
  /// Numbers [first, first + count) of the token before the functions that make weights of them.
  SmallVector<Value> load(Value token, Value factor, int64_t first, int64_t count, int64_t part);
  Value sigmoid(Value x);
  void buildSoftmax(MutableArrayRef<Value> row);
  /// Divides each of `count` rows (columns) of the matrix by its sum.
  void divideRows(MutableArrayRef<Value> matrix) { divide(matrix, streams, 1); }
  void divideColumns(MutableArrayRef<Value> matrix) { divide(matrix, 1, streams); }
  void divide(MutableArrayRef<Value> matrix, int64_t stepOfLine, int64_t stepInLine);
  void store(Value token, int64_t first, ValueRange weights);

  CodeBuilder &code;
  moe::HyperWeightsOp op;
  int64_t streams, columns;
  Value products, scale, base, result;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_HYPERWEIGHTSCODE_H
