//===- Plan.h - the plan dialect --------------------------------------------------------------===//
//
// The flat program that a bundle holds. See PlanBase.td for the idea and docs/reference/dialect-plan.md.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_PLAN_IR_PLAN_H
#define MOEC_DIALECT_PLAN_IR_PLAN_H

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "moec/Dialect/Plan/IR/PlanDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "moec/Dialect/Plan/IR/PlanAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "moec/Dialect/Plan/IR/PlanTypes.h.inc"

#define GET_OP_CLASSES
#include "moec/Dialect/Plan/IR/PlanOps.h.inc"

#endif // MOEC_DIALECT_PLAN_IR_PLAN_H
