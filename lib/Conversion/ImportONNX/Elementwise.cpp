//===- Elementwise.cpp - operators that work element by element
//---------------------------------===//

#include "Handlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "onnx-ml.pb.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

namespace mlir::moec::onnx_import {

using onnx::TensorProto;

static bool isUnsignedType(int dataType) {
  return dataType == TensorProto::UINT8 || dataType == TensorProto::UINT16 ||
         dataType == TensorProto::UINT32 || dataType == TensorProto::UINT64;
}

/// All inputs of the node, of one element type, brought to their common shape.
static FailureOr<SmallVector<Value>> broadcastInputs(NodeImporter &node, ArrayRef<size_t> which,
                                                     Shape &shape) {
  SmallVector<Shape> shapes;
  for (size_t i : which)
    shapes.push_back(node.input(i).shape);
  FailureOr<Shape> common = node.broadcastShape(shapes);
  if (failed(common))
    return failure();
  shape = *common;
  SmallVector<Value> values;
  for (size_t i : which) {
    Value value = node.broadcast(node.tensor(i), node.input(i).shape, shape);
    if (!value)
      return failure();
    values.push_back(value);
  }
  return values;
}

static LogicalResult expectOneType(NodeImporter &node, size_t a, size_t b) {
  if (node.input(a).dataType != node.input(b).dataType)
    return node.fail("inputs " + Twine(a) + " and " + Twine(b) + " are of types " +
                     dataTypeName(node.input(a).dataType) + " and " +
                     dataTypeName(node.input(b).dataType) + ", expected one type");
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Two operands
//===------------------------------------------------------------------------------------------===//

/// The element of `contents` that position `i` of a result of `count` elements reads: all, or the
/// only one.
static const SymbolicSize &pick(ArrayRef<SymbolicSize> contents, size_t i) {
  return contents[contents.size() == 1 ? 0 : i];
}

/// Shape arithmetic. Gives false when the node must be computed at run time.
static bool foldContents(NodeImporter &node, StringRef op) {
  ImportedValue &a = node.input(0), &b = node.input(1);
  if (!a.contents || !b.contents || a.rank() > 1 || b.rank() > 1)
    return false;
  size_t count = std::max(a.contents->size(), b.contents->size());
  if ((a.contents->size() != count && a.contents->size() != 1) ||
      (b.contents->size() != count && b.contents->size() != 1))
    return false;
  SmallVector<SymbolicSize> result;
  for (size_t i = 0; i < count; ++i) {
    const SymbolicSize &x = pick(*a.contents, i), &y = pick(*b.contents, i);
    std::optional<SymbolicSize> value;
    if (op == "Add")
      value = SymbolicSize::add(x, y);
    else if (op == "Sub")
      value = SymbolicSize::subtract(x, y);
    else if (op == "Mul")
      value = SymbolicSize::multiply(x, y);
    else if (op == "Div")
      value = SymbolicSize::divideExactly(x, y);
    else if (op == "Max" || op == "Min") {
      std::optional<SymbolicSize> difference = SymbolicSize::subtract(x, y);
      std::optional<SymbolicSize> opposite = SymbolicSize::subtract(y, x);
      if (difference && difference->isAtLeast(0))
        value = op == "Max" ? x : y;
      else if (opposite && opposite->isAtLeast(0))
        value = op == "Max" ? y : x;
    }
    if (!value)
      return false;
    result.push_back(*value);
  }
  Shape shape(std::max(a.rank(), b.rank()), SymbolicSize(int64_t(count)));
  (void)node.setContents(0, std::move(result), std::move(shape), a.dataType);
  return true;
}

LogicalResult importBinary(NodeImporter &node) {
  StringRef op = node.node.op_type();
  if (failed(node.expectInputs(2, 2)) || failed(expectOneType(node, 0, 1)))
    return failure();
  if (foldContents(node, op))
    return success();
  Shape shape;
  FailureOr<SmallVector<Value>> operands = broadcastInputs(node, {0, 1}, shape);
  if (failed(operands))
    return failure();
  int dataType = node.input(0).dataType;
  Type element = node.graph.elementType(dataType);
  Value a = (*operands)[0], b = (*operands)[1];
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Value result;
  if (isa<FloatType>(element)) {
    if (op == "Add")
      result = arith::AddFOp::create(builder, loc, a, b);
    else if (op == "Sub")
      result = arith::SubFOp::create(builder, loc, a, b);
    else if (op == "Mul")
      result = arith::MulFOp::create(builder, loc, a, b);
    else if (op == "Div")
      result = arith::DivFOp::create(builder, loc, a, b);
    else if (op == "Max")
      result = arith::MaximumFOp::create(builder, loc, a, b);
    else
      result = arith::MinimumFOp::create(builder, loc, a, b);
  } else if (element.isInteger(1)) {
    return node.fail("is not defined for BOOL");
  } else {
    bool isUnsigned = isUnsignedType(dataType);
    if (op == "Add")
      result = arith::AddIOp::create(builder, loc, a, b);
    else if (op == "Sub")
      result = arith::SubIOp::create(builder, loc, a, b);
    else if (op == "Mul")
      result = arith::MulIOp::create(builder, loc, a, b);
    else if (op == "Div" && isUnsigned)
      result = arith::DivUIOp::create(builder, loc, a, b);
    else if (op == "Div")
      result = arith::DivSIOp::create(builder, loc, a, b);
    else if (op == "Max" && isUnsigned)
      result = arith::MaxUIOp::create(builder, loc, a, b);
    else if (op == "Max")
      result = arith::MaxSIOp::create(builder, loc, a, b);
    else if (isUnsigned)
      result = arith::MinUIOp::create(builder, loc, a, b);
    else
      result = arith::MinSIOp::create(builder, loc, a, b);
  }
  bool nonNegative = (op == "Add" || op == "Mul" || op == "Max" || op == "Min") &&
                     node.input(0).nonNegative && node.input(1).nonNegative;
  if (failed(node.setOutput(0, result, shape, dataType)))
    return failure();
  node.output(0).nonNegative = nonNegative;
  return success();
}

LogicalResult importPow(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)) || failed(expectOneType(node, 0, 1)))
    return failure();
  int dataType = node.input(0).dataType;
  if (!isa<FloatType>(node.graph.elementType(dataType)))
    return node.fail("type " + dataTypeName(dataType) + " is not supported, expected floats");
  // Squares and roots are what norms are spelled with.
  std::optional<double> exponent = node.input(1).scalar();
  Shape shape = node.input(0).shape;
  if (exponent && *exponent == 2.0 && node.input(1).rank() <= shape.size()) {
    Value x = node.tensor(0);
    return node.setOutput(0, arith::MulFOp::create(node.builder, node.location, x, x), shape,
                          dataType);
  }
  FailureOr<SmallVector<Value>> operands = broadcastInputs(node, {0, 1}, shape);
  if (failed(operands))
    return failure();
  return node.setOutput(
      0, math::PowFOp::create(node.builder, node.location, (*operands)[0], (*operands)[1]), shape,
      dataType);
}

LogicalResult importComparison(NodeImporter &node) {
  StringRef op = node.node.op_type();
  if (failed(node.expectInputs(2, 2)) || failed(expectOneType(node, 0, 1)))
    return failure();
  Shape shape;
  FailureOr<SmallVector<Value>> operands = broadcastInputs(node, {0, 1}, shape);
  if (failed(operands))
    return failure();
  int dataType = node.input(0).dataType;
  Value a = (*operands)[0], b = (*operands)[1], result;
  if (isa<FloatType>(node.graph.elementType(dataType))) {
    auto predicate = llvm::StringSwitch<arith::CmpFPredicate>(op)
                         .Case("Equal", arith::CmpFPredicate::OEQ)
                         .Case("Less", arith::CmpFPredicate::OLT)
                         .Case("LessOrEqual", arith::CmpFPredicate::OLE)
                         .Case("Greater", arith::CmpFPredicate::OGT)
                         .Default(arith::CmpFPredicate::OGE);
    result = arith::CmpFOp::create(node.builder, node.location, predicate, a, b);
  } else {
    bool isUnsigned = isUnsignedType(dataType);
    using Predicate = arith::CmpIPredicate;
    auto predicate = llvm::StringSwitch<Predicate>(op)
                         .Case("Equal", Predicate::eq)
                         .Case("Less", isUnsigned ? Predicate::ult : Predicate::slt)
                         .Case("LessOrEqual", isUnsigned ? Predicate::ule : Predicate::sle)
                         .Case("Greater", isUnsigned ? Predicate::ugt : Predicate::sgt)
                         .Default(isUnsigned ? Predicate::uge : Predicate::sge);
    result = arith::CmpIOp::create(node.builder, node.location, predicate, a, b);
  }
  return node.setOutput(0, result, shape, TensorProto::BOOL);
}

LogicalResult importLogical(NodeImporter &node) {
  StringRef op = node.node.op_type();
  if (failed(node.expectInputs(2, 2)) || failed(expectOneType(node, 0, 1)))
    return failure();
  if (node.input(0).dataType != TensorProto::BOOL)
    return node.fail("type " + dataTypeName(node.input(0).dataType) + ", expected BOOL");
  Shape shape;
  FailureOr<SmallVector<Value>> operands = broadcastInputs(node, {0, 1}, shape);
  if (failed(operands))
    return failure();
  Value a = (*operands)[0], b = (*operands)[1], result;
  if (op == "And")
    result = arith::AndIOp::create(node.builder, node.location, a, b);
  else if (op == "Or")
    result = arith::OrIOp::create(node.builder, node.location, a, b);
  else
    result = arith::XOrIOp::create(node.builder, node.location, a, b);
  return node.setOutput(0, result, shape, TensorProto::BOOL);
}

//===------------------------------------------------------------------------------------------===//
// One operand
//===------------------------------------------------------------------------------------------===//

/// A constant of the shape of `like`.
static Value constantLike(NodeImporter &node, size_t like, double value) {
  Type element = node.graph.elementType(node.input(like).dataType);
  return node.broadcast(node.scalarTensor(element, value), {}, node.input(like).shape);
}

static Value sigmoid(NodeImporter &node, Value x) {
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Value one = constantLike(node, 0, 1.0);
  Value negated = arith::NegFOp::create(builder, loc, x);
  Value denominator =
      arith::AddFOp::create(builder, loc, one, math::ExpOp::create(builder, loc, negated));
  return arith::DivFOp::create(builder, loc, one, denominator);
}

static Value softplus(NodeImporter &node, Value x) {
  // max(x, 0) + log1p(exp(-|x|)) does not overflow.
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Value positive = arith::MaximumFOp::create(builder, loc, x, constantLike(node, 0, 0.0));
  Value small = math::ExpOp::create(
      builder, loc, arith::NegFOp::create(builder, loc, math::AbsFOp::create(builder, loc, x)));
  return arith::AddFOp::create(builder, loc, positive, math::Log1pOp::create(builder, loc, small));
}

/// x/2 (1 + erf(x/sqrt 2)), or with the usual approximation by tanh.
static Value gelu(NodeImporter &node, Value x, bool approximate) {
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  auto times = [&](Value a, Value b) -> Value { return arith::MulFOp::create(builder, loc, a, b); };
  auto plus = [&](Value a, Value b) -> Value { return arith::AddFOp::create(builder, loc, a, b); };
  Value inner;
  if (approximate) {
    Value cube = times(times(x, x), x);
    Value argument = times(constantLike(node, 0, std::sqrt(2.0 / M_PI)),
                           plus(x, times(constantLike(node, 0, 0.044715), cube)));
    inner = math::TanhOp::create(builder, loc, argument);
  } else {
    inner = math::ErfOp::create(builder, loc, times(x, constantLike(node, 0, std::sqrt(0.5))));
  }
  return times(times(constantLike(node, 0, 0.5), x), plus(constantLike(node, 0, 1.0), inner));
}

LogicalResult importUnary(NodeImporter &node) {
  StringRef op = node.node.op_type();
  if (failed(node.expectInputs(1, 1)))
    return failure();
  int dataType = node.input(0).dataType;
  Shape shape = node.input(0).shape;
  Type element = node.graph.elementType(dataType);
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  if (!isa<FloatType>(element)) {
    Value x = node.tensor(0);
    if (op == "Neg" && !element.isInteger(1))
      return node.setOutput(0, arith::SubIOp::create(builder, loc, constantLike(node, 0, 0), x),
                            shape, dataType);
    if (op == "Abs" && !isUnsignedType(dataType) && !element.isInteger(1))
      return node.setOutput(0, math::AbsIOp::create(builder, loc, x), shape, dataType);
    return node.fail("type " + dataTypeName(dataType) + " is not supported, expected floats");
  }
  Value x = node.tensor(0), result;
  if (op == "Neg")
    result = arith::NegFOp::create(builder, loc, x);
  else if (op == "Abs")
    result = math::AbsFOp::create(builder, loc, x);
  else if (op == "Exp")
    result = math::ExpOp::create(builder, loc, x);
  else if (op == "Log")
    result = math::LogOp::create(builder, loc, x);
  else if (op == "Sqrt")
    result = math::SqrtOp::create(builder, loc, x);
  else if (op == "Reciprocal")
    result = arith::DivFOp::create(builder, loc, constantLike(node, 0, 1.0), x);
  else if (op == "Sin")
    result = math::SinOp::create(builder, loc, x);
  else if (op == "Cos")
    result = math::CosOp::create(builder, loc, x);
  else if (op == "Tanh")
    result = math::TanhOp::create(builder, loc, x);
  else if (op == "Erf")
    result = math::ErfOp::create(builder, loc, x);
  else if (op == "Floor")
    result = math::FloorOp::create(builder, loc, x);
  else if (op == "Ceil")
    result = math::CeilOp::create(builder, loc, x);
  else if (op == "Round")
    result = math::RoundEvenOp::create(builder, loc, x);
  else if (op == "Relu")
    result = arith::MaximumFOp::create(builder, loc, x, constantLike(node, 0, 0.0));
  else if (op == "Sigmoid")
    result = sigmoid(node, x);
  else if (op == "Softplus")
    result = softplus(node, x);
  else if (op == "Swish") {
    Value scaled = x;
    if (float alpha = node.real("alpha", 1.0f); alpha != 1.0f)
      scaled = arith::MulFOp::create(builder, loc, x, constantLike(node, 0, alpha));
    result = arith::MulFOp::create(builder, loc, x, sigmoid(node, scaled));
  } else { // Gelu
    std::string approximate = node.text("approximate").value_or("none");
    if (approximate != "none" && approximate != "tanh")
      return node.fail("attribute 'approximate' is " + moert::inQuotes(approximate) +
                       ", expected 'none' or 'tanh'");
    result = gelu(node, x, approximate == "tanh");
  }
  return node.setOutput(0, result, shape, dataType);
}

LogicalResult importNot(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  if (node.input(0).dataType != TensorProto::BOOL)
    return node.fail("type " + dataTypeName(node.input(0).dataType) + ", expected BOOL");
  Value ones = constantLike(node, 0, 1);
  return node.setOutput(0, arith::XOrIOp::create(node.builder, node.location, node.tensor(0), ones),
                        node.input(0).shape, TensorProto::BOOL);
}

LogicalResult importClip(NodeImporter &node) {
  if (failed(node.expectInputs(1, 3)))
    return failure();
  ImportedValue &input = node.input(0);
  bool isFloat = isa<FloatType>(node.graph.elementType(input.dataType));
  bool isUnsigned = isUnsignedType(input.dataType);
  Value result = node.tensor(0);
  for (size_t i : {1, 2}) {
    if (!node.hasInput(i))
      continue;
    if (failed(expectOneType(node, 0, i)))
      return failure();
    if (node.input(i).rank() != 0 && !node.input(i).scalar())
      return node.fail("a limit has shape " + node.graph.toString(node.input(i).shape) +
                       ", expected a scalar");
    Value limit = node.broadcast(node.tensor(i), node.input(i).shape, input.shape);
    if (!limit)
      return failure();
    OpBuilder &builder = node.builder;
    Location loc = node.location;
    if (i == 1 && isFloat)
      result = arith::MaximumFOp::create(builder, loc, result, limit);
    else if (isFloat)
      result = arith::MinimumFOp::create(builder, loc, result, limit);
    else if (i == 1 && isUnsigned)
      result = arith::MaxUIOp::create(builder, loc, result, limit);
    else if (i == 1)
      result = arith::MaxSIOp::create(builder, loc, result, limit);
    else if (isUnsigned)
      result = arith::MinUIOp::create(builder, loc, result, limit);
    else
      result = arith::MinSIOp::create(builder, loc, result, limit);
  }
  return node.setOutput(0, result, input.shape, input.dataType);
}

LogicalResult importWhere(NodeImporter &node) {
  if (failed(node.expectInputs(3, 3)) || failed(expectOneType(node, 1, 2)))
    return failure();
  if (node.input(0).dataType != TensorProto::BOOL)
    return node.fail("the condition is of type " + dataTypeName(node.input(0).dataType) +
                     ", expected BOOL");
  Shape shape;
  FailureOr<SmallVector<Value>> operands = broadcastInputs(node, {0, 1, 2}, shape);
  if (failed(operands))
    return failure();
  return node.setOutput(0,
                        arith::SelectOp::create(node.builder, node.location, (*operands)[0],
                                                (*operands)[1], (*operands)[2]),
                        shape, node.input(1).dataType);
}

LogicalResult importCast(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  std::optional<int64_t> to = node.integer("to");
  if (!to)
    return node.fail("attribute 'to' is missing");
  if (*to < 0 || *to > 1000 || !node.graph.elementType(*to))
    return node.fail("type " + dataTypeName(static_cast<int>(*to)) + " is not supported");
  ImportedValue &input = node.input(0);
  bool toIndex = *to == TensorProto::INT64 || *to == TensorProto::INT32;
  if (input.contents && toIndex)
    return node.setContents(0, *input.contents, input.shape, *to);
  bool nonNegative = input.nonNegative;
  if (failed(node.setOutput(0, node.castElements(node.tensor(0), input.dataType, *to), input.shape,
                            *to)))
    return failure();
  node.output(0).nonNegative = nonNegative && toIndex;
  return success();
}

LogicalResult importIdentityOf(NodeImporter &node, size_t input) {
  if (!node.wantsOutput(0))
    return success();
  ImportedValue &source = node.input(input), &result = node.output(0);
  std::string name = result.name;
  result = source;
  if (!result.weight) // a weight keeps the name that it has in the file
    result.name = name;
  return success();
}

LogicalResult importIdentity(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  return importIdentityOf(node, 0);
}

} // namespace mlir::moec::onnx_import
