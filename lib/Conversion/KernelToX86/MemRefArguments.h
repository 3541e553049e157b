//===- MemRefArguments.h - kernels that take pointers and sizes -------------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_MEMREFARGUMENTS_H
#define MOEC_CONVERSION_KERNELTOX86_MEMREFARGUMENTS_H

#include "KernelFunction.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

namespace mlir::moec {

/// Changes `kernel` to take a pointer for each memref, then all dynamic dimensions (i64), scratch (a
/// pointer) and the workgroup (i64).
void flattenSignature(func::FuncOp kernel, const LLVMTypeConverter &converter);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_MEMREFARGUMENTS_H
