#include "OutputRows.h"

#include "GatedActivation.h"

using namespace mlir;
using namespace mlir::moec;

OutputWriter::OutputWriter(const WeightPanels &weight, const RowChunks &chunks,
                           moe::ActivationAttr activation)
    : weight(weight), chunks(chunks), activation(activation) {}

void OutputWriter::allocate(ScratchAllocator &allocator, Type f32) {
  biasRows = allocator.allocate({chunks.getSumPanels() * panelRows}, f32);
  part = allocator.allocate({panelRows}, f32);
}

void OutputWriter::loadBias(CodeBuilder &code, Value bias, ValueRange prefix, Value chunk) {
  hasBias = true;
  Value rows = code.index(weight.getRows());
  chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value count) {
    code.loop(code.index(0), count, 1, [&](Value i) {
      Value first = code.mul(code.add(panel, i), panelRows);
      Value to = code.mul(code.add(sum, i), panelRows);
      Value whole = code.compare(arith::CmpIPredicate::sle, code.add(first, panelRows), rows);
      auto at = [&](Value row) {
        SmallVector<Value> indices(prefix);
        indices.push_back(row);
        return indices;
      };
      auto nothing = [] { return SmallVector<Value>(); };
      code.choose(
          whole, {},
          [&] {
            code.storeFloats(loadWidened(code, bias, at(first), panelRows), biasRows, to);
            return nothing();
          },
          [&] {
            code.loop(code.index(0), code.sub(rows, first), 1, [&](Value lane) {
              Value value = loadWidened(code, bias, at(code.add(first, lane)));
              code.storeFloat(value, biasRows, code.add(to, lane));
            });
            return nothing();
          });
    });
  });
}

void OutputWriter::write(CodeBuilder &code, const TokenBlock &block, Value chunk, Value token,
                         Value result, Value row) const {
  Value firstColumn = code.mul(chunk, chunks.getChunkOutputs());
  Value end = code.minimum(code.add(firstColumn, chunks.getChunkOutputs()),
                           code.index(chunks.getOutputs()));
  auto load = [&](Value q) {
    Value at = code.mul(code.add(code.mul(q, block.tokens), token), panelRows);
    Value sum = code.loadFloats(block.sums, at, panelRows);
    if (!hasBias)
      return sum;
    return code.add(sum, code.loadFloats(biasRows, code.mul(q, panelRows), panelRows));
  };
  auto writeAt = [&](Value column, auto store) {
    Value vector = code.divide(code.sub(column, firstColumn), panelRows);
    auto [gate, up] = chunks.loadOutputs(code, vector, load);
    Value value = activation ? buildActivation(code, activation, gate, up) : gate;
    (this->*store)(code, value, result, row, column);
  };

  Value width = code.sub(end, firstColumn);
  Value whole = code.add(firstColumn, code.mul(code.divide(width, panelRows), panelRows));
  code.loop(firstColumn, whole, panelRows,
            [&](Value column) { writeAt(column, &OutputWriter::writeVector); });
  if (chunks.getOutputs() % panelRows != 0)
    code.when(code.compare(arith::CmpIPredicate::slt, whole, end),
              [&] { writeAt(whole, &OutputWriter::writePart); });
}

void OutputWriter::writeVector(CodeBuilder &code, Value value, Value result, Value row,
                               Value column) const {
  if (residual)
    value = code.add(value, loadWidened(code, residual, {row, column}, panelRows));
  storeRounded(code, value, result, {row, column});
}

/// The last columns of a row, fewer than a vector: one by one.
void OutputWriter::writePart(CodeBuilder &code, Value value, Value result, Value row,
                             Value column) const {
  code.storeFloats(value, part, code.index(0));
  code.loop(0, chunks.getOutputs() % panelRows, 1, [&](Value lane) {
    Value at = code.add(column, lane);
    Value one = code.loadFloat(part, lane);
    if (residual)
      one = code.add(one, loadWidened(code, residual, {row, at}));
    storeRounded(code, one, result, {row, at});
  });
}
