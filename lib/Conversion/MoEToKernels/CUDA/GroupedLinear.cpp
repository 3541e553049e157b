//===- GroupedLinear.cpp - products of routed rows with their experts, any types --------------===//

#include "ExpertTiles.h"
#include "Strategies.h"
#include "TileProduct.h"

#include "moec/Conversion/KernelStrategy.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class CUDAGroupedLinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.grouped_linear.tiles"; }
  StringRef getOpName() const override { return moe::GroupedLinearOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::GroupedLinearOp>(op);
    return linear && target.isCUDA() && TileProduct::supports(linear.getWeight().getType());
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override {
    return TileProduct::threads;
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return ExpertTiles::count(builder, cast<moe::GroupedLinearOp>(op), TileProduct::tileRows,
                              TileProduct::tileColumns);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    auto linear = cast<moe::GroupedLinearOp>(op);
    BlockCode code(op->getLoc(), builder, TileProduct::threads);
    ExpertTiles tiles(code, linear, operands, results[0], TileProduct::tileRows);
    TileProduct product(code, linear.getWeight().getType());
    int64_t columnTiles = llvm::divideCeil(tiles.getColumns(), TileProduct::tileColumns);
    auto [expert, tile] = tiles.find(code.divide(workgroup, columnTiles));
    Value firstColumn = code.mul(code.remainder(workgroup, columnTiles), TileProduct::tileColumns);
    code.when(tiles.isExpert(expert), [&, expert = expert, tile = tile] {
      tiles.enter(expert, tile);
      product.setWeight(tiles.getStorage(), expert);
      auto inputRow = [&](Value i) { return tiles.getInputRow(i); };
      auto weightRow = [&](Value j) { return tiles.getWeightRow(code.add(firstColumn, j)); };
      auto store = [&](Value i, Value j, ArrayRef<Value> sums) {
        tiles.store(i, code.add(firstColumn, j), sums);
      };
      product.build({tiles.getInput(), tiles.countRows(),
                     code.sub(code.index(tiles.getColumns()), firstColumn), inputRow, weightRow,
                     store});
    });
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAGroupedLinearStrategy() {
  static const CUDAGroupedLinearStrategy strategy;
  return strategy;
}
