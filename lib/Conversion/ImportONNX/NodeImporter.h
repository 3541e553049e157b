//===- NodeImporter.h - what an operator's handler sees
//-----------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_NODEIMPORTER_H
#define MOEC_CONVERSION_IMPORTONNX_NODEIMPORTER_H

#include "GraphImporter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace onnx {
class AttributeProto;
class NodeProto;
} // namespace onnx

namespace mlir::moec::onnx_import {

/// Builds one element of a result from one element of each operand.
using ElementBuilder = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// One node being imported: its inputs, attributes and outputs, and the steps that handlers share.
/// A step that cannot be done reports why and returns null or failure.
class NodeImporter {
public:
  NodeImporter(GraphImporter &graph, const onnx::NodeProto &node, int64_t version);

  GraphImporter &graph;
  const onnx::NodeProto &node;
  const int64_t version; // of the node's domain
  OpBuilder &builder;
  const Location location;

  /// Reports a problem of this node.
  LogicalResult fail(const Twine &why);

  // Inputs and outputs.
  size_t inputCount() const { return inputs.size(); }
  bool hasInput(size_t i) const { return i < inputs.size() && inputs[i]; }
  ImportedValue &input(size_t i) { return *inputs[i]; }
  Value tensor(size_t i) { return graph.materialize(*inputs[i]); }
  bool wantsOutput(size_t i) const;
  /// Checks that every output that the graph names was set.
  void finish();
  /// Checks that there are between `least` and `most` inputs, the first `least` of them given.
  LogicalResult expectInputs(size_t least, size_t most);

  /// An output, or for one that the node does not name a value that nobody reads.
  ImportedValue &output(size_t i);
  /// Sets an output to IR of the given shape and ONNX type.
  LogicalResult setOutput(size_t i, Value tensor, Shape shape, int dataType);
  LogicalResult setContents(size_t i, SmallVector<SymbolicSize> contents, Shape shape,
                            int dataType);

  // Attributes. A wrong kind of attribute is reported once and read as absent.
  bool hasAttribute(StringRef name) const;
  std::optional<int64_t> integer(StringRef name);
  int64_t integer(StringRef name, int64_t absent) { return integer(name).value_or(absent); }
  float real(StringRef name, float absent);
  std::optional<SmallVector<int64_t>> integers(StringRef name);
  std::optional<std::string> text(StringRef name);
  const onnx::AttributeProto *attribute(StringRef name) const;

  /// A constant integer list from input `i` (one dimension, or a scalar as a list of one).
  FailureOr<SmallVector<int64_t>> integerList(size_t i, StringRef what);
  /// The same, as expressions.
  FailureOr<SmallVector<SymbolicSize>> sizeList(size_t i, StringRef what);
  /// The list of an attribute in old opsets and of an input in new ones; none when neither is
  /// given.
  FailureOr<std::optional<SmallVector<int64_t>>> axes(size_t inputIndex);
  /// -rank <= axis < rank, made non-negative.
  FailureOr<int64_t> axis(int64_t axis, size_t rank);

  // Arithmetic on sizes; reports what overflows.
  FailureOr<SymbolicSize> add(const SymbolicSize &a, const SymbolicSize &b);
  FailureOr<SymbolicSize> subtract(const SymbolicSize &a, const SymbolicSize &b);
  FailureOr<SymbolicSize> multiply(const SymbolicSize &a, const SymbolicSize &b);
  FailureOr<SymbolicSize> product(ArrayRef<SymbolicSize> sizes);

  // IR (Emission.cpp). Shapes say what the values' sizes are.
  Value constant(Attribute value);
  Value scalarTensor(Type element, double value);
  Value empty(ArrayRef<SymbolicSize> shape, Type element);
  Value filled(ArrayRef<SymbolicSize> shape, Attribute value);
  /// The common shape by numpy's rules.
  FailureOr<Shape> broadcastShape(ArrayRef<Shape> shapes);
  Value broadcast(Value value, ArrayRef<SymbolicSize> from, ArrayRef<SymbolicSize> to);
  Value reshape(Value value, ArrayRef<SymbolicSize> from, ArrayRef<SymbolicSize> to);
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value slice(Value value, ArrayRef<SymbolicSize> offsets, ArrayRef<SymbolicSize> sizes,
              ArrayRef<int64_t> strides);
  Value concatenate(ValueRange values, int64_t axis, ArrayRef<SymbolicSize> shape);
  /// A linalg.generic whose iterations are the elements of `shape`: `maps` say how operands are
  /// read.
  Value parallel(ValueRange operands, ArrayRef<AffineMap> maps, ArrayRef<SymbolicSize> shape,
                 Type element, ElementBuilder body);
  /// Elements converted as ONNX's Cast does.
  Value castElements(Value value, int fromType, int toType);

private:
  SmallVector<ImportedValue *> inputs;
  ImportedValue unwanted;
};

} // namespace mlir::moec::onnx_import

#endif
