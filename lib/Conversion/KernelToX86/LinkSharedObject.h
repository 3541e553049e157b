//===- LinkSharedObject.h - from an object file to a shared object ----------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_LINKSHAREDOBJECT_H
#define MOEC_CONVERSION_KERNELTOX86_LINKSHAREDOBJECT_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::moec {

/// Links relocatable ELF objects to a shared object that needs no other library and exports
/// `exportedSymbol` alone. The same objects give the same bytes. On failure `error` holds what the
/// linker said.
FailureOr<std::string> linkSharedObject(ArrayRef<SmallVector<char>> objects,
                                        StringRef exportedSymbol, std::string &error);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_LINKSHAREDOBJECT_H
