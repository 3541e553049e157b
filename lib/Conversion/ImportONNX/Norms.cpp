//===- Norms.cpp - RMSNormalization, LayerNormalization
//---------------------------------------------===//

#include "Handlers.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "onnx-ml.pb.h"

#include <charconv>

namespace mlir::moec::onnx_import {

/// The number that whoever wrote the graph had in mind: the shortest decimal that rounds to this
/// f32 (1e-05, not 9.99999974e-06).
static double intendedNumber(float value) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  double result = value;
  std::from_chars(text, end, result);
  return result;
}

/// Checks what both norms have in common: the last axis, statistics in f32, a weight of its size.
static LogicalResult checkNorm(NodeImporter &node) {
  ImportedValue &input = node.input(0);
  Type element = node.graph.elementType(input.dataType);
  if (!element.isF32() && !element.isBF16() && !element.isF16())
    return node.fail("type " + dataTypeName(input.dataType) +
                     " is not supported, expected FLOAT, FLOAT16 or BFLOAT16");
  FailureOr<int64_t> axis = node.axis(node.integer("axis", -1), input.rank());
  if (failed(axis))
    return failure();
  if (*axis + 1 != static_cast<int64_t>(input.rank()))
    return node.fail("axis " + Twine(*axis) + " is not supported, expected the last one");
  if (node.integer("stash_type", onnx::TensorProto::FLOAT) != onnx::TensorProto::FLOAT)
    return node.fail("attribute 'stash_type' is not 1: statistics are always in f32");
  Type weight = node.graph.elementType(node.input(1).dataType);
  if (!weight.isF32() && !weight.isBF16() && !weight.isF16())
    return node.fail("the weight is of type " + dataTypeName(node.input(1).dataType) +
                     ", expected FLOAT, FLOAT16 or BFLOAT16");
  for (size_t i = 1; i < node.inputCount(); ++i)
    if (node.hasInput(i) && node.input(i).shape != Shape{input.shape.back()})
      return node.fail("input " + Twine(i) + " has shape " +
                       node.graph.toString(node.input(i).shape) + ", expected [" +
                       node.graph.toString(input.shape.back()) + "]");
  return success();
}

/// The input and the result's type: norms compute in the type of their weight.
static Value normInput(NodeImporter &node, int &resultType) {
  resultType = node.input(1).dataType;
  return node.castElements(node.tensor(0), node.input(0).dataType, resultType);
}

LogicalResult importRMSNormalization(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)) || failed(checkNorm(node)))
    return failure();
  int resultType;
  Value input = normInput(node, resultType);
  FloatAttr epsilon = node.builder.getF64FloatAttr(intendedNumber(node.real("epsilon", 1e-5f)));
  Value result = moe::RMSNormOp::create(node.builder, node.location, input.getType(), input,
                                        node.tensor(1), epsilon, UnitAttr());
  return node.setOutput(0, result, node.input(0).shape, resultType);
}

LogicalResult importLayerNormalization(NodeImporter &node) {
  if (failed(node.expectInputs(2, 3)) || failed(checkNorm(node)))
    return failure();
  if (node.wantsOutput(1) || node.wantsOutput(2))
    return node.fail("the outputs of mean and deviation are not supported");
  int resultType;
  Value input = normInput(node, resultType);
  FloatAttr epsilon = node.builder.getF64FloatAttr(intendedNumber(node.real("epsilon", 1e-5f)));
  Value result =
      moe::LayerNormOp::create(node.builder, node.location, input.getType(), input, node.tensor(1),
                               node.hasInput(2) ? node.tensor(2) : Value(), epsilon);
  return node.setOutput(0, result, node.input(0).shape, resultType);
}

} // namespace mlir::moec::onnx_import
