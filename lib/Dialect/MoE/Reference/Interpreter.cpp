#include "moec/Dialect/MoE/Reference/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;
using namespace mlir::moec::moe;

#include "moec/Dialect/MoE/Reference/ReferenceInterface.cpp.inc"

/// Calls within calls: recursion in a module must not overflow the stack.
static constexpr unsigned deepestCall = 64;

//===------------------------------------------------------------------------------------------===//
// ReferenceFrame
//===------------------------------------------------------------------------------------------===//

SmallVector<int64_t> ReferenceFrame::getIntegers(ArrayRef<OpFoldResult> mixed) const {
  return llvm::map_to_vector(mixed, [&](OpFoldResult value) -> int64_t {
    if (auto attr = dyn_cast<Attribute>(value))
      return cast<IntegerAttr>(attr).getInt();
    return getInteger(cast<Value>(value));
  });
}

LogicalResult ReferenceFrame::set(Value result, ReferenceValue value) {
  std::string problem = value.explainMismatch(result.getType());
  if (!problem.empty()) {
    Operation *op = result.getDefiningOp();
    if (!op)
      op = result.getParentBlock()->getParentOp();
    return op->emitError() << "while interpreting: " << problem;
  }
  values[result] = std::move(value);
  return success();
}

FailureOr<ReferenceTensor> ReferenceFrame::allocate(OpResult result, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(result.getType());
  FailureOr<ReferenceTensor> tensor = ReferenceTensor::createPoisoned(type.getElementType(), shape);
  if (failed(tensor))
    return result.getOwner()->emitError()
           << "while interpreting: cannot make a tensor of " << type.getElementType() << " "
           << describeShape(shape) << ": a size is negative or it needs more than "
           << (ReferenceTensor::largestBytes >> 30) << " GiB";
  std::string problem = ReferenceValue(*tensor).explainMismatch(type);
  if (!problem.empty())
    return result.getOwner()->emitError() << "while interpreting: " << problem;
  return tensor;
}

LogicalResult ReferenceFrame::checkShape(Operation *op, StringRef what,
                                         const ReferenceTensor &tensor,
                                         ArrayRef<int64_t> expected) const {
  if (tensor.getShape() == expected)
    return success();
  return op->emitError() << "while interpreting: expects " << what << " of shape "
                         << describeShape(expected) << ", got " << describeShape(tensor.getShape());
}

LogicalResult ReferenceFrame::run(Region &region, ArrayRef<ReferenceValue> arguments,
                                  SmallVectorImpl<ReferenceValue> &results) {
  Block &block = region.front();
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), arguments))
    if (failed(set(argument, value)))
      return failure();
  for (Operation &op : block.without_terminator())
    if (failed(cast<ReferenceEvaluationOpInterface>(op).evaluate(*this)))
      return failure();
  results.clear();
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(get(operand));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// What can be interpreted
//===------------------------------------------------------------------------------------------===//

namespace {
/// Collects everything in the reach of a function that the interpreter does not know.
class SupportCheck {
public:
  void visit(func::FuncOp function) {
    if (!visited.insert(function).second)
      return;
    if (function.isExternal()) {
      problems.push_back(
          {function.getLoc(), "function '" + function.getName().str() + "' has no body"});
      return;
    }
    visitRegion(function.getBody());
  }

  SmallVector<std::pair<Location, std::string>> problems;

private:
  void visitRegion(Region &region) {
    if (!region.hasOneBlock() && !region.empty())
      report(region.getParentOp(), "a region of several blocks");
    for (Block &block : region) {
      for (BlockArgument argument : block.getArguments())
        visitType(region.getParentOp(), argument.getType());
      for (Operation &op : block)
        visitOp(op);
    }
  }

  void visitOp(Operation &op) {
    bool ends = op.hasTrait<OpTrait::ReturnLike>() || isa<RegionBranchTerminatorOpInterface>(op);
    if (!ends && !isa<ReferenceEvaluationOpInterface>(op))
      report(&op, "");
    for (Type type : op.getResultTypes())
      visitType(&op, type);
    for (Region &region : op.getRegions())
      visitRegion(region);
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(&op, call.getCalleeAttr());
      if (callee)
        visit(callee);
    }
  }

  void visitType(Operation *op, Type type) {
    Type element = type;
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      element = tensor.getElementType();
    if (isa<BlockTensorType, CacheType, StateType>(type) || ScalarType::get(element))
      return;
    std::string text;
    llvm::raw_string_ostream(text) << "a value of type " << type;
    report(op, text);
  }

  void report(Operation *op, std::string detail) {
    std::string text = "'" + op->getName().getStringRef().str() + "'";
    problems.push_back({op->getLoc(), detail.empty() ? text : text + " with " + detail});
  }

  DenseSet<Operation *> visited;
};
} // namespace

LogicalResult Interpreter::checkSupported(func::FuncOp function) {
  if (supported.contains(function))
    return success();
  SupportCheck check;
  check.visit(function);
  if (check.problems.empty()) {
    supported.insert(function);
    return success();
  }
  // Notes are cut: a large module could have thousands, and the first ones are enough.
  constexpr size_t shown = 50;
  InFlightDiagnostic diagnostic =
      function.emitError() << "the reference interpreter does not know " << check.problems.size()
                           << " of the operations in '" << function.getName() << "'";
  for (auto &[loc, text] : ArrayRef(check.problems).take_front(shown))
    diagnostic.attachNote(loc) << text;
  return diagnostic;
}

//===------------------------------------------------------------------------------------------===//
// Interpreter
//===------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<ReferenceValue>> Interpreter::call(StringRef name,
                                                         ArrayRef<ReferenceValue> arguments) {
  auto function = SymbolTable(module).lookup<func::FuncOp>(name);
  if (!function)
    return module.emitError() << "the module has no function '" << name << "'";
  if (failed(checkSupported(function)))
    return failure();
  if (function.getNumArguments() != arguments.size())
    return function.emitError() << "'" << name << "' takes " << function.getNumArguments()
                                << " arguments, got " << arguments.size();
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    std::string problem = argument.explainMismatch(function.getArgumentTypes()[i]);
    if (!problem.empty())
      return function.emitError() << "argument " << i << " of '" << name << "': " << problem;
  }
  return call(function, arguments, 0);
}

FailureOr<SmallVector<ReferenceValue>>
Interpreter::call(func::FuncOp function, ArrayRef<ReferenceValue> arguments, unsigned depth) {
  if (depth > deepestCall)
    return function.emitError() << "while interpreting: more than " << deepestCall
                                << " calls within each other";
  ReferenceFrame frame(*this, depth);
  SmallVector<ReferenceValue> results;
  if (failed(frame.run(function.getBody(), arguments, results)))
    return failure();
  return results;
}

FailureOr<ReferenceTensor> Interpreter::readWeight(WeightOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  std::tuple key(op.getRef().getAsOpaquePointer(), op.getMoreRefsAttr().getAsOpaquePointer(),
                 withLayout(type, {}).getAsOpaquePointer());
  if (auto known = weightCache.find(key); known != weightCache.end())
    return known->second;
  if (!weights)
    return op.emitError() << "while interpreting: the bytes of weight '" << op.getName()
                          << "' are needed, but no folder of weights was given";
  FailureOr<ReferenceTensor> tensor =
      ReferenceTensor::create(type.getElementType(), type.getShape());
  if (failed(tensor))
    return op.emitError() << "while interpreting: weight '" << op.getName() << "' of type " << type
                          << " is too large or of an unknown element type";
  uint64_t bytes = 0;
  for (auto [name, ref] : op.getParts())
    bytes += ref.getBytes();
  if (tensor->getBytes().size() != bytes)
    return op.emitError() << "while interpreting: weight '" << op.getName() << "' of type " << type
                          << " has elements of less than a byte; load them as bytes";
  std::string problem;
  MutableArrayRef<std::byte> rest = tensor->getMutableBytes();
  for (auto [name, ref] : op.getParts()) {
    if (failed(weights->read(ref.getFile(), ref.getOffset(), rest.take_front(ref.getBytes()),
                             problem)))
      return op.emitError() << "weight '" << name << "': " << problem;
    rest = rest.drop_front(ref.getBytes());
  }
  return weightCache.emplace(std::move(key), std::move(*tensor)).first->second;
}

//===------------------------------------------------------------------------------------------===//
// Elementwise ops
//===------------------------------------------------------------------------------------------===//

LogicalResult mlir::moec::moe::evaluateElementwise(Operation *op, ReferenceFrame &frame) {
  ScalarFunction function = cast<ReferenceEvaluationOpInterface>(op).getScalarFunction();
  assert(function && op->getNumResults() == 1 && "an op without evaluate() is elementwise");
  OpResult result = op->getResult(0);
  ScalarType type = *ScalarType::get(getElementTypeOrSelf(result.getType()));

  SmallVector<Scalar> elements(op->getNumOperands());
  const ReferenceTensor *shaped = nullptr;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    const ReferenceValue &value = frame.get(operand);
    if (value.isScalar()) {
      elements[i] = value.getScalar();
      continue;
    }
    if (shaped && failed(frame.checkShape(op, "an operand", value.getTensor(), shaped->getShape())))
      return failure();
    shaped = &value.getTensor();
  }
  if (!shaped)
    return frame.set(result, type.round(function(elements.data())));

  FailureOr<ReferenceTensor> output = frame.allocate(result, shaped->getShape());
  if (failed(output))
    return failure();
  for (int64_t i = 0; i < output->getSize(); ++i) {
    for (auto [j, operand] : llvm::enumerate(op->getOperands()))
      if (const ReferenceValue &value = frame.get(operand); value.isTensor())
        elements[j] = value.getTensor().get(i);
    output->set(i, function(elements.data()));
  }
  return frame.set(result, std::move(*output));
}
