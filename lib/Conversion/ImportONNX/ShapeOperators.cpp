//===- ShapeOperators.cpp - constants, shapes and ranges
//-----------------------------------------===//

#include "Handlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "onnx-ml.pb.h"

namespace mlir::moec::onnx_import {

using onnx::TensorProto;

LogicalResult importConstant(NodeImporter &node) {
  if (node.node.attribute_size() != 1)
    return node.fail("has " + Twine(node.node.attribute_size()) +
                     " attributes, expected one value");
  const onnx::AttributeProto &attribute = node.node.attribute(0);
  if (attribute.name() == "value_int" || attribute.name() == "value_ints") {
    bool list = attribute.name() == "value_ints";
    if (list && attribute.ints_size() > 64)
      return node.fail("attribute 'value_ints' holds " + Twine(attribute.ints_size()) +
                       " numbers, expected at most 64");
    SmallVector<SymbolicSize> contents;
    if (!list)
      contents.push_back(SymbolicSize(attribute.i()));
    for (int64_t number : attribute.ints())
      contents.push_back(SymbolicSize(number));
    Shape shape;
    if (list)
      shape.push_back(SymbolicSize(int64_t(contents.size())));
    return node.setContents(0, std::move(contents), shape, TensorProto::INT64);
  }
  if (attribute.name() == "value_float")
    return node.setOutput(0, node.scalarTensor(node.builder.getF32Type(), attribute.f()), {},
                          TensorProto::FLOAT);
  return node.graph.importConstantTensor(attribute.t(), node.output(0))
             ? success()
             : node.fail("its value cannot be used");
}

LogicalResult importConstantOfShape(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  FailureOr<SmallVector<SymbolicSize>> sizes = node.sizeList(0, "the shape");
  if (failed(sizes))
    return failure();
  ImportedValue value;
  value.dataType = TensorProto::FLOAT;
  value.constant = DenseElementsAttr::get(RankedTensorType::get({1}, node.builder.getF32Type()),
                                          node.builder.getF32FloatAttr(0));
  if (const onnx::AttributeProto *attribute = node.attribute("value"))
    if (!node.graph.importConstantTensor(attribute->t(), value))
      return node.fail("attribute 'value' cannot be used");
  if (!value.constant || value.constant.getNumElements() != 1)
    return node.fail("attribute 'value' does not hold one element");
  Shape shape(sizes->begin(), sizes->end());
  if (failed(node.product(shape)))
    return failure();
  auto number = cast<TypedAttr>(*value.constant.value_begin<Attribute>());
  return node.setOutput(0, node.filled(shape, number), shape, value.dataType);
}

LogicalResult importShape(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  const Shape &shape = node.input(0).shape;
  int64_t rank = shape.size();
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  int64_t start = clamp(node.integer("start", 0)), end = clamp(node.integer("end", rank));
  SmallVector<SymbolicSize> contents;
  for (int64_t i = start; i < end; ++i)
    contents.push_back(shape[i]);
  Shape resultShape = {SymbolicSize(int64_t(contents.size()))};
  return node.setContents(0, std::move(contents), resultShape, TensorProto::INT64);
}

LogicalResult importSize(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  FailureOr<SymbolicSize> size = node.product(node.input(0).shape);
  if (failed(size))
    return failure();
  return node.setContents(0, {*size}, {}, TensorProto::INT64);
}

LogicalResult importRange(NodeImporter &node) {
  if (failed(node.expectInputs(3, 3)))
    return failure();
  ImportedValue &start = node.input(0), &limit = node.input(1);
  if (!isa<IntegerType>(node.graph.elementType(start.dataType)))
    return node.fail("type " + dataTypeName(start.dataType) +
                     " is not supported, expected integers");
  FailureOr<SmallVector<int64_t>> steps = node.integerList(2, "the step");
  if (failed(steps))
    return failure();
  for (size_t i : {0, 1, 2})
    if (!node.input(i).contents || node.input(i).contents->size() != 1)
      return node.fail("start and limit cannot be expressed by the sizes of the inputs");
  if (steps->front() != 1)
    return node.fail("the step is " + Twine(steps->front()) + ", only 1 is supported");
  const SymbolicSize &first = start.contents->front();
  FailureOr<SymbolicSize> count = node.subtract(limit.contents->front(), first);
  if (failed(count))
    return failure();
  if (!count->isAtLeast(0)) {
    if (!count->constant())
      return node.fail("the number of elements " + node.graph.toString(*count) +
                       " may be negative");
    count = SymbolicSize(0);
  }
  Type element = node.graph.elementType(start.dataType);
  Value offset;
  if (!first.isConstant(0))
    offset = arith::IndexCastOp::create(node.builder, node.location, element,
                                        node.graph.sizeValue(first));
  Value result = node.parallel({}, {}, {*count}, element,
                               [&](OpBuilder &builder, Location loc, ValueRange) -> Value {
                                 Value i = linalg::IndexOp::create(builder, loc, 0);
                                 i = arith::IndexCastOp::create(builder, loc, element, i);
                                 return offset ? arith::AddIOp::create(builder, loc, i, offset) : i;
                               });
  if (failed(node.setOutput(0, result, {*count}, start.dataType)))
    return failure();
  node.output(0).nonNegative = first.isAtLeast(0);
  return success();
}

} // namespace mlir::moec::onnx_import
