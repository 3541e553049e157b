// plan.program -> bundle.proto's Program.
#ifndef MOEC_LIB_CONVERSION_EXPORTBUNDLE_MANIFESTPROGRAM_H
#define MOEC_LIB_CONVERSION_EXPORTBUNDLE_MANIFESTPROGRAM_H

#include "WeightTable.h"

#include "moec/Dialect/Plan/IR/Plan.h"

#include "runtime/abi/bundle.pb.h"

namespace mlir::moec {

/// Fills `program`. `globals` gives the index of each moe.global in the variant.
LogicalResult convertProgram(plan::ProgramOp op, const llvm::StringMap<unsigned> &globals,
                             WeightTable &weights, ::moec::bundle::Program &program);

/// The manifest's name for an element type; reports one that the format does not know.
FailureOr<::moec::bundle::ElementType> convertElementType(Location loc, Type type);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_EXPORTBUNDLE_MANIFESTPROGRAM_H
