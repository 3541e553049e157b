//===- IndexSimplification.cpp - what ranges of variables say about positions
//--------------------===//

#include "ElementExpression.h"

using namespace mlir;
using namespace mlir::moec;

AffineExpr ElementEvaluator::variable(AffineExpr extent) {
  if (auto constantExtent = dyn_cast_or_null<AffineConstantExpr>(extent))
    if (constantExtent.getValue() == 1)
      return constant(0);
  variables.push_back({extent});
  return getAffineDimExpr(variables.size() - 1, context);
}

SmallVector<AffineExpr> ElementEvaluator::variablesFor(Value tensor) {
  SmallVector<AffineExpr> result;
  for (int64_t i = 0; i < cast<RankedTensorType>(tensor.getType()).getRank(); ++i)
    result.push_back(variable(size(tensor, i)));
  return result;
}

/// Splits a sum into its terms.
static void collectTerms(AffineExpr expression, SmallVectorImpl<AffineExpr> &terms) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (binary && binary.getKind() == AffineExprKind::Add) {
    collectTerms(binary.getLHS(), terms);
    collectTerms(binary.getRHS(), terms);
    return;
  }
  terms.push_back(expression);
}

/// A term as factor * rest.
static std::pair<int64_t, AffineExpr> splitFactor(AffineExpr term) {
  if (auto constant = dyn_cast<AffineConstantExpr>(term))
    return {constant.getValue(), AffineExpr()};
  auto binary = dyn_cast<AffineBinaryOpExpr>(term);
  if (binary && binary.getKind() == AffineExprKind::Mul)
    if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return {factor.getValue(), binary.getLHS()};
  return {1, term};
}

bool ElementEvaluator::isNonNegative(AffineExpr expression) {
  // Replaces every variable by the end of its range that makes the sum smallest. Extents may hold
  // symbols, which is why the replacement is symbolic, too.
  SmallVector<AffineExpr> terms;
  collectTerms(simplifyAffineExpr(expression, variables.size(), symbols.size()), terms);
  AffineExpr least = constant(0);
  for (AffineExpr term : terms) {
    auto [factor, rest] = splitFactor(term);
    auto dim = dyn_cast_or_null<AffineDimExpr>(rest);
    if (!dim) {
      if (rest && isa<AffineBinaryOpExpr>(rest)) {
        // A quotient or remainder is at least 0 when its operand is.
        auto binary = cast<AffineBinaryOpExpr>(rest);
        bool bounded =
            factor > 0 && binary.getKind() != AffineExprKind::Mul && isNonNegative(binary.getLHS());
        if (!bounded)
          return false;
        continue;
      }
      least = least + term;
      continue;
    }
    if (factor > 0)
      continue; // smallest at 0
    AffineExpr extent = variables[dim.getPosition()].extent;
    if (!extent)
      return false;
    least = least + (extent - 1) * factor;
  }
  terms.clear();
  collectTerms(simplifyAffineExpr(least, variables.size(), symbols.size()), terms);
  for (AffineExpr term : terms) {
    auto [factor, rest] = splitFactor(term);
    if (factor < 0)
      return false;
    // Sizes are never negative; integers from data may be.
    auto symbol = dyn_cast_or_null<AffineSymbolExpr>(rest);
    if (rest && (!symbol || symbols[symbol.getPosition()].data))
      return false;
  }
  return true;
}

AffineExpr ElementEvaluator::simplify(AffineExpr expression) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return expression;
  AffineExpr lhs = simplify(binary.getLHS()), rhs = simplify(binary.getRHS());
  auto divisor = dyn_cast<AffineConstantExpr>(rhs);
  bool isDivision = binary.getKind() == AffineExprKind::FloorDiv;
  if ((!isDivision && binary.getKind() != AffineExprKind::Mod) || !divisor ||
      divisor.getValue() <= 0) {
    AffineExpr result = getAffineBinaryOpExpr(binary.getKind(), lhs, rhs);
    return simplifyAffineExpr(result, variables.size(), symbols.size());
  }
  // Multiples of the divisor leave the division; if the rest is in [0, divisor), its quotient is 0.
  int64_t d = divisor.getValue();
  SmallVector<AffineExpr> terms;
  collectTerms(lhs, terms);
  AffineExpr quotient = constant(0), rest = constant(0);
  for (AffineExpr term : terms) {
    auto [factor, base] = splitFactor(term);
    if (factor % d == 0)
      quotient = quotient + (base ? base * (factor / d) : constant(factor / d));
    else
      rest = rest + term;
  }
  bool restIsSmall = isNonNegative(rest) && isNonNegative(constant(d - 1) - rest);
  if (isDivision)
    return simplifyAffineExpr(restIsSmall ? quotient : quotient + rest.floorDiv(d),
                              variables.size(), symbols.size());
  return simplifyAffineExpr(restIsSmall ? rest : rest % d, variables.size(), symbols.size());
}

bool ElementEvaluator::dependsOn(AffineExpr index, AffineExpr variable) {
  unsigned position = cast<AffineDimExpr>(variable).getPosition();
  bool found = false;
  index.walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part))
      found |= dim.getPosition() == position;
    if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      if (const Expression *data = symbols[symbol.getPosition()].data)
        found |= dependsOn(data, variable);
  });
  return found;
}

bool ElementEvaluator::dependsOn(const Expression *expression, AffineExpr variable) {
  unsigned position = cast<AffineDimExpr>(variable).getPosition();
  if (auto known = dependence.find({expression, position}); known != dependence.end())
    return known->second;
  bool found = expression->index && dependsOn(expression->index, variable);
  for (AffineExpr index : expression->indices)
    found |= dependsOn(index, variable);
  for (const Expression *operand : expression->operands)
    found |= dependsOn(operand, variable);
  dependence[{expression, position}] = found;
  return found;
}
