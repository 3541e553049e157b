//===- AttentionRows.cpp - queries into scratch memory, results out of it ---------------------===//

#include "AttentionKernel.h"

using namespace mlir;
using namespace mlir::moec;

/// The running maximum of a row that has seen nothing: below every score, and finite so that
/// differences are defined.
static constexpr double lowestMaximum = -1e30;

void AttentionKernel::prepareRows(const Run &run) {
  code.loop(run.first, run.end, 1, [&](Value token) {
    Value position = code.loadInt(positions, token);
    scratch.rotary.setPosition(code, position);
    Value firstRow = code.mul(code.sub(token, run.first), headCount);
    code.loop(code.index(0), headCount, 1, [&](Value i) {
      prepareRow(token, code.add(firstHead, i), code.add(firstRow, i), position);
    });
  });
  padRows(run);
}

void AttentionKernel::prepareRow(Value token, Value head, Value row, Value position) {
  code.panels(shape.keyDim, 16, [&](Value i, int64_t width) {
    code.storeFloats(code.loadFloats(query, {token, head, i}, width), scratch.query, {row, i});
  });
  scratch.rotary.rotate(code, scratch.query, row);
  code.panels(shape.valueDim, 16, [&](Value i, int64_t width) {
    code.storeFloats(code.floatSplat(0, width), scratch.output, {row, i});
  });
  code.storeInt(position, scratch.positions, row);
  startSoftmax(row, head);
}

/// A sink counts as a key without a value that every row has seen before all others.
void AttentionKernel::startSoftmax(Value row, Value head) {
  Value lowest = code.float32(lowestMaximum);
  Value maximum = lowest, sum = code.floatSplat(0, shape.lanes);
  if (sinks) {
    Value sink = code.loadFloat(sinks, head);
    SmallVector<float> first(shape.lanes, 0.0f);
    first[0] = 1.0f;
    Value one = arith::ConstantOp::create(
        code, code.getLoc(),
        DenseElementsAttr::get(code.floatVector(shape.lanes), ArrayRef<float>(first)));
    Value counts = code.compare(arith::CmpFPredicate::UGE, sink, lowest);
    maximum = code.select(counts, sink, lowest);
    sum = code.select(counts, one, sum);
  }
  code.storeFloat(maximum, scratch.maxima, row);
  code.storeFloats(sum, scratch.sums, {row, code.index(0)});
}

/// The last row block is filled with rows that compute zeros: they see what the last row sees.
void AttentionKernel::padRows(const Run &run) {
  Value blocks = code.divide(code.add(run.rows, shape.rowBlock - 1), shape.rowBlock);
  Value position = code.loadInt(positions, code.sub(run.end, code.index(1)));
  code.loop(run.rows, code.mul(blocks, shape.rowBlock), 1, [&](Value row) {
    for (auto [buffer, columns] :
         {std::pair(scratch.query, shape.keyDim), std::pair(scratch.output, shape.valueDim),
          std::pair(scratch.sums, shape.lanes)})
      code.panels(columns, 16, [&, buffer = buffer](Value i, int64_t width) {
        code.storeFloats(code.floatSplat(0, width), buffer, {row, i});
      });
    code.storeFloat(code.float32(0), scratch.maxima, row);
    code.storeInt(position, scratch.positions, row);
  });
}

void AttentionKernel::finishRows(const Run &run) {
  Value zero = code.index(0);
  code.loop(zero, run.rows, 1, [&](Value row) {
    Value sum = code.sumLanes(code.loadFloats(scratch.sums, {row, zero}, shape.lanes));
    // A row that saw nothing has sums of zero, and zeros are its result.
    Value sawNothing = code.compare(arith::CmpFPredicate::OEQ, sum, code.float32(0));
    Value factor = code.divide(code.float32(1), code.select(sawNothing, code.float32(1), sum));
    Value token = code.add(run.first, code.divide(row, headCount));
    Value head = code.add(firstHead, code.remainder(row, headCount));
    code.panels(shape.valueDim, 16, [&](Value i, int64_t width) {
      Value values = code.loadFloats(scratch.output, {row, i}, width);
      code.storeFloats(code.mul(values, code.broadcast(factor, width)), result, {token, head, i});
    });
  });
}
