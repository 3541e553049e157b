//===- Relayout.cpp - strategies that bring weights into panels when a model is loaded --------===//
//
// Workgroups are runs of panels of 16 rows. Blocks of columns are moved row by row, so that what is
// written stays in the L1 cache until it is complete.
//
//===------------------------------------------------------------------------------------------===//

#include "ProductStrategies.h"
#include "WeightPanels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class RelayoutKernel {
public:
  explicit RelayoutKernel(moe::RelayoutOp op)
      : type(op.getResult().getType()), weight(type), matrices(1) {
    for (int64_t size : moe::getLogicalShape(type).drop_back(2))
      matrices *= size;
  }
  virtual ~RelayoutKernel() = default;

  int64_t countWorkgroups() const {
    return llvm::divideCeil(matrices * weight.getPanels(), getPanelsOfWorkgroup());
  }

  void build(CodeBuilder &code, ValueRange operands, Value result, Value workgroup) {
    attach(code, operands, flatten(code, result));
    Value first = code.mul(workgroup, getPanelsOfWorkgroup());
    Value end = code.minimum(code.add(first, getPanelsOfWorkgroup()),
                             code.index(matrices * weight.getPanels()));
    code.loop(first, end, 1, [&](Value panel) {
      Value matrix = code.divide(panel, weight.getPanels());
      Value firstRow = code.mul(code.remainder(panel, weight.getPanels()), panelRows);
      Value rest = code.sub(code.index(weight.getRows()), firstRow);
      Value rows = code.minimum(rest, code.index(panelRows));
      Value sourceRow = code.add(code.mul(matrix, weight.getRows()), firstRow);
      buildPanel(code, panel, sourceRow, rows);
    });
  }

protected:
  virtual void attach(CodeBuilder &code, ValueRange operands, Value flatResult) = 0;
  /// `sourceRow` is the first of `rows` rows of the source that fill the panel; the others are
  /// padding.
  virtual void buildPanel(CodeBuilder &code, Value panel, Value sourceRow, Value rows) = 0;

  Type type;
  WeightPanels weight;

private:
  int64_t getPanelsOfWorkgroup() const {
    constexpr int64_t bytes = 64 * 1024;
    return llvm::divideCeil(bytes, weight.getPanelBytes());
  }

  int64_t matrices;
};

/// Codes and scales of a checkpoint to MXFP4 panels.
class BlockRelayoutKernel : public RelayoutKernel {
public:
  using RelayoutKernel::RelayoutKernel;

private:
  void attach(CodeBuilder &code, ValueRange operands, Value flatResult) override {
    codes = flatten(code, operands[0]);
    scales = flatten(code, operands[1]);
    result = flatResult;
  }

  void buildPanel(CodeBuilder &code, Value panel, Value sourceRow, Value rows) override {
    int64_t blocks = weight.getBlocks();
    code.loop(0, blocks, 1, [&](Value block) {
      Value base = code.mul(code.add(code.mul(panel, blocks), block), mxfp4PanelBytes);
      code.loop(code.index(0), rows, 1, [&](Value row) {
        Value source = code.add(code.mul(code.add(sourceRow, row), blocks), block);
        moveRow(code, source, base, row);
      });
      code.loop(rows, code.index(panelRows), 1, [&](Value row) {
        storeWords(code, code.intSplat(0, 4), base, row);
        storeScale(code, byte(code, 127), base, row);
      });
    });
  }

  /// Block `source` (of all blocks in the order of the checkpoint) to row `row` of the panel's
  /// block at `base`.
  void moveRow(CodeBuilder &code, Value source, Value base, Value row) {
    auto bytes = VectorType::get({16}, code.getI8Type());
    Value packed = bitcastTo(
        code, vector::LoadOp::create(code, code.getLoc(), bytes, codes, code.mul(source, 16)),
        code.getI32Type());
    storeWords(code, separateNibbles(code, packed), base, row);

    // A block of zeros may carry any scale but NaN; the neutral one keeps it out of the way of
    // kernels that treat very small scales apart.
    Value scale = memref::LoadOp::create(code, code.getLoc(), scales, source);
    Value magnitudes = bitAnd(code, packed, 0x77777777);
    Value any =
        vector::ReductionOp::create(code, code.getLoc(), vector::CombiningKind::OR, magnitudes);
    Value isZero = code.compare(arith::CmpIPredicate::eq, any, code.int32(0));
    Value isNumber = code.compare(arith::CmpIPredicate::ne, scale, byte(code, 255));
    Value neutral = code.both(isZero, isNumber);
    storeScale(code, code.select(neutral, byte(code, 127), scale), base, row);
  }

  /// In each double word: the even nibbles, in order, to the low half and the odd ones to the high
  /// half.
  static Value separateNibbles(CodeBuilder &code, Value words) {
    auto exchange = [&](Value x, int64_t distance, uint32_t mask) {
      Value moved = arith::XOrIOp::create(code, code.getLoc(), x, shiftRight(code, x, distance));
      Value difference = bitAnd(code, moved, mask);
      Value both = arith::OrIOp::create(code, code.getLoc(), difference,
                                        shiftLeft(code, difference, distance));
      return Value(arith::XOrIOp::create(code, code.getLoc(), x, both));
    };
    return exchange(exchange(words, 4, 0x00f000f0), 8, 0x0000ff00);
  }

  void storeWords(CodeBuilder &code, Value words, Value base, Value row) {
    Value at = code.add(base, code.mul(row, 4));
    for (int64_t j = 0; j < 4; ++j) {
      Value word = code.broadcast(code.lane(words, j), 1);
      vector::StoreOp::create(code, code.getLoc(), bitcastTo(code, word, code.getI8Type()), result,
                              code.add(at, 64 * j));
    }
  }

  void storeScale(CodeBuilder &code, Value scale, Value base, Value row) {
    memref::StoreOp::create(code, code.getLoc(), scale, result, code.add(code.add(base, 256), row));
  }

  static Value byte(CodeBuilder &code, int64_t value) {
    return arith::ConstantOp::create(code, code.getLoc(),
                                     code.getI8IntegerAttr(static_cast<int8_t>(value)));
  }

  Value codes, scales, result;
};

/// Rows of numbers to panels, alone or in pairs of neighbouring columns.
class DenseRelayoutKernel : public RelayoutKernel {
public:
  using RelayoutKernel::RelayoutKernel;

private:
  void attach(CodeBuilder &code, ValueRange operands, Value flatResult) override {
    source = flatten(code, operands[0]);
    result = flatResult;
  }

  int64_t getColumnStep() const { return weight.isPairs() ? 2 : 1; }

  void buildPanel(CodeBuilder &code, Value panel, Value sourceRow, Value rows) override {
    Type element = cast<RankedTensorType>(type).getElementType();
    int64_t step = getColumnStep(), columns = weight.getColumns();
    int64_t stored = llvm::alignTo(columns, step);
    Value base = code.mul(panel, stored * panelRows);
    code.loop(0, stored, blockColumns, [&](Value first) {
      Value end = code.minimum(code.add(first, blockColumns), code.index(columns / step * step));
      code.loop(code.index(0), rows, 1, [&](Value row) {
        Value from = code.mul(code.add(sourceRow, row), columns);
        code.loop(first, end, step, [&](Value column) {
          Value moved =
              vector::LoadOp::create(code, code.getLoc(), VectorType::get({step}, element), source,
                                     code.add(from, column));
          store(code, moved, base, column, row);
        });
      });
      code.loop(rows, code.index(panelRows), 1, [&](Value row) {
        code.loop(first, end, step,
                  [&](Value column) { store(code, zeros(code, element), base, column, row); });
      });
    });
    if (columns % step != 0)
      buildOddColumn(code, element, base, sourceRow, rows);
  }

  /// The last column of an odd number, with a zero as its neighbour.
  void buildOddColumn(CodeBuilder &code, Type element, Value base, Value sourceRow, Value rows) {
    int64_t last = weight.getColumns() - 1;
    code.loop(0, panelRows, 1,
              [&](Value row) { store(code, zeros(code, element), base, code.index(last), row); });
    code.loop(code.index(0), rows, 1, [&](Value row) {
      Value from = code.add(code.mul(code.add(sourceRow, row), weight.getColumns()), last);
      Value one =
          vector::LoadOp::create(code, code.getLoc(), VectorType::get({1}, element), source, from);
      store(code, one, base, code.index(last), row);
    });
  }

  Value zeros(CodeBuilder &code, Type element) {
    auto vector = VectorType::get({getColumnStep()}, element);
    return arith::ConstantOp::create(code, code.getLoc(), code.getZeroAttr(vector));
  }

  void store(CodeBuilder &code, Value moved, Value base, Value column, Value row) {
    Value at = code.add(base, code.mul(column, panelRows));
    vector::StoreOp::create(code, code.getLoc(), moved, result,
                            code.add(at, code.mul(row, getColumnStep())));
  }

  Value source, result;
};

/// Both kinds of weights have the same strategy but for the kernel.
template <typename Kernel>
class RelayoutStrategy : public KernelStrategy {
public:
  explicit RelayoutStrategy(StringRef name, bool ofBlocks) : name(name), ofBlocks(ofBlocks) {}

  StringRef getName() const override { return name; }
  StringRef getOpName() const override { return moe::RelayoutOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto relayout = dyn_cast<moe::RelayoutOp>(op);
    if (!relayout || !target.isCPU())
      return false;
    Type source = relayout.getSource().getType(), result = relayout.getResult().getType();
    return isa<moe::BlockTensorType>(result) == ofBlocks && !moe::getLayout(source) &&
           moe::getLogicalShape(result).size() >= 2 &&
           (ofBlocks || cast<RankedTensorType>(result).hasStaticShape()) && isPanelWeight(result) &&
           moe::getLayout(result) == getPanelLayout(result);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return builder.getIndexAttr(Kernel(cast<moe::RelayoutOp>(op)).countWorkgroups());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    CodeBuilder code(op->getLoc(), builder);
    Kernel(cast<moe::RelayoutOp>(op)).build(code, operands, results[0], workgroup);
  }

private:
  StringRef name;
  bool ofBlocks;
};

} // namespace

const KernelStrategy &mlir::moec::getRelayoutBlocksStrategy() {
  static const RelayoutStrategy<BlockRelayoutKernel> strategy("cpu.relayout.blocks", true);
  return strategy;
}

const KernelStrategy &mlir::moec::getRelayoutDenseStrategy() {
  static const RelayoutStrategy<DenseRelayoutKernel> strategy("cpu.relayout.dense", false);
  return strategy;
}
