//===- Linear.cpp - dense products of 16-bit floats on Hopper ---------------------------------===//
//
// Blocks stay for the whole launch and take tiles in turn. One warpgroup brings boxes of the input
// and of the weight into a ring of slots; two others multiply. How a tile is cut depends on how many
// rows there are: see LinearShape. Blocks come in pairs, which can share k or what they copy.
//
//===------------------------------------------------------------------------------------------===//

#include "../../Strategies.h"
#include "../Strategies.h"
#include "HopperCode.h"
#include "LinearResults.h"
#include "LinearSchedule.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

using Pair = LinearShape::Pair;

constexpr int64_t threads = 3 * HopperCode::warpgroupSize;
constexpr int64_t depth = LinearShape::depth, bytesOfRow = LinearShape::bytesOfRow;

class LinearBlock {
public:
  LinearBlock(HopperCode &code, moe::LinearOp op, ValueRange operands, Value result,
              const TargetDescription &target)
      : code(code), op(op), columns(moe::getLogicalShape(op.getWeight().getType())[0]),
        elements(moe::getLogicalShape(op.getWeight().getType())[1]),
        schedule(code, getLinearShapes(columns, elements, target.batchInvariant), columns,
                 elements),
        shapes(schedule.getShapes()), results(code, op, operands, result), input(operands[0]),
        weight(operands[1]) {
    rows = code.toInt32(code.dim(input, 0));
    // Boxes are copied out of the whole buffer, of which the input may be some columns.
    firstElement = cast<MemRefType>(input.getType()).getStridesAndOffset().second;
    while (auto view = input.getDefiningOp<memref::SubViewOp>())
      input = view.getSource();
  }

  void build(Value workgroup) {
    code.setClusterSize(2);
    int64_t mostSlots = 0;
    for (const LinearShape &shape : shapes)
      mostSlots = std::max(mostSlots, shape.getSlots());
    SlotRing ring(code, mostSlots, 1, 2);
    for (int64_t boxRows : rowBoxes)
      inputMaps.push_back(code.tensorMap(input, {depth, boxRows}));
    SmallVector<Value> weightMaps;
    for (const LinearShape &shape : shapes)
      weightMaps.push_back(code.tensorMap(weight, {depth, getCopiedColumns(shape)}));
    results.describe(shapes);
    schedule.choose(rows, code.toInt32(workgroup));
    // Blocks that share the weight wait for the other's warpgroups, too.
    Value users = code.int32(2);
    for (auto [i, shape] : llvm::enumerate(shapes))
      if (shape.pair == Pair::SharesWeight)
        users = code.select(schedule.isChosen(i), code.int32(4), users);
    code.when(code.isEqual(code.threadNumber(), 0), [&] { ring.initialize(users); });
    code.barrier();
    code.arriveAtCluster();
    // Registers move once for all shapes: the roles are the outer branch.
    code.choose(
        code.isEqual(code.warpgroupNumber(), 0),
        [&] {
          code.decreaseRegisters(40);
          code.when(code.isEqual(code.warpInWarpgroup(), 0), [&] {
            code.when(code.electOne(), [&] {
              schedule.dispatch([&](int64_t i) {
                SlotRing ringOfShape(ring, shapes[i].getSlots());
                produce(shapes[i], ringOfShape, weightMaps[i]);
              });
            });
          });
        },
        [&] {
          code.increaseRegisters(232);
          schedule.dispatch([&](int64_t i) {
            SlotRing ringOfShape(ring, shapes[i].getSlots());
            consume(shapes[i], ringOfShape);
          });
        });
  }

private:
  /// Boxes of rows of the input. The copy engine takes several times as long for a row that is not there
  /// as for one that is, so that a tile's rows are put together from boxes down to this size.
  static constexpr int64_t rowBoxes[] = {64, 32, 16, 8};

  /// Columns of the weight that this block copies.
  static int64_t getCopiedColumns(const LinearShape &shape) {
    return shape.pair == Pair::SharesWeight ? shape.columns / 2 : shape.columns;
  }

  /// Rows of a tile that are copied: a multiple of the smallest box.
  Value countCopiedRows(const LinearShape &shape, Value row) {
    Value rest = code.maximum(code.sub(rows, row), code.int32(0));
    constexpr int64_t smallest = 8;
    Value padded = code.andBits(code.plus(rest, smallest - 1), -smallest);
    return code.minimum(padded, code.int32(shape.rowsOfSlot));
  }

  /// Copies `count` rows from `row` on to `place` in the shared memory.
  void copyRows(const LinearShape &shape, Value place, Value barrier, Value k, Value row,
                Value count) {
    auto copy = [&](Value isThere, Value map, Value first) {
      code.when(isThere, [&] {
        Value target = code.add(place, code.times(first, bytesOfRow));
        code.loadBox(code.dynamicShared(target), map, barrier,
                     {code.plus(k, firstElement), code.add(row, first)});
      });
    };
    for (auto [map, boxRows] : llvm::zip(inputMaps, rowBoxes)) {
      if (boxRows > shape.rowsOfSlot)
        continue;
      // As many of the largest boxes as there are rows for, then at most one of each size.
      if (boxRows == rowBoxes[0] || boxRows == shape.rowsOfSlot)
        for (int64_t first = 0; first < shape.rowsOfSlot; first += boxRows)
          copy(code.compare(arith::CmpIPredicate::sge, count, code.int32(first + boxRows)), map,
               code.int32(first));
      else
        copy(code.compare(arith::CmpIPredicate::ne, code.andBits(count, boxRows), code.int32(0)),
             map, code.andBits(count, -2 * boxRows));
    }
  }

  void produce(const LinearShape &shape, SlotRing &ring, Value weightMap) {
    bool sharesWeight = shape.pair == Pair::SharesWeight;
    int64_t copiedColumns = getCopiedColumns(shape);
    Value firstColumn = code.int32(0);
    if (sharesWeight) {
      firstColumn = code.times(code.blockInCluster(), copiedColumns);
      code.waitForCluster(); // the other block's barriers are there
    }
    LinearSchedule::Steps steps = schedule.getSteps(shape);
    SlotRing::Position start = ring.start();
    auto copyTile = [&](Value row, Value column, ValueRange carried) {
      Value copiedRows = countCopiedRows(shape, row);
      Value bytes = code.times(code.plus(code.times(copiedRows, bytesOfRow), shape.getRightBytes()),
                               shape.boxes);
      Value copied = code.add(column, firstColumn);
      return code.loop(
          steps.from, steps.to, 1, carried,
          [&](Value step, ValueRange carried) -> SmallVector<Value> {
            SlotRing::Position position = {carried[0], carried[1]};
            ring.waitEmpty(position);
            Value barrier = ring.announce(position, bytes);
            Value slot = code.times(position.slot, shape.getSlotBytes());
            for (int64_t part = 0; part < shape.boxes; ++part) {
              Value k = code.plus(code.times(step, depth * shape.boxes), depth * part);
              Value right = code.plus(slot, shape.boxes * shape.getLeftBytes() +
                                                part * shape.getRightBytes());
              if (sharesWeight)
                code.loadBoxToPair(
                    code.dynamicShared(code.add(right, code.times(firstColumn, bytesOfRow))),
                    weightMap, barrier, {k, copied});
              else
                code.loadBox(code.dynamicShared(right), weightMap, barrier, {k, copied});
              copyRows(shape, code.plus(slot, part * shape.getLeftBytes()), barrier, k, row,
                       copiedRows);
            }
            SlotRing::Position next = ring.next(position);
            return {next.slot, next.parity};
          });
    };
    schedule.forEachTile(shape, {start.slot, start.parity}, copyTile);
  }

  void consume(const LinearShape &shape, SlotRing &ring) {
    bool sharesWeight = shape.pair == Pair::SharesWeight, sharesBoxes = shape.groupsShareK();
    Value group = code.sub(code.warpgroupNumber(), code.int32(1));
    Value inGroup = code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1);
    Value isLeader = code.isEqual(inGroup, 0);
    WarpgroupProduct product(code, op.getInput().getType().getElementType(), shape.columns);
    // Where in a slot this warpgroup's rows and columns begin: its boxes of k, or its 64 rows.
    int64_t boxesOfGroup = sharesBoxes ? shape.boxes / 2 : shape.boxes;
    int64_t leftOfGroup = sharesBoxes ? boxesOfGroup * shape.getLeftBytes() : 64 * bytesOfRow;
    int64_t rightOfGroup = sharesBoxes ? boxesOfGroup * shape.getRightBytes() : 0;
    Value base = code.toAddress(code.dynamicShared(code.int32(0)));
    Value left = code.add(base, code.times(group, leftOfGroup));
    Value right = code.plus(code.add(base, code.times(group, rightOfGroup)),
                            shape.boxes * shape.getLeftBytes());
    results.begin(shape, product, group);
    auto release = [&](Value condition, Value slot) {
      code.when(condition, [&] {
        ring.release(slot);
        if (sharesWeight)
          ring.releaseOfPair(slot);
      });
    };
    if (sharesWeight)
      code.waitForCluster(); // the other block's barriers are there
    LinearSchedule::Steps steps = schedule.getSteps(shape);
    SlotRing::Position start = ring.start();
    auto multiplyTile = [&](Value row, Value column, ValueRange carried) {
      SmallVector<Value> initial(carried);
      initial.push_back(product.zeros());
      SmallVector<Value> done = code.loop(
          steps.from, steps.to, 1, initial,
          [&](Value step, ValueRange carried) -> SmallVector<Value> {
            SlotRing::Position position = {carried[0], carried[1]};
            ring.waitFull(position);
            Value slot = code.times(position.slot, shape.getSlotBytes());
            product.fence();
            Value sums = carried[2];
            for (int64_t i = 0; i < boxesOfGroup; ++i)
              sums = product.multiply(
                  sums, code.plus(code.add(left, slot), i * shape.getLeftBytes()),
                  code.plus(code.add(right, slot), i * shape.getRightBytes()));
            product.commit();
            // The product before this one is complete: its slot is free.
            product.wait(1);
            Value isLater = code.compare(arith::CmpIPredicate::ne, step, steps.from);
            release(code.both(isLater, isLeader), ring.previous(position.slot));
            SlotRing::Position next = ring.next(position);
            return {next.slot, next.parity, sums};
          });
      product.wait(0);
      release(isLeader, ring.previous(done[0]));
      results.store(done[2], sharesBoxes ? row : code.add(row, code.times(group, 64)), column);
      return SmallVector<Value>{done[0], done[1]};
    };
    schedule.forEachTile(shape, {start.slot, start.parity}, multiplyTile);
    results.finish();
    if (sharesWeight) {
      // The other block still copies to this one, or tells it what it has used.
      code.arriveAtCluster();
      code.waitForCluster();
    }
  }

  HopperCode &code;
  moe::LinearOp op;
  int64_t columns, elements;
  LinearSchedule schedule;
  ArrayRef<LinearShape> shapes;
  LinearResults results;
  Value input, weight, rows;
  int64_t firstElement; ///< of a row of the input in its buffer
  SmallVector<Value> inputMaps;
};

class HopperLinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.linear.wgmma"; }
  StringRef getOpName() const override { return moe::LinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::LinearOp>(op);
    if (!linear || target.cpu != "sm_90a" || linear.getNormWeight() ||
        !hasAlignedRows(linear.getInput()))
      return false;
    auto weight = dyn_cast<RankedTensorType>(linear.getWeight().getType());
    if (!weight || moe::getLayout(weight))
      return false;
    // Zeros come behind the end of the buffer only.
    if (!isWholeBuffer(linear.getInput()) && weight.getDimSize(1) % depth != 0)
      return false;
    Type element = weight.getElementType();
    // The copy engine wants rows of whole 16 bytes; pairs of columns are stored together.
    return (element.isBF16() || element.isF16()) &&
           linear.getInput().getType().getElementType() == element &&
           weight.getDimSize(1) % 8 == 0 && weight.getDimSize(0) % 2 == 0;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }
  int64_t getSharedBytes(Operation *, const TargetDescription &) const override {
    return LinearShape::sharedBytes;
  }

  /// No more blocks than tiles, and none without rows.
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto linear = cast<moe::LinearOp>(op);
    CodeBuilder code(op->getLoc(), builder);
    int64_t columns = moe::getLogicalShape(linear.getWeight().getType())[0];
    // As many as the smallest tiles could occupy.
    int64_t elements = moe::getLogicalShape(linear.getWeight().getType())[1];
    constexpr int64_t smallestRows = 64;
    int64_t blocks = 0;
    for (const LinearShape &shape : getLinearShapes(columns, elements, target.batchInvariant))
      blocks = std::max(blocks, shape.countColumnTiles(columns));
    // Whole pairs.
    blocks *= 2;
    OpFoldResult rows = tensor::getMixedSize(builder, op->getLoc(), linear.getInput(), 0);
    if (auto count = getConstantIntValue(rows))
      return builder.getIndexAttr(std::min<int64_t>(
          llvm::divideCeil(*count, smallestRows) * blocks, LinearShape::blocks));
    Value rowTiles = arith::CeilDivUIOp::create(code, code.getLoc(), cast<Value>(rows),
                                                code.index(smallestRows));
    return code.minimum(code.mul(rowTiles, blocks), code.index(LinearShape::blocks));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &target) const override {
    HopperCode code(op->getLoc(), builder, threads);
    LinearBlock(code, cast<moe::LinearOp>(op), operands, results[0], target).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getHopperLinearStrategy() {
  static const HopperLinearStrategy strategy;
  return strategy;
}
