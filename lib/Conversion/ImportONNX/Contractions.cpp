//===- Contractions.cpp - MatMul and Gemm
//-----------------------------------------------------------===//

#include "Handlers.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::moec::onnx_import {

static bool isModelFloat(Type element) {
  return element.isF32() || element.isF16() || element.isBF16();
}

/// x [..., K] times a weight of the model, [N, K] or, `transposed`, [K, N].
static LogicalResult importLinear(NodeImporter &node, bool transposed, Value bias) {
  ImportedValue &x = node.input(0), &weight = node.input(1);
  const SymbolicSize &columns = weight.shape[transposed ? 1 : 0];
  const SymbolicSize &depth = weight.shape[transposed ? 0 : 1];
  if (x.shape.back() != depth)
    return node.fail("a product of " + node.graph.toString(x.shape) + " with a weight of " +
                     node.graph.toString(weight.shape) + " cannot be: the inner sizes differ");
  FailureOr<SymbolicSize> rows = node.product(ArrayRef(x.shape).drop_back());
  if (failed(rows))
    return failure();
  Shape flat = {*rows, depth}, flatResult = {*rows, columns};
  Value input = node.reshape(node.tensor(0), x.shape, flat);
  if (!input)
    return failure();
  Value matrix = node.tensor(1);
  if (transposed)
    matrix = node.transpose(matrix, {1, 0});
  Type element = node.graph.elementType(x.dataType);
  auto linear =
      moe::LinearOp::create(node.builder, node.location, node.graph.tensorType(element, flatResult),
                            input, matrix, bias, /*residual=*/Value(), /*norm_weight=*/Value(),
                            /*epsilon=*/FloatAttr(), /*strategy=*/StringAttr());
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  shape.push_back(columns);
  return node.setOutput(0, node.reshape(linear, flatResult, shape), shape, x.dataType);
}

/// Sums are in f32 where elements are narrower.
static Value batchMatmul(NodeImporter &node, Value a, Value b, ArrayRef<SymbolicSize> shape,
                         Type element) {
  bool wide = element.isBF16() || element.isF16();
  Type sumType = wide ? node.builder.getF32Type() : element;
  Value init =
      node.filled(shape, isa<FloatType>(element) ? Attribute(FloatAttr::get(sumType, 0.0))
                                                 : Attribute(IntegerAttr::get(sumType, 0)));
  Value result = linalg::BatchMatmulOp::create(node.builder, node.location, init.getType(),
                                               ValueRange{a, b}, ValueRange{init})
                     .getResult(0);
  if (wide)
    result = arith::TruncFOp::create(node.builder, node.location,
                                     node.graph.tensorType(element, shape), result);
  return result;
}

LogicalResult importMatMul(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)))
    return failure();
  ImportedValue &a = node.input(0), &b = node.input(1);
  if (a.dataType != b.dataType)
    return node.fail("inputs are of types " + dataTypeName(a.dataType) + " and " +
                     dataTypeName(b.dataType) + ", expected one type");
  if (a.rank() == 0 || b.rank() == 0)
    return node.fail("an input is a scalar");
  Type element = node.graph.elementType(a.dataType);
  if (element.isInteger(1))
    return node.fail("is not defined for BOOL");
  if (b.weight && b.rank() == 2 && a.rank() >= 2 && isModelFloat(element))
    return importLinear(node, /*transposed=*/true, Value());

  // A vector is a matrix of one row or column, whose dimension is dropped from the result.
  Shape left = a.shape, right = b.shape;
  if (a.rank() == 1)
    left.insert(left.begin(), SymbolicSize(1));
  if (b.rank() == 1)
    right.push_back(SymbolicSize(1));
  if (left.back() != right[right.size() - 2])
    return node.fail("a product of " + node.graph.toString(a.shape) + " and " +
                     node.graph.toString(b.shape) + " cannot be: the inner sizes differ");
  Shape leftBatch(left.begin(), left.end() - 2), rightBatch(right.begin(), right.end() - 2);
  FailureOr<Shape> batch = node.broadcastShape({leftBatch, rightBatch});
  if (failed(batch))
    return failure();
  FailureOr<SymbolicSize> batches = node.product(*batch);
  if (failed(batches))
    return failure();
  auto prepare = [&](size_t i, const Shape &matrix) -> Value {
    Value value = node.reshape(node.tensor(i), node.input(i).shape, matrix);
    Shape full = *batch;
    full.append(matrix.end() - 2, matrix.end());
    Shape flat = {*batches, matrix[matrix.size() - 2], matrix.back()};
    if (value)
      value = node.broadcast(value, matrix, full);
    return value ? node.reshape(value, full, flat) : Value();
  };
  Value lhs = prepare(0, left), rhs = prepare(1, right);
  if (!lhs || !rhs)
    return failure();
  Shape flatResult = {*batches, left[left.size() - 2], right.back()};
  Value product = batchMatmul(node, lhs, rhs, flatResult, element);
  Shape shape = *batch;
  if (a.rank() != 1)
    shape.push_back(left[left.size() - 2]);
  if (b.rank() != 1)
    shape.push_back(right.back());
  return node.setOutput(0, node.reshape(product, flatResult, shape), shape, a.dataType);
}

LogicalResult importGemm(NodeImporter &node) {
  if (failed(node.expectInputs(2, 3)))
    return failure();
  ImportedValue &a = node.input(0), &b = node.input(1);
  bool transA = node.integer("transA", 0) != 0, transB = node.integer("transB", 0) != 0;
  float alpha = node.real("alpha", 1.0f), beta = node.real("beta", 1.0f);
  if (a.rank() != 2 || b.rank() != 2)
    return node.fail("inputs have shapes " + node.graph.toString(a.shape) + " and " +
                     node.graph.toString(b.shape) + ", expected matrices");
  if (a.dataType != b.dataType || (node.hasInput(2) && node.input(2).dataType != a.dataType))
    return node.fail("the inputs differ in type");
  Type element = node.graph.elementType(a.dataType);
  if (!isa<FloatType>(element))
    return node.fail("type " + dataTypeName(a.dataType) + " is not supported, expected floats");
  const SymbolicSize &rows = a.shape[transA ? 1 : 0], &depthA = a.shape[transA ? 0 : 1];
  const SymbolicSize &columns = b.shape[transB ? 0 : 1], &depthB = b.shape[transB ? 1 : 0];
  if (depthA != depthB)
    return node.fail("a product of " + node.graph.toString(a.shape) + " and " +
                     node.graph.toString(b.shape) + " cannot be: the inner sizes differ");
  bool biasFits = !node.hasInput(2) || (node.input(2).shape == Shape{columns} && beta == 1.0f);
  if (b.weight && isModelFloat(element) && !transA && alpha == 1.0f && biasFits)
    return importLinear(node, !transB, node.hasInput(2) ? node.tensor(2) : Value());

  Value lhs = node.tensor(0), rhs = node.tensor(1);
  if (transA)
    lhs = node.transpose(lhs, {1, 0});
  if (transB)
    rhs = node.transpose(rhs, {1, 0});
  Shape shape = {rows, columns}, flat = {SymbolicSize(1), rows, columns};
  lhs = node.reshape(lhs, {rows, depthA}, {SymbolicSize(1), rows, depthA});
  rhs = node.reshape(rhs, {depthA, columns}, {SymbolicSize(1), depthA, columns});
  if (!lhs || !rhs)
    return failure();
  Value result = node.reshape(batchMatmul(node, lhs, rhs, flat, element), flat, shape);
  if (!result)
    return failure();
  auto scale = [&](Value value, float factor) -> Value {
    if (factor == 1.0f)
      return value;
    Value factors = node.broadcast(node.scalarTensor(element, factor), {}, shape);
    return arith::MulFOp::create(node.builder, node.location, value, factors);
  };
  result = scale(result, alpha);
  if (node.hasInput(2)) {
    FailureOr<Shape> common = node.broadcastShape({shape, node.input(2).shape});
    if (failed(common))
      return failure();
    if (*common != shape)
      return node.fail("the bias of shape " + node.graph.toString(node.input(2).shape) +
                       " does not fit " + node.graph.toString(shape));
    Value bias = node.broadcast(node.tensor(2), node.input(2).shape, shape);
    if (!bias)
      return failure();
    result = arith::AddFOp::create(node.builder, node.location, result, scale(bias, beta));
  }
  return node.setOutput(0, result, shape, a.dataType);
}

} // namespace mlir::moec::onnx_import
