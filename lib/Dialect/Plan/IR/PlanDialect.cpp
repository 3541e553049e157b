#include "moec/Dialect/Plan/IR/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::moec::plan;

#include "moec/Dialect/Plan/IR/PlanDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "moec/Dialect/Plan/IR/PlanAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "moec/Dialect/Plan/IR/PlanTypes.cpp.inc"

void PlanDialect::initialize() {
  registerOperations();
  registerAttributes();
  registerTypes();
}

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "moec/Dialect/Plan/IR/PlanAttrs.cpp.inc"
      >();
}

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "moec/Dialect/Plan/IR/PlanTypes.cpp.inc"
      >();
}
