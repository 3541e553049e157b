//===- MergeLinears.cpp - products of one input become one ------------------------------------===//

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::moec {
#define GEN_PASS_DEF_MERGELINEARS
#include "moec/Transforms/Passes.h.inc"

namespace {

/// What two products must have in common to be merged.
using Key = std::tuple<Value, Value, Attribute, Type, Type, Type>;

Key getKey(moe::LinearOp op) {
  auto weight = cast<RankedTensorType>(op.getWeight().getType());
  return {op.getInput(),
          op.getNormWeight(),
          op.getEpsilonAttr(),
          weight.getElementType(),
          op.getResult().getType().getElementType(),
          op.getBias() ? op.getBias().getType().getElementType() : Type()};
}

struct MergeLinearsPass : impl::MergeLinearsBase<MergeLinearsPass> {
  void runOnOperation() override {
    // Grouped by block as well: an op moves to the place of the first of its group.
    llvm::MapVector<std::pair<Block *, Key>, SmallVector<moe::LinearOp>> groups;
    getOperation()->walk([&](moe::LinearOp op) {
      if (!op.getResidual() && isa<RankedTensorType>(op.getWeight().getType()) &&
          isWeight(op.getWeight()) && (!op.getBias() || isWeight(op.getBias())))
        groups[{op->getBlock(), getKey(op)}].push_back(op);
    });
    for (auto &[key, members] : groups)
      if (members.size() > 1) {
        merge(members);
        merged += members.size() - 1;
      }
  }

private:
  /// Concatenating anything but a weight would cost more than it saves.
  static bool isWeight(Value value) { return value.getDefiningOp<moe::WeightOp>() != nullptr; }

  /// One weight that is read from the files of all, one behind the other. Those with other readers
  /// would be read twice: they are copied when the model is loaded.
  static Value concat(OpBuilder &builder, Location loc, ArrayRef<Value> parts) {
    if (!llvm::all_of(parts, [](Value part) { return part.hasOneUse(); }))
      return tensor::ConcatOp::create(builder, loc, /*dim=*/0, parts);
    SmallVector<std::pair<StringRef, moe::WeightRefAttr>> files;
    for (Value part : parts)
      llvm::append_range(files, part.getDefiningOp<moe::WeightOp>().getParts());
    SmallVector<Attribute> names, places;
    for (auto [name, place] : llvm::drop_begin(files)) {
      names.push_back(builder.getStringAttr(name));
      places.push_back(place);
    }
    Type type = tensor::ConcatOp::inferResultType(/*dim=*/0, ValueRange(parts).getTypes());
    return moe::WeightOp::create(builder, loc, type, builder.getStringAttr(files.front().first),
                                 files.front().second, builder.getArrayAttr(names),
                                 builder.getArrayAttr(places));
  }

  static void merge(ArrayRef<moe::LinearOp> members) {
    moe::LinearOp first = members.front();
    OpBuilder builder(first);
    Location loc = builder.getFusedLoc(
        llvm::map_to_vector(members, [](moe::LinearOp op) { return op.getLoc(); }));
    SmallVector<Value> weights, biases;
    int64_t rows = 0;
    for (moe::LinearOp op : members) {
      // Weights have no operands: they may stand before the first product.
      op.getWeight().getDefiningOp()->moveBefore(first);
      weights.push_back(op.getWeight());
      if (op.getBias()) {
        op.getBias().getDefiningOp()->moveBefore(first);
        biases.push_back(op.getBias());
      }
      rows += op.getResult().getType().getDimSize(1);
    }
    auto resultType = RankedTensorType::get({first.getResult().getType().getDimSize(0), rows},
                                            first.getResult().getType().getElementType());
    auto linear = moe::LinearOp::create(
        builder, loc, resultType, first.getInput(), concat(builder, loc, weights),
        biases.empty() ? Value() : concat(builder, loc, biases), /*residual=*/Value(),
        first.getNormWeight(), first.getEpsilonAttr(), /*strategy=*/nullptr);
    OpFoldResult tokens = tensor::getMixedSize(builder, loc, first.getInput(), 0);
    int64_t offset = 0;
    for (moe::LinearOp op : members) {
      builder.setInsertionPoint(op);
      int64_t width = op.getResult().getType().getDimSize(1);
      auto slice = tensor::ExtractSliceOp::create(
          builder, op.getLoc(), op.getResult().getType(), linear.getResult(),
          ArrayRef<OpFoldResult>{builder.getIndexAttr(0), builder.getIndexAttr(offset)},
          ArrayRef<OpFoldResult>{tokens, builder.getIndexAttr(width)},
          ArrayRef<OpFoldResult>{builder.getIndexAttr(1), builder.getIndexAttr(1)});
      op.getResult().replaceAllUsesWith(slice.getResult());
      offset += width;
    }
    for (moe::LinearOp op : members)
      op.erase();
  }
};

} // namespace
} // namespace mlir::moec
