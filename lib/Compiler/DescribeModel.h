// What a language model is made of, for people to read.
#ifndef MOEC_LIB_COMPILER_DESCRIBEMODEL_H
#define MOEC_LIB_COMPILER_DESCRIBEMODEL_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::moec {

/// Adds to the attribute `moe.language_model` of a module of phase moe, where it has one: `layers`,
/// `expert_layers`, `experts` and `experts_per_token`. Layers are told by the names of their weights.
void describeModel(ModuleOp module);

} // namespace mlir::moec

#endif // MOEC_LIB_COMPILER_DESCRIBEMODEL_H
