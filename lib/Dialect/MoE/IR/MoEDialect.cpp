#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::moec::moe;

#include "moec/Dialect/MoE/IR/MoEDialect.cpp.inc"

#include "moec/Dialect/MoE/IR/MoEInterfaces.cpp.inc"

void MoEDialect::initialize() {
  registerOperations();
  registerAttributes();
  registerTypes();
}
