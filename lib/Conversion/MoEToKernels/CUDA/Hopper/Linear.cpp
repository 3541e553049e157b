//===- Linear.cpp - dense products of 16-bit floats on Hopper ---------------------------------===//
//
// Blocks stay for the whole launch and take tiles in turn. One warpgroup brings boxes of the input
// and of the weight into a ring of slots; two others multiply. With many rows a tile has 128 of them,
// 64 for each warpgroup, and 256 columns. With up to 64 rows a tile has as few columns as it takes for
// every multiprocessor to read its share of the weight, and the two warpgroups share the elements of
// the sums.
//
//===------------------------------------------------------------------------------------------===//

#include "../../Strategies.h"
#include "../Strategies.h"
#include "HopperCode.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 3 * HopperCode::warpgroupSize;
constexpr int64_t depth = 64, bytesOfRow = depth * 2;
/// Blocks of a launch: one for each multiprocessor of an H100 or H200.
constexpr int64_t blocks = 132;

/// How a launch is cut into tiles and a slot into boxes.
struct Shape {
  int64_t rows, columns;  ///< of a tile
  int64_t columnsOfGroup; ///< of a warpgroup's product
  int64_t steps;          ///< boxes of 64 elements of k in a slot: one for each warpgroup that shares k
  int64_t slots;

  int64_t getLeftBytes() const { return rows * bytesOfRow; }
  int64_t getRightBytes() const { return columns * bytesOfRow; }
  int64_t getSlotBytes() const { return steps * (getLeftBytes() + getRightBytes()); }
};
constexpr Shape manyRows = {128, 256, 256, 1, 4};

/// The slots' bytes, and behind them what the warpgroups that share k hand over.
constexpr int64_t slotBytes = 196608, mostSlots = 8, mostFewColumns = 128;
constexpr int64_t sharedBytes = slotBytes + 64 * mostFewColumns * 4;
static_assert(manyRows.slots * 49152 == slotBytes);

/// For up to 64 rows: tiles whose last round leaves the fewest multiprocessors without work, and
/// among such the widest.
Shape getFewRows(int64_t columns) {
  int64_t best = 16;
  double bestUse = 0;
  for (int64_t width = 16; width <= mostFewColumns; width += 16) {
    int64_t tiles = llvm::divideCeil(columns, width);
    double use = double(columns) / double(width * blocks * llvm::divideCeil(tiles, blocks));
    if (use >= bestUse) {
      best = width;
      bestUse = use;
    }
  }
  Shape shape = {64, best, best, 2, 0};
  shape.slots = std::min(mostSlots, slotBytes / (shape.steps * (64 + best) * bytesOfRow));
  return shape;
}

class LinearBlock {
public:
  LinearBlock(HopperCode &code, moe::LinearOp op, ValueRange operands, Value result,
              const TargetDescription &target)
      : code(code), op(op), columns(moe::getLogicalShape(op.getWeight().getType())[0]),
        elements(moe::getLogicalShape(op.getWeight().getType())[1]), fewRows(getFewRows(columns)), input(operands[0]), weight(operands[1]),
        result(result), isInvariant(target.batchInvariant) {
    auto next = operands.begin() + 2;
    bias = op.getBias() ? *next++ : Value();
    residual = op.getResidual() ? *next++ : Value();
    rows = code.toInt32(code.dim(input, 0));
  }

  void build(Value workgroup) {
    block = code.toInt32(workgroup);
    // The two shapes add in different orders.
    Value isFew = isInvariant
                      ? code.boolean(false)
                      : code.compare(arith::CmpIPredicate::sle, rows, code.int32(fewRows.rows));
    // Registers move once for both shapes: the roles are the outer branch.
    SlotRing many(code, manyRows.slots, 1, 2), few(code, fewRows.slots, 1, 2);
    Map maps[] = {makeMaps(manyRows), makeMaps(fewRows)};
    code.when(code.isEqual(code.threadNumber(), 0), [&] {
      many.initialize();
      few.initialize();
    });
    code.barrier();
    code.choose(
        code.isEqual(code.warpgroupNumber(), 0),
        [&] {
          code.decreaseRegisters(40);
          code.when(code.isEqual(code.warpInWarpgroup(), 0), [&] {
            code.when(code.electOne(), [&] {
              code.choose(
                  isFew, [&] { produce(fewRows, few, maps[1]); },
                  [&] { produce(manyRows, many, maps[0]); });
            });
          });
        },
        [&] {
          code.increaseRegisters(232);
          code.choose(
              isFew, [&] { consume(fewRows, few); }, [&] { consume(manyRows, many); });
        });
  }

private:
  struct Map {
    Value left, right;
  };
  Map makeMaps(const Shape &shape) {
    return {code.tensorMap(input, {depth, shape.rows}), code.tensorMap(weight, {depth, shape.columns})};
  }

  int64_t countSteps(const Shape &shape) const {
    return llvm::divideCeil(elements, depth * shape.steps);
  }

  /// For each tile of this block: its first row and column.
  SmallVector<Value> forEachTile(
      const Shape &shape, ValueRange initial,
      function_ref<SmallVector<Value>(Value row, Value column, ValueRange carried)> body) {
    // Blocks at work at the same time share few rows and few columns, which the L2 cache holds:
    // tiles go through bands of rows, column by column.
    constexpr int64_t band = 16;
    int64_t columnTiles = llvm::divideCeil(columns, shape.columns);
    Value rowTiles = arith::CeilDivUIOp::create(code, code.getLoc(), rows, code.int32(shape.rows));
    Value tiles = code.times(rowTiles, columnTiles);
    return loop32(block, tiles, blocks, initial, [&](Value tile, ValueRange carried) {
      Value ofBand = code.int32(band * columnTiles);
      Value first = code.times(code.divide(tile, ofBand), band);
      Value inBand = code.remainder(tile, ofBand);
      Value height = code.minimum(code.sub(rowTiles, first), code.int32(band));
      Value row = code.add(first, code.remainder(inBand, height));
      Value column = code.divide(inBand, height);
      return body(code.times(row, shape.rows), code.times(column, shape.columns), carried);
    });
  }

  /// A loop whose index is i32.
  SmallVector<Value> loop32(Value from, Value to, int64_t step, ValueRange initial,
                            function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(code, code.getLoc(), from, to, code.int32(step), initial);
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> results = body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!initial.empty())
      scf::YieldOp::create(code, code.getLoc(), results);
    return SmallVector<Value>(loop.getResults());
  }

  void produce(const Shape &shape, SlotRing &ring, const Map &maps) {
    SlotRing::Position start = ring.start();
    forEachTile(shape, {start.slot, start.parity}, [&](Value row, Value column, ValueRange carried) {
      return loop32(
          code.int32(0), code.int32(countSteps(shape)), 1, carried,
          [&](Value step, ValueRange carried) -> SmallVector<Value> {
            SlotRing::Position position = {carried[0], carried[1]};
            ring.waitEmpty(position);
            Value barrier = ring.announce(position, code.int32(shape.getSlotBytes()));
            Value slot = code.times(position.slot, shape.getSlotBytes());
            for (int64_t part = 0; part < shape.steps; ++part) {
              Value k = code.plus(code.times(step, depth * shape.steps), depth * part);
              code.loadBox(code.dynamicShared(code.plus(slot, part * shape.getLeftBytes())),
                           maps.left, barrier, {k, row});
              int64_t right = shape.steps * shape.getLeftBytes() + part * shape.getRightBytes();
              code.loadBox(code.dynamicShared(code.plus(slot, right)), maps.right, barrier,
                           {k, column});
            }
            SlotRing::Position next = ring.next(position);
            return {next.slot, next.parity};
          });
    });
  }

  void consume(const Shape &shape, SlotRing &ring) {
    Value group = code.sub(code.warpgroupNumber(), code.int32(1));
    Value isLeader = code.isEqual(code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1), 0);
    WarpgroupProduct product(code, op.getInput().getType().getElementType(), shape.columnsOfGroup);
    // Where in a slot this warpgroup's rows begin, and its columns.
    int64_t leftOfGroup = shape.steps > 1 ? shape.getLeftBytes() : 64 * bytesOfRow;
    int64_t rightOfGroup = shape.steps > 1 ? shape.getRightBytes() : 0;
    Value base = code.toAddress(code.dynamicShared(code.int32(0)));
    Value left = code.add(base, code.times(group, leftOfGroup));
    Value right = code.plus(code.add(base, code.times(group, rightOfGroup)),
                            shape.steps * shape.getLeftBytes());

    SlotRing::Position start = ring.start();
    forEachTile(shape, {start.slot, start.parity}, [&](Value row, Value column, ValueRange carried) {
      SmallVector<Value> initial(carried);
      initial.push_back(product.zeros());
      SmallVector<Value> done = loop32(
          code.int32(0), code.int32(countSteps(shape)), 1, initial,
          [&](Value step, ValueRange carried) -> SmallVector<Value> {
            SlotRing::Position position = {carried[0], carried[1]};
            ring.waitFull(position);
            Value slot = code.times(position.slot, shape.getSlotBytes());
            product.fence();
            Value sums = product.multiply(carried[2], code.add(left, slot), code.add(right, slot));
            product.commit();
            // The product before this one is complete: its slot is free.
            product.wait(1);
            Value isLater = code.compare(arith::CmpIPredicate::ne, step, code.int32(0));
            code.when(code.both(isLater, isLeader),
                      [&] { ring.release(ring.previous(position.slot)); });
            SlotRing::Position next = ring.next(position);
            return {next.slot, next.parity, sums};
          });
      product.wait(0);
      code.when(isLeader, [&] { ring.release(ring.previous(done[0])); });
      Value firstRow = shape.steps > 1 ? row : code.add(row, code.times(group, 64));
      if (shape.steps > 1)
        joinAndStore(product, done[2], group, firstRow, column);
      else
        store(product, done[2], firstRow, column);
      return SmallVector<Value>{done[0], done[1]};
    });
  }

  /// Warpgroups that share k: the second one hands its sums to the first.
  void joinAndStore(WarpgroupProduct &product, Value sums, Value group, Value row, Value column) {
    Location loc = code.getLoc();
    Value inGroup = code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1);
    auto getPlace = [&](int64_t i) {
      int64_t offset = slotBytes + i * HopperCode::warpgroupSize * 4;
      return code.dynamicShared(code.plus(code.times(inGroup, 4), offset));
    };
    Value isFirst = code.isEqual(group, 0);
    code.when(code.isEqual(group, 1), [&] {
      for (int64_t i = 0; i < product.getRegisters(); ++i)
        LLVM::StoreOp::create(code, loc, product.getRegister(sums, i), getPlace(i));
    });
    code.namedBarrier(1, 2 * HopperCode::warpgroupSize);
    code.when(isFirst, [&] {
      SmallVector<Value> total;
      for (int64_t i = 0; i < product.getRegisters(); ++i) {
        Value other = LLVM::LoadOp::create(code, loc, code.getF32Type(), getPlace(i));
        total.push_back(code.add(product.getRegister(sums, i), other));
      }
      store(product, product.fromRegisters(total), row, column);
    });
    // The sums are read before the next tile's are written.
    code.namedBarrier(1, 2 * HopperCode::warpgroupSize);
  }

  void store(WarpgroupProduct &product, Value sums, Value firstRow, Value firstColumn) {
    // A thread's results lie in two rows.
    for (int64_t half = 0; half < 2; ++half) {
      Value row = code.add(firstRow, product.getRow(half));
      code.when(code.compare(arith::CmpIPredicate::slt, row, rows), [&] {
        Value r = code.toIndex(row);
        product.forEachPair(sums, half, [&](Value column, Value first, Value second) {
          Value c = code.add(firstColumn, column);
          auto storeHere = [&] { storePair(r, code.toIndex(c), first, second); };
          if (columns % product.getColumns() == 0)
            storeHere();
          else
            code.when(code.compare(arith::CmpIPredicate::slt, c, code.int32(columns)), storeHere);
        });
      });
    }
  }

  void storePair(Value row, Value column, Value first, Value second) {
    Value values[] = {first, second};
    for (int64_t i = 0; i < 2; ++i) {
      Value c = code.add(column, i);
      if (bias)
        values[i] = code.add(values[i], code.loadFloat(bias, c));
      if (residual)
        values[i] = code.add(values[i], code.loadFloat(residual, {row, c}));
    }
    // The number of columns is even, so that a pair is aligned to its size.
    Type element = cast<MemRefType>(result.getType()).getElementType();
    Value pair = code.fromLanes(values);
    if (!element.isF32())
      pair = arith::TruncFOp::create(code, code.getLoc(), VectorType::get({2}, element), pair);
    vector::StoreOp::create(code, code.getLoc(), pair, result, ValueRange{row, column},
                            /*nontemporal=*/false,
                            llvm::MaybeAlign(element.getIntOrFloatBitWidth() / 4));
  }

  HopperCode &code;
  moe::LinearOp op;
  int64_t columns, elements;
  Shape fewRows;
  Value input, weight, bias, residual, result, rows, block;
  bool isInvariant;
};

class HopperLinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.linear.wgmma"; }
  StringRef getOpName() const override { return moe::LinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::LinearOp>(op);
    if (!linear || target.cpu != "sm_90a" || linear.getNormWeight())
      return false;
    auto weight = dyn_cast<RankedTensorType>(linear.getWeight().getType());
    if (!weight || moe::getLayout(weight))
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
    return sharedBytes;
  }

  /// No more blocks than tiles, and none without rows.
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto linear = cast<moe::LinearOp>(op);
    CodeBuilder code(op->getLoc(), builder);
    int64_t columns = moe::getLogicalShape(linear.getWeight().getType())[0];
    Shape fewRows = getFewRows(columns);
    int64_t columnTiles = llvm::divideCeil(columns, fewRows.columns);
    OpFoldResult rows = tensor::getMixedSize(builder, op->getLoc(), linear.getInput(), 0);
    if (auto count = getConstantIntValue(rows))
      return builder.getIndexAttr(
          std::min<int64_t>(llvm::divideCeil(*count, fewRows.rows) * columnTiles, blocks));
    Value rowTiles = arith::CeilDivUIOp::create(code, code.getLoc(), cast<Value>(rows),
                                                code.index(fewRows.rows));
    return code.minimum(code.mul(rowTiles, columnTiles), code.index(blocks));
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
