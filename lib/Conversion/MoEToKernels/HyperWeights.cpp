//===- HyperWeights.cpp - strategy for the weights of hyper-connections -----------------------===//

#include "HyperWeightsCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t tokensPerWorkgroup = 4;

class HyperWeightsStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.hyper_weights"; }
  StringRef getOpName() const override { return moe::HyperWeightsOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto weights = dyn_cast<moe::HyperWeightsOp>(op);
    return weights && target.isCPU() &&
           weights.getStreams().getType().getDimSize(1) <= HyperWeightsCode::mostStreams;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::HyperWeightsOp>(op).getProducts(),
                      tokensPerWorkgroup, 1);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    auto weights = cast<moe::HyperWeightsOp>(op);
    HyperWeightsCode ofToken(code, weights, operands, results[0]);
    Value first = code.mul(workgroup, tokensPerWorkgroup);
    Value end = code.minimum(code.add(first, tokensPerWorkgroup), code.dim(operands[0], 0));
    code.loop(first, end, 1, [&](Value token) {
      ofToken.build(token, sumSquares(code, weights.getStreams().getType(), operands[1], token,
                                      target.getVectorBytes() / 4));
    });
  }

private:
  /// The sum of the squares of a token's streams.
  static Value sumSquares(CodeBuilder &code, RankedTensorType type, Value streams, Value token,
                          int64_t lanes) {
    int64_t features = type.getDimSize(2), whole = features / lanes * lanes;
    Value zero = code.index(0), count = code.index(type.getDimSize(1));
    auto add = [&](Value stream, Value i, int64_t width, Value sums) {
      Value x = code.loadFloats(streams, {token, stream, i}, width);
      return code.fma(x, x, sums);
    };
    Value sums = code.loop(zero, count, 1, {code.floatSplat(0, lanes)},
                           [&](Value stream, ValueRange outer) {
                             return code.loop(zero, code.index(whole), lanes, outer,
                                              [&](Value i, ValueRange inner) -> SmallVector<Value> {
                                                return {add(stream, i, lanes, inner[0])};
                                              });
                           })
                     .front();
    Value sum = code.sumLanes(sums);
    if (int64_t rest = features - whole) {
      sums = code.loop(zero, count, 1, {code.floatSplat(0, rest)},
                       [&](Value stream, ValueRange carried) -> SmallVector<Value> {
                         return {add(stream, code.index(whole), rest, carried[0])};
                       })
                 .front();
      sum = code.add(sum, code.sumLanes(sums));
    }
    return sum;
  }
};

} // namespace

const KernelStrategy &mlir::moec::getHyperWeightsStrategy() {
  static const HyperWeightsStrategy strategy;
  return strategy;
}
