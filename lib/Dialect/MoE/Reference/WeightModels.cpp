// Weights, globals, layouts, quantised blocks.
#include "MoEModels.h"

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
  // A layout says how a value lies in memory, which a ReferenceValue does not show.
  attachEvaluation<RelayoutOp>(context, [](RelayoutOp op, ReferenceFrame &frame) {
    return frame.set(op.getResult(), frame.get(op.getSource()));
  });
}
