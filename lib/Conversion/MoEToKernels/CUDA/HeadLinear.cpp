//===- HeadLinear.cpp - a product for each head with its own weight ---------------------------===//

#include "Strategies.h"
#include "TileProduct.h"

#include "../Strategies.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class CUDAHeadLinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.head_linear.tiles"; }
  StringRef getOpName() const override { return moe::HeadLinearOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::HeadLinearOp>(op);
    return linear && target.isCUDA() && !linear.getTransposed() &&
           TileProduct::supports(linear.getWeight().getType());
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override {
    return TileProduct::threads;
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::HeadLinearOp>(op).getInput(),
                      TileProduct::tileRows, getHeads(op) * countColumnTiles(op));
  }

  /// Tiles of one head are neighbours: they share its weight.
  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    auto linear = cast<moe::HeadLinearOp>(op);
    BlockCode code(op->getLoc(), builder, TileProduct::threads);
    int64_t columns = linear.getWeight().getType().getDimSize(1);
    Value firstColumn =
        code.mul(code.remainder(workgroup, countColumnTiles(op)), TileProduct::tileColumns);
    Value tile = code.divide(workgroup, countColumnTiles(op));
    Value head = code.remainder(tile, getHeads(op));
    Value firstRow = code.mul(code.divide(tile, getHeads(op)), TileProduct::tileRows);

    TileProduct product(code, linear.getWeight().getType());
    product.setWeight(operands.slice(1, 1), head);
    auto store = [&](Value i, Value j, ArrayRef<Value> sums) {
      for (auto [offset, sum] : llvm::enumerate(sums)) {
        Value column = code.add(code.add(firstColumn, j), offset);
        code.when(code.isWithin(column, code.index(columns)), [&, sum = sum] {
          code.storeFloat(sum, results[0], {code.add(firstRow, i), head, column});
        });
      }
    };
    product.build({getHeadRows(code, operands[0], head), code.sub(code.dim(operands[0], 0), firstRow),
                   code.sub(code.index(columns), firstColumn),
                   [&](Value i) { return code.add(firstRow, i); },
                   [&](Value j) { return code.add(firstColumn, j); }, store});
  }

private:
  static int64_t getHeads(Operation *op) {
    return cast<moe::HeadLinearOp>(op).getWeight().getType().getDimSize(0);
  }
  static int64_t countColumnTiles(Operation *op) {
    return llvm::divideCeil(cast<moe::HeadLinearOp>(op).getWeight().getType().getDimSize(1),
                            TileProduct::tileColumns);
  }

  /// One head of all tokens, [T, K].
  static Value getHeadRows(BlockCode &code, Value input, Value head) {
    auto type = cast<MemRefType>(input.getType());
    OpFoldResult zero = code.getIndexAttr(0), one = code.getIndexAttr(1);
    SmallVector<OpFoldResult> offsets = {zero, head, zero},
                              sizes = {code.dim(input, 0), one,
                                       code.getIndexAttr(type.getDimSize(2))},
                              strides(3, one);
    auto result = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
        {ShapedType::kDynamic, type.getDimSize(2)}, type, offsets, sizes, strides));
    return memref::SubViewOp::create(code, code.getLoc(), result, input, offsets, sizes, strides);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAHeadLinearStrategy() {
  static const CUDAHeadLinearStrategy strategy;
  return strategy;
}
