// The manifest's size expressions: postfix programs over 64-bit integers.
#ifndef MOERT_BUNDLE_EXPRESSION_H
#define MOERT_BUNDLE_EXPRESSION_H

#include "runtime/abi/bundle.pb.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace moert {

// Most values that an expression may have on its stack.
inline constexpr unsigned expressionDepth = 64;

// Why `expression` is no sound program over `symbols` symbols; empty when it is one.
std::string expressionProblem(const moec::bundle::Expression &expression, std::uint64_t symbols);

// The symbol that an expression consists of; -1 when it is anything else.
inline std::int64_t soleSymbol(const moec::bundle::Expression &expression) {
  if (expression.steps_size() != 1 ||
      expression.steps(0).operator_() != moec::bundle::Expression::SYMBOL)
    return -1;
  return expression.steps(0).value();
}

// A sound expression, ready to be evaluated often.
class SizeExpression {
public:
  SizeExpression() = default; // zero
  explicit SizeExpression(const moec::bundle::Expression &expression);

  // None on overflow and on division by zero. `symbols` has every symbol that the expression uses.
  std::optional<std::int64_t> evaluate(std::span<const std::int64_t> symbols) const {
    if (steps.empty())
      return constant;
    return run(symbols);
  }
  bool isConstant() const { return steps.empty(); }

private:
  struct Step {
    moec::bundle::Expression::Operator operation;
    std::int64_t value;
  };
  std::optional<std::int64_t> run(std::span<const std::int64_t> symbols) const;
  std::int64_t constant = 0;
  std::vector<Step> steps; // empty: `constant` is the value
};

// "ceil(tokens / 16) * 4", for people.
std::string expressionToString(const moec::bundle::Expression &expression,
                               std::span<const std::string> symbols);

} // namespace moert

#endif
