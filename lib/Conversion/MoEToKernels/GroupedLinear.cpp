//===- GroupedLinear.cpp - strategy for the products of routed rows with their experts --------===//
//
// Workgroups are active experts times chunks of an expert's rows. At most min(experts, pairs)
// experts are active; workgroup i takes chunk (i mod chunks) of active expert (i div chunks), if
// there is one. It walks over the expert's tokens in blocks; gate and up rows of an output are in
// the same chunk, so that the activation happens here.
//
//===------------------------------------------------------------------------------------------===//

#include "OutputRows.h"
#include "PackedRows.h"
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
  GroupedLinearKernel(moe::GroupedLinearOp op, const TargetDescription &target)
      : op(op), target(target), weight(op.getWeight().getType()),
        chunks(weight, op.getActivationAttr(), mostChunks), product(weight, target),
        writer(weight, chunks, op.getActivationAttr()),
        experts(moe::getLogicalShape(op.getWeight().getType())[0]) {}

  int64_t getTokenCapacity() const { return product.getTokenCapacity(); }
  int64_t getChunks() const { return chunks.getCount(); }
  int64_t getExperts() const { return experts; }

  void allocate(ScratchAllocator &allocator) {
    Type f32 = Float32Type::get(op.getContext());
    int64_t capacity = getTokenCapacity();
    block.rows = allocator.allocate({weight.getBlocks() * capacity * blockColumns}, f32);
    block.sums = allocator.allocate({chunks.getSumPanels() * capacity * panelRows}, f32);
    product.allocate(allocator, f32);
    writer.allocate(allocator, f32);
  }

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
    weight.attach(code, storage, expert, target);
    if (bias)
      writer.loadBias(code, bias, expert, chunk);
    Value begin = code.loadIndex(offsets, expert);
    Value end = code.loadIndex(offsets, code.add(expert, 1));
    code.loop(begin, end, getTokenCapacity(), [&](Value first) {
      block.tokens = code.minimum(code.sub(end, first), code.index(getTokenCapacity()));
      multiplyTokens(code, first, chunk);
    });
  }

  void multiplyTokens(CodeBuilder &code, Value first, Value chunk) {
    RowPacker packer(input, weight.getColumns());
    code.loop(code.index(0), block.tokens, 1, [&](Value token) {
      Value row = code.add(first, token);
      if (op.getGather())
        row = code.divide(code.loadIndex(pairs, row), op.getTopK());
      packer.pack(code, row, block.rows, block.tokens, token);
    });
    chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value count) {
      product.build(code, block, panel, sum, count);
    });
    code.loop(code.index(0), block.tokens, 1, [&](Value token) {
      Value row = code.add(first, token);
      if (op.getScatter())
        row = code.loadIndex(pairs, row);
      writer.write(code, block, chunk, token, result, row);
    });
  }

  moe::GroupedLinearOp op;
  const TargetDescription &target;
  WeightPanels weight;
  RowChunks chunks;
  PanelProduct product;
  OutputWriter writer;
  int64_t experts;
  TokenBlock block;
  Value input, offsets, pairs, storage, bias, result;
};

class GroupedLinearVectorStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.grouped_linear.vector"; }
  StringRef getOpName() const override { return moe::GroupedLinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::GroupedLinearOp>(op);
    return linear && StringRef(target.name).starts_with("cpu") &&
           isPanelWeight(linear.getWeight().getType());
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  moe::LayoutAttr getLayout(Operation *op, OpOperand &operand,
                            const TargetDescription &) const override {
    bool isWeight = operand.get() == cast<moe::GroupedLinearOp>(op).getWeight();
    return isWeight ? getPanelLayout(operand.get().getType()) : moe::LayoutAttr();
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto linear = cast<moe::GroupedLinearOp>(op);
    GroupedLinearKernel kernel(linear, target);
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
    GroupedLinearKernel(cast<moe::GroupedLinearOp>(op), target).allocate(allocator);
    return builder.getIndexAttr(allocator.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    ScratchAllocator allocator(code, scratch);
    GroupedLinearKernel kernel(cast<moe::GroupedLinearOp>(op), target);
    kernel.allocate(allocator);
    kernel.build(code, operands, results[0], workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getGroupedLinearVectorStrategy() {
  static const GroupedLinearVectorStrategy strategy;
  return strategy;
}
