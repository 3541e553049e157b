//===- Linear.cpp - strategies for products with one weight
//------------------------------------===//
//
// Workgroups are blocks of tokens times chunks of the weight's rows. Each packs the rows of its
// tokens (through the norm, when there is one), multiplies them with its panels and writes its
// columns of the result.
//
//===------------------------------------------------------------------------------------------===//

#include "ProductKernel.h"
#include "ProductStrategies.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Enough for every core of a large machine to have work when there is one token.
constexpr int64_t mostChunks = 64;

class LinearKernel {
public:
  LinearKernel(moe::LinearOp op, const TargetDescription &target, bool useTiles)
      : op(op), kernel({op.getWeight().getType(), op.getInput().getType().getElementType(),
                        /*activation=*/{}, mostChunks, useTiles},
                       target) {}

  int64_t getTokenCapacity() const { return kernel.getTokenCapacity(); }
  int64_t getChunks() const { return kernel.getChunks(); }
  void allocate(ScratchAllocator &allocator) { kernel.allocate(allocator, op.getContext()); }

  void build(CodeBuilder &code, ValueRange operands, Value result, Value workgroup) {
    auto next = operands.begin();
    Value input = *next++, storage = *next++;
    Value bias = op.getBias() ? *next++ : Value();
    Value residual = op.getResidual() ? *next++ : Value();
    RowPacker packer(input, kernel.getColumns());
    if (op.getNormWeight())
      packer.setNorm(*next++, op.getEpsilon()->convertToDouble());
    kernel.attach(code, storage, /*expert=*/{});
    kernel.getWriter().setResidual(residual);

    Value chunk = code.remainder(workgroup, getChunks());
    Value first = code.mul(code.divide(workgroup, getChunks()), getTokenCapacity());
    Value end = code.minimum(code.add(first, getTokenCapacity()), code.dim(input, 0));
    if (bias)
      kernel.getWriter().loadBias(code, bias, {}, chunk);
    auto sameRow = [](Value token) { return token; };
    kernel.multiply(code, {packer, result, sameRow, sameRow}, first, end, chunk);
  }

private:
  moe::LinearOp op;
  ProductKernel kernel;
};

/// With vectors alone, or with the matrix unit for more than a few tokens.
class LinearStrategy : public KernelStrategy {
public:
  LinearStrategy(StringRef name, bool useTiles) : name(name), useTiles(useTiles) {}

  StringRef getName() const override { return name; }
  StringRef getOpName() const override { return moe::LinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::LinearOp>(op);
    return linear && target.isCPU() &&
           isProductSupported(linear.getWeight().getType(), target, useTiles);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return useTiles ? 2 : 1; }

  moe::LayoutAttr getLayout(Operation *op, OpOperand &operand,
                            const TargetDescription &) const override {
    bool isWeight = operand.get() == cast<moe::LinearOp>(op).getWeight();
    return isWeight ? getPanelLayout(operand.get().getType()) : moe::LayoutAttr();
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto linear = cast<moe::LinearOp>(op);
    LinearKernel kernel(linear, target, useTiles);
    return countTiles(builder, op->getLoc(), linear.getInput(), kernel.getTokenCapacity(),
                      kernel.getChunks());
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    ScratchAllocator allocator;
    LinearKernel(cast<moe::LinearOp>(op), target, useTiles).allocate(allocator);
    return builder.getIndexAttr(allocator.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    ScratchAllocator allocator(code, scratch);
    LinearKernel kernel(cast<moe::LinearOp>(op), target, useTiles);
    kernel.allocate(allocator);
    kernel.build(code, operands, results[0], workgroup);
  }

private:
  StringRef name;
  bool useTiles;
};

} // namespace

const KernelStrategy &mlir::moec::getLinearVectorStrategy() {
  static const LinearStrategy strategy("cpu.linear.vector", /*useTiles=*/false);
  return strategy;
}

const KernelStrategy &mlir::moec::getLinearAMXStrategy() {
  static const LinearStrategy strategy("cpu.linear.amx", /*useTiles=*/true);
  return strategy;
}
