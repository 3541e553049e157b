//===- SetActivationType.cpp - the precision between the ops of a raised language model
//--------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "moec/Conversion/ImportONNX.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_SETACTIVATIONTYPE
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// Router logits and the logits of the model are f32 whatever the precision.
static bool staysF32(Operation *op) {
  return isa<moe::LinearOp>(op) && llvm::all_of(op->getUsers(), [](Operation *user) {
           return isa<moe::RouteOp, func::ReturnOp>(user);
         });
}

/// Ops whose result type may be changed together with the types of the activations that they read.
static bool isConvertible(Operation *op) {
  return isa<moe::EmbeddingOp, moe::RMSNormOp, moe::LayerNormOp, moe::LinearOp, moe::RopeOp,
             moe::AttentionOp, moe::ExpertsOp, moe::GatherRowsOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp, arith::AddFOp, arith::MulFOp, arith::SubFOp>(op);
}

static LogicalResult convert(func::FuncOp function, Type wanted) {
  // Cached keys and values are activations.
  for (BlockArgument argument : function.getArguments())
    if (auto cache = dyn_cast<moe::CacheType>(argument.getType()))
      argument.setType(moe::CacheType::get(function.getContext(), cache.getKvHeads(),
                                           cache.getKeyDim(), cache.getValueDim(), cache.getBlock(),
                                           wanted, cache.getForm()));
  // What is computed from weights alone stays as the file has it.
  DenseSet<Value> fixed;
  LogicalResult result = success();
  for (Operation &op : function.front()) {
    bool onlyWeights =
        isa<moe::WeightOp, tensor::EmptyOp>(op) || op.hasTrait<OpTrait::ConstantLike>() ||
        (isa<linalg::TransposeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) &&
         fixed.contains(op.getOperand(0)));
    for (Value value : op.getResults()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || !isa<FloatType>(type.getElementType()))
        continue;
      if (onlyWeights) {
        fixed.insert(value);
      } else if (isConvertible(&op)) {
        if (!staysF32(&op))
          value.setType(type.clone(wanted));
      } else if (!isa<moe::RouteOp>(op)) {
        result = emitError(op.getLoc())
                 << "this op cannot compute in " << wanted << ": " << op.getName()
                 << "; compile with the model's own precision";
      }
    }
  }
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             function.front().getArgumentTypes(),
                                             function.front().getTerminator()->getOperandTypes()));
  return result;
}

namespace {
struct SetActivationTypePass : moec::impl::SetActivationTypeBase<SetActivationTypePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto wanted = module->getAttrOfType<TypeAttr>(onnxActivationTypeAttr);
    if (!wanted)
      return;
    module->removeAttr(onnxActivationTypeAttr);
    if (!module->hasAttr("moe.language_model")) {
      WalkResult other = module.walk([&](Operation *op) {
        bool isOther = llvm::any_of(op->getResultTypes(), [&](Type type) {
          Type element = getElementTypeOrSelf(type);
          return isa<FloatType>(element) && element != wanted.getValue();
        });
        return isOther ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (!other.wasInterrupted())
        return; // that is its own precision
      emitError(module.getLoc()) << "another precision than the model's own is for language models "
                                    "only; this graph is none";
      return signalPassFailure();
    }
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      if (failed(convert(function, wanted.getValue())))
        return signalPassFailure();
  }
};
} // namespace
