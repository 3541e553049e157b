//===- PartitionKernels.h - the code of a bundle in parts
//--------------------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_PARTITIONKERNELS_H
#define MOEC_CONVERSION_KERNELTOX86_PARTITIONKERNELS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::moec {

/// Copies the functions and globals of phase `target` (and nothing else of the module) into modules
/// that can be compiled side by side and linked. The parts depend on the module alone, not on the
/// machine. The first one holds the kernel table.
SmallVector<OwningOpRef<ModuleOp>> partitionKernels(ModuleOp module);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_PARTITIONKERNELS_H
