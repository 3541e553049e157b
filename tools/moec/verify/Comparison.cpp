#include "tools/moec/verify/Comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moec::verify {

using mlir::moec::moe::ReferenceTensor;

std::vector<double> toNumbers(const ReferenceTensor &tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.getSize()));
  bool isReal = tensor.getScalarType().isReal();
  for (int64_t i = 0; i < tensor.getSize(); ++i)
    values[static_cast<std::size_t>(i)] =
        isReal ? tensor.getReal(i) : static_cast<double>(tensor.getInteger(i));
  return values;
}

static double relative(double errors, double total) {
  if (errors == 0)
    return 0;
  return total > 0 ? std::sqrt(errors / total) : std::numeric_limits<double>::infinity();
}

void Comparison::addRow(llvm::ArrayRef<double> actual, llvm::ArrayRef<double> expected) {
  double rowErrors = 0, rowTotal = 0;
  for (auto [a, b] : llvm::zip_equal(actual, expected)) {
    if (!std::isfinite(a) || !std::isfinite(b)) {
      different += !(a == b || (std::isnan(a) && std::isnan(b)));
      continue;
    }
    if (wantsIntegers)
      different += a != b;
    rowErrors += (a - b) * (a - b);
    rowTotal += b * b;
    largest = std::max(largest, std::fabs(a - b));
  }
  errors += rowErrors;
  total += rowTotal;
  rows.push_back(relative(rowErrors, rowTotal));
}

void Comparison::add(const ReferenceTensor &actual, const ReferenceTensor &expected,
                     llvm::ArrayRef<bool> skipped) {
  if (actual.getShape() != expected.getShape()) {
    wrongShape = "expected " + mlir::moec::moe::describeShape(expected.getShape()) + ", found " +
                 mlir::moec::moe::describeShape(actual.getShape());
    return;
  }
  std::vector<double> a = toNumbers(actual), b = toNumbers(expected);
  std::size_t count = expected.getRank() > 0 ? static_cast<std::size_t>(expected.getDimSize(0)) : 1;
  std::size_t width = count == 0 ? 0 : b.size() / count;
  for (std::size_t row = 0; row < count; ++row) {
    if (row < skipped.size() && skipped[row]) {
      ++otherChoices;
      continue;
    }
    addRow(llvm::ArrayRef(a).slice(row * width, width),
           llvm::ArrayRef(b).slice(row * width, width));
  }
}

double Comparison::relativeRMS() const { return relative(errors, total); }

double Comparison::measured() const {
  if (share >= 1 || rows.empty())
    return relativeRMS();
  std::vector<double> sorted = rows;
  auto place = static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(rows.size()))) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  return sorted[static_cast<std::size_t>(place)];
}

bool Comparison::agrees() const {
  return wrongShape.empty() && different == 0 && (wantsIntegers || measured() <= tolerance);
}

nlohmann::ordered_json Comparison::toJson() const {
  auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value)
                                : nlohmann::ordered_json("infinite");
  };
  nlohmann::ordered_json result = {{"name", name},
                                   {"op", op},
                                   {"type", shape},
                                   {"agrees", agrees()},
                                   {"rows", rows.size()},
                                   {"relative_rms", number(relativeRMS())},
                                   {"largest_difference", number(largest)},
                                   {"tolerance", tolerance}};
  if (share < 1) {
    result["share_of_rows"] = share;
    result["relative_rms_of_share"] = number(measured());
  }
  result["other_choices"] = otherChoices;
  if (different)
    result["different_elements"] = different;
  if (!wrongShape.empty())
    result["wrong_shape"] = wrongShape;
  return result;
}

} // namespace moec::verify
