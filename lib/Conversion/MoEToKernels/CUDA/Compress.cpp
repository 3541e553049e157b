//===- Compress.cpp - a thread compresses one channel of one sequence -------------------------===//

#include "../CompressCode.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 64;

class CUDACompressStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.compress"; }
  StringRef getOpName() const override { return moe::CompressOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::CompressOp>(op) && target.isCUDA();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto compress = cast<moe::CompressOp>(op);
    return countTiles(builder, op->getLoc(), compress.getStateSlots(), 1, countPieces(compress));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    auto compress = cast<moe::CompressOp>(op);
    BlockCode code(op->getLoc(), builder, threads);
    int64_t pieces = countPieces(compress);
    Value sequence = code.divide(workgroup, pieces);
    Value channel = code.add(code.mul(code.remainder(workgroup, pieces), threads), code.thread());
    withSequence(code, CompressCode::getSequences(operands), sequence, code.dim(operands[0], 0),
                 [&](const SequencePart &part) {
                   code.when(code.isWithin(channel, code.dim(results[0], 1)), [&] {
                     CompressCode(code, compress, operands, results[0]).build(part, channel, 0);
                   });
                 });
  }

private:
  static int64_t countPieces(moe::CompressOp op) {
    return llvm::divideCeil(op.getResult().getType().getDimSize(1), threads);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDACompressStrategy() {
  static const CUDACompressStrategy strategy;
  return strategy;
}
