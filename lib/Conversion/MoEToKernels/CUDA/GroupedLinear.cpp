//===- GroupedLinear.cpp - products of routed rows with their experts, any types --------------===//
//
// Workgroups are tiles of rows, numbered through all experts, times tiles of columns. A block finds
// its expert by walking over the offsets; blocks behind the last tile have nothing to do. Columns of
// a tile alternate between gate and up, so that the activation happens in one thread.
//
//===------------------------------------------------------------------------------------------===//

#include "../GatedActivation.h"
#include "../Strategies.h"
#include "Strategies.h"
#include "TileProduct.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class GroupedLinearBlock {
public:
  GroupedLinearBlock(BlockCode &code, moe::GroupedLinearOp op, ValueRange operands, Value result)
      : code(code), op(op), product(code, op.getWeight().getType()), input(operands[0]),
        offsets(operands[1]), pairs(operands[2]), result(result) {
    size_t buffers = isa<moe::BlockTensorType>(op.getWeight().getType()) ? 2 : 1;
    storage = operands.slice(3, buffers);
    bias = op.getBias() ? operands[3 + buffers] : Value();
    ArrayRef<int64_t> shape = moe::getLogicalShape(op.getWeight().getType());
    experts = shape[0];
    columns = shape[1];
  }

  void build(Value workgroup) {
    int64_t columnTiles = llvm::divideCeil(columns, TileProduct::tileColumns);
    auto [expert, tile] = findTile(code.divide(workgroup, columnTiles));
    Value firstColumn = code.mul(code.remainder(workgroup, columnTiles), TileProduct::tileColumns);
    code.when(code.isWithin(expert, code.index(experts)), [&, expert = expert, tile = tile] {
      buildTile(expert, code.mul(tile, TileProduct::tileRows), firstColumn);
    });
  }

private:
  /// The expert of tile `number`, and which of its tiles it is; the number of experts if there are
  /// fewer tiles.
  std::pair<Value, Value> findTile(Value number) {
    Value none = code.index(experts);
    SmallVector<Value> found = code.loop(
        code.index(0), none, 1, {none, code.index(0), number},
        [&](Value expert, ValueRange carried) -> SmallVector<Value> {
          Value count = code.sub(code.loadIndex(offsets, code.add(expert, 1)),
                                 code.loadIndex(offsets, expert));
          Value tiles = code.divide(code.add(count, TileProduct::tileRows - 1),
                                    TileProduct::tileRows);
          // Unsigned: once found, what is left is a large number.
          Value isHere = code.isWithin(carried[2], tiles);
          return {code.select(isHere, expert, carried[0]),
                  code.select(isHere, carried[2], carried[1]), code.sub(carried[2], tiles)};
        });
    return {found[0], found[1]};
  }

  void buildTile(Value expert, Value firstInExpert, Value firstColumn) {
    Value begin = code.loadIndex(offsets, expert), end = code.loadIndex(offsets, code.add(expert, 1));
    Value first = code.add(begin, firstInExpert);
    product.setWeight(storage, expert);
    auto inputRow = [&](Value i) -> Value {
      Value place = code.add(first, i);
      return op.getGather() ? code.divide(code.loadIndex(pairs, place), op.getTopK()) : place;
    };
    auto store = [&](Value i, Value j, ArrayRef<Value> sums) {
      Value place = code.add(first, i);
      Value row = op.getScatter() ? code.loadIndex(pairs, place) : place;
      storeColumns(expert, row, code.add(firstColumn, j), sums);
    };
    product.build({input, code.sub(end, first), code.sub(code.index(columns), firstColumn),
                   inputRow, [&](Value j) { return getWeightRow(code.add(firstColumn, j)); }, store});
  }

  /// The row of the weight that is column `j` of the tiles: gate and up in turn.
  Value getWeightRow(Value j) {
    moe::ActivationAttr activation = op.getActivationAttr();
    if (!activation || activation.getInterleaved())
      return j;
    return code.add(code.divide(j, 2), code.mul(code.remainder(j, 2), columns / 2));
  }

  void storeColumns(Value expert, Value row, Value firstColumn, ArrayRef<Value> sums) {
    auto addBias = [&](Value sum, Value column) -> Value {
      if (!bias)
        return sum;
      return code.add(sum, code.loadFloat(bias, {expert, getWeightRow(column)}));
    };
    int64_t step = op.getActivationAttr() ? 2 : 1;
    for (int64_t offset = 0; offset < static_cast<int64_t>(sums.size()); offset += step) {
      Value column = code.add(firstColumn, offset);
      code.when(code.isWithin(column, code.index(columns)), [&] {
        Value value = addBias(sums[offset], column);
        if (op.getActivationAttr())
          value = activate(value, addBias(sums[offset + 1], code.add(column, 1)));
        code.storeFloat(value, result, {row, code.divide(column, step)});
      });
    }
  }

  Value activate(Value gate, Value up) {
    Value value = buildActivation(code, op.getActivationAttr(), code.broadcast(gate, 1),
                                  code.broadcast(up, 1));
    return static_cast<CodeBuilder &>(code).lane(value, 0);
  }

  BlockCode &code;
  moe::GroupedLinearOp op;
  TileProduct product;
  Value input, offsets, pairs, bias, result;
  ValueRange storage;
  int64_t experts, columns;
};

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

  /// At most one tile that is not full for each expert, and at most one tile for each pair.
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto linear = cast<moe::GroupedLinearOp>(op);
    CodeBuilder code(op->getLoc(), builder);
    ArrayRef<int64_t> shape = moe::getLogicalShape(linear.getWeight().getType());
    int64_t columnTiles = llvm::divideCeil(shape[1], TileProduct::tileColumns);
    OpFoldResult pairs = tensor::getMixedSize(builder, op->getLoc(), linear.getPairs(), 0);
    if (auto count = getConstantIntValue(pairs))
      return builder.getIndexAttr(
          std::min<int64_t>(*count, llvm::divideCeil(*count, TileProduct::tileRows) + shape[0]) *
          columnTiles);
    Value count = cast<Value>(pairs);
    Value full = arith::CeilDivUIOp::create(code, code.getLoc(), count,
                                            code.index(TileProduct::tileRows));
    return code.mul(code.minimum(code.add(full, shape[0]), count), columnTiles);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, TileProduct::threads);
    GroupedLinearBlock(code, cast<moe::GroupedLinearOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAGroupedLinearStrategy() {
  static const CUDAGroupedLinearStrategy strategy;
  return strategy;
}
