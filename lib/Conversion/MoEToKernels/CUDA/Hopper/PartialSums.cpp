#include "PartialSums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

/// A pair of each thread of a warpgroup.
static constexpr int64_t pairBytes = 8, rowOfPairs = HopperCode::warpgroupSize * pairBytes;

/// Pairs that a thread has of a slice. They may not come out even: the last slices have fewer or none.
static int64_t getPairsOfSlice(int64_t columns, int64_t parts) {
  return llvm::divideCeil(columns / 4, parts);
}

int64_t PartialSums::getBytes(int64_t columns, int64_t groups, int64_t blocks) {
  constexpr int64_t groupsOfBlock = 2;
  int64_t parts = groups * blocks;
  return groupsOfBlock * parts * getPairsOfSlice(columns, parts) * rowOfPairs;
}

PartialSums::PartialSums(HopperCode &code, WarpgroupProduct &product, int64_t groups,
                         int64_t blocks, int64_t offset)
    : code(code), product(product), groups(groups), blocks(blocks), offset(offset),
      parts(groups * blocks), pairs(getPairsOfSlice(product.getColumns(), parts)) {
  group = code.sub(code.warpgroupNumber(), code.int32(1));
  part = groups > 1 ? group : code.int32(0);
  if (blocks > 1)
    part = code.add(code.times(code.blockInCluster(), groups), part);
  inGroup = code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1);
}

void PartialSums::meet() {
  if (blocks == 1)
    return code.namedBarrier(1, 2 * HopperCode::warpgroupSize);
  code.arriveAtCluster();
  code.waitForCluster();
}

/// Slice s goes to warpgroup s % groups of block s / groups; there it lies behind those of earlier parts.
void PartialSums::handOut(Value sums) {
  Value place = code.add(code.times(part, pairs * rowOfPairs), code.times(inGroup, pairBytes));
  if (groups == 1)
    place = code.add(place, code.times(group, parts * pairs * rowOfPairs));
  Value own = code.dynamicShared(code.plus(place, offset));
  for (int64_t block = 0; block < blocks; ++block) {
    Value base = blocks > 1 ? code.inBlock(own, code.int32(block)) : own;
    for (int64_t receiver = 0; receiver < groups; ++receiver)
      for (int64_t i = 0; i < pairs; ++i) {
        int64_t pair = (block * groups + receiver) * pairs + i;
        if (pair >= product.getColumns() / 4)
          return;
        LLVM::StoreOp::create(code, code.getLoc(), product.getPair(sums, pair),
                              code.behind(base, (receiver * parts * pairs + i) * rowOfPairs));
      }
  }
}

void PartialSums::exchange(Value sums, Value hasRows, LoadTerms loadTerms, Store store) {
  struct Pair {
    Value isThere, row, column;
    SmallVector<Value, 2> terms;
  };
  SmallVector<Pair> slice;
  Value columnOfLane = code.times(code.andBits(code.laneNumber(), 3), 2);
  for (int64_t i = 0; i < pairs; ++i) {
    Value pair = code.plus(code.times(part, pairs), i);
    Value isThere =
        code.compare(arith::CmpIPredicate::slt, pair, code.int32(product.getColumns() / 4));
    Value row = code.add(product.getRow(0), code.times(code.andBits(pair, 1), 8));
    Value column = code.add(code.times(code.shiftedRight(pair, 1), 8), columnOfLane);
    slice.push_back({code.both(isThere, hasRows), row, column, loadTerms(row, column)});
  }
  if (blocks > 1)
    code.waitForCluster(); // the others have begun
  code.when(hasRows, [&] { handOut(sums); });
  meet();
  Value begin =
      code.add(code.times(group, parts * pairs * rowOfPairs), code.times(inGroup, pairBytes));
  Value base = code.dynamicShared(code.plus(begin, offset));
  for (auto [i, pair] : llvm::enumerate(slice))
    code.when(pair.isThere, [&, i = int64_t(i), &pair = pair] {
      Value total;
      for (int64_t each = 0; each < parts; ++each) {
        Value values = LLVM::LoadOp::create(code, code.getLoc(), code.floatVector(2),
                                            code.behind(base, (each * pairs + i) * rowOfPairs));
        total = total ? code.add(total, values) : values;
      }
      for (Value term : pair.terms)
        total = code.add(total, term);
      store(pair.row, pair.column, total);
    });
  // These are read before the next tile's are written.
  if (blocks == 1)
    meet();
}
