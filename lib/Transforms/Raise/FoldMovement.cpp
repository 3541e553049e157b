//===- FoldMovement.cpp - chains of reshapes and transposes that undo each other
//---------------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "Matching.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FOLDMOVEMENT
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// A reshaped weight is the same bytes under another type.
static Value reshapeWeight(Operation *reshape) {
  auto weight = reshape->getOperand(0).getDefiningOp<moe::WeightOp>();
  auto type = cast<RankedTensorType>(reshape->getResult(0).getType());
  if (!weight || !type.hasStaticShape() || moe::getLayout(weight.getType()))
    return {};
  OpBuilder builder(reshape);
  return moe::WeightOp::create(builder, weight.getLoc(), type, weight.getNameAttr(),
                               weight.getRefAttr());
}

static bool isMovement(Operation *op) {
  return op && isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, linalg::TransposeOp>(op);
}

/// The tensor that a chain of movements below `collapse` begins with, collapsed at once; null when
/// it cannot be.
static Value collapseOrigin(ElementEvaluator &evaluator, tensor::CollapseShapeOp collapse) {
  Value source = collapse.getSrc();
  if (!isMovement(source.getDefiningOp()))
    return {};
  SmallVector<AffineExpr> all = evaluator.variablesFor(source), variables;
  const Expression *element = evaluator.evaluate(source, all);
  if (element->kind != Expression::Kind::Element || element->value == source)
    return {};
  SmallVector<ReassociationIndices> groups;
  for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
    groups.emplace_back();
    for (int64_t dimension : group)
      if (isa<AffineDimExpr>(all[dimension])) {
        groups.back().push_back(variables.size());
        variables.push_back(all[dimension]);
      }
    if (groups.back().empty())
      return {}; // a result dimension of size 1
  }
  OpBuilder builder(collapse);
  Value origin = materialize(evaluator, builder, collapse.getLoc(), element, variables);
  // No shorter, or a conversion lies in between.
  if (!origin || isMovement(origin.getDefiningOp()) ||
      getElementTypeOrSelf(origin.getType()) != getElementTypeOrSelf(collapse.getType()))
    return {};
  if (groups.size() == variables.size())
    return origin;
  return tensor::CollapseShapeOp::create(builder, collapse.getLoc(), collapse.getType(), origin,
                                         groups);
}

namespace {
struct FoldMovementPass : moec::impl::FoldMovementBase<FoldMovementPass> {
  void runOnOperation() override {
    SmallVector<Operation *> reshapes;
    getOperation().walk([&](Operation *op) {
      if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
        reshapes.push_back(op);
    });
    ElementEvaluator evaluator(&getContext());
    for (Operation *op : reshapes) {
      Value replacement = reshapeWeight(op);
      if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op); collapse && !replacement)
        replacement = collapseOrigin(evaluator, collapse);
      if (!replacement || replacement.getType() != op->getResult(0).getType())
        continue;
      op->getResult(0).replaceAllUsesWith(replacement);
      ++folded;
    }
  }
};
} // namespace
