//===- AttentionProducts.cpp - scores, softmax and products with values of one chunk ----------===//
//
// All for one block of rows (`shape.rowBlock`, unrolled, their sums in registers) and one chunk of
// keys, `keys` of it. What a row does not see takes part as a probability of zero, which changes no
// bit of its sums; so the three versions of a row's chunk (whole, in part, left out) agree. Its
// value takes no part at all: zero times an infinite or undefined number would be NaN.
//
//===------------------------------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// Steps of products in one turn of their loops.
static constexpr int64_t unrolledSteps = 4;

void AttentionKernel::buildChunk(Value firstRow, Value chunkStart, Value allBlocksExist) {
  VisibleKeys visible = findVisibleKeys(firstRow, chunkStart);
  Value zero = code.index(0), chunk = code.index(shape.chunk);
  Value allSeeAll = code.both(code.compare(arith::CmpIPredicate::eq, visible.sharedFirst, zero),
                              code.compare(arith::CmpIPredicate::eq, visible.sharedEnd, chunk));
  Value isWhole = code.both(allSeeAll, allBlocksExist);
  // Most chunks are seen whole by all rows: nothing to mask, and loops of constant length.
  code.choose(
      isWhole,
      [&] {
        buildProducts({firstRow, chunkStart, {zero, chunk, zero, chunk}, /*isWhole=*/true});
      },
      [&] {
        Value seesSome = code.compare(arith::CmpIPredicate::slt, visible.first, visible.end);
        code.when(seesSome, [&] {
          buildProducts({firstRow, chunkStart, visible, /*isWhole=*/false});
        });
      });
}

AttentionKernel::VisibleKeys AttentionKernel::findVisibleKeys(Value firstRow, Value chunkStart) {
  Value lowest, highest;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value position = code.loadIndex(scratch.positions, code.add(firstRow, r));
    lowest = r == 0 ? position : code.minimum(lowest, position);
    highest = r == 0 ? position : code.maximum(highest, position);
  }
  // Relative to the chunk, a row sees the keys in (position - window, position].
  lowest = code.sub(lowest, chunkStart);
  highest = code.sub(highest, chunkStart);
  Value zero = code.index(0), chunk = code.index(shape.chunk);
  VisibleKeys visible;
  visible.first = visible.sharedFirst = zero;
  visible.end = code.minimum(code.add(highest, 1), chunk);
  visible.sharedEnd = code.minimum(code.add(lowest, 1), chunk);
  if (int64_t window = op.getWindow(); window > 0) {
    visible.first = code.maximum(code.add(lowest, 1 - window), zero);
    visible.sharedFirst = code.maximum(code.add(highest, 1 - window), zero);
  }
  return visible;
}

void AttentionKernel::buildProducts(const Keys &keys) {
  SmallVector<Value> chunkMaxima = buildScores(keys);
  buildValues(keys, buildSoftmax(keys, chunkMaxima));
}

/// Scores of the chunk into scratch; returns for each row its largest, lane by lane.
SmallVector<Value> AttentionKernel::buildScores(const Keys &keys) {
  SmallVector<Value> lowest(shape.rowBlock, code.floatSplat(minusInfinity, shape.lanes));
  SmallVector<Type> types(shape.rowBlock, code.floatVector(shape.lanes));
  return code.loop(firstPanelKey(keys), keys.visible.end, shape.lanes, lowest,
                   [&](Value key, ValueRange maxima) -> SmallVector<Value> {
                     Value block = code.loadIndex(scratch.blocks, code.divide(key, shape.block));
                     SmallVector<Value> scores;
                     if (keys.isWhole) {
                       scores = buildScorePanel(keys, key, block);
                     } else {
                       Value exists = code.compare(arith::CmpIPredicate::sge, block, code.index(0));
                       scores = code.choose(
                           exists, types, [&] { return buildScorePanel(keys, key, block); },
                           [&] { return lowest; });
                     }
                     SmallVector<Value> larger;
                     for (int64_t r = 0; r < shape.rowBlock; ++r) {
                       code.storeFloats(scores[r], scratch.scores, {code.index(r), key});
                       larger.push_back(code.maximum(scores[r], maxima[r]));
                     }
                     return larger;
                   });
}

/// Where the vector begins that holds the first visible key.
Value AttentionKernel::firstPanelKey(const Keys &keys) {
  if (keys.isWhole)
    return keys.visible.first;
  return code.mul(code.divide(keys.visible.first, shape.lanes), shape.lanes);
}

/// Scores of the vector of keys that begins with `key` of the chunk.
SmallVector<Value> AttentionKernel::buildScorePanel(const Keys &keys, Value key, Value block) {
  Value slot = code.remainder(key, shape.block);
  Value base = code.add(code.mul(kvHead, shape.keyDim * shape.block), slot);
  Value nextBlock = code.loadIndex(scratch.nextBlocks, code.divide(key, shape.block));
  SmallVector<Value> zeros(shape.rowBlock, code.floatSplat(0, shape.lanes));
  SmallVector<Value> scores =
      code.unrolledLoop(shape.keyDim, unrolledSteps, zeros, [&](Value i, ValueRange sums) {
        Value offset = code.add(base, code.mul(i, shape.block));
        code.prefetch(cache, {nextBlock, offset});
        Value vector = code.loadFloats(cache, {block, offset}, shape.lanes);
        return addProducts(sums, vector, [&](int64_t r) {
          return code.loadFloat(scratch.query, {code.add(keys.firstRow, r), i});
        });
      });
  for (Value &score : scores)
    score = finishScores(score);
  if (!keys.isWhole)
    hideScores(keys, key, scores);
  return scores;
}

/// One step of a product in registers: for each row of the block `factor(row) * vector` onto its
/// sum.
SmallVector<Value> AttentionKernel::addProducts(ValueRange sums, Value vector,
                                                function_ref<Value(int64_t row)> factor) {
  SmallVector<Value> result;
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  for (auto [r, sum] : llvm::enumerate(sums))
    result.push_back(code.fma(code.broadcast(factor(r), lanes), vector, sum));
  return result;
}

/// Scale and softcap.
Value AttentionKernel::finishScores(Value product) {
  auto splat = [&](double value) { return code.floatSplat(value, shape.lanes); };
  Value score = code.mul(product, splat(op.getScale().convertToDouble()));
  if (double softcap = op.getSoftcap().convertToDouble(); softcap != 0) {
    Value ratio = code.mul(score, splat(1 / softcap));
    score = code.mul(math::TanhOp::create(code, code.getLoc(), ratio), splat(softcap));
  }
  return score;
}

/// Minus infinity for the keys that a row does not see.
void AttentionKernel::hideScores(const Keys &keys, Value key, MutableArrayRef<Value> scores) {
  Value start = code.toInt32(code.add(keys.chunkStart, key));
  Value keyPositions = code.add(code.broadcast(start, shape.lanes), code.iota(shape.lanes));
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value rowPosition = code.loadInt(scratch.positions, code.add(keys.firstRow, r));
    Value position = code.broadcast(rowPosition, shape.lanes);
    Value visible = code.compare(arith::CmpIPredicate::sle, keyPositions, position);
    if (int64_t window = op.getWindow(); window > 0) {
      Value before = code.sub(position, code.intSplat(window, shape.lanes));
      visible = code.both(visible, code.compare(arith::CmpIPredicate::sgt, keyPositions, before));
    }
    scores[r] = code.select(visible, scores[r], code.floatSplat(minusInfinity, shape.lanes));
  }
}

/// From scores to probabilities relative to the new running maximum; returns for each row the
/// factor for older sums.
SmallVector<Value> AttentionKernel::buildSoftmax(const Keys &keys, ValueRange chunkMaxima) {
  Value zero = code.index(0);
  SmallVector<Value> maxima, differences, sums;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value old = code.loadFloat(scratch.maxima, code.add(keys.firstRow, r));
    maxima.push_back(code.maximum(code.maximumLane(chunkMaxima[r]), old));
    differences.push_back(code.sub(old, maxima[r]));
  }
  Value exponentials = code.exp(code.fromLanes(differences));
  SmallVector<Value> factors;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value row = code.add(keys.firstRow, r);
    factors.push_back(code.lane(exponentials, r));
    sums.push_back(code.mul(code.loadFloats(scratch.sums, {row, zero}, shape.lanes),
                            code.broadcast(factors[r], shape.lanes)));
    code.storeFloat(maxima[r], scratch.maxima, row);
  }
  sums = code.loop(firstPanelKey(keys), keys.visible.end, shape.lanes, sums,
                   [&](Value key, ValueRange carried) {
                     SmallVector<Value> next;
                     for (int64_t r = 0; r < shape.rowBlock; ++r)
                       next.push_back(code.add(carried[r], buildProbability(r, key, maxima[r])));
                     return next;
                   });
  for (int64_t r = 0; r < shape.rowBlock; ++r)
    code.storeFloats(sums[r], scratch.sums, {code.add(keys.firstRow, r), zero});
  return factors;
}

Value AttentionKernel::buildProbability(int64_t row, Value key, Value maximum) {
  Value score = code.loadFloats(scratch.scores, {code.index(row), key}, shape.lanes);
  Value probability = code.exp(code.sub(score, code.broadcast(maximum, shape.lanes)));
  code.storeFloats(probability, scratch.scores, {code.index(row), key});
  return probability;
}

/// Adds probability * value for the keys that some row of the block sees. Others are not even read:
/// they may be anything.
void AttentionKernel::buildValues(const Keys &keys, ValueRange factors) {
  code.panels(shape.valueDim, shape.valueLanes, [&](Value column, int64_t lanes) {
    SmallVector<Value> sums;
    for (int64_t r = 0; r < shape.rowBlock; ++r) {
      Value sum = code.loadFloats(scratch.output, {code.add(keys.firstRow, r), column}, lanes);
      sums.push_back(code.mul(sum, code.broadcast(factors[r], lanes)));
    }
    sums = addValues(keys, sums, column, lanes);
    for (int64_t r = 0; r < shape.rowBlock; ++r)
      code.storeFloats(sums[r], scratch.output, {code.add(keys.firstRow, r), column});
  });
}

/// The products with some columns of the values, block by block.
SmallVector<Value> AttentionKernel::addValues(const Keys &keys, ValueRange sums, Value column,
                                              int64_t lanes) {
  SmallVector<Type> types(shape.rowBlock, code.floatVector(lanes));
  Value zero = code.index(0);
  return code.loop(
      zero, code.index(shape.getChunkBlocks()), 1, sums, [&](Value i, ValueRange sums) {
        Value block = code.loadIndex(scratch.blocks, i);
        if (keys.isWhole)
          return addBlockValues(keys, sums, i, block, column, lanes);
        Value exists = code.compare(arith::CmpIPredicate::sge, block, zero);
        return code.choose(
            exists, types, [&] { return addBlockValues(keys, sums, i, block, column, lanes); },
            [&] { return SmallVector<Value>(sums); });
      });
}

SmallVector<Value> AttentionKernel::addBlockValues(const Keys &keys, ValueRange sums, Value i,
                                                   Value block, Value column, int64_t lanes) {
  Value start = code.mul(i, shape.block);
  int64_t keyElements = shape.kvHeads * shape.keyDim * shape.block;
  Value base =
      code.add(code.add(code.mul(kvHead, shape.block * shape.valueDim), column), keyElements);
  Value nextBlock = code.loadIndex(scratch.nextBlocks, i);
  auto addKey = [&](Value key, ValueRange sums) {
    Value offset = code.add(base, code.mul(key, shape.valueDim));
    code.prefetch(cache, {nextBlock, offset});
    Value values = code.loadFloats(cache, {block, offset}, lanes);
    return addProducts(sums, values, [&](int64_t r) {
      return code.loadFloat(scratch.scores, {code.index(r), code.add(start, key)});
    });
  };
  if (keys.isWhole)
    return code.unrolledLoop(shape.block, unrolledSteps, sums, addKey);

  auto bound = [&](Value key, Value least) {
    return code.minimum(code.maximum(code.sub(key, start), least), code.index(shape.block));
  };
  Value from = bound(keys.visible.first, code.index(0));
  if (shape.rowBlocksHaveOneToken())
    return code.loop(from, bound(keys.visible.end, from), 1, sums, addKey);

  // The keys that all rows see are in the middle.
  Value sharedFrom = bound(keys.visible.sharedFirst, from);
  Value sharedTo = bound(keys.visible.sharedEnd, sharedFrom);
  Value to = bound(keys.visible.end, sharedTo);
  auto addKeyWhereVisible = [&](Value key, ValueRange sums) {
    SmallVector<Value> next = addKey(key, sums);
    for (int64_t r = 0; r < shape.rowBlock; ++r)
      next[r] = code.select(seesKey(keys, r, code.add(start, key)), next[r], sums[r]);
    return next;
  };
  SmallVector<Value> result = code.loop(from, sharedFrom, 1, sums, addKeyWhereVisible);
  result = code.loop(sharedFrom, sharedTo, 1, result, addKey);
  return code.loop(sharedTo, to, 1, result, addKeyWhereVisible);
}

/// Whether row `row` of the block sees the key `key` of the chunk.
Value AttentionKernel::seesKey(const Keys &keys, int64_t row, Value key) {
  Value position = code.loadIndex(scratch.positions, code.add(keys.firstRow, row));
  Value distance = code.sub(position, code.add(keys.chunkStart, key));
  Value isSeen = code.compare(arith::CmpIPredicate::sge, distance, code.index(0));
  if (int64_t window = op.getWindow(); window > 0)
    isSeen =
        code.both(isSeen, code.compare(arith::CmpIPredicate::slt, distance, code.index(window)));
  return isSeen;
}
