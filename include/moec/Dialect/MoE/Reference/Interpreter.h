//===- Interpreter.h - the reference interpreter ----------------------------------------------===//
//
// Computes functions of a module in phase `moe`, one op after the other, slowly and in the obvious
// way. It is what compiled code is compared with.
//
// Precision. An arith or math op computes exactly or in double precision and rounds once to its
// result's type. A linalg op does what its body says; where the body adds to its output argument (a
// sum, a product of matrices), the sum is kept in double precision and rounded once at the end. A
// moe op keeps its sums and everything that its description does not say is rounded in double
// precision and rounds each result once.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_INTERPRETER_H
#define MOEC_DIALECT_MOE_REFERENCE_INTERPRETER_H

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <memory>
#include <string>

namespace mlir {
class DialectRegistry;
}

namespace mlir::moec::moe {

class Interpreter;

/// Where the bytes of weights come from.
class WeightSource {
public:
  virtual ~WeightSource();
  /// Fills `bytes` from `offset` of `file` on. On failure `problem` says what is wrong.
  virtual LogicalResult read(StringRef file, uint64_t offset, MutableArrayRef<std::byte> bytes,
                             std::string &problem) = 0;
};

/// Weights in files below a folder, such as the checkpoint that was imported. Symbolic links are
/// followed when `followLinks`. Fails with `problem` set.
FailureOr<std::unique_ptr<WeightSource>> openWeightFolder(StringRef path, bool followLinks,
                                                          std::string &problem);

/// The values of one call of a function.
class ReferenceFrame {
public:
  ReferenceFrame(Interpreter &interpreter, unsigned depth)
      : interpreter(interpreter), depth(depth) {}

  Interpreter &getInterpreter() { return interpreter; }
  unsigned getDepth() const { return depth; }

  const ReferenceValue &get(Value value) const { return values.find(value)->second; }
  const ReferenceTensor &getTensor(Value value) const { return get(value).getTensor(); }
  /// Null for an absent operand.
  const ReferenceTensor *getOptionalTensor(Value value) const {
    return value ? &getTensor(value) : nullptr;
  }
  Scalar getScalar(Value value) const { return get(value).getScalar(); }
  int64_t getInteger(Value value) const { return getScalar(value).integer; }
  /// Sizes, offsets and strides that are attributes or index values.
  SmallVector<int64_t> getIntegers(ArrayRef<OpFoldResult> values) const;

  /// Binds a result, or an argument of a block. Emits a diagnostic when the value does not fit the
  /// type.
  LogicalResult set(Value result, ReferenceValue value);

  /// Room for a result of this shape, poisoned. Emits a diagnostic when it does not fit the type or
  /// is too large.
  FailureOr<ReferenceTensor> allocate(OpResult result, ArrayRef<int64_t> shape);

  /// Checks a shape that only shows while running. Emits a diagnostic.
  LogicalResult checkShape(Operation *op, StringRef what, const ReferenceTensor &tensor,
                           ArrayRef<int64_t> expected) const;

  /// Runs the only block of a region and gives the operands of its terminator.
  LogicalResult run(Region &region, ArrayRef<ReferenceValue> arguments,
                    SmallVectorImpl<ReferenceValue> &results);

  /// The point of its iteration space that the body of a linalg op runs at.
  void setIteration(Operation *op, ArrayRef<int64_t> point) {
    iterations[op].assign(point.begin(), point.end());
  }
  ArrayRef<int64_t> getIteration(Operation *op) const { return iterations.find(op)->second; }

private:
  Interpreter &interpreter;
  unsigned depth;
  DenseMap<Value, ReferenceValue> values;
  DenseMap<Operation *, SmallVector<int64_t>> iterations;
};

class Interpreter {
public:
  /// `weights` may be null for a module without weights, and must outlive the interpreter.
  Interpreter(ModuleOp module, WeightSource *weights) : module(module), weights(weights) {}

  ModuleOp getModule() const { return module; }

  /// Checks that every op that `function` may reach can be computed. All that cannot are in one
  /// diagnostic.
  LogicalResult checkSupported(func::FuncOp function);

  /// Calls the function `name`. Emits a diagnostic when it fails.
  FailureOr<SmallVector<ReferenceValue>> call(StringRef name, ArrayRef<ReferenceValue> arguments);

  /// Calls a function that was checked, `depth` calls below the first one.
  FailureOr<SmallVector<ReferenceValue>> call(func::FuncOp function,
                                              ArrayRef<ReferenceValue> arguments, unsigned depth);

  /// Weights are read once and kept.
  FailureOr<ReferenceTensor> readWeight(WeightOp op);

  llvm::StringMap<ReferenceValue> &getGlobals() { return globals; }

private:
  ModuleOp module;
  WeightSource *weights;
  llvm::StringMap<ReferenceValue> globals;
  std::map<std::tuple<const void *, const void *, const void *>, ReferenceTensor> weightCache;
  DenseSet<Operation *> supported;
};

/// Computes an op with a scalar function on scalars, or element by element on tensors.
LogicalResult evaluateElementwise(Operation *op, ReferenceFrame &frame);

/// Gives all ops that the interpreter knows their ReferenceEvaluationOpInterface.
void registerReferenceModels(DialectRegistry &registry);

} // namespace mlir::moec::moe

#include "moec/Dialect/MoE/Reference/ReferenceInterface.h.inc"

#endif // MOEC_DIALECT_MOE_REFERENCE_INTERPRETER_H
