//===- KernelFunction.cpp - the shape of a kernel function ------------------------------------===//

#include "KernelFunction.h"

using namespace mlir;
using namespace mlir::moec;

LogicalResult mlir::moec::verifyKernelSignature(func::FuncOp kernel) {
  ArrayRef<Type> types = kernel.getArgumentTypes();
  auto scratchType =
      MemRefType::get({ShapedType::kDynamic}, IntegerType::get(kernel.getContext(), 8));
  if (types.size() < 2 || types[types.size() - 2] != scratchType || !types.back().isIndex() ||
      kernel.getNumResults())
    return kernel.emitError() << "kernel '" << kernel.getName() << "' must end its arguments with "
                              << scratchType
                              << " (scratch) and index (workgroup) and have no results, got "
                              << kernel.getFunctionType();
  for (auto [index, type] : llvm::enumerate(types.drop_back(2))) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || !memref.getLayout().isIdentity() || memref.getMemorySpace())
      return kernel.emitError() << "argument " << index << " of kernel '" << kernel.getName()
                                << "' must be a memref with identity layout, got " << type;
  }
  return success();
}
