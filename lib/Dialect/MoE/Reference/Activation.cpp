#include "MoEModels.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::moec::moe;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A NaN stays one: limits must not hide it.
static double atMost(double x, double limit) { return x > limit ? limit : x; }

double mlir::moec::moe::activate(ActivationAttr activation, double gate, double up) {
  double alpha = activation.getAlpha(), beta = activation.getBeta(), limit = activation.getLimit();
  switch (activation.getKind()) {
  case ActivationKind::silu:
    return gate * sigmoid(gate) * up;
  case ActivationKind::gelu:
    return 0.5 * gate * (1 + std::erf(gate / std::numbers::sqrt2)) * up;
  case ActivationKind::gelu_tanh: {
    double inner = std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
    return 0.5 * gate * (1 + std::tanh(inner)) * up;
  }
  case ActivationKind::relu:
    return (gate < 0 ? 0.0 : gate) * up;
  case ActivationKind::swiglu:
    if (limit != 0) {
      gate = atMost(gate, limit);
      up = -atMost(-atMost(up, limit), limit);
    }
    return gate * sigmoid(alpha * gate) * (up + beta);
  case ActivationKind::situ: {
    double bounded = alpha == 0 ? up : alpha * std::tanh(up / alpha);
    return beta * std::tanh(gate / beta) * sigmoid(gate) * bounded;
  }
  }
  llvm_unreachable("unknown activation");
}

std::vector<double> mlir::moec::moe::activateRow(ActivationAttr activation, ArrayRef<double> row) {
  size_t half = row.size() / 2;
  std::vector<double> result(half);
  for (size_t i = 0; i < half; ++i)
    result[i] = activation.getInterleaved() ? activate(activation, row[2 * i], row[2 * i + 1])
                                            : activate(activation, row[i], row[half + i]);
  return result;
}
