//===- RaiseEmbedding.cpp - gathers of rows by token ids become moe.embedding
//------------------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "Matching.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_RAISEEMBEDDING
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// table[ids[0, t], c] for the result's element [0, t, c].
static Value raise(ElementEvaluator &evaluator, linalg::GenericOp op) {
  Value result = op.getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (type.getRank() != 3 || type.getDimSize(0) != 1 || !isa<FloatType>(type.getElementType()))
    return {};
  SmallVector<AffineExpr> variables = evaluator.variablesFor(result);
  const Expression *element = evaluator.evaluate(result, variables);
  if (element->kind != Expression::Kind::Element || element->indices.size() != 2 ||
      !element->value.getDefiningOp<moe::WeightOp>() || element->indices[1] != variables[2] ||
      evaluator.size(element->value, 1) != evaluator.size(result, 2))
    return {};
  const Expression *id = indexData(evaluator, element->indices[0]);
  if (!id || id->kind != Expression::Kind::Element || !isa<BlockArgument>(id->value))
    return {};
  OpBuilder builder(op);
  Location location = op.getLoc();
  Value ids = materialize(evaluator, builder, location, id, variables[1]);
  if (!ids)
    return {};
  auto flat = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  Value rows = moe::EmbeddingOp::create(builder, location, flat, toI32(builder, location, ids),
                                        element->value);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, location, rows);
  sizes.insert(sizes.begin(), builder.getIndexAttr(1));
  return tensor::ExpandShapeOp::create(builder, location, type, rows,
                                       ArrayRef<ReassociationIndices>{{0, 1}, {2}}, sizes);
}

namespace {
struct RaiseEmbeddingPass : moec::impl::RaiseEmbeddingBase<RaiseEmbeddingPass> {
  void runOnOperation() override {
    ElementEvaluator evaluator(&getContext());
    SmallVector<std::pair<linalg::GenericOp, Value>> replacements;
    getOperation().walk([&](linalg::GenericOp op) {
      if (op.getNumResults() == 1)
        if (Value raised = raise(evaluator, op))
          replacements.push_back({op, raised});
    });
    for (auto [op, raised] : replacements) {
      op.getResult(0).replaceAllUsesWith(raised);
      op.erase();
      ++this->raised;
    }
  }
};
} // namespace
