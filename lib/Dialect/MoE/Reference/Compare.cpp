#include "moec/Dialect/MoE/Reference/Compare.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

static bool agrees(double actual, double expected, const Tolerance &tolerance) {
  if (std::isnan(expected))
    return tolerance.isUndefinedNaN || std::isnan(actual);
  if (actual == expected)
    return true;
  // With an infinite number the difference is infinite or NaN, and so is the allowance.
  if (!std::isfinite(actual) || !std::isfinite(expected))
    return false;
  return std::fabs(actual - expected) <=
         tolerance.absolute + tolerance.relative * std::fabs(expected);
}

Distance mlir::moec::moe::measureDistance(const ReferenceTensor &actual,
                                          const ReferenceTensor &expected) {
  Distance distance;
  double errors = 0, total = 0;
  for (int64_t i = 0; i < expected.getSize(); ++i) {
    double a = actual.getReal(i), b = expected.getReal(i);
    if (!std::isfinite(a) || !std::isfinite(b))
      continue;
    distance.largestAbsolute = std::max(distance.largestAbsolute, std::fabs(a - b));
    errors += (a - b) * (a - b);
    total += b * b;
  }
  if (errors > 0)
    distance.relativeRMS =
        total > 0 ? std::sqrt(errors / total) : std::numeric_limits<double>::infinity();
  return distance;
}

LogicalResult mlir::moec::moe::compareTensors(const ReferenceTensor &actual,
                                              const ReferenceTensor &expected,
                                              const Tolerance &tolerance, std::string &report) {
  llvm::raw_string_ostream stream(report);
  if (actual.getElementType() != expected.getElementType() ||
      actual.getShape() != expected.getShape()) {
    stream << "expected " << expected.getElementType() << " " << describeShape(expected.getShape())
           << ", got " << actual.getElementType() << " " << describeShape(actual.getShape());
    return failure();
  }
  constexpr int64_t shown = 5;
  bool isReal = expected.getScalarType().isReal();
  int64_t different = 0;
  for (int64_t i = 0; i < expected.getSize(); ++i) {
    if (isReal ? agrees(actual.getReal(i), expected.getReal(i), tolerance)
               : actual.getInteger(i) == expected.getInteger(i))
      continue;
    if (++different > shown)
      continue;
    stream << "element " << i << ": expected ";
    if (isReal)
      stream << llvm::format("%.9g, got %.9g\n", expected.getReal(i), actual.getReal(i));
    else
      stream << expected.getInteger(i) << ", got " << actual.getInteger(i) << "\n";
  }
  if (different != 0)
    stream << different << " of " << expected.getSize() << " elements differ";
  else
    stream << expected.getSize() << " elements agree";
  if (isReal) {
    Distance distance = measureDistance(actual, expected);
    stream << llvm::format(", largest difference %.3g, relative RMS %.3g", distance.largestAbsolute,
                           distance.relativeRMS);
  }
  return success(different == 0);
}

LogicalResult mlir::moec::moe::compareWithReference(
    ModuleOp module, WeightSource *weights, StringRef entry, ArrayRef<ReferenceValue> inputs,
    ArrayRef<ReferenceTensor> outputs, const Tolerance &tolerance, std::string &report) {
  Interpreter interpreter(module, weights);
  FailureOr<SmallVector<ReferenceValue>> expected = interpreter.call(entry, inputs);
  if (failed(expected))
    return failure();
  llvm::raw_string_ostream stream(report);
  if (expected->size() != outputs.size()) {
    stream << "expected " << expected->size() << " results, got " << outputs.size();
    return failure();
  }
  bool agree = true;
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (!(*expected)[i].isTensor()) {
      stream << "result " << i << " is no tensor";
      return failure();
    }
    std::string line;
    agree &= succeeded(compareTensors(output, (*expected)[i].getTensor(), tolerance, line));
    stream << "result " << i << ": " << line << "\n";
  }
  return success(agree);
}
