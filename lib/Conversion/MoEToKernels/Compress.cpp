//===- Compress.cpp - strategy that compresses windows of tokens ------------------------------===//
//
// A workgroup takes some channels of one sequence.
//
//===------------------------------------------------------------------------------------------===//

#include "CompressCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// A multiple of every number of lanes.
constexpr int64_t channelsPerWorkgroup = 64;

class CompressStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.compress"; }
  StringRef getOpName() const override { return moe::CompressOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::CompressOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto compress = cast<moe::CompressOp>(op);
    return countTiles(builder, op->getLoc(), compress.getStateSlots(), 1, countPieces(compress));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &target) const override {
    auto compress = cast<moe::CompressOp>(op);
    CodeBuilder code(op->getLoc(), builder);
    CompressCode ofChannels(code, compress, operands, results[0]);
    int64_t channels = getChannels(compress), pieces = countPieces(compress);
    int64_t lanes = target.getVectorBytes() / 4, whole = channels / lanes * lanes;
    Value sequence = code.divide(workgroup, pieces);
    Value first = code.mul(code.remainder(workgroup, pieces), channelsPerWorkgroup);
    Value end = code.add(first, channelsPerWorkgroup);
    withSequence(code, CompressCode::getSequences(operands), sequence, code.dim(operands[0], 0),
                 [&](const SequencePart &part) {
                   code.loop(first, code.minimum(end, code.index(whole)), lanes,
                             [&](Value channel) { ofChannels.build(part, channel, lanes); });
                   if (whole < channels) // in the last piece
                     code.when(
                         code.compare(arith::CmpIPredicate::sge, end, code.index(channels)),
                         [&] { ofChannels.build(part, code.index(whole), channels - whole); });
                 });
  }

private:
  static int64_t getChannels(moe::CompressOp op) { return op.getResult().getType().getDimSize(1); }
  static int64_t countPieces(moe::CompressOp op) {
    return llvm::divideCeil(getChannels(op), channelsPerWorkgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCompressStrategy() {
  static const CompressStrategy strategy;
  return strategy;
}
