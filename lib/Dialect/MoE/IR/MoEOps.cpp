#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::moec::moe;

#define GET_OP_CLASSES
#include "moec/Dialect/MoE/IR/MoEOps.cpp.inc"

void MoEDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "moec/Dialect/MoE/IR/MoEOps.cpp.inc"
      >();
}
