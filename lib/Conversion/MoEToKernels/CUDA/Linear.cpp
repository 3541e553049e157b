//===- Linear.cpp - products with one weight, any types ---------------------------------------===//

#include "../Strategies.h"
#include "Strategies.h"
#include "TileProduct.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class CUDALinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.linear.tiles"; }
  StringRef getOpName() const override { return moe::LinearOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::LinearOp>(op);
    return linear && target.isCUDA() && TileProduct::supports(linear.getWeight().getType());
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override {
    return TileProduct::threads;
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::LinearOp>(op).getInput(),
                      TileProduct::tileRows, countColumnTiles(op));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    auto linear = cast<moe::LinearOp>(op);
    BlockCode code(op->getLoc(), builder, TileProduct::threads);
    auto next = operands.begin();
    Value input = *next++;
    TileProduct product(code, linear.getWeight().getType());
    size_t buffers = isa<moe::BlockTensorType>(linear.getWeight().getType()) ? 2 : 1;
    product.setWeight(operands.slice(1, buffers), /*expert=*/{});
    next += buffers;
    Value bias = linear.getBias() ? *next++ : Value();
    Value residual = linear.getResidual() ? *next++ : Value();
    if (linear.getNormWeight())
      product.setNorm(*next++, linear.getEpsilon()->convertToDouble());

    Value result = results[0];
    int64_t columns = countColumns(op);
    Value firstRow = code.mul(code.divide(workgroup, countColumnTiles(op)), TileProduct::tileRows);
    Value firstColumn =
        code.mul(code.remainder(workgroup, countColumnTiles(op)), TileProduct::tileColumns);
    auto store = [&](Value i, Value j, ArrayRef<Value> sums) {
      Value row = code.add(firstRow, i);
      for (auto [offset, sum] : llvm::enumerate(sums)) {
        Value column = code.add(code.add(firstColumn, j), offset);
        code.when(code.isWithin(column, code.index(columns)), [&, sum = sum] {
          Value value = sum;
          if (bias)
            value = code.add(value, code.loadFloat(bias, column));
          if (residual)
            value = code.add(value, code.loadFloat(residual, {row, column}));
          code.storeFloat(value, result, {row, column});
        });
      }
    };
    product.build({input, code.sub(code.dim(input, 0), firstRow),
                   code.sub(code.index(columns), firstColumn),
                   [&](Value i) { return code.add(firstRow, i); },
                   [&](Value j) { return code.add(firstColumn, j); }, store});
  }

private:
  static int64_t countColumns(Operation *op) {
    return moe::getLogicalShape(cast<moe::LinearOp>(op).getWeight().getType())[0];
  }
  static int64_t countColumnTiles(Operation *op) {
    return llvm::divideCeil(countColumns(op), TileProduct::tileColumns);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDALinearStrategy() {
  static const CUDALinearStrategy strategy;
  return strategy;
}
