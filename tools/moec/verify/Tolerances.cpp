#include "tools/moec/verify/Tolerances.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

#include <cmath>

namespace moec::verify {

using namespace mlir;

// The square of what one rounding to the type may make; 0 for wider types.
static double squareOf(Type type, const Tolerances &tolerances) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = tensor.getElementType();
  if (auto cache = dyn_cast<mlir::moec::moe::CacheType>(type))
    type = cache.getElement();
  return type.isBF16()  ? tolerances.bf16 * tolerances.bf16
         : type.isF16() ? tolerances.f16 * tolerances.f16
                        : 0;
}

static int countRoundings(Operation *op) {
  if (isa<mlir::moec::moe::ExpertsOp>(op))
    return 3;
  if (isa<mlir::moec::moe::AttentionOp>(op))
    return 2;
  // These move numbers.
  bool moves = isa<mlir::moec::moe::EmbeddingOp, mlir::moec::moe::GatherRowsOp>(op) ||
               op->getDialect() == op->getContext()->getLoadedDialect<tensor::TensorDialect>();
  return moves ? 0 : 1;
}

double allowedError(const mlir::moec::Segment &segment, Value value, const Tolerances &tolerances) {
  DenseMap<Value, double> squares; // of the values, and of what was written to caches
  for (Operation *op : segment.ops) {
    SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    double before = 0;
    for (Value each : read)
      before = std::max(before, squares.lookup(each));
    for (Value result : op->getResults())
      squares[result] = before + squareOf(result.getType(), tolerances) * countRoundings(op);
    // What goes into a cache comes out of it.
    for (Value each : read)
      if (isa<mlir::moec::moe::CacheType, mlir::moec::moe::StateType>(each.getType()))
        squares[each] =
            std::max(squares.lookup(each), before + squareOf(each.getType(), tolerances));
  }
  return std::sqrt(tolerances.f32 * tolerances.f32 + squares.lookup(value));
}

} // namespace moec::verify
