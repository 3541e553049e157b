//===- OperatorTable.cpp - which ONNX operators are imported, and by what
//-----------------------===//

#include "OperatorTable.h"

#include "Handlers.h"

namespace mlir::moec::onnx_import {

static constexpr int64_t first = 13, last = 28;

// domain, operator, since, until, handler, attributes.
static const OperatorEntry entries[] = {
    {"", "Abs", first, last, importUnary, ""},
    {"", "Add", first, last, importBinary, ""},
    {"", "And", first, last, importLogical, ""},
    {"", "Cast", first, last, importCast, "to saturate round_mode"},
    {"", "Ceil", first, last, importUnary, ""},
    {"", "Clip", first, last, importClip, ""},
    {"", "Concat", first, last, importConcat, "axis"},
    {"", "Constant", first, last, importConstant, "value value_int value_ints value_float"},
    {"", "ConstantOfShape", first, last, importConstantOfShape, "value"},
    {"", "Cos", first, last, importUnary, ""},
    {"", "Div", first, last, importBinary, ""},
    {"", "Equal", first, last, importComparison, ""},
    {"", "Erf", first, last, importUnary, ""},
    {"", "Exp", first, last, importUnary, ""},
    {"", "Expand", first, last, importExpand, ""},
    {"", "Flatten", first, last, importFlatten, "axis"},
    {"", "Floor", first, last, importUnary, ""},
    {"", "Gather", first, last, importGather, "axis"},
    {"", "GatherElements", first, last, importGatherElements, "axis"},
    {"", "GatherND", first, last, importGatherND, "batch_dims"},
    {"", "Gelu", 20, last, importUnary, "approximate"},
    {"", "Gemm", first, last, importGemm, "alpha beta transA transB"},
    {"", "Greater", first, last, importComparison, ""},
    {"", "GreaterOrEqual", first, last, importComparison, ""},
    {"", "Identity", first, last, importIdentity, ""},
    {"", "LayerNormalization", 17, last, importLayerNormalization, "axis epsilon stash_type"},
    {"", "Less", first, last, importComparison, ""},
    {"", "LessOrEqual", first, last, importComparison, ""},
    {"", "Log", first, last, importUnary, ""},
    {"", "LogSoftmax", first, last, importSoftmax, "axis"},
    {"", "MatMul", first, last, importMatMul, ""},
    {"", "Max", first, last, importBinary, ""},
    {"", "Min", first, last, importBinary, ""},
    {"", "Mul", first, last, importBinary, ""},
    {"", "Neg", first, last, importUnary, ""},
    {"", "Not", first, last, importNot, ""},
    {"", "Or", first, last, importLogical, ""},
    {"", "Pow", first, last, importPow, ""},
    {"", "RMSNormalization", 23, last, importRMSNormalization, "axis epsilon stash_type"},
    {"", "Range", first, last, importRange, ""},
    {"", "Reciprocal", first, last, importUnary, ""},
    {"", "ReduceMax", first, last, importReduce, "axes keepdims noop_with_empty_axes"},
    {"", "ReduceMean", first, last, importReduce, "axes keepdims noop_with_empty_axes"},
    {"", "ReduceMin", first, last, importReduce, "axes keepdims noop_with_empty_axes"},
    {"", "ReduceProd", first, last, importReduce, "axes keepdims noop_with_empty_axes"},
    {"", "ReduceSum", first, last, importReduce, "axes keepdims noop_with_empty_axes"},
    {"", "Relu", first, last, importUnary, ""},
    {"", "Reshape", first, last, importReshape, "allowzero"},
    {"", "Round", first, last, importUnary, ""},
    {"", "Shape", first, last, importShape, "start end"},
    {"", "Sigmoid", first, last, importUnary, ""},
    {"", "Sin", first, last, importUnary, ""},
    {"", "Size", first, last, importSize, ""},
    {"", "Slice", first, last, importSlice, ""},
    {"", "Softmax", first, last, importSoftmax, "axis"},
    {"", "Softplus", first, last, importUnary, ""},
    {"", "Split", first, last, importSplit, "axis num_outputs"},
    {"", "Sqrt", first, last, importUnary, ""},
    {"", "Squeeze", first, last, importSqueeze, "axes"},
    {"", "Sub", first, last, importBinary, ""},
    {"", "Swish", 24, last, importUnary, "alpha"},
    {"", "Tanh", first, last, importUnary, ""},
    {"", "TopK", first, last, importTopK, "axis largest sorted"},
    {"", "Transpose", first, last, importTranspose, "perm"},
    {"", "Unsqueeze", first, last, importUnsqueeze, "axes"},
    {"", "Where", first, last, importWhere, ""},
    {"", "Xor", first, last, importLogical, ""},
};

ArrayRef<OperatorEntry> operatorTable() { return entries; }

const OperatorEntry *findOperator(StringRef domain, StringRef name, int64_t version,
                                  std::string &why) {
  why = "is not supported";
  for (const OperatorEntry &entry : entries) {
    if (entry.domain != domain || entry.name != name)
      continue;
    if (version >= entry.since && version <= entry.until)
      return &entry;
    why = "is supported from version " + std::to_string(entry.since) + " to " +
          std::to_string(entry.until);
  }
  return nullptr;
}

} // namespace mlir::moec::onnx_import
