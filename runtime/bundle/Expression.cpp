#include "runtime/bundle/Expression.h"

#include "runtime/base/CheckedMath.h"

#include <algorithm>
#include <array>

namespace moert {

using ProtoExpression = moec::bundle::Expression;

namespace {

// Rounds towards minus infinity. The caller excludes b == 0 and overflow.
std::int64_t floorDivide(std::int64_t a, std::int64_t b) {
  std::int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

bool apply(ProtoExpression::Operator operation, std::int64_t a, std::int64_t b,
           std::int64_t &result) {
  switch (operation) {
  case ProtoExpression::ADD:
    return checkedAdd(a, b, result);
  case ProtoExpression::MULTIPLY:
    return checkedMultiply(a, b, result);
  case ProtoExpression::FLOOR_DIVIDE:
  case ProtoExpression::CEIL_DIVIDE:
  case ProtoExpression::MODULO:
    if (b == 0 || (a == INT64_MIN && b == -1))
      return false;
    if (operation == ProtoExpression::MODULO)
      result = a - floorDivide(a, b) * b;
    else
      result = floorDivide(a, b) + (operation == ProtoExpression::CEIL_DIVIDE && a % b != 0);
    return true;
  case ProtoExpression::MINIMUM:
    result = std::min(a, b);
    return true;
  case ProtoExpression::MAXIMUM:
    result = std::max(a, b);
    return true;
  default:
    return false;
  }
}

} // namespace

std::string expressionProblem(const ProtoExpression &expression, std::uint64_t symbols) {
  if (expression.steps_size() == 0)
    return "is missing";
  unsigned depth = 0;
  for (int i = 0; i < expression.steps_size(); ++i) {
    const ProtoExpression::Step &step = expression.steps(i);
    auto at = [&](const std::string &what) { return "step " + std::to_string(i) + " " + what; };
    switch (step.operator_()) {
    case ProtoExpression::SYMBOL:
      if (step.value() < 0 || static_cast<std::uint64_t>(step.value()) >= symbols)
        return at("names symbol " + std::to_string(step.value()) + " of " +
                  std::to_string(symbols));
      [[fallthrough]];
    case ProtoExpression::CONSTANT:
      if (++depth > expressionDepth)
        return at("exceeds the stack of " + std::to_string(expressionDepth) + " values");
      break;
    case ProtoExpression::ADD:
    case ProtoExpression::MULTIPLY:
    case ProtoExpression::FLOOR_DIVIDE:
    case ProtoExpression::CEIL_DIVIDE:
    case ProtoExpression::MODULO:
    case ProtoExpression::MINIMUM:
    case ProtoExpression::MAXIMUM:
      if (depth < 2)
        return at("lacks operands");
      --depth;
      break;
    default:
      return at("has the unknown operator " + std::to_string(step.operator_()));
    }
  }
  return depth == 1 ? "" : "leaves " + std::to_string(depth) + " values instead of one";
}

SizeExpression::SizeExpression(const ProtoExpression &expression) {
  bool usesSymbols = false;
  for (const ProtoExpression::Step &step : expression.steps()) {
    steps.push_back({step.operator_(), step.value()});
    usesSymbols |= step.operator_() == ProtoExpression::SYMBOL;
  }
  if (usesSymbols || steps.empty())
    return;
  // A constant that overflows keeps its steps, and fails when it is evaluated.
  if (std::optional<std::int64_t> value = run({})) {
    constant = *value;
    steps.clear();
  }
}

std::optional<std::int64_t> SizeExpression::run(std::span<const std::int64_t> symbols) const {
  std::array<std::int64_t, expressionDepth> stack;
  unsigned depth = 0;
  for (const Step &step : steps) {
    if (step.operation == ProtoExpression::CONSTANT) {
      stack[depth++] = step.value;
    } else if (step.operation == ProtoExpression::SYMBOL) {
      stack[depth++] = symbols[static_cast<std::size_t>(step.value)];
    } else {
      if (!apply(step.operation, stack[depth - 2], stack[depth - 1], stack[depth - 2]))
        return std::nullopt;
      --depth;
    }
  }
  return stack[0];
}

std::string expressionToString(const ProtoExpression &expression,
                               std::span<const std::string> symbols) {
  if (!expressionProblem(expression, symbols.size()).empty())
    return "?";
  // Sums of sums would grow beyond measure when a hostile expression is printed as a tree of
  // copies.
  constexpr std::size_t longest = 500;
  std::vector<std::string> stack;
  for (const ProtoExpression::Step &step : expression.steps()) {
    if (step.operator_() == ProtoExpression::CONSTANT) {
      stack.push_back(std::to_string(step.value()));
      continue;
    }
    if (step.operator_() == ProtoExpression::SYMBOL) {
      stack.push_back(symbols[static_cast<std::size_t>(step.value())]);
      continue;
    }
    std::string b = std::move(stack.back());
    stack.pop_back();
    std::string a = std::move(stack.back());
    switch (step.operator_()) {
    case ProtoExpression::ADD:
      a = "(" + a + " + " + b + ")";
      break;
    case ProtoExpression::MULTIPLY:
      a = a + " * " + b;
      break;
    case ProtoExpression::FLOOR_DIVIDE:
      a = "floor(" + a + " / (" + b + "))";
      break;
    case ProtoExpression::CEIL_DIVIDE:
      a = "ceil(" + a + " / (" + b + "))";
      break;
    case ProtoExpression::MODULO:
      a = "mod(" + a + ", " + b + ")";
      break;
    case ProtoExpression::MINIMUM:
      a = "min(" + a + ", " + b + ")";
      break;
    default:
      a = "max(" + a + ", " + b + ")";
      break;
    }
    if (a.size() > longest)
      a = "...";
    stack.back() = std::move(a);
  }
  return stack[0];
}

} // namespace moert
