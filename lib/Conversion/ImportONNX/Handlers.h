//===- Handlers.h - the handlers of ONNX operators
//----------------------------------------------===//
//
// One function for each operator (or for a family that differs in the element function only),
// grouped by file. The table in OperatorTable.cpp says which versions and attributes each one
// honours.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_HANDLERS_H
#define MOEC_CONVERSION_IMPORTONNX_HANDLERS_H

#include "NodeImporter.h"

namespace mlir::moec::onnx_import {

// Elementwise.cpp
LogicalResult importBinary(NodeImporter &node);     // Add, Sub, Mul, Div, Min, Max of two
LogicalResult importComparison(NodeImporter &node); // Equal, Less, ...
LogicalResult importLogical(NodeImporter &node);    // And, Or, Xor
LogicalResult importUnary(NodeImporter &node);      // Exp, Sigmoid, ...
LogicalResult importPow(NodeImporter &node);
LogicalResult importNot(NodeImporter &node);
LogicalResult importClip(NodeImporter &node);
LogicalResult importWhere(NodeImporter &node);
LogicalResult importCast(NodeImporter &node);
LogicalResult importIdentity(NodeImporter &node);
/// Gives output 0 the value of an input.
LogicalResult importIdentityOf(NodeImporter &node, size_t input);

// ShapeOperators.cpp
LogicalResult importConstant(NodeImporter &node);
LogicalResult importConstantOfShape(NodeImporter &node);
LogicalResult importShape(NodeImporter &node);
LogicalResult importSize(NodeImporter &node);
LogicalResult importRange(NodeImporter &node);

// Movement.cpp
LogicalResult importReshape(NodeImporter &node);
LogicalResult importFlatten(NodeImporter &node);
LogicalResult importSqueeze(NodeImporter &node);
LogicalResult importUnsqueeze(NodeImporter &node);
LogicalResult importExpand(NodeImporter &node);
LogicalResult importConcat(NodeImporter &node);
LogicalResult importSplit(NodeImporter &node);
LogicalResult importSlice(NodeImporter &node);
LogicalResult importTranspose(NodeImporter &node);

// Indexing.cpp
LogicalResult importGather(NodeImporter &node);
LogicalResult importGatherElements(NodeImporter &node);
LogicalResult importGatherND(NodeImporter &node);
LogicalResult importTopK(NodeImporter &node);

// Contractions.cpp
LogicalResult importMatMul(NodeImporter &node);
LogicalResult importGemm(NodeImporter &node);

// Reductions.cpp
LogicalResult
importReduce(NodeImporter &node); // ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceMean
LogicalResult importSoftmax(NodeImporter &node); // Softmax, LogSoftmax

// Norms.cpp
LogicalResult importRMSNormalization(NodeImporter &node);
LogicalResult importLayerNormalization(NodeImporter &node);

} // namespace mlir::moec::onnx_import

#endif
