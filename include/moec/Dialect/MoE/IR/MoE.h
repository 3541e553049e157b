//===- MoE.h - the moe dialect ----------------------------------------------------------------===//
//
// Ops, types, attributes and interfaces for Mixture-of-Experts models. See the .td files beside this one, and
// docs/reference/dialect-moe.md, which is generated from them.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_IR_MOE_H
#define MOEC_DIALECT_MOE_IR_MOE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "moec/Dialect/MoE/IR/Real.h"

#include "moec/Dialect/MoE/IR/MoEDialect.h.inc"

#include "moec/Dialect/MoE/IR/MoEEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "moec/Dialect/MoE/IR/MoEAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "moec/Dialect/MoE/IR/MoETypes.h.inc"

#include "moec/Dialect/MoE/IR/MoEInterfaces.h.inc"

#define GET_OP_CLASSES
#include "moec/Dialect/MoE/IR/MoEOps.h.inc"

namespace mlir::moec::moe {

/// The logical shape of a weight: of a ranked tensor or of a block tensor.
ArrayRef<int64_t> getLogicalShape(Type type);

/// The layout of a ranked tensor (its encoding) or of a block tensor; null when there is none.
LayoutAttr getLayout(Type type);

/// Whether a swizzle is one of the two for register operands of Hopper's products of warpgroups.
inline bool isFragments(Swizzle swizzle) {
  return swizzle == Swizzle::fragments || swizzle == Swizzle::fragments_of_halves;
}

/// The same type with another layout (null: none).
Type withLayout(Type type, LayoutAttr layout);

/// The element type and shape of the buffer that holds a value of `type`: bytes for packed block tensors.
MemRefType getStorageType(Type type);

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_IR_MOE_H
