//===- AttentionMatcher.cpp - masked attention over past and present, by formula
//---------------------===//

#include "AttentionMatcher.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::moec;

using Kind = Expression::Kind;

/// What is added to hidden scores is at most this.
static constexpr double hiddenScore = -1e4;

namespace {

class Matcher {
public:
  Matcher(ElementEvaluator &evaluator, Value result, BlockArgument positions, std::string &why)
      : evaluator(evaluator), positions(positions), why(why) {
    match.result = result;
  }

  std::optional<AttentionMatch> run();

private:
  std::nullopt_t differs(const Twine &what) {
    why = what.str();
    return std::nullopt;
  }

  bool matchScore(const Expression *score);
  bool matchScaledProduct(const Expression *term);
  bool matchDot(const Expression *dot);
  bool matchMask(const Expression *condition, bool visible);
  bool collectConditions(const Expression *condition, bool holds,
                         SmallVectorImpl<AffineExpr> &conditions);
  bool isTokenPosition(AffineExpr position);
  bool matchCache(const Expression *element, AffineExpr channel, CacheRead &cache,
                  AffineExpr &headIndex);

  ElementEvaluator &evaluator;
  BlockArgument positions;
  std::string &why;
  AttentionMatch match;
  AffineExpr key;                  // the summed position j
  AffineExpr keyHead, valueHead;   // head of keys and values, in terms of match.head
  SmallVector<AffineExpr> visible; // conditions, each >= 0, under which a key is seen
  bool hasMask = false;
};

} // namespace

/// A conjunction of comparisons as affine expressions that are at least 0.
bool Matcher::collectConditions(const Expression *condition, bool holds,
                                SmallVectorImpl<AffineExpr> &conditions) {
  if (condition->isOperation(holds ? "arith.andi" : "arith.ori"))
    return collectConditions(condition->operands[0], holds, conditions) &&
           collectConditions(condition->operands[1], holds, conditions);
  if (condition->kind == Kind::Index)
    return condition->index == evaluator.constant(holds ? 1 : 0); // a constant
  if (condition->isOperation("arith.xori") && condition->operands[1]->kind == Kind::Index &&
      condition->operands[1]->index == evaluator.constant(1))
    return collectConditions(condition->operands[0], !holds, conditions);
  if (!condition->isOperation("arith.cmpi"))
    return false;
  AffineExpr a = evaluator.toIndex(condition->operands[0]);
  AffineExpr b = evaluator.toIndex(condition->operands[1]);
  using Predicate = arith::CmpIPredicate;
  auto predicate = static_cast<Predicate>(condition->predicate);
  if (!holds)
    predicate = arith::invertPredicate(predicate);
  switch (predicate) {
  case Predicate::sle:
    conditions.push_back(evaluator.simplify(b - a));
    return true;
  case Predicate::slt:
    conditions.push_back(evaluator.simplify(b - a - 1));
    return true;
  case Predicate::sge:
    conditions.push_back(evaluator.simplify(a - b));
    return true;
  case Predicate::sgt:
    conditions.push_back(evaluator.simplify(a - b - 1));
    return true;
  default:
    return false;
  }
}

bool Matcher::matchMask(const Expression *condition, bool isVisible) {
  hasMask = true;
  if (collectConditions(condition, isVisible, visible))
    return true;
  why = "its mask is no conjunction of comparisons of positions";
  return false;
}

/// Whether the expression is where query token t stands: past + t, or the position that the file is
/// given.
bool Matcher::isTokenPosition(AffineExpr position) {
  if (evaluator.simplify(position - evaluator.size(match.keys.past, match.keys.concat.getDim()) -
                         match.token) == evaluator.constant(0))
    return true;
  const Expression *data = evaluator.dataOf(position);
  return data && data->kind == Kind::Element && data->value == positions &&
         data->indices.back() == match.token;
}

bool Matcher::matchCache(const Expression *element, AffineExpr channel, CacheRead &cache,
                         AffineExpr &headIndex) {
  cache.concat = element->value.getDefiningOp<tensor::ConcatOp>();
  if (!cache.concat || cache.concat.getInputs().size() != 2) {
    why = "its keys or values are not a past followed by new rows";
    return false;
  }
  cache.past = dyn_cast<BlockArgument>(cache.concat.getInputs()[0]);
  Value added = cache.concat.getInputs()[1];
  if (!cache.past) {
    why = "its keys or values do not begin with an input of the graph";
    return false;
  }
  SmallVector<AffineExpr> indices;
  for (auto [i, index] : llvm::enumerate(element->indices)) {
    AffineExpr extent = evaluator.size(added, i);
    if (i == cache.concat.getDim()) {
      if (index != key) {
        why = "keys and values are not read in order";
        return false;
      }
      indices.push_back(cache.token = evaluator.variable(extent));
    } else if (index == channel) {
      cache.channels = cast<RankedTensorType>(added.getType()).getDimSize(i);
      indices.push_back(cache.channel = evaluator.variable(extent));
    } else if (extent == evaluator.constant(1) && index == evaluator.constant(0)) {
      indices.push_back(index);
    } else if (!headIndex) {
      headIndex = index;
      cache.heads = cast<RankedTensorType>(added.getType()).getDimSize(i);
      indices.push_back(cache.head = evaluator.variable(extent));
    } else {
      why = "its keys or values have more dimensions than heads, positions and channels";
      return false;
    }
  }
  if (!headIndex) {
    // One head, whose dimension is of size 1 or not there.
    headIndex = evaluator.constant(0);
    cache.heads = 1;
  }
  if (!cache.token || !cache.channel || ShapedType::isDynamic(cache.heads) ||
      ShapedType::isDynamic(cache.channels)) {
    why = "its keys or values lack a dimension of positions or channels";
    return false;
  }
  cache.rows = evaluator.evaluate(added, indices);
  if (cache.rows->kind != Kind::Element && cache.rows->kind != Kind::Reduction)
    cache.rows = evaluator.makeElement(added, indices);
  return true;
}

bool Matcher::matchDot(const Expression *dot) {
  std::optional<ReductionBody> body = evaluator.reductionBody(dot);
  if (!body || body->combiner != "arith.addf" || body->variables.size() != 1) {
    why = "its scores are no products of queries and keys";
    return false;
  }
  match.depth = getAffineDimExpr(body->variables[0], key.getContext());
  Product product = flattenProduct(body->body);
  match.scale *= product.number;
  if (product.factors.size() != 2) {
    why = "its scores are no products of queries and keys";
    return false;
  }
  const Expression *query = product.factors[0], *keys = product.factors[1];
  if (evaluator.dependsOn(query, key))
    std::swap(query, keys);
  if (evaluator.dependsOn(query, key) || keys->kind != Kind::Element) {
    why = "its scores are no products of queries and keys";
    return false;
  }
  match.query = query;
  return matchCache(keys, match.depth, match.keys, keyHead);
}

bool Matcher::matchScaledProduct(const Expression *term) {
  Product product = flattenProduct(term);
  if (product.factors.size() != 1) {
    why = "its scores are no scaled products of queries and keys";
    return false;
  }
  const Expression *factor = product.factors[0];
  if (factor->isOperation("math.tanh")) {
    // softcap * tanh(score / softcap)
    Product inner = flattenProduct(factor->operands[0]);
    if (inner.factors.size() != 1) {
      why = "its scores are no scaled products of queries and keys";
      return false;
    }
    match.softcap = product.number;
    match.scale = inner.number * product.number;
    return matchDot(inner.factors[0]);
  }
  match.scale = product.number;
  return matchDot(factor);
}

bool Matcher::matchScore(const Expression *score) {
  const Expression *products = nullptr;
  for (SignedTerm term : flattenSum(score)) {
    if (!evaluator.dependsOn(term.term, key))
      continue; // shifts all scores alike
    if (term.negative) {
      why = "a score is subtracted";
      return false;
    }
    if (!term.term->isOperation("arith.select")) {
      if (products) {
        why = "something else than a mask is added to its scores";
        return false;
      }
      products = term.term;
      continue;
    }
    const Expression *condition = term.term->operands[0];
    const Expression *yes = term.term->operands[1], *no = term.term->operands[2];
    bool hiddenIsNo = no->kind == Kind::Constant && no->number <= hiddenScore;
    bool hiddenIsYes = yes->kind == Kind::Constant && yes->number <= hiddenScore;
    if (hiddenIsNo == hiddenIsYes) {
      why = "its mask does not hide keys by a large negative number";
      return false;
    }
    if (!matchMask(condition, /*visible=*/hiddenIsNo))
      return false;
    const Expression *seen = hiddenIsNo ? yes : no;
    if (seen->isConstant(0))
      continue;
    // select(visible, score, hidden)
    if (products) {
      why = "its mask adds something to keys that are seen";
      return false;
    }
    products = seen;
  }
  if (!products) {
    why = "it has no scores";
    return false;
  }
  return matchScaledProduct(products);
}

std::optional<AttentionMatch> Matcher::run() {
  auto type = cast<RankedTensorType>(match.result.getType());
  if (type.getRank() != 3)
    return std::nullopt;
  SmallVector<AffineExpr> variables = evaluator.variablesFor(match.result);
  for (AffineExpr variable : variables)
    if (!isa<AffineDimExpr>(variable))
      return std::nullopt;
  match.head = variables[0];
  match.token = variables[1];
  match.channel = variables[2];
  match.heads = type.getDimSize(0);
  std::optional<ReductionBody> sum =
      evaluator.reductionBody(evaluator.evaluate(match.result, variables));
  if (!sum || sum->combiner != "arith.addf" || sum->variables.size() != 1 ||
      !sum->body->isOperation("arith.mulf"))
    return std::nullopt;
  key = getAffineDimExpr(sum->variables[0], type.getContext());
  AffineExpr extent = evaluator.extentOf(sum->variables[0]);
  const Expression *probability = sum->body->operands[0], *values = sum->body->operands[1];
  if (evaluator.dependsOn(probability, match.channel))
    std::swap(probability, values);
  if (!extent || evaluator.dependsOn(probability, match.channel))
    return std::nullopt;
  std::optional<SoftmaxMatch> softmax = matchSoftmax(evaluator, probability, key, extent);
  if (!softmax)
    return std::nullopt;
  // From here on it is an attention of some kind.
  if (values->kind != Kind::Element)
    return differs("its values are not read from a past and new rows");
  if (!matchScore(softmax->score) || !matchCache(values, match.channel, match.values, valueHead))
    return std::nullopt;
  if (ShapedType::isDynamic(match.heads) || match.keys.heads != match.values.heads ||
      match.heads % match.keys.heads != 0)
    return differs("its " + Twine(match.heads) + " heads are no multiple of " +
                   Twine(match.keys.heads) + " key heads and " + Twine(match.values.heads) +
                   " value heads");
  int64_t group = match.heads / match.keys.heads;
  AffineExpr expectedHead = evaluator.simplify(match.head.floorDiv(group));
  if (keyHead != expectedHead || valueHead != expectedHead)
    return differs("its query heads do not share key and value heads in groups of " + Twine(group));
  if (evaluator.size(match.keys.past, match.keys.concat.getDim()) !=
      evaluator.size(match.values.past, match.values.concat.getDim()))
    return differs("its keys and values have pasts of different lengths");

  // The mask.
  bool causal = false;
  for (AffineExpr condition : visible) {
    if (isTokenPosition(evaluator.simplify(condition + key))) {
      causal = true;
      continue;
    }
    // key - position + window - 1 >= 0: the position is what remains, up to a constant.
    AffineExpr distance = evaluator.simplify(key - condition);
    auto sum2 = dyn_cast<AffineBinaryOpExpr>(distance);
    int64_t constantPart = 0;
    if (sum2 && sum2.getKind() == AffineExprKind::Add && isa<AffineConstantExpr>(sum2.getRHS()))
      constantPart = cast<AffineConstantExpr>(sum2.getRHS()).getValue();
    int64_t window = 1 - constantPart;
    if (window < 1 || !isTokenPosition(evaluator.simplify(distance - constantPart)))
      return differs("its mask is neither 'key <= past + query' nor a window before it");
    match.window = match.window ? std::min(match.window, window) : window;
  }
  if (!hasMask || !causal)
    return differs("it is not causal: nothing hides the keys after a query");

  match.scale = intendedNumber(match.scale);
  match.softcap = intendedNumber(match.softcap);
  if (softmax->columns.size() > 1)
    return differs("its softmax has " + Twine(softmax->columns.size()) +
                   " columns beside the keys, expected at most one sink");
  if (!softmax->columns.empty())
    match.sinks = softmax->columns.front();
  return match;
}

std::optional<AttentionMatch> moec::matchAttention(ElementEvaluator &evaluator, Value result,
                                                   BlockArgument positions, std::string &why) {
  return Matcher(evaluator, result, positions, why).run();
}
