// Weights, globals, layouts, quantised blocks.
#include "MoEModels.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::moec::moe;

static LogicalResult evaluateWeight(WeightOp op, ReferenceFrame &frame) {
  FailureOr<ReferenceTensor> tensor = frame.getInterpreter().readWeight(op);
  if (failed(tensor))
    return failure();
  return frame.set(op.getResult(), std::move(*tensor));
}

static LogicalResult evaluateGlobalLoad(GlobalLoadOp op, ReferenceFrame &frame) {
  auto &globals = frame.getInterpreter().getGlobals();
  auto known = globals.find(op.getGlobal());
  if (known == globals.end())
    return op.emitError() << "while interpreting: global '" << op.getGlobal()
                          << "' was never stored; run the load program first";
  return frame.set(op.getResult(), known->second);
}

static LogicalResult evaluateGlobalStore(GlobalStoreOp op, ReferenceFrame &frame) {
  auto &globals = frame.getInterpreter().getGlobals();
  if (!globals.try_emplace(op.getGlobal(), frame.get(op.getValue())).second)
    return op.emitError() << "while interpreting: global '" << op.getGlobal()
                          << "' is stored a second time";
  return success();
}

static LogicalResult evaluateAssembleBlocks(AssembleBlocksOp op, ReferenceFrame &frame) {
  ReferenceBlockTensor blocks;
  blocks.shape.assign(op.getType().getShape().begin(), op.getType().getShape().end());
  blocks.codes = frame.getTensor(op.getCodes()).shareBytes();
  blocks.scales = frame.getTensor(op.getScales()).shareBytes();
  return frame.set(op.getResult(), std::move(blocks));
}

static LogicalResult evaluateDequantize(DequantizeOp op, ReferenceFrame &frame) {
  const ReferenceBlockTensor &source = frame.get(op.getSource()).getBlocks();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), source.shape);
  if (failed(result))
    return failure();
  int64_t width = source.getRowLength();
  std::vector<float> row(width);
  for (int64_t start = 0; start < result->getSize(); start += width) {
    source.readRow(start / width, row);
    result->writeReals(start, std::vector<double>(row.begin(), row.end()));
  }
  return frame.set(op.getResult(), std::move(*result));
}

static float decode(CodeFormat format, int64_t code) {
  if (format == CodeFormat::int4)
    return float((code & 15) - 8);
  llvm::APFloat value(format == CodeFormat::f8e4m3 ? llvm::APFloat::Float8E4M3FN()
                                                   : llvm::APFloat::Float8E5M2(),
                      llvm::APInt(8, code & 255));
  return value.convertToFloat();
}

static float readScale(const ReferenceTensor &scales, int64_t index) {
  if (scales.getScalarType().isReal())
    return float(scales.getReal(index));
  int64_t byte = scales.getInteger(index) & 255;
  return byte == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, byte - 127);
}

static LogicalResult evaluateDequantizeCodes(DequantizeCodesOp op, ReferenceFrame &frame) {
  const ReferenceTensor &codes = frame.getTensor(op.getCodes());
  const ReferenceTensor &scales = frame.getTensor(op.getScales());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), type.getShape());
  if (failed(result))
    return failure();
  int64_t rows = type.getShape().end()[-2], columns = type.getShape().back();
  int64_t blockRows = op.getBlock()[0], blockColumns = op.getBlock()[1];
  int64_t scaleRows = llvm::divideCeil(rows, blockRows);
  int64_t scaleColumns = llvm::divideCeil(columns, blockColumns);
  constexpr int64_t ofWord = DequantizeCodesOp::int4CodesOfWord;
  for (int64_t i = 0; i < result->getSize(); ++i) {
    int64_t column = i % columns, row = i / columns % rows, matrix = i / columns / rows;
    int64_t code;
    if (op.getFormat() == CodeFormat::int4) {
      int64_t words = llvm::divideCeil(columns, ofWord);
      int64_t word = codes.getInteger((matrix * rows + row) * words + column / ofWord);
      code = word >> (4 * (column % ofWord));
    } else {
      code = codes.getInteger(i);
    }
    int64_t block = (matrix * scaleRows + row / blockRows) * scaleColumns + column / blockColumns;
    float product = decode(op.getFormat(), code) * readScale(scales, block);
    result->writeReals(i, {double(product)});
  }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachWeightModels(MLIRContext *context) {
  attachEvaluation<WeightOp>(
      context, [](WeightOp op, ReferenceFrame &frame) { return evaluateWeight(op, frame); });
  attachEvaluation<GlobalLoadOp>(context, [](GlobalLoadOp op, ReferenceFrame &frame) {
    return evaluateGlobalLoad(op, frame);
  });
  attachEvaluation<GlobalStoreOp>(context, [](GlobalStoreOp op, ReferenceFrame &frame) {
    return evaluateGlobalStore(op, frame);
  });
  attachEvaluation<AssembleBlocksOp>(context, [](AssembleBlocksOp op, ReferenceFrame &frame) {
    return evaluateAssembleBlocks(op, frame);
  });
  attachEvaluation<DequantizeOp>(context, [](DequantizeOp op, ReferenceFrame &frame) {
    return evaluateDequantize(op, frame);
  });
  attachEvaluation<DequantizeCodesOp>(context, [](DequantizeCodesOp op, ReferenceFrame &frame) {
    return evaluateDequantizeCodes(op, frame);
  });
  // A layout says how a value lies in memory, which a ReferenceValue does not show.
  attachEvaluation<RelayoutOp>(context, [](RelayoutOp op, ReferenceFrame &frame) {
    return frame.set(op.getResult(), frame.get(op.getSource()));
  });
}
