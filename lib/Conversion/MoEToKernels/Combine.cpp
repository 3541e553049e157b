//===- Combine.cpp - strategy for the weighted sum of the experts' outputs --------------------===//
//
// A workgroup makes a piece of one token's row. Choices are added in order, starting from the
// residual, each with one fused multiply-add: the bits depend on nothing but the row.
//
//===------------------------------------------------------------------------------------------===//

#include "CodeBuilder.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t mostColumns = 2048;
constexpr int64_t columnAlignment = 64;

/// Columns of a workgroup: the row cut into equal pieces.
int64_t getColumnsPerWorkgroup(int64_t columns) {
  int64_t pieces = llvm::divideCeil(columns, mostColumns);
  return llvm::alignTo(llvm::divideCeil(columns, pieces), columnAlignment);
}

class CombineKernel {
public:
  CombineKernel(CodeBuilder &code, moe::CombineOp op, ValueRange operands, Value result,
                const TargetDescription &target)
      : code(code), columns(op.getResult().getType().getDimSize(1)),
        choices(op.getIndices().getType().getDimSize(1)), lanes(target.getVectorBytes() / 4),
        input(operands[0]), weights(operands[1]), indices(operands[2]),
        residual(op.getResidual() ? operands[3] : Value()), result(result) {}

  void build(Value workgroup) {
    int64_t width = getColumnsPerWorkgroup(columns);
    int64_t pieces = llvm::divideCeil(columns, width);
    Value token = code.divide(workgroup, pieces);
    Value first = code.mul(code.remainder(workgroup, pieces), width);
    Value end = code.minimum(code.add(first, width), code.index(columns));
    // Several vectors at once, so that weights and conditions are looked at less often.
    int64_t step = 4 * lanes, whole = columns / step * step;
    code.loop(first, code.minimum(end, code.index(whole)), step,
              [&](Value column) { buildColumns(token, column, step); });
    if (whole < columns)
      code.when(code.compare(arith::CmpIPredicate::eq, end, code.index(columns)),
                [&] { buildColumns(token, code.index(whole), columns - whole); });
  }

private:
  void buildColumns(Value token, Value column, int64_t width) {
    Value start =
        residual ? code.loadFloats(residual, {token, column}, width) : code.floatSplat(0, width);
    Value sum = code.loop(code.index(0), code.index(choices), 1, {start},
                          [&](Value choice, ValueRange sums) -> SmallVector<Value> {
                            return code.choose(
                                isChosen(token, choice), sums[0].getType(),
                                [&]() -> SmallVector<Value> {
                                  return {addChoice(token, choice, column, width, sums[0])};
                                },
                                [&]() -> SmallVector<Value> { return {sums[0]}; });
                          })
                    .front();
    code.storeFloats(sum, result, {token, column});
  }

  /// Rows of choices without an expert are undefined and must not be read.
  Value isChosen(Value token, Value choice) {
    return code.compare(arith::CmpIPredicate::sge, code.loadInt(indices, {token, choice}),
                        code.int32(0));
  }

  Value addChoice(Value token, Value choice, Value column, int64_t width, Value sum) {
    Value row = code.add(code.mul(token, choices), choice);
    Value weight = code.broadcast(code.loadFloat(weights, {token, choice}), width);
    return code.fma(weight, code.loadFloats(input, {row, column}, width), sum);
  }

  CodeBuilder &code;
  int64_t columns, choices, lanes;
  Value input, weights, indices, residual, result;
};

class CombineStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.combine"; }
  StringRef getOpName() const override { return moe::CombineOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto combine = dyn_cast<moe::CombineOp>(op);
    return combine && target.isCPU() &&
           !combine.getResult().getType().isDynamicDim(1) &&
           !combine.getIndices().getType().isDynamicDim(1);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto combine = cast<moe::CombineOp>(op);
    int64_t columns = combine.getResult().getType().getDimSize(1);
    return countTiles(builder, op->getLoc(), combine.getIndices(), 1,
                      llvm::divideCeil(columns, getColumnsPerWorkgroup(columns)));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    CombineKernel(code, cast<moe::CombineOp>(op), operands, results[0], target).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCombineStrategy() {
  static const CombineStrategy strategy;
  return strategy;
}
