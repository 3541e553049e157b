#include "EntryRanks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildEntryRank(CodeBuilder &code, Value score) {
  Location loc = code.getLoc();
  Value isNumber = code.compare(arith::CmpFPredicate::ORD, score, score);
  Value lowest = code.float32(-std::numeric_limits<double>::infinity());
  // Adding zero makes -0 equal to 0.
  score = code.add(code.select(isNumber, score, lowest), code.float32(0));
  Value bits = arith::BitcastOp::create(code, loc, code.getI32Type(), score);
  // The bits of a float, of negative ones all but the sign flipped, are ordered like the floats.
  Value sign = arith::ShRSIOp::create(code, loc, bits, code.int32(31));
  Value flip = arith::AndIOp::create(code, loc, sign, code.int32(0x7fffffff));
  return arith::XOrIOp::create(code, loc, bits, flip);
}

Value mlir::moec::buildLowestChosenRank(CodeBuilder &code, Value wanted,
                                        function_ref<Value(Value rank)> countFrom) {
  // The sign first: bits of numbers that are not below 0 go up from 0, those of others from the
  // lowest number.
  Location loc = code.getLoc();
  Value lowestNumber = code.int32(std::numeric_limits<int32_t>::min());
  auto isReached = [&](Value rank) {
    return code.compare(arith::CmpIPredicate::sge, countFrom(rank), wanted);
  };
  Value start = code.select(isReached(code.int32(0)), code.int32(0), lowestNumber);
  return code
      .loop(code.int32(0), code.int32(31), 1, {start},
            [&](Value i, ValueRange rank) -> SmallVector<Value> {
              Value bit =
                  arith::ShLIOp::create(code, loc, code.int32(1), code.sub(code.int32(30), i));
              Value larger = arith::OrIOp::create(code, loc, rank[0], bit);
              return {code.select(isReached(larger), larger, rank[0])};
            })
      .front();
}

Value mlir::moec::countEntryRanks(CodeBuilder &code, Value tableBlocks, moe::SelectEntriesOp op) {
  return code.divide(code.mul(tableBlocks, op.getEntries().getType().getBlock()),
                     static_cast<int64_t>(op.getStride()));
}

OpFoldResult mlir::moec::countEntryRankBytes(OpBuilder &builder, moe::SelectEntriesOp op,
                                             int64_t fixed, int64_t copies) {
  auto stride = static_cast<int64_t>(op.getStride());
  AffineExpr blocks = builder.getAffineDimExpr(0);
  AffineExpr entries = (blocks * op.getEntries().getType().getBlock()).floorDiv(stride);
  return affine::makeComposedFoldedAffineApply(
      builder, op.getLoc(), AffineMap::get(1, 0, entries * (4 * copies) + fixed),
      tensor::getMixedSize(builder, op.getLoc(), op.getBlockTable(), 1));
}
