//===- RaiseRope.cpp - rotations of pairs of channels by position become moe.rope
//--------------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "Matching.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::moec {
#define GEN_PASS_DEF_RAISEROPE
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// No model has larger heads; every channel is evaluated alone.
static constexpr int64_t largestHead = 1024;
/// How many ops above the rotated tensor its input is looked for.
static constexpr size_t searchedValues = 64;

namespace {

/// One summand of a rotated channel: number * function(position * frequency) * channel.
struct RotatedTerm {
  bool isSine = false;
  double number = 1;
  double frequency = 1;
  const Expression *position = nullptr; // the integer
  int64_t channel = -1;                 // of the input
};

struct Rotation {
  moe::RotaryAttr attribute;
  const Expression *position = nullptr;
};

class RopeMatcher {
public:
  RopeMatcher(ElementEvaluator &evaluator, Value result, Value input)
      : evaluator(evaluator), result(result), input(input),
        leading(evaluator.variablesFor(result)) {
    leading.pop_back();
  }

  std::optional<Rotation> match();
  ArrayRef<AffineExpr> leadingVariables() const { return leading; }

private:
  const Expression *channelOf(Value tensor, int64_t channel) {
    SmallVector<AffineExpr> indices = leading;
    indices.push_back(evaluator.constant(channel));
    return evaluator.evaluate(tensor, indices);
  }
  std::optional<RotatedTerm> matchTerm(SignedTerm term);
  bool matchAngle(const Expression *angle, RotatedTerm &term);

  ElementEvaluator &evaluator;
  Value result, input;
  SmallVector<AffineExpr> leading;
  DenseMap<const Expression *, int64_t> channels; // of the input
};

} // namespace

bool RopeMatcher::matchAngle(const Expression *angle, RotatedTerm &term) {
  Product product = flattenProduct(angle);
  if (product.factors.size() != 1)
    return false;
  const Expression *position = product.factors[0];
  if (!position->isOperation("arith.sitofp") && !position->isOperation("arith.uitofp"))
    return false;
  term.frequency = product.number;
  term.position = position->operands[0];
  if (term.position->kind == Expression::Kind::Index)
    term.position = evaluator.dataOf(term.position->index);
  return term.position && term.position->kind == Expression::Kind::Element;
}

std::optional<RotatedTerm> RopeMatcher::matchTerm(SignedTerm signedTerm) {
  Product product = flattenProduct(signedTerm.term);
  RotatedTerm term;
  term.number = signedTerm.negative ? -product.number : product.number;
  bool hasAngle = false;
  for (const Expression *factor : product.factors) {
    if (factor->isOperation("math.cos") || factor->isOperation("math.sin")) {
      if (hasAngle || !matchAngle(factor->operands[0], term))
        return std::nullopt;
      hasAngle = true;
      term.isSine = factor->isOperation("math.sin");
    } else if (auto found = channels.find(factor); found != channels.end()) {
      if (term.channel >= 0)
        return std::nullopt;
      term.channel = found->second;
    } else {
      return std::nullopt;
    }
  }
  if (!hasAngle || term.channel < 0)
    return std::nullopt;
  return term;
}

std::optional<Rotation> RopeMatcher::match() {
  int64_t size = cast<RankedTensorType>(result.getType()).getShape().back();
  for (int64_t channel = 0; channel < size; ++channel)
    if (!channels.try_emplace(channelOf(input, channel), channel).second)
      return std::nullopt; // two channels are one: not an input
  struct Pair {
    int64_t first, second;
    double frequency, magnitude;
  };
  SmallVector<Pair> pairs;               // by first channel
  llvm::DenseMap<int64_t, Pair> seconds; // by second channel: what the second half says
  const Expression *position = nullptr;
  for (int64_t channel = 0; channel < size; ++channel) {
    const Expression *element = channelOf(result, channel);
    if (auto same = channels.find(element); same != channels.end()) {
      if (same->second != channel)
        return std::nullopt;
      continue; // passes through
    }
    SmallVector<SignedTerm> terms = flattenSum(element);
    if (terms.size() != 2)
      return std::nullopt;
    std::optional<RotatedTerm> cosine = matchTerm(terms[0]), sine = matchTerm(terms[1]);
    if (!cosine || !sine)
      return std::nullopt;
    if (cosine->isSine)
      std::swap(cosine, sine);
    if (cosine->isSine || !sine->isSine || cosine->position != sine->position ||
        cosine->frequency != sine->frequency || cosine->channel != channel || cosine->number <= 0 ||
        std::abs(sine->number) != cosine->number || (position && position != cosine->position))
      return std::nullopt;
    position = cosine->position;
    if (sine->number < 0)
      pairs.push_back({channel, sine->channel, cosine->frequency, cosine->number});
    else
      seconds[channel] = {sine->channel, channel, cosine->frequency, cosine->number};
  }
  if (pairs.empty() || pairs.size() != seconds.size())
    return std::nullopt;
  int64_t offset = pairs.front().first, count = pairs.size();
  bool interleaved = pairs.front().second == offset + 1 && count > 1;
  SmallVector<float> frequencies;
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    auto other = seconds.find(pair.second);
    int64_t n = i;
    if (other == seconds.end() || other->second.first != pair.first ||
        other->second.frequency != pair.frequency || other->second.magnitude != pair.magnitude ||
        pair.magnitude != pairs.front().magnitude ||
        pair.first != (interleaved ? offset + 2 * n : offset + n) ||
        pair.second != (interleaved ? pair.first + 1 : pair.first + count))
      return std::nullopt;
    frequencies.push_back(static_cast<float>(pair.frequency));
  }
  MLIRContext *context = result.getContext();
  Rotation rotation;
  rotation.attribute =
      moe::RotaryAttr::get(context, DenseF32ArrayAttr::get(context, frequencies),
                           intendedNumber(pairs.front().magnitude), offset, interleaved);
  rotation.position = position;
  return rotation;
}

//===------------------------------------------------------------------------------------------===//
// The pass
//===------------------------------------------------------------------------------------------===//

/// Tensors of the same type that `root` is computed from, nearest first.
static SmallVector<Value> findInputs(Value root) {
  SmallVector<Value> result;
  llvm::SetVector<Value> seen;
  seen.insert(root);
  for (size_t i = 0; i < seen.size() && i < searchedValues; ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op)
      continue;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && seen.insert(operand) &&
          operand.getType() == root.getType() && !operand.getDefiningOp<tensor::EmptyOp>())
        result.push_back(operand);
  }
  return result;
}

/// Replaces `root` by a rotation of `input`.
static bool rewrite(ElementEvaluator &evaluator, Value root, Value input, const Rotation &rotation,
                    ArrayRef<AffineExpr> leading) {
  OpBuilder builder(root.getContext());
  builder.setInsertionPointAfterValue(root);
  Location location = root.getLoc();
  // Which dimension counts tokens is told by the positions, the other one of size above 1 counts
  // heads.
  auto type = cast<RankedTensorType>(root.getType());
  int64_t tokenDimension = -1, headDimension = -1;
  for (auto [i, variable] : llvm::enumerate(leading)) {
    if (!isa<AffineDimExpr>(variable))
      continue;
    if (llvm::any_of(rotation.position->indices,
                     [&](AffineExpr index) { return evaluator.dependsOn(index, variable); })) {
      if (tokenDimension >= 0)
        return false;
      tokenDimension = i;
    } else {
      if (headDimension >= 0)
        return false;
      headDimension = i;
    }
  }
  if (tokenDimension < 0 || headDimension < 0 || type.isDynamicDim(headDimension))
    return false;
  AffineExpr token = leading[tokenDimension], head = leading[headDimension];
  AffineExpr channel = evaluator.variable(evaluator.constant(type.getShape().back()));
  SmallVector<AffineExpr> indices(leading);
  indices.push_back(channel);
  SmallVector<AffineExpr> order = {token, head, channel};
  Value positions = materialize(evaluator, builder, location, rotation.position, token);
  Value rows = materialize(evaluator, builder, location, evaluator.evaluate(input, indices), order);
  if (!rows)
    rows = materialize(evaluator, builder, location, evaluator.makeElement(input, indices), order);
  if (!positions || !rows)
    return false;
  rows = convertFloats(builder, location, rows, type.getElementType());
  Value rotated = moe::RopeOp::create(builder, location, rows, toI32(builder, location, positions),
                                      rotation.attribute);
  // Back to the order of dimensions of the root.
  Value back = rotated;
  if (headDimension < tokenDimension) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, location, rotated);
    std::swap(sizes[0], sizes[1]);
    Value init = tensor::EmptyOp::create(builder, location, sizes, type.getElementType());
    back = linalg::TransposeOp::create(builder, location, rotated, init, ArrayRef<int64_t>{1, 0, 2})
               ->getResult(0);
  }
  if (type.getRank() != 3) {
    SmallVector<ReassociationIndices> groups(3);
    SmallVector<OpFoldResult> sizes;
    int64_t group = 0;
    SmallVector<OpFoldResult> backSizes = tensor::getMixedSizes(builder, location, back);
    for (int64_t i = 0; i < type.getRank(); ++i) {
      bool large = i == tokenDimension || i == headDimension || i + 1 == type.getRank();
      sizes.push_back(large ? backSizes[group] : OpFoldResult(builder.getIndexAttr(1)));
      groups[group].push_back(i);
      if (large && group < 2)
        ++group;
    }
    back = tensor::ExpandShapeOp::create(builder, location, type, back, groups, sizes);
  }
  root.replaceAllUsesWith(back);
  return true;
}

namespace {
struct RaiseRopePass : moec::impl::RaiseRopeBase<RaiseRopePass> {
  void runOnOperation() override {
    SmallVector<Value> roots;
    getOperation().walk([&](Operation *op) {
      if (!isa<tensor::ConcatOp, tensor::CollapseShapeOp, arith::AddFOp>(op))
        return;
      auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
      if (type && type.getRank() >= 3 && isa<FloatType>(type.getElementType()) &&
          !ShapedType::isDynamic(type.getShape().back()) && type.getShape().back() >= 2 &&
          type.getShape().back() <= largestHead)
        roots.push_back(op->getResult(0));
    });
    ElementEvaluator evaluator(&getContext());
    for (Value root : roots) {
      for (Value input : findInputs(root)) {
        RopeMatcher matcher(evaluator, root, input);
        std::optional<Rotation> rotation = matcher.match();
        if (rotation && rewrite(evaluator, root, input, *rotation, matcher.leadingVariables())) {
          ++raised;
          break;
        }
      }
    }
  }
};
} // namespace
