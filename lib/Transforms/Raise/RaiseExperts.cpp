//===- RaiseExperts.cpp - gathered expert products become moe.experts
//--------------------------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "Matching.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_RAISEEXPERTS
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

using Kind = Expression::Kind;

namespace {

/// sum over `reduced` of weight[e, ...] * input + bias[e, output].
struct ExpertProduct {
  const Expression *input = nullptr; // at `reduced`
  AffineExpr reduced, output;
  Value weight, bias;      // bias may be null
  bool transposed = false; // weight is [experts, inputs, outputs]
};

struct ExpertsMatch {
  Value gateUp, gateUpBias, down, downBias;
  bool gateUpTransposed = false, downTransposed = false;
  moe::ActivationAttr activation;
  const Expression *input = nullptr, *weight = nullptr, *choice = nullptr;
  AffineExpr token, place, hidden; // variables of the above
};

class ExpertsMatcher {
public:
  ExpertsMatcher(ElementEvaluator &evaluator, MLIRContext *context)
      : evaluator(evaluator), context(context) {}

  std::optional<ExpertsMatch> match(Value result);

private:
  bool matchSummand(const Expression *summand);
  std::optional<ExpertProduct> matchProduct(const Expression *value, AffineExpr output);
  bool matchExpertElement(const Expression *element);
  bool matchActivation(const Expression *activated, AffineExpr inner);
  /// Takes the first product's output at a position as gate or up: the product and where it was
  /// read.
  bool matchBranch(const Expression *branch, AffineExpr inner, AffineExpr &position);

  ElementEvaluator &evaluator;
  MLIRContext *context;
  ExpertsMatch found;
};

} // namespace

/// The expert of an element of a stacked tensor, which must be the one choice that everything else
/// uses, too.
bool ExpertsMatcher::matchExpertElement(const Expression *element) {
  if (element->kind != Kind::Element || element->indices.empty())
    return false;
  const Expression *choice = indexData(evaluator, element->indices.front());
  if (!choice || choice->kind != Kind::Element)
    return false;
  if (found.choice && found.choice != choice)
    return false;
  found.choice = choice;
  return true;
}

std::optional<ExpertProduct> ExpertsMatcher::matchProduct(const Expression *value,
                                                          AffineExpr output) {
  ExpertProduct product;
  product.output = output;
  const Expression *sum = nullptr;
  for (SignedTerm term : flattenSum(value)) {
    if (term.negative)
      return std::nullopt;
    if (term.term->kind == Kind::Reduction) {
      if (sum)
        return std::nullopt;
      sum = term.term;
      continue;
    }
    if (product.bias || !matchExpertElement(term.term) || term.term->indices.size() != 2 ||
        term.term->indices[1] != output)
      return std::nullopt;
    product.bias = term.term->value;
  }
  if (!sum)
    return std::nullopt;
  std::optional<ReductionBody> body = evaluator.reductionBody(sum);
  if (!body || body->combiner != "arith.addf" || body->variables.size() != 1)
    return std::nullopt;
  product.reduced = getAffineDimExpr(body->variables[0], context);
  // Exactly one factor is the weight; what remains is the input.
  if (!body->body->isOperation("arith.mulf"))
    return std::nullopt;
  for (int side : {1, 0}) {
    const Expression *weight = body->body->operands[side];
    if (weight->kind != Kind::Element || weight->indices.size() != 3)
      continue;
    const Expression *before = found.choice;
    if (!matchExpertElement(weight)) {
      found.choice = before;
      continue;
    }
    if (weight->indices[1] == product.reduced && weight->indices[2] == output)
      product.transposed = true;
    else if (weight->indices[1] != output || weight->indices[2] != product.reduced)
      return std::nullopt;
    product.weight = weight->value;
    product.input = body->body->operands[1 - side];
    return product;
  }
  return std::nullopt;
}

bool ExpertsMatcher::matchBranch(const Expression *branch, AffineExpr inner, AffineExpr &position) {
  // Where the first product is read is what its bias or weight says.
  for (SignedTerm term : flattenSum(branch)) {
    if (term.term->kind != Kind::Reduction)
      continue;
    std::optional<ReductionBody> body = evaluator.reductionBody(term.term);
    if (!body || !body->body->isOperation("arith.mulf"))
      return false;
    for (const Expression *factor : body->body->operands)
      if (factor->kind == Kind::Element && factor->indices.size() == 3)
        for (AffineExpr index : ArrayRef(factor->indices).drop_front())
          if (evaluator.dependsOn(index, inner))
            position = index;
  }
  if (!position)
    return false;
  std::optional<ExpertProduct> product = matchProduct(branch, position);
  if (!product)
    return false;
  // Both branches are one product.
  if (found.gateUp && (found.gateUp != product->weight || found.gateUpBias != product->bias ||
                       found.gateUpTransposed != product->transposed))
    return false;
  found.gateUp = product->weight;
  found.gateUpBias = product->bias;
  found.gateUpTransposed = product->transposed;
  // The input at the same hidden position, whatever variable the sum uses.
  if (!found.input) {
    found.input = product->input;
    found.hidden = product->reduced;
    return true;
  }
  const Expression *a = found.input, *b = product->input;
  if (a->kind != b->kind || a->value != b->value || a->indices.size() != b->indices.size())
    return false;
  for (auto [x, y] : llvm::zip(a->indices, b->indices))
    if (y.replace(product->reduced, found.hidden) != x)
      return false;
  return true;
}

/// min(x, limit), or max(min(x, limit), -limit) with `both`. Gives x; no limit is a limit of 0.
static const Expression *stripLimit(const Expression *value, bool both, double &limit) {
  auto bound = [](const Expression *e, StringRef name, const Expression *&inner) {
    if (!e->isOperation(name))
      return std::optional<double>();
    for (int side : {1, 0})
      if (e->operands[side]->kind == Kind::Constant) {
        inner = e->operands[1 - side];
        return std::optional<double>(e->operands[side]->number);
      }
    return std::optional<double>();
  };
  const Expression *inner = value;
  limit = 0;
  std::optional<double> upper = bound(inner, "arith.minimumf", inner);
  std::optional<double> lower = bound(inner, "arith.maximumf", inner);
  if (lower && !upper)
    upper = bound(inner, "arith.minimumf", inner);
  if (!upper && !lower)
    return value;
  if (!upper || *upper <= 0 || lower.has_value() != both || (both && *lower != -*upper))
    return nullptr;
  limit = *upper;
  return inner;
}

bool ExpertsMatcher::matchActivation(const Expression *activated, AffineExpr inner) {
  // gate * sigmoid(alpha * gate) * (up + beta)
  Product product = flattenProduct(activated);
  if (product.number != 1 || product.factors.size() != 3)
    return false;
  const Expression *argument = nullptr;
  SmallVector<const Expression *> others;
  for (const Expression *factor : product.factors) {
    const Expression *x = matchSigmoid(factor);
    if (x && argument)
      return false;
    if (x)
      argument = x;
    else
      others.push_back(factor);
  }
  if (!argument)
    return false;
  Product scaled = flattenProduct(argument);
  if (scaled.factors.size() != 1)
    return false;
  const Expression *gate = scaled.factors[0];
  double alpha = intendedNumber(scaled.number);
  if (others[0] != gate)
    std::swap(others[0], others[1]);
  if (others[0] != gate)
    return false;
  // up + beta
  const Expression *up = others[1];
  double beta = 0, gateLimit = 0, upLimit = 0;
  if (up->isOperation("arith.addf")) {
    for (int side : {1, 0})
      if (up->operands[side]->kind == Kind::Constant) {
        beta = intendedNumber(up->operands[side]->number);
        up = up->operands[1 - side];
        break;
      }
  }
  gate = stripLimit(gate, /*both=*/false, gateLimit);
  up = stripLimit(up, /*both=*/true, upLimit);
  if (!gate || !up || gateLimit != upLimit)
    return false;
  AffineExpr gatePosition, upPosition;
  if (!matchBranch(gate, inner, gatePosition) || !matchBranch(up, inner, upPosition))
    return false;
  auto extent = dyn_cast_or_null<AffineConstantExpr>(
      evaluator.extentOf(cast<AffineDimExpr>(inner).getPosition()));
  if (!extent)
    return false;
  bool interleaved = gatePosition == inner * 2 && upPosition == inner * 2 + 1;
  if (!interleaved && (gatePosition != inner || upPosition != inner + extent.getValue()))
    return false;
  bool plain = alpha == 1 && beta == 0 && gateLimit == 0;
  found.activation = moe::ActivationAttr::get(
      context, plain ? moe::ActivationKind::silu : moe::ActivationKind::swiglu, alpha, beta,
      intendedNumber(gateLimit), interleaved);
  // The products cover all rows of the weight.
  auto type = cast<RankedTensorType>(found.gateUp.getType());
  return type.getDimSize(found.gateUpTransposed ? 2 : 1) == 2 * extent.getValue();
}

bool ExpertsMatcher::matchSummand(const Expression *summand) {
  Product product = flattenProduct(summand);
  if (product.number != 1 || product.factors.size() != 2)
    return false;
  AffineExpr column = found.hidden;
  found.hidden = AffineExpr();
  const Expression *weight = product.factors[0], *value = product.factors[1];
  if (evaluator.dependsOn(weight, column))
    std::swap(weight, value);
  if (evaluator.dependsOn(weight, column) || weight->kind != Kind::Element)
    return false;
  found.weight = weight;
  std::optional<ExpertProduct> down = matchProduct(value, column);
  if (!down)
    return false;
  found.down = down->weight;
  found.downBias = down->bias;
  found.downTransposed = down->transposed;
  return matchActivation(down->input, down->reduced);
}

std::optional<ExpertsMatch> ExpertsMatcher::match(Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  if (type.getRank() != 2 || type.isDynamicDim(1))
    return std::nullopt;
  SmallVector<AffineExpr> variables = evaluator.variablesFor(result);
  if (!isa<AffineDimExpr>(variables[1]))
    return std::nullopt;
  std::optional<ReductionBody> sum = evaluator.reductionBody(evaluator.evaluate(result, variables));
  if (!sum || sum->combiner != "arith.addf" || sum->variables.size() != 1)
    return std::nullopt;
  found.token = variables[0];
  found.hidden = variables[1];
  found.place = getAffineDimExpr(sum->variables[0], context);
  if (!matchSummand(sum->body))
    return std::nullopt;
  // The choice and its weight belong to this token and place.
  SmallVector<AffineExpr> where = {found.token, found.place};
  if (found.choice->indices != where || found.weight->indices != where)
    return std::nullopt;
  return found;
}

/// [E, a, b] -> [E, b, a], once for each weight.
static Value transposeMatrices(OpBuilder &builder, Location location, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  SmallVector<int64_t> shape = {type.getDimSize(0), type.getDimSize(2), type.getDimSize(1)};
  Value init = tensor::EmptyOp::create(builder, location, shape, type.getElementType());
  return linalg::TransposeOp::create(builder, location, weight, init, ArrayRef<int64_t>{0, 2, 1})
      ->getResult(0);
}

static bool rewrite(ElementEvaluator &evaluator, Value result, const ExpertsMatch &match) {
  OpBuilder builder(result.getContext());
  builder.setInsertionPointAfterValue(result);
  Location location = result.getLoc();
  SmallVector<AffineExpr> where = {match.token, match.place};
  Value input = materialize(evaluator, builder, location, match.input, {match.token, match.hidden});
  Value indices = materialize(evaluator, builder, location, match.choice, where);
  Value weights = materialize(evaluator, builder, location, match.weight, where);
  for (Value stacked : {match.gateUp, match.down})
    if (!cast<RankedTensorType>(stacked.getType()).hasStaticShape())
      return false;
  if (!input || !indices || !weights ||
      !cast<RankedTensorType>(weights.getType()).getElementType().isF32())
    return false;
  Value gateUp =
      match.gateUpTransposed ? transposeMatrices(builder, location, match.gateUp) : match.gateUp;
  Value down = match.downTransposed ? transposeMatrices(builder, location, match.down) : match.down;
  // The result is of the input's precision; where the graph sums in a wider type, it goes on from
  // there.
  auto type = cast<RankedTensorType>(result.getType());
  Type element = getElementTypeOrSelf(input.getType());
  auto experts = moe::ExpertsOp::create(
      builder, location, RankedTensorType::get(type.getShape(), element), input,
      toI32(builder, location, indices), weights, gateUp, down, match.gateUpBias, match.downBias,
      /*residual=*/Value(), match.activation);
  result.replaceAllUsesWith(convertFloats(builder, location, experts, type.getElementType()));
  return true;
}

namespace {
struct RaiseExpertsPass : moec::impl::RaiseExpertsBase<RaiseExpertsPass> {
  void runOnOperation() override {
    SmallVector<Value> sums;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op->getNumResults() != 1 || op.getNumReductionLoops() != 1)
        return;
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (type && type.getRank() == 2 && isa<FloatType>(type.getElementType()))
        sums.push_back(op->getResult(0));
    });
    ElementEvaluator evaluator(&getContext());
    for (Value sum : sums) {
      std::optional<ExpertsMatch> match = ExpertsMatcher(evaluator, &getContext()).match(sum);
      if (match && rewrite(evaluator, sum, *match))
        ++raised;
    }
  }
};
} // namespace
