//===- Linear.cpp - strategy for products with one weight -------------------------------------===//
//
// Workgroups are blocks of tokens times chunks of the weight's rows. Each packs the rows of its
// tokens (through the norm, when there is one), multiplies them with its panels and writes its
// columns of the result.
//
//===------------------------------------------------------------------------------------------===//

#include "OutputRows.h"
#include "PackedRows.h"
#include "ProductStrategies.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Enough for every core of a large machine to have work when there is one token.
constexpr int64_t mostChunks = 64;

class LinearKernel {
public:
  LinearKernel(moe::LinearOp op, const TargetDescription &target)
      : op(op), target(target), weight(op.getWeight().getType()),
        chunks(weight, /*activation=*/{}, mostChunks), product(weight, target),
        writer(weight, chunks, /*activation=*/{}) {}

  int64_t getTokenCapacity() const { return product.getTokenCapacity(); }
  int64_t getChunks() const { return chunks.getCount(); }

  void allocate(ScratchAllocator &allocator) {
    Type f32 = Float32Type::get(op.getContext());
    int64_t capacity = getTokenCapacity();
    block.rows = allocator.allocate({weight.getBlocks() * capacity * blockColumns}, f32);
    block.sums = allocator.allocate({chunks.getSumPanels() * capacity * panelRows}, f32);
    product.allocate(allocator, f32);
    writer.allocate(allocator, f32);
  }

  void build(CodeBuilder &code, ValueRange operands, Value result, Value workgroup) {
    auto next = operands.begin();
    Value input = *next++, storage = *next++;
    Value bias = op.getBias() ? *next++ : Value();
    Value residual = op.getResidual() ? *next++ : Value();
    RowPacker packer(input, weight.getColumns());
    if (op.getNormWeight())
      packer.setNorm(*next++, op.getEpsilon()->convertToDouble());
    weight.attach(code, storage, /*expert=*/{}, target);
    writer.setResidual(residual);

    Value chunk = code.remainder(workgroup, getChunks());
    Value first = code.mul(code.divide(workgroup, getChunks()), getTokenCapacity());
    Value rest = code.sub(code.dim(input, 0), first);
    block.tokens = code.minimum(rest, code.index(getTokenCapacity()));

    code.loop(code.index(0), block.tokens, 1, [&](Value token) {
      packer.pack(code, code.add(first, token), block.rows, block.tokens, token);
    });
    if (bias)
      writer.loadBias(code, bias, {}, chunk);
    chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value count) {
      product.build(code, block, panel, sum, count);
    });
    code.loop(code.index(0), block.tokens, 1, [&](Value token) {
      writer.write(code, block, chunk, token, result, code.add(first, token));
    });
  }

private:
  moe::LinearOp op;
  const TargetDescription &target;
  WeightPanels weight;
  RowChunks chunks;
  PanelProduct product;
  OutputWriter writer;
  TokenBlock block;
};

class LinearVectorStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.linear.vector"; }
  StringRef getOpName() const override { return moe::LinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::LinearOp>(op);
    return linear && StringRef(target.name).starts_with("cpu") &&
           isPanelWeight(linear.getWeight().getType());
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  moe::LayoutAttr getLayout(Operation *op, OpOperand &operand,
                            const TargetDescription &) const override {
    bool isWeight = operand.get() == cast<moe::LinearOp>(op).getWeight();
    return isWeight ? getPanelLayout(operand.get().getType()) : moe::LayoutAttr();
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto linear = cast<moe::LinearOp>(op);
    LinearKernel kernel(linear, target);
    return countTiles(builder, op->getLoc(), linear.getInput(), kernel.getTokenCapacity(),
                      kernel.getChunks());
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    ScratchAllocator allocator;
    LinearKernel(cast<moe::LinearOp>(op), target).allocate(allocator);
    return builder.getIndexAttr(allocator.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    ScratchAllocator allocator(code, scratch);
    LinearKernel kernel(cast<moe::LinearOp>(op), target);
    kernel.allocate(allocator);
    kernel.build(code, operands, results[0], workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getLinearVectorStrategy() {
  static const LinearVectorStrategy strategy;
  return strategy;
}
