//===- AttentionProducts.cpp - scores, softmax and products with values of one chunk ----------===//
//
// All for one block of rows (`shape.rowBlock`, unrolled, their sums in registers) and one chunk of
// keys.
//
//===------------------------------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

static Value rowAt(CodeBuilder &code, Value firstRow, int64_t r) { return code.add(firstRow, r); }

/// Scores of the chunk into scratch; returns for each row its largest, lane by lane.
SmallVector<Value> AttentionKernel::buildScores(Value firstRow, Value chunkStart) {
  SmallVector<Value> lowest(shape.rowBlock,
                            code.floatSplat(-std::numeric_limits<double>::infinity(), shape.lanes));
  SmallVector<Type> types(shape.rowBlock, code.floatVector(shape.lanes));
  int64_t panelsPerBlock = shape.block / shape.lanes;
  return code.loop(
      code.index(0), code.index(shape.getChunkPanels()), 1, lowest,
      [&](Value panel, ValueRange maxima) -> SmallVector<Value> {
        Value block = code.loadIndex(scratch.blocks, code.divide(panel, panelsPerBlock));
        Value exists = code.compare(arith::CmpIPredicate::sge, block, code.index(0));
        SmallVector<Value> scores = code.choose(
            exists, types, [&] { return buildScorePanel(firstRow, chunkStart, panel, block); },
            [&] { return lowest; });
        SmallVector<Value> larger;
        for (int64_t r = 0; r < shape.rowBlock; ++r) {
          code.storeFloats(scores[r], scratch.scores,
                           {code.index(r), code.mul(panel, shape.lanes)});
          larger.push_back(code.maximum(scores[r], maxima[r]));
        }
        return larger;
      });
}

/// Scores of one vector of keys.
SmallVector<Value> AttentionKernel::buildScorePanel(Value firstRow, Value chunkStart, Value panel,
                                                    Value block) {
  Value slot = code.remainder(code.mul(panel, shape.lanes), shape.block);
  Value base = code.add(code.mul(kvHead, shape.keyDim * shape.block), slot);
  SmallVector<Value> zeros(shape.rowBlock, code.floatSplat(0, shape.lanes));
  SmallVector<Value> products =
      code.loop(code.index(0), code.index(shape.keyDim), 1, zeros,
                [&](Value i, ValueRange sums) -> SmallVector<Value> {
                  Value keys = code.loadFloats(
                      cache, {block, code.add(base, code.mul(i, shape.block))}, shape.lanes);
                  SmallVector<Value> next;
                  for (int64_t r = 0; r < shape.rowBlock; ++r) {
                    Value element = code.loadFloat(scratch.query, {rowAt(code, firstRow, r), i});
                    next.push_back(code.fma(code.broadcast(element, shape.lanes), keys, sums[r]));
                  }
                  return next;
                });
  Value start = code.toInt32(code.add(chunkStart, code.mul(panel, shape.lanes)));
  Value keyPositions = code.add(code.broadcast(start, shape.lanes), code.iota(shape.lanes));
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value position = code.loadInt(scratch.positions, rowAt(code, firstRow, r));
    products[r] = finishScores(products[r], keyPositions, position);
  }
  return products;
}

/// Scale, softcap and mask.
Value AttentionKernel::finishScores(Value product, Value keyPositions, Value rowPosition) {
  auto splat = [&](double value) { return code.floatSplat(value, shape.lanes); };
  Value score = code.mul(product, splat(op.getScale().convertToDouble()));
  if (double softcap = op.getSoftcap().convertToDouble(); softcap != 0) {
    Value ratio = code.mul(score, splat(1 / softcap));
    score = code.mul(math::TanhOp::create(code, code.getLoc(), ratio), splat(softcap));
  }
  return code.select(isVisible(keyPositions, rowPosition), score,
                     splat(-std::numeric_limits<double>::infinity()));
}

Value AttentionKernel::isVisible(Value keyPositions, Value rowPosition) {
  Value position = code.broadcast(rowPosition, shape.lanes);
  Value visible = code.compare(arith::CmpIPredicate::sle, keyPositions, position);
  if (int64_t window = op.getWindow(); window > 0) {
    Value last = code.sub(position, code.intSplat(window, shape.lanes));
    visible = code.both(visible, code.compare(arith::CmpIPredicate::sgt, keyPositions, last));
  }
  return visible;
}

/// From scores to probabilities relative to the new running maximum; returns for each row the
/// factor for older sums.
SmallVector<Value> AttentionKernel::buildSoftmax(Value firstRow, ValueRange chunkMaxima) {
  SmallVector<Value> maxima, differences;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value old = code.loadFloat(scratch.maxima, rowAt(code, firstRow, r));
    maxima.push_back(code.maximum(code.maximumLane(chunkMaxima[r]), old));
    differences.push_back(code.sub(old, maxima[r]));
  }
  Value factors = code.exp(code.fromLanes(differences));
  SmallVector<Value> result;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value row = rowAt(code, firstRow, r), zero = code.index(0);
    result.push_back(code.lane(factors, r));
    Value sum = code.mul(code.loadFloats(scratch.sums, {row, zero}, shape.lanes),
                         code.broadcast(result[r], shape.lanes));
    Value maximum = code.broadcast(maxima[r], shape.lanes);
    sum = code.loop(zero, code.index(shape.chunk), shape.lanes, {sum},
                    [&](Value key, ValueRange carried) -> SmallVector<Value> {
                      Value score =
                          code.loadFloats(scratch.scores, {code.index(r), key}, shape.lanes);
                      Value probability = code.exp(code.sub(score, maximum));
                      code.storeFloats(probability, scratch.scores, {code.index(r), key});
                      return {code.add(carried[0], probability)};
                    })
              .front();
    code.storeFloats(sum, scratch.sums, {row, zero});
    code.storeFloat(maxima[r], scratch.maxima, row);
  }
  return result;
}

/// Adds probability * value for the keys that some row of the block sees. Others are not even read:
/// they may be anything.
void AttentionKernel::buildValues(Value firstRow, Value chunkStart, ValueRange factors) {
  Value lowest, highest;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value position = code.loadIndex(scratch.positions, rowAt(code, firstRow, r));
    lowest = r == 0 ? position : code.minimum(lowest, position);
    highest = r == 0 ? position : code.maximum(highest, position);
  }
  Value zero = code.index(0), chunk = code.index(shape.chunk);
  Value endKey = code.minimum(code.sub(code.add(highest, 1), chunkStart), chunk);
  Value firstKey = zero;
  if (int64_t window = op.getWindow(); window > 0)
    firstKey = code.maximum(code.sub(code.add(lowest, 1 - window), chunkStart), zero);
  code.panels(shape.valueDim, shape.valueLanes, [&](Value column, int64_t lanes) {
    buildValuePanel(firstRow, chunkStart, factors, column, lanes, firstKey, endKey);
  });
}

void AttentionKernel::buildValuePanel(Value firstRow, Value chunkStart, ValueRange factors,
                                      Value column, int64_t lanes, Value firstKey, Value endKey) {
  SmallVector<Value> sums;
  for (int64_t r = 0; r < shape.rowBlock; ++r) {
    Value sum = code.loadFloats(scratch.output, {rowAt(code, firstRow, r), column}, lanes);
    sums.push_back(code.mul(sum, code.broadcast(factors[r], lanes)));
  }
  SmallVector<Type> types(shape.rowBlock, code.floatVector(lanes));
  int64_t keyElements = shape.kvHeads * shape.keyDim * shape.block;
  Value base =
      code.add(code.add(code.mul(kvHead, shape.block * shape.valueDim), column), keyElements);
  Value zero = code.index(0), blockTokens = code.index(shape.block);

  auto addBlock = [&](Value i, Value block, ValueRange sums) {
    Value start = code.mul(i, shape.block);
    Value from = code.maximum(code.sub(firstKey, start), zero);
    Value to = code.minimum(code.sub(endKey, start), blockTokens);
    return code.loop(from, to, 1, sums, [&](Value key, ValueRange sums) -> SmallVector<Value> {
      Value values =
          code.loadFloats(cache, {block, code.add(base, code.mul(key, shape.valueDim))}, lanes);
      SmallVector<Value> next;
      for (int64_t r = 0; r < shape.rowBlock; ++r) {
        Value probability = code.loadFloat(scratch.scores, {code.index(r), code.add(start, key)});
        next.push_back(code.fma(code.broadcast(probability, lanes), values, sums[r]));
      }
      return next;
    });
  };
  sums = code.loop(zero, code.index(shape.getChunkBlocks()), 1, sums,
                   [&](Value i, ValueRange sums) -> SmallVector<Value> {
                     Value block = code.loadIndex(scratch.blocks, i);
                     Value exists = code.compare(arith::CmpIPredicate::sge, block, zero);
                     return code.choose(
                         exists, types, [&] { return addBlock(i, block, sums); },
                         [&] { return SmallVector<Value>(sums); });
                   });
  for (int64_t r = 0; r < shape.rowBlock; ++r)
    code.storeFloats(sums[r], scratch.output, {rowAt(code, firstRow, r), column});
}
