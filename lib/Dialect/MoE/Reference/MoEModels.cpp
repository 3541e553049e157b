#include "MoEModels.h"

#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::moec::moe;

double mlir::moec::moe::dot(ArrayRef<float> a, ArrayRef<float> b) {
  assert(a.size() == b.size() && "expects rows of one length");
  // Several sums, so that the compiler can use vectors. Products of floats are exact in double.
  constexpr size_t lanes = 8;
  double sums[lanes] = {};
  size_t i = 0;
  for (; i + lanes <= a.size(); i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  double sum = 0;
  for (; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (double lane : sums)
    sum += lane;
  return sum;
}

WeightRows::WeightRows(ReferenceFrame &frame, Value weight) {
  if (isa<BlockTensorType>(weight.getType())) {
    blocks = &frame.get(weight).getBlocks();
    length = blocks->getRowLength();
    return;
  }
  dense = &frame.getTensor(weight);
  length = dense->getShape().back();
}

void WeightRows::read(int64_t row, MutableArrayRef<float> result) const {
  if (blocks)
    blocks->readRow(row, result);
  else
    dense->readFloats(row * length, result);
}

std::vector<float> mlir::moec::moe::roundTo(Type elementType, ArrayRef<double> values) {
  ScalarType type = *ScalarType::get(elementType);
  std::vector<float> result(values.size());
  for (auto [to, from] : llvm::zip_equal(result, values))
    to = static_cast<float>(type.round(Scalar::fromReal(from)).real);
  return result;
}

void mlir::moec::moe::registerMoEModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, MoEDialect *) {
    attachWeightModels(context);
    attachLinearModels(context);
    attachNormModels(context);
    attachRotaryModels(context);
    attachAttentionModels(context);
    attachRecurrentModels(context);
    attachResidualModels(context);
    attachCompressionModels(context);
    attachHyperConnectionModels(context);
    attachRoutingModels(context);
    attachExpertModels(context);
    attachSamplingModels(context);
    attachSelectKeysModel(context);
    attachVisionModels(context);
  });
}
