//===- Matching.cpp - recognising formulas
//----------------------------------------------------------===//

#include "Matching.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <charconv>

using namespace mlir;
using namespace mlir::moec;

using Kind = Expression::Kind;

static void collectSum(const Expression *expression, bool negative,
                       SmallVectorImpl<SignedTerm> &terms) {
  if (expression->isOperation("arith.addf") || expression->isOperation("arith.subf")) {
    collectSum(expression->operands[0], negative, terms);
    collectSum(expression->operands[1], negative != expression->isOperation("arith.subf"), terms);
  } else if (expression->isOperation("arith.negf")) {
    collectSum(expression->operands[0], !negative, terms);
  } else {
    terms.push_back({expression, negative});
  }
}

SmallVector<SignedTerm> moec::flattenSum(const Expression *expression) {
  SmallVector<SignedTerm> terms;
  collectSum(expression, false, terms);
  return terms;
}

static void collectProduct(const Expression *expression, Product &product) {
  if (expression->isOperation("arith.mulf")) {
    collectProduct(expression->operands[0], product);
    collectProduct(expression->operands[1], product);
  } else if (expression->isOperation("arith.negf")) {
    product.number = -product.number;
    collectProduct(expression->operands[0], product);
  } else if (expression->isOperation("arith.divf") &&
             expression->operands[1]->kind == Kind::Constant) {
    product.number /= expression->operands[1]->number;
    collectProduct(expression->operands[0], product);
  } else if (expression->kind == Kind::Constant) {
    product.number *= expression->number;
  } else {
    product.factors.push_back(expression);
  }
}

Product moec::flattenProduct(const Expression *expression) {
  Product product;
  collectProduct(expression, product);
  return product;
}

const Expression *moec::matchSigmoid(const Expression *expression) {
  if (!expression->isOperation("arith.divf") || !expression->operands[0]->isConstant(1))
    return nullptr;
  SmallVector<SignedTerm> terms = flattenSum(expression->operands[1]);
  if (terms.size() != 2 || terms[0].negative || terms[1].negative)
    return nullptr;
  if (!terms[0].term->isConstant(1))
    std::swap(terms[0], terms[1]);
  if (!terms[0].term->isConstant(1) || !terms[1].term->isOperation("math.exp"))
    return nullptr;
  const Expression *argument = terms[1].term->operands[0];
  return argument->isOperation("arith.negf") ? argument->operands[0] : nullptr;
}

static std::optional<int64_t> constantIndex(const Expression *expression) {
  if (expression->kind != Kind::Index)
    return std::nullopt;
  auto number = dyn_cast<AffineConstantExpr>(expression->index);
  return number ? std::optional(number.getValue()) : std::nullopt;
}

const Expression *moec::stripIndexGuards(ElementEvaluator &evaluator,
                                         const Expression *expression) {
  while (true) {
    if (expression->kind == Kind::Index) {
      const Expression *data = evaluator.dataOf(expression->index);
      if (!data || data->kind != Kind::Operation)
        return data ? data : expression;
      expression = data;
    }
    if (expression->isOperation("arith.maxsi") || expression->isOperation("arith.minsi")) {
      // One side is a bound that does not come from data.
      const Expression *a = expression->operands[0], *b = expression->operands[1];
      if (constantIndex(b))
        expression = a;
      else if (constantIndex(a))
        expression = b;
      else
        return expression;
    } else if (expression->isOperation("arith.select") &&
               expression->operands[0]->isOperation("arith.cmpi") &&
               expression->operands[0]->operands[0] == expression->operands[2] &&
               constantIndex(expression->operands[0]->operands[1]) == 0 &&
               expression->operands[0]->predicate ==
                   static_cast<int64_t>(arith::CmpIPredicate::slt)) {
      expression = expression->operands[2]; // x < 0 ? x + size : x
    } else {
      return expression;
    }
  }
}

const Expression *moec::indexData(ElementEvaluator &evaluator, AffineExpr position) {
  const Expression *data = evaluator.dataOf(position);
  if (!data)
    return nullptr;
  data = stripIndexGuards(evaluator, data);
  return data->kind == Kind::Index ? nullptr : data;
}

/// Splits what an exponential is taken of into what depends on the variable and the rest, sorted.
static void splitTerms(ElementEvaluator &evaluator, const Expression *argument, AffineExpr variable,
                       SmallVectorImpl<SignedTerm> &dependent,
                       SmallVectorImpl<std::pair<const Expression *, bool>> &rest) {
  for (SignedTerm term : flattenSum(argument)) {
    if (evaluator.dependsOn(term.term, variable))
      dependent.push_back(term);
    else
      rest.push_back({term.term, term.negative});
  }
  llvm::sort(rest);
}

std::optional<SoftmaxMatch> moec::matchSoftmax(ElementEvaluator &evaluator,
                                               const Expression *probability, AffineExpr variable,
                                               AffineExpr extent) {
  if (!probability->isOperation("arith.divf") || !probability->operands[0]->isOperation("math.exp"))
    return std::nullopt;
  const Expression *numerator = probability->operands[0], *sum = probability->operands[1];
  if (sum->kind != Kind::Reduction || evaluator.dependsOn(sum, variable))
    return std::nullopt;
  // The sum runs over the variable's range and perhaps over columns behind it.
  std::optional<ReductionBody> whole = evaluator.reductionBody(sum);
  if (!whole || whole->combiner != "arith.addf" || whole->variables.size() != 1)
    return std::nullopt;
  std::optional<ReductionBody> inRange = evaluator.reductionBody(sum, variable);
  if (!inRange || inRange->body != numerator)
    return std::nullopt;
  SoftmaxMatch match;
  SmallVector<SignedTerm> dependent;
  SmallVector<std::pair<const Expression *, bool>> shift;
  splitTerms(evaluator, numerator->operands[0], variable, dependent, shift);
  if (dependent.empty())
    return std::nullopt;
  match.score = numerator->operands[0];

  AffineExpr columns = evaluator.simplify(evaluator.extentOf(whole->variables[0]) - extent);
  auto count = dyn_cast<AffineConstantExpr>(columns);
  if (!count || count.getValue() < 0 || count.getValue() > 8)
    return std::nullopt;
  for (int64_t i = 0; i < count.getValue(); ++i) {
    std::optional<ReductionBody> column = evaluator.reductionBody(sum, extent + i);
    if (!column || !column->body->isOperation("math.exp"))
      return std::nullopt;
    // The column is shifted like the others; what is left is its score.
    SmallVector<SignedTerm> terms = flattenSum(column->body->operands[0]);
    for (auto [term, negative] : shift) {
      auto found = llvm::find_if(terms, [&, term = term, negative = negative](SignedTerm t) {
        return t.term == term && t.negative == negative;
      });
      if (found == terms.end())
        return std::nullopt;
      terms.erase(found);
    }
    if (terms.size() != 1 || terms[0].negative)
      return std::nullopt;
    match.columns.push_back(terms[0].term);
  }
  return match;
}

//===------------------------------------------------------------------------------------------===//
// Building
//===------------------------------------------------------------------------------------------===//

namespace {
/// A source dimension as a row-major combination of variables.
struct SplitDimension {
  SmallVector<AffineExpr> variables; // outermost first
};
} // namespace

static std::optional<SplitDimension> splitDimension(ElementEvaluator &evaluator, AffineExpr index) {
  SmallVector<std::pair<int64_t, AffineExpr>> terms;
  SmallVector<AffineExpr> worklist = {index};
  while (!worklist.empty()) {
    AffineExpr term = worklist.pop_back_val();
    auto binary = dyn_cast<AffineBinaryOpExpr>(term);
    if (isa<AffineDimExpr>(term)) {
      terms.push_back({1, term});
    } else if (binary && binary.getKind() == AffineExprKind::Add) {
      worklist.push_back(binary.getLHS());
      worklist.push_back(binary.getRHS());
    } else if (binary && binary.getKind() == AffineExprKind::Mul &&
               isa<AffineDimExpr>(binary.getLHS()) && isa<AffineConstantExpr>(binary.getRHS())) {
      terms.push_back({cast<AffineConstantExpr>(binary.getRHS()).getValue(), binary.getLHS()});
    } else {
      return std::nullopt;
    }
  }
  llvm::sort(terms, [](const auto &a, const auto &b) { return a.first > b.first; });
  SplitDimension split;
  int64_t stride = 1;
  for (auto &[factor, variable] : llvm::reverse(terms)) {
    if (factor != stride)
      return std::nullopt;
    split.variables.insert(split.variables.begin(), variable);
    auto extent = dyn_cast_or_null<AffineConstantExpr>(
        evaluator.extentOf(cast<AffineDimExpr>(variable).getPosition()));
    stride = extent ? stride * extent.getValue() : 0; // nothing can lie outside an unknown extent
  }
  return split;
}

Value moec::materialize(ElementEvaluator &evaluator, OpBuilder &builder, Location location,
                        const Expression *expression, ArrayRef<AffineExpr> variables) {
  if (expression->kind != Kind::Element && expression->kind != Kind::Reduction)
    return Value();
  Value value = expression->value;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return Value();
  // Every source dimension is a constant 0 of size 1 or a combination of variables.
  SmallVector<AffineExpr> order; // of the variables, as the source has them
  SmallVector<ReassociationIndices> kept;
  SmallVector<SmallVector<AffineExpr>> splits;
  SmallVector<int64_t> keptDimensions;
  for (auto [i, index] : llvm::enumerate(expression->indices)) {
    if (index == evaluator.constant(0)) {
      if (type.getDimSize(i) != 1)
        return Value();
      continue;
    }
    std::optional<SplitDimension> split = splitDimension(evaluator, index);
    if (!split)
      return Value();
    // The variables together walk through the whole dimension.
    AffineExpr extent = evaluator.constant(1);
    for (AffineExpr variable : split->variables) {
      AffineExpr size = evaluator.extentOf(cast<AffineDimExpr>(variable).getPosition());
      if (!size)
        return Value();
      extent = extent * size;
    }
    if (evaluator.simplify(extent - evaluator.size(value, i)) != evaluator.constant(0))
      return Value();
    keptDimensions.push_back(i);
    llvm::append_range(order, split->variables);
    splits.push_back(split->variables);
  }
  if (order.size() != variables.size())
    return Value();
  SmallVector<int64_t> permutation; // result dimension -> position in order
  for (AffineExpr variable : variables) {
    auto found = llvm::find(order, variable);
    if (found == order.end() || llvm::is_contained(permutation, found - order.begin()))
      return Value();
    permutation.push_back(found - order.begin());
  }

  // Drop dimensions of size 1.
  if (keptDimensions.size() != static_cast<size_t>(type.getRank())) {
    SmallVector<int64_t> shape;
    SmallVector<ReassociationIndices> groups;
    for (int64_t dimension : keptDimensions) {
      shape.push_back(type.getDimSize(dimension));
      groups.emplace_back();
    }
    size_t group = 0;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      if (group + 1 < groups.size() && i >= keptDimensions[group] + 1)
        ++group;
      if (!groups.empty())
        groups[group].push_back(i);
    }
    type = RankedTensorType::get(shape, type.getElementType());
    value = tensor::CollapseShapeOp::create(builder, location, type, value, groups);
  }
  // Split dimensions.
  if (order.size() != splits.size()) {
    SmallVector<int64_t> shape;
    SmallVector<OpFoldResult> sizes;
    SmallVector<ReassociationIndices> groups;
    for (auto [i, split] : llvm::enumerate(splits)) {
      groups.emplace_back();
      for (AffineExpr variable : split) {
        groups.back().push_back(shape.size());
        AffineExpr extent = evaluator.extentOf(cast<AffineDimExpr>(variable).getPosition());
        if (auto constantExtent = dyn_cast<AffineConstantExpr>(extent)) {
          shape.push_back(constantExtent.getValue());
          sizes.push_back(builder.getIndexAttr(constantExtent.getValue()));
        } else if (split.size() == 1) {
          shape.push_back(ShapedType::kDynamic);
          sizes.push_back(tensor::getMixedSize(builder, location, value, i));
        } else {
          return Value();
        }
      }
    }
    type = RankedTensorType::get(shape, type.getElementType());
    value = tensor::ExpandShapeOp::create(builder, location, type, value, groups, sizes);
  }
  if (!llvm::is_sorted(permutation)) {
    SmallVector<OpFoldResult> sizes;
    for (int64_t source : permutation)
      sizes.push_back(tensor::getMixedSize(builder, location, value, source));
    Value init = tensor::EmptyOp::create(builder, location, sizes, type.getElementType());
    value = linalg::TransposeOp::create(builder, location, value, init, permutation)->getResult(0);
  }
  return value;
}

double moec::intendedNumber(double value) {
  float narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value)
    return value;
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof(text), narrow);
  double result = value;
  std::from_chars(text, end, result);
  return result;
}

Value moec::toI32(OpBuilder &builder, Location location, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType().isInteger(32))
    return tensor;
  Type narrow = type.clone(builder.getI32Type());
  if (type.getElementType().getIntOrFloatBitWidth() > 32)
    return arith::TruncIOp::create(builder, location, narrow, tensor);
  return arith::ExtSIOp::create(builder, location, narrow, tensor);
}

Value moec::convertFloats(OpBuilder &builder, Location location, Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType() == element)
    return tensor;
  if (type.getElementTypeBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, location, type.clone(element), tensor);
  return arith::TruncFOp::create(builder, location, type.clone(element), tensor);
}
