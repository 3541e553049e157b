// How far two results are apart, gathered over the steps of a run.
#ifndef MOEC_TOOLS_MOEC_VERIFY_COMPARISON_H
#define MOEC_TOOLS_MOEC_VERIFY_COMPARISON_H

#include "tools/moec/verify/Tolerances.h"

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace moec::verify {

struct Comparison {
  std::string name;     // of the op that gives the value: "model.layers.2.mlp.router"
  std::string op;       // "moe.linear"
  std::string shape;    // "tensor<?x32xbf16>"
  double tolerance = 0; // of the relative root mean square
  // This share of the rows (tokens) must be within the tolerance, each by itself. 1: all rows
  // together.
  double share = 1;
  bool wantsIntegers = false; // whose every element must be equal

  // Gathered.
  double errors = 0, total = 0, largest = 0;
  std::vector<double> rows;
  std::int64_t different = 0; // integers; numbers one of which is infinite or none
  std::int64_t otherChoices =
      0; // rows left out since their router chose otherwise, within rounding
  std::string wrongShape;

  // One row of both sides.
  void addRow(llvm::ArrayRef<double> actual, llvm::ArrayRef<double> expected);
  // Whole tensors; rows that `skipped` (may be empty) names are left out.
  void add(const mlir::moec::moe::ReferenceTensor &actual,
           const mlir::moec::moe::ReferenceTensor &expected, llvm::ArrayRef<bool> skipped);

  double relativeRMS() const;
  // What is held against the tolerance.
  double measured() const;
  bool agrees() const;
  nlohmann::ordered_json toJson() const;
};

// The same, for the numbers of any tensor.
std::vector<double> toNumbers(const mlir::moec::moe::ReferenceTensor &tensor);

} // namespace moec::verify

#endif
