//===- Attributes.cpp - inputs, outputs and attributes of a node
//--------------------------------===//

#include "NodeImporter.h"

#include "onnx-ml.pb.h"

namespace mlir::moec::onnx_import {

NodeImporter::NodeImporter(GraphImporter &graph, const onnx::NodeProto &node, int64_t version)
    : graph(graph), node(node), version(version), builder(graph.builder), location(graph.location) {
  for (const std::string &name : node.input())
    inputs.push_back(name.empty() ? nullptr : &graph.values[name]);
}

LogicalResult NodeImporter::fail(const Twine &why) {
  std::string name = node.name().empty() && node.output_size() ? node.output(0) : node.name();
  graph.problem("node " + moert::inQuotes(name) + " (" + node.op_type() + "): " + why);
  return failure();
}

bool NodeImporter::wantsOutput(size_t i) const {
  return i < static_cast<size_t>(node.output_size()) && !node.output(i).empty();
}

LogicalResult NodeImporter::expectInputs(size_t least, size_t most) {
  if (inputs.size() < least || inputs.size() > most)
    return fail("has " + Twine(inputs.size()) + " inputs, expected " + Twine(least) +
                (least == most ? Twine("") : " to " + Twine(most)));
  for (size_t i = 0; i < least; ++i)
    if (!inputs[i])
      return fail("input " + Twine(i) + " is missing");
  return success();
}

ImportedValue &NodeImporter::output(size_t i) {
  return wantsOutput(i) ? graph.values[node.output(i)] : unwanted;
}

LogicalResult NodeImporter::setOutput(size_t i, Value tensor, Shape shape, int dataType) {
  if (!tensor)
    return failure();
  if (!wantsOutput(i))
    return success();
  if (failed(product(shape)))
    return failure();
  ImportedValue &value = output(i);
  value.tensor = tensor;
  value.shape = std::move(shape);
  value.dataType = dataType;
  value.failed = false;
  assert(cast<RankedTensorType>(tensor.getType()) ==
             graph.tensorType(graph.elementType(dataType), value.shape) &&
         "the IR's type follows from the shape");
  return success();
}

LogicalResult NodeImporter::setContents(size_t i, SmallVector<SymbolicSize> contents, Shape shape,
                                        int dataType) {
  if (!wantsOutput(i))
    return success();
  ImportedValue &value = output(i);
  value.nonNegative =
      llvm::all_of(contents, [](const SymbolicSize &size) { return size.isAtLeast(0); });
  value.contents = std::move(contents);
  value.shape = std::move(shape);
  value.dataType = dataType;
  value.failed = false;
  return success();
}

void NodeImporter::finish() {
  for (int i = 0; i < node.output_size(); ++i)
    if (wantsOutput(i) && output(i).failed)
      (void)fail("output " + moert::inQuotes(node.output(i)) + " is not supported");
}

const onnx::AttributeProto *NodeImporter::attribute(StringRef name) const {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

bool NodeImporter::hasAttribute(StringRef name) const { return attribute(name) != nullptr; }

std::optional<int64_t> NodeImporter::integer(StringRef name) {
  const onnx::AttributeProto *found = attribute(name);
  if (!found)
    return std::nullopt;
  if (found->type() != onnx::AttributeProto::INT) {
    (void)fail("attribute '" + name + "' is no integer");
    return std::nullopt;
  }
  return found->i();
}

float NodeImporter::real(StringRef name, float absent) {
  const onnx::AttributeProto *found = attribute(name);
  if (!found)
    return absent;
  if (found->type() != onnx::AttributeProto::FLOAT) {
    (void)fail("attribute '" + name + "' is no number");
    return absent;
  }
  return found->f();
}

std::optional<SmallVector<int64_t>> NodeImporter::integers(StringRef name) {
  const onnx::AttributeProto *found = attribute(name);
  if (!found)
    return std::nullopt;
  if (found->type() != onnx::AttributeProto::INTS) {
    (void)fail("attribute '" + name + "' is no list of integers");
    return std::nullopt;
  }
  return SmallVector<int64_t>(found->ints().begin(), found->ints().end());
}

std::optional<std::string> NodeImporter::text(StringRef name) {
  const onnx::AttributeProto *found = attribute(name);
  if (!found)
    return std::nullopt;
  if (found->type() != onnx::AttributeProto::STRING) {
    (void)fail("attribute '" + name + "' is no string");
    return std::nullopt;
  }
  return found->s();
}

FailureOr<SmallVector<SymbolicSize>> NodeImporter::sizeList(size_t i, StringRef what) {
  ImportedValue &value = input(i);
  if (value.rank() > 1)
    return fail(what + " has shape " + graph.toString(value.shape) + ", expected a list");
  if (value.contents)
    return *value.contents;
  std::optional<int64_t> length =
      value.rank() == 0 ? std::optional<int64_t>(1) : value.shape[0].constant();
  if (!length || *length > 64)
    return fail(what + " has shape " + graph.toString(value.shape) +
                ", expected a list of known length");
  if (!isa<IntegerType>(graph.elementType(value.dataType)))
    return fail(what + " is no list of integers");
  // Computed from data: every element is a size that only running the graph tells.
  Value tensor = this->tensor(i);
  SmallVector<SymbolicSize> sizes;
  for (int64_t element = 0; element < *length; ++element) {
    SmallVector<Value> indices;
    if (value.rank() == 1)
      indices.push_back(arith::ConstantIndexOp::create(builder, location, element));
    Value number = tensor::ExtractOp::create(builder, location, tensor, indices);
    Value index = arith::IndexCastOp::create(builder, location, builder.getIndexType(), number);
    sizes.push_back(graph.symbolFor(index, value.name + "[" + Twine(element) + "]"));
  }
  return sizes;
}

FailureOr<SmallVector<int64_t>> NodeImporter::integerList(size_t i, StringRef what) {
  ImportedValue &value = input(i);
  if (!value.contents)
    return fail(what + " is not constant");
  SmallVector<int64_t> list;
  for (const SymbolicSize &size : *value.contents) {
    std::optional<int64_t> constant = size.constant();
    if (!constant)
      return fail(what + " is not constant: " + graph.toString(size));
    list.push_back(*constant);
  }
  return list;
}

FailureOr<std::optional<SmallVector<int64_t>>> NodeImporter::axes(size_t inputIndex) {
  if (hasAttribute("axes"))
    return integers("axes");
  if (!hasInput(inputIndex))
    return std::optional<SmallVector<int64_t>>();
  FailureOr<SmallVector<int64_t>> list = integerList(inputIndex, "axes");
  if (failed(list))
    return failure();
  return std::optional<SmallVector<int64_t>>(*list);
}

FailureOr<int64_t> NodeImporter::axis(int64_t axis, size_t rank) {
  int64_t bound = static_cast<int64_t>(rank);
  if (axis < -bound || axis >= bound)
    return fail("axis " + Twine(axis) + " is outside the rank " + Twine(bound));
  return axis < 0 ? axis + bound : axis;
}

//===------------------------------------------------------------------------------------------===//
// Sizes
//===------------------------------------------------------------------------------------------===//

static FailureOr<SymbolicSize> orFail(NodeImporter &node, std::optional<SymbolicSize> size) {
  if (!size)
    return node.fail("a size overflows");
  return *size;
}

FailureOr<SymbolicSize> NodeImporter::add(const SymbolicSize &a, const SymbolicSize &b) {
  return orFail(*this, SymbolicSize::add(a, b));
}

FailureOr<SymbolicSize> NodeImporter::subtract(const SymbolicSize &a, const SymbolicSize &b) {
  return orFail(*this, SymbolicSize::subtract(a, b));
}

FailureOr<SymbolicSize> NodeImporter::multiply(const SymbolicSize &a, const SymbolicSize &b) {
  return orFail(*this, SymbolicSize::multiply(a, b));
}

FailureOr<SymbolicSize> NodeImporter::product(ArrayRef<SymbolicSize> sizes) {
  FailureOr<SymbolicSize> result = SymbolicSize(1);
  for (const SymbolicSize &size : sizes) {
    result = multiply(*result, size);
    if (failed(result))
      return failure();
  }
  return result;
}

} // namespace mlir::moec::onnx_import
