//===- GroupedLinear.cpp - strategy for the products of routed rows with their experts --------===//
//
// Workgroups are active experts times chunks of an expert's rows. At most min(experts, pairs)
// experts are active; workgroup i takes chunk (i mod chunks) of active expert (i div chunks), if
// there is one. It walks over the expert's tokens in blocks; gate and up rows of an output are in
// the same chunk, so that the activation happens here.
//
//===------------------------------------------------------------------------------------------===//

#include "ProductKernel.h"
#include "ProductStrategies.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// With a few active experts this is enough for a large machine, and with many it does not cut too
/// fine.
constexpr int64_t mostChunks = 24;

class GroupedLinearKernel {
public:
  GroupedLinearKernel(moe::GroupedLinearOp op, const TargetDescription &target, bool useTiles)
      : op(op), kernel({op.getWeight().getType(), op.getInput().getType().getElementType(),
                        op.getActivationAttr(), mostChunks, useTiles},
                       target),
        experts(moe::getLogicalShape(op.getWeight().getType())[0]) {}

  int64_t getChunks() const { return kernel.getChunks(); }
  int64_t getExperts() const { return experts; }
  void allocate(ScratchAllocator &allocator) { kernel.allocate(allocator, op.getContext()); }

  void build(CodeBuilder &code, ValueRange operands, Value output, Value workgroup) {
    input = operands[0], offsets = operands[1], pairs = operands[2], storage = operands[3];
    bias = op.getBias() ? operands[4] : Value();
    result = output;
    Value chunk = code.remainder(workgroup, getChunks());
    Value rank = code.divide(workgroup, getChunks());
    Value expert = findActiveExpert(code, rank);
    Value found = code.compare(arith::CmpIPredicate::slt, expert, code.index(getExperts()));
    code.when(found, [&] { multiplyExpert(code, expert, chunk); });
  }

private:
  /// The index of the active expert number `rank`, or the number of experts.
  Value findActiveExpert(CodeBuilder &code, Value rank) {
    Value none = code.index(getExperts());
    auto found = code.loop(
        code.index(0), none, 1, {none, rank},
        [&](Value expert, ValueRange carried) -> SmallVector<Value> {
          Value begin = code.loadIndex(offsets, expert);
          Value end = code.loadIndex(offsets, code.add(expert, 1));
          Value active = code.compare(arith::CmpIPredicate::slt, begin, end);
          Value isLast = code.compare(arith::CmpIPredicate::eq, carried[1], code.index(0));
          Value here = code.both(active, isLast);
          Value left = code.select(active, code.sub(carried[1], code.index(1)), carried[1]);
          return {code.select(here, expert, carried[0]), left};
        });
    return found[0];
  }

  void multiplyExpert(CodeBuilder &code, Value expert, Value chunk) {
    kernel.attach(code, storage, expert);
    if (bias)
      kernel.getWriter().loadBias(code, bias, expert, chunk);
    Value begin = code.loadIndex(offsets, expert);
    Value end = code.loadIndex(offsets, code.add(expert, 1));
    RowPacker packer(input, kernel.getColumns());
    auto getInputRow = [&](Value place) -> Value {
      if (!op.getGather())
        return place;
      return code.divide(code.loadIndex(pairs, place), op.getTopK());
    };
    auto getResultRow = [&](Value place) -> Value {
      return op.getScatter() ? code.loadIndex(pairs, place) : place;
    };
    kernel.multiply(code, {packer, result, getInputRow, getResultRow}, begin, end, chunk);
  }

  moe::GroupedLinearOp op;
  ProductKernel kernel;
  int64_t experts;
  Value input, offsets, pairs, storage, bias, result;
};

/// With vectors alone, or with the matrix unit for experts of more than a few tokens.
class GroupedLinearStrategy : public KernelStrategy {
public:
  GroupedLinearStrategy(StringRef name, bool useTiles) : name(name), useTiles(useTiles) {}

  StringRef getName() const override { return name; }
  StringRef getOpName() const override { return moe::GroupedLinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::GroupedLinearOp>(op);
    return linear && target.isCPU() &&
           isProductSupported(linear.getWeight().getType(), target, useTiles);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return useTiles ? 2 : 1; }

  moe::LayoutAttr getLayout(Operation *op, OpOperand &operand,
                            const TargetDescription &) const override {
    bool isWeight = operand.get() == cast<moe::GroupedLinearOp>(op).getWeight();
    return isWeight ? getPanelLayout(operand.get().getType()) : moe::LayoutAttr();
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto linear = cast<moe::GroupedLinearOp>(op);
    GroupedLinearKernel kernel(linear, target, useTiles);
    Location loc = op->getLoc();
    OpFoldResult pairs = tensor::getMixedSize(builder, loc, linear.getPairs(), 0);
    if (auto attribute = dyn_cast<Attribute>(pairs)) {
      int64_t count = cast<IntegerAttr>(attribute).getInt();
      return builder.getIndexAttr(std::min(count, kernel.getExperts()) * kernel.getChunks());
    }
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value active =
        arith::MinSIOp::create(builder, loc, cast<Value>(pairs), constant(kernel.getExperts()));
    return arith::MulIOp::create(builder, loc, active, constant(kernel.getChunks())).getResult();
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    ScratchAllocator allocator;
    GroupedLinearKernel(cast<moe::GroupedLinearOp>(op), target, useTiles).allocate(allocator);
    return builder.getIndexAttr(allocator.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    ScratchAllocator allocator(code, scratch);
    GroupedLinearKernel kernel(cast<moe::GroupedLinearOp>(op), target, useTiles);
    kernel.allocate(allocator);
    kernel.build(code, operands, results[0], workgroup);
  }

private:
  StringRef name;
  bool useTiles;
};

} // namespace

const KernelStrategy &mlir::moec::getGroupedLinearVectorStrategy() {
  static const GroupedLinearStrategy strategy("cpu.grouped_linear.vector", /*useTiles=*/false);
  return strategy;
}

const KernelStrategy &mlir::moec::getGroupedLinearAMXStrategy() {
  static const GroupedLinearStrategy strategy("cpu.grouped_linear.amx", /*useTiles=*/true);
  return strategy;
}
