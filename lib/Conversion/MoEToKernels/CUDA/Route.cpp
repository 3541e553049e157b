//===- Route.cpp - a warp chooses one token's experts -----------------------------------------===//
//
// Each lane holds every 32nd expert. Choices are made one after the other: the largest rank of the
// lane, then of the warp, the lower expert first where ranks are equal. Ranks are the scores' bits,
// ordered like the scores, so that minus infinity can be told from what was taken.
//
//===------------------------------------------------------------------------------------------===//

#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 128, warps = threads / BlockCode::warpSize;
constexpr double minusInfinity = -std::numeric_limits<double>::infinity();
/// Below every finite score that occurs, finite itself.
constexpr double lowestMaximum = -1e30;
constexpr int64_t taken = std::numeric_limits<int32_t>::min();

class RouteWarp {
public:
  RouteWarp(BlockCode &code, moe::RouteOp op, ValueRange operands, ValueRange results)
      : code(code), op(op), experts(op.getLogits().getType().getDimSize(1)),
        choices(op.getTopK()), parts(llvm::divideCeil(experts, BlockCode::warpSize)),
        isSoftmax(op.getScore() == moe::ScoreFunction::softmax),
        logits(operands[0]), bias(op.getSelectionBias() ? operands[1] : Value()),
        weights(results[0]), indices(results[1]),
        chosen(code.allocateShared({warps, choices}, code.getF32Type())) {}

  void build(Value workgroup) {
    Value token = code.add(code.mul(workgroup, warps), code.warp());
    code.when(code.isWithin(token, code.dim(logits, 0)), [&] { buildToken(token); });
  }

private:
  Value getExpert(int64_t part) { return code.add(code.lane(), part * BlockCode::warpSize); }

  Value numberOrMinusInfinity(Value x) {
    Value isNumber = code.compare(arith::CmpFPredicate::ORD, x, x);
    return code.select(isNumber, x, code.float32(minusInfinity));
  }

  /// What `load` gives for this lane's experts; minus infinity behind the last one.
  SmallVector<Value> forEachPart(function_ref<Value(Value expert)> load) {
    SmallVector<Value> values;
    for (int64_t part = 0; part < parts; ++part) {
      Value expert = getExpert(part);
      values.push_back(code.choose(
          code.isWithin(expert, code.index(experts)), {code.getF32Type()},
          [&]() -> SmallVector<Value> { return {load(expert)}; },
          [&]() -> SmallVector<Value> { return {code.float32(minusInfinity)}; })[0]);
    }
    return values;
  }

  void buildToken(Value token) {
    SmallVector<Value> x = forEachPart([&](Value expert) {
      return numberOrMinusInfinity(code.loadFloat(logits, {token, expert}));
    });
    // Softmax keeps the order: without a bias the logits choose, and with renormalisation the chosen
    // logits are all that counts.
    bool ofChosen = isSoftmax && op.getRenormalize(), byLogits = isSoftmax && !bias;
    SmallVector<Value> scores = ofChosen && byLogits ? x : computeScores(x);
    SmallVector<Value> ranks;
    SmallVector<Value> biases;
    if (bias)
      biases = forEachPart([&](Value expert) { return code.loadFloat(bias, expert); });
    for (int64_t part = 0; part < parts; ++part) {
      Value selection = byLogits ? x[part] : scores[part];
      if (bias)
        selection = numberOrMinusInfinity(code.add(selection, biases[part]));
      // Adding zero makes -0 equal to 0. What is behind the last expert is never chosen.
      Value rank = rankOf(code.add(selection, code.float32(0)));
      Value isExpert = code.isWithin(getExpert(part), code.index(experts));
      ranks.push_back(code.select(isExpert, rank, code.int32(taken)));
    }
    choose(token, ranks, ofChosen ? x : scores);
    NVVM::SyncWarpOp::create(code, code.getLoc(), code.int32(-1));
    storeWeights(token, ofChosen);
  }

  SmallVector<Value> computeScores(ArrayRef<Value> x) {
    SmallVector<Value> scores;
    if (!isSoftmax) {
      for (Value value : x)
        scores.push_back(scoreOf(value));
      return scores;
    }
    Value maximum = code.float32(lowestMaximum), sum = code.float32(0);
    for (Value value : x)
      maximum = code.maximum(value, maximum);
    maximum = code.maximumOverLanes(maximum);
    for (Value value : x) {
      scores.push_back(code.exp(code.sub(value, maximum)));
      sum = code.add(sum, scores.back());
    }
    // Without a single number in the row the sum is 0, and 0 is then the score of all.
    Value divisor = code.maximum(code.sumOverLanes(sum), code.float32(1e-30));
    for (Value &score : scores)
      score = code.divide(score, divisor);
    return scores;
  }

  Value scoreOf(Value x) {
    Location loc = code.getLoc();
    Value zero = code.float32(0), one = code.float32(1);
    if (op.getScore() == moe::ScoreFunction::sigmoid)
      return code.divide(one, code.add(one, code.exp(code.sub(zero, x))));
    // softplus(x) = max(x, 0) + log(1 + exp(-|x|)): no exponential overflows.
    Value decay = code.exp(code.sub(zero, math::AbsFOp::create(code, loc, x)));
    Value softplus = code.add(code.maximum(x, zero), math::Log1pOp::create(code, loc, decay));
    return math::SqrtOp::create(code, loc, softplus);
  }

  /// The bits of a float, of negative ones all but the sign flipped, are ordered like the floats.
  Value rankOf(Value selection) {
    Location loc = code.getLoc();
    Value bits = arith::BitcastOp::create(code, loc, code.getI32Type(), selection);
    Value sign = arith::ShRSIOp::create(code, loc, bits, code.int32(31));
    Value flip = arith::AndIOp::create(code, loc, sign, code.int32(0x7fffffff));
    return arith::XOrIOp::create(code, loc, bits, flip);
  }

  struct Candidate {
    Value rank, expert, value;
  };
  Candidate better(const Candidate &a, const Candidate &b) {
    Value isLarger = code.compare(arith::CmpIPredicate::sgt, b.rank, a.rank);
    Value isEqual = code.compare(arith::CmpIPredicate::eq, b.rank, a.rank);
    Value isLower = code.compare(arith::CmpIPredicate::slt, b.expert, a.expert);
    Value takes = arith::OrIOp::create(code, code.getLoc(), isLarger, code.both(isEqual, isLower));
    return {code.select(takes, b.rank, a.rank), code.select(takes, b.expert, a.expert),
            code.select(takes, b.value, a.value)};
  }

  /// Writes the chosen experts, and their values (those that weights are made of) to `chosen`.
  void choose(Value token, ArrayRef<Value> ranks, ArrayRef<Value> values) {
    SmallVector<Value> experts32;
    for (int64_t part = 0; part < parts; ++part)
      experts32.push_back(code.toInt32(getExpert(part)));
    Value isFirst = code.compare(arith::CmpIPredicate::eq, code.lane(), code.index(0));
    code.loop(code.index(0), code.index(choices), 1, ranks,
              [&](Value choice, ValueRange ranks) -> SmallVector<Value> {
                Candidate best = {ranks[0], experts32[0], values[0]};
                for (int64_t part = 1; part < parts; ++part)
                  best = better(best, {ranks[part], experts32[part], values[part]});
                for (int64_t distance = BlockCode::warpSize / 2; distance > 0; distance /= 2)
                  best = better(best, {exchange(best.rank, distance),
                                       exchange(best.expert, distance),
                                       exchange(best.value, distance)});
                code.when(isFirst, [&] {
                  code.storeInt(best.expert, indices, {token, choice});
                  code.storeFloat(best.value, chosen, {code.warp(), choice});
                });
                SmallVector<Value> left;
                for (int64_t part = 0; part < parts; ++part) {
                  Value isTaken = code.compare(arith::CmpIPredicate::eq, experts32[part],
                                               best.expert);
                  left.push_back(code.select(isTaken, code.int32(taken), ranks[part]));
                }
                return left;
              });
  }

  Value exchange(Value value, int64_t distance) {
    return buildExchange(code, code.getLoc(), value, distance);
  }

  void storeWeights(Value token, bool ofChosen) {
    Value zero = code.index(0), all = code.index(choices), warp = code.warp();
    Value largest = code.maximum(code.loadFloat(chosen, {warp, zero}), code.float32(lowestMaximum));
    if (ofChosen && bias) // the first choice need not have the largest logit
      largest = code.loop(zero, all, 1, {largest},
                          [&](Value choice, ValueRange carried) -> SmallVector<Value> {
                            return {code.maximum(code.loadFloat(chosen, {warp, choice}),
                                                 carried[0])};
                          })[0];
    auto getWeight = [&](Value choice) {
      Value value = code.loadFloat(chosen, {warp, choice});
      return ofChosen ? code.exp(code.sub(value, largest)) : value;
    };
    Value divisor;
    if (op.getRenormalize()) {
      Value sum = code.loop(zero, all, 1, {code.float32(0)},
                            [&](Value choice, ValueRange carried) -> SmallVector<Value> {
                              return {code.add(carried[0], getWeight(choice))};
                            })[0];
      divisor = ofChosen ? code.maximum(sum, code.float32(1e-30))
                         : code.add(sum, code.float32(1e-20));
    }
    code.loop(code.lane(), all, BlockCode::warpSize, [&](Value choice) {
      Value weight = getWeight(choice);
      if (divisor)
        weight = code.divide(weight, divisor);
      weight = code.mul(weight, code.float32(op.getScale().convertToDouble()));
      code.storeFloat(weight, weights, {token, choice});
    });
  }

  BlockCode &code;
  moe::RouteOp op;
  int64_t experts, choices, parts;
  bool isSoftmax;
  Value logits, bias, weights, indices, chosen;
};

class CUDARouteStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.route"; }
  StringRef getOpName() const override { return moe::RouteOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    auto route = dyn_cast<moe::RouteOp>(op);
    bool limitsGroups = route && route.getGroups() > 1 && route.getTopGroups() < route.getGroups();
    return route && target.isCUDA() && !limitsGroups &&
           !route.getLogits().getType().isDynamicDim(1);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::RouteOp>(op).getLogits(), warps, 1);
  }
  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    RouteWarp(code, cast<moe::RouteOp>(op), operands, results).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDARouteStrategy() {
  static const CUDARouteStrategy strategy;
  return strategy;
}
