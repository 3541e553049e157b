//===- RaiseRouting.cpp - top-k choices with softmax weights become moe.route
//------------------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "Matching.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_RAISEROUTING
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

using Kind = Expression::Kind;

namespace {
/// Indices of the `k` largest of the elements of a row, in falling order.
struct Choice {
  Value indices;           // [tokens, k] integers
  const Expression *logit; // Element [token, expert] of what is ranked
  AffineExpr token, expert;
  int64_t k = 0;
};
} // namespace

static bool isCompare(const Expression *e, StringRef name, int64_t predicate) {
  return e->isOperation(name) && e->predicate == predicate;
}

static bool isIndex(const Expression *e, AffineExpr index) {
  return e->kind == Kind::Index && e->index == index;
}

/// x without the replacement of NaN by -inf; null where there is none.
static const Expression *stripNaNGuard(const Expression *key) {
  if (!key->isOperation("arith.select"))
    return key;
  const Expression *test = key->operands[0], *bound = key->operands[1], *x = key->operands[2];
  bool isGuard = isCompare(test, "arith.cmpf", static_cast<int64_t>(arith::CmpFPredicate::UNO)) &&
                 test->operands[0] == x && test->operands[1] == x &&
                 bound->kind == Kind::Constant && std::isinf(bound->number) && bound->number < 0;
  return isGuard ? x : nullptr;
}

/// Recognises how many elements come before element `expert`: those that are larger, and equal ones
/// of lower index.
static const Expression *matchRank(ElementEvaluator &evaluator, const Expression *rank,
                                   AffineExpr expert) {
  std::optional<ReductionBody> body = evaluator.reductionBody(rank);
  if (!body || body->combiner != "arith.addi" || body->variables.size() != 1 ||
      !body->body->isOperation("arith.extui"))
    return nullptr;
  AffineExpr other = getAffineDimExpr(body->variables[0], expert.getContext());
  const Expression *either = body->body->operands[0];
  if (!either->isOperation("arith.ori") || !either->operands[1]->isOperation("arith.andi"))
    return nullptr;
  const Expression *larger = either->operands[0], *tie = either->operands[1];
  const Expression *equal = tie->operands[0], *lower = tie->operands[1];
  if (!isCompare(larger, "arith.cmpf", static_cast<int64_t>(arith::CmpFPredicate::OGT)) ||
      !isCompare(equal, "arith.cmpf", static_cast<int64_t>(arith::CmpFPredicate::OEQ)) ||
      !isCompare(lower, "arith.cmpi", static_cast<int64_t>(arith::CmpIPredicate::ult)) ||
      equal->operands != larger->operands || !isIndex(lower->operands[0], other) ||
      !isIndex(lower->operands[1], expert))
    return nullptr;
  return stripNaNGuard(larger->operands[1]);
}

static std::optional<Choice> matchChoice(ElementEvaluator &evaluator, Value indices) {
  auto type = cast<RankedTensorType>(indices.getType());
  if (type.getRank() != 2 || type.isDynamicDim(1))
    return std::nullopt;
  Choice choice;
  choice.indices = indices;
  choice.k = type.getDimSize(1);
  choice.token = evaluator.variable(evaluator.size(indices, 0));
  // With k = 1 the place is the constant 0.
  AffineExpr place = evaluator.variable(evaluator.constant(choice.k));
  std::optional<ReductionBody> body =
      evaluator.reductionBody(evaluator.evaluate(indices, {choice.token, place}));
  if (!body || body->combiner != "arith.addi" || body->variables.size() != 1 ||
      !body->body->isOperation("arith.select"))
    return std::nullopt;
  choice.expert = getAffineDimExpr(body->variables[0], indices.getContext());
  const Expression *hit = body->body->operands[0];
  if (!isCompare(hit, "arith.cmpi", static_cast<int64_t>(arith::CmpIPredicate::eq)) ||
      !isIndex(hit->operands[1], place) || !isIndex(body->body->operands[1], choice.expert) ||
      !isIndex(body->body->operands[2], evaluator.constant(0)))
    return std::nullopt;
  const Expression *rank = hit->operands[0];
  if (rank->kind == Kind::Index)
    rank = evaluator.dataOf(rank->index);
  choice.logit = rank ? matchRank(evaluator, rank, choice.expert) : nullptr;
  if (!choice.logit)
    return std::nullopt;
  return choice;
}

//===------------------------------------------------------------------------------------------===//
// Weights
//===------------------------------------------------------------------------------------------===//

namespace {
enum class Weighting { None, ChosenSoftmax, Softmax, RenormalizedSoftmax };
} // namespace

/// Whether the score at (token, place) is the logit of the choice at that place.
static bool isChosenLogit(ElementEvaluator &evaluator, const Choice &choice,
                          const Expression *score, AffineExpr token, AffineExpr place) {
  if (score->kind != Kind::Element || choice.logit->kind != Kind::Element ||
      score->value != choice.logit->value || score->indices.size() != choice.logit->indices.size())
    return false;
  bool foundExpert = false;
  for (auto [found, wanted] : llvm::zip(score->indices, choice.logit->indices)) {
    if (wanted == choice.expert) {
      const Expression *data = indexData(evaluator, found);
      if (!data || data->value != choice.indices ||
          ArrayRef(data->indices) != ArrayRef<AffineExpr>{token, place})
        return false;
      foundExpert = true;
    } else if (found.replace(token, choice.token) != wanted) {
      return false;
    }
  }
  return foundExpert;
}

/// exp(logit(choice) - m) / sum over all experts of exp(logit - m).
static bool isSoftmaxOfChosen(ElementEvaluator &evaluator, const Choice &choice,
                              const Expression *weight, AffineExpr token, AffineExpr place) {
  if (!weight->isOperation("arith.divf") || !weight->operands[0]->isOperation("math.exp"))
    return false;
  std::optional<ReductionBody> sum = evaluator.reductionBody(weight->operands[1]);
  if (!sum || sum->combiner != "arith.addf" || sum->variables.size() != 1 ||
      !sum->body->isOperation("math.exp"))
    return false;
  AffineExpr expert = getAffineDimExpr(sum->variables[0], token.getContext());
  SmallVector<SignedTerm> chosen = flattenSum(weight->operands[0]->operands[0]);
  SmallVector<SignedTerm> all = flattenSum(sum->body->operands[0]);
  // Both are a logit less the same shift.
  if (chosen.size() != 2 || all.size() != 2 || chosen[0].negative || all[0].negative ||
      !chosen[1].negative || !all[1].negative || chosen[1].term != all[1].term ||
      evaluator.dependsOn(all[1].term, expert) || evaluator.dependsOn(chosen[1].term, place))
    return false;
  const Expression *logit = all[0].term;
  if (logit->kind != Kind::Element || logit->value != choice.logit->value)
    return false;
  for (auto [found, wanted] : llvm::zip(logit->indices, choice.logit->indices))
    if (found.replace({{token, choice.token}, {expert, choice.expert}}) != wanted)
      return false;
  return evaluator.extentOf(sum->variables[0]) ==
             evaluator.extentOf(cast<AffineDimExpr>(choice.expert).getPosition()) &&
         isChosenLogit(evaluator, choice, chosen[0].term, token, place);
}

static Weighting matchWeights(ElementEvaluator &evaluator, const Choice &choice, Value weights) {
  AffineExpr token = evaluator.variable(evaluator.size(weights, 0));
  AffineExpr place = evaluator.variable(evaluator.constant(choice.k));
  if (!isa<AffineDimExpr>(place) || !isa<AffineDimExpr>(token))
    return Weighting::None;
  const Expression *weight = evaluator.evaluate(weights, {token, place});
  if (isSoftmaxOfChosen(evaluator, choice, weight, token, place))
    return Weighting::Softmax;
  if (auto softmax = matchSoftmax(evaluator, weight, place, evaluator.constant(choice.k));
      softmax && softmax->columns.empty()) {
    SmallVector<SignedTerm> dependent;
    for (SignedTerm term : flattenSum(softmax->score))
      if (evaluator.dependsOn(term.term, place))
        dependent.push_back(term);
    if (dependent.size() == 1 && !dependent[0].negative &&
        isChosenLogit(evaluator, choice, dependent[0].term, token, place))
      return Weighting::ChosenSoftmax;
  }
  // p / sum of p over the choices.
  if (weight->isOperation("arith.divf")) {
    std::optional<ReductionBody> sum = evaluator.reductionBody(weight->operands[1], place);
    if (sum && sum->combiner == "arith.addf" && sum->body == weight->operands[0] &&
        !evaluator.dependsOn(weight->operands[1], place) &&
        isSoftmaxOfChosen(evaluator, choice, weight->operands[0], token, place))
      return Weighting::RenormalizedSoftmax;
  }
  return Weighting::None;
}

//===------------------------------------------------------------------------------------------===//
// The pass
//===------------------------------------------------------------------------------------------===//

static bool raiseChoice(ElementEvaluator &evaluator, const Choice &choice,
                        ArrayRef<Value> candidates) {
  Weighting weighting = Weighting::None;
  Value weights;
  // The last match is the one that needs nothing afterwards: a renormalised softmax contains a
  // plain one.
  for (Value candidate : candidates) {
    auto type = cast<RankedTensorType>(candidate.getType());
    if (type.getDimSize(1) != choice.k)
      continue;
    Weighting found = matchWeights(evaluator, choice, candidate);
    if (found != Weighting::None) {
      weighting = found;
      weights = candidate;
    }
  }
  if (!weights)
    return false;
  OpBuilder builder(weights.getContext());
  // Both results are there where the earlier one of the two was.
  Operation *first = choice.indices.getDefiningOp();
  builder.setInsertionPoint(first);
  Location location = first->getLoc();
  Value logits =
      materialize(evaluator, builder, location, choice.logit, {choice.token, choice.expert});
  if (!logits)
    return false;
  auto logitsType = cast<RankedTensorType>(logits.getType());
  if (logitsType.getElementType().isBF16() || logitsType.getElementType().isF16())
    logits =
        arith::ExtFOp::create(builder, location, logitsType.clone(builder.getF32Type()), logits);
  else if (!logitsType.getElementType().isF32())
    return false;
  int64_t rows = cast<RankedTensorType>(choice.indices.getType()).getDimSize(0);
  SmallVector<int64_t> shape = {rows, choice.k};
  auto route = moe::RouteOp::create(
      builder, location, RankedTensorType::get(shape, builder.getF32Type()),
      RankedTensorType::get(shape, builder.getI32Type()), logits, /*selection_bias=*/Value(),
      moe::ScoreFunctionAttr::get(builder.getContext(), moe::ScoreFunction::softmax),
      builder.getI64IntegerAttr(choice.k), builder.getI64IntegerAttr(1),
      builder.getI64IntegerAttr(1),
      weighting == Weighting::Softmax ? UnitAttr() : builder.getUnitAttr(),
      builder.getF64FloatAttr(1.0));
  Value wide =
      arith::ExtUIOp::create(builder, location, choice.indices.getType(), route.getIndices());
  Value chosen = route.getWeights();
  if (!getElementTypeOrSelf(weights.getType()).isF32())
    chosen = arith::TruncFOp::create(builder, location, weights.getType(), chosen);
  weights.replaceAllUsesWith(chosen);
  Value indices = choice.indices;
  indices.replaceAllUsesWith(wide);
  return true;
}

namespace {
struct RaiseRoutingPass : moec::impl::RaiseRoutingBase<RaiseRoutingPass> {
  void runOnOperation() override {
    SmallVector<Value> reductions, divisions;
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() != 1)
        return;
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (!type || type.getRank() != 2 || type.isDynamicDim(1))
        return;
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (linalgOp && type.getElementType().isInteger(64) && linalgOp.getNumReductionLoops() == 1)
        reductions.push_back(op->getResult(0));
      bool isGather = linalgOp && linalgOp.getNumReductionLoops() == 0;
      if (isa<FloatType>(type.getElementType()) &&
          (isa<arith::DivFOp, arith::TruncFOp>(op) || isGather))
        divisions.push_back(op->getResult(0));
    });
    for (Value indices : reductions) {
      // What was rewritten is evaluated anew.
      ElementEvaluator evaluator(&getContext());
      if (std::optional<Choice> choice = matchChoice(evaluator, indices))
        if (raiseChoice(evaluator, *choice, divisions))
          ++raised;
    }
  }
};
} // namespace
