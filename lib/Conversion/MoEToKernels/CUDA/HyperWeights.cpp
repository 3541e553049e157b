//===- HyperWeights.cpp - a block computes one token's weights of hyper-connections -----------===//

#include "../HyperWeightsCode.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256;

class CUDAHyperWeightsStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.hyper_weights"; }
  StringRef getOpName() const override { return moe::HyperWeightsOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto weights = dyn_cast<moe::HyperWeightsOp>(op);
    return weights && target.isCUDA() &&
           weights.getStreams().getType().getDimSize(1) <= HyperWeightsCode::mostStreams;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::HyperWeightsOp>(op).getProducts(), 1, 1);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value token, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    auto weights = cast<moe::HyperWeightsOp>(op);
    auto type = weights.getStreams().getType();
    int64_t features = type.getDimSize(2), count = type.getDimSize(1) * features;
    Value sum = code.loop(code.thread(), code.index(count), threads, {code.float32(0)},
                          [&](Value i, ValueRange carried) -> SmallVector<Value> {
                            Value stream = code.divide(i, features);
                            Value x = code.loadFloat(operands[1],
                                                     {token, stream, code.remainder(i, features)});
                            return {code.fma(x, x, carried[0])};
                          })
                    .front();
    sum = code.sumOverLanes(sum);
    Value sums = code.allocateShared({code.getWarps()}, code.getF32Type());
    Value isFirstLane = code.compare(arith::CmpIPredicate::eq, code.lane(), code.index(0));
    code.when(isFirstLane, [&] { code.storeFloat(sum, sums, code.warp()); });
    code.barrier();
    // The rest is a chain of a few hundred additions and divisions: too little to share.
    Value isFirst = code.compare(arith::CmpIPredicate::eq, code.thread(), code.index(0));
    code.when(isFirst, [&] {
      Value squares = code.loadFloat(sums, code.index(0));
      for (int64_t warp = 1; warp < code.getWarps(); ++warp)
        squares = code.add(squares, code.loadFloat(sums, code.index(warp)));
      HyperWeightsCode(code, weights, operands, results[0]).build(token, squares);
    });
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAHyperWeightsStrategy() {
  static const CUDAHyperWeightsStrategy strategy;
  return strategy;
}
