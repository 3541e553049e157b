// Values as text for FileCheck, and tensors from and to .npy files.
#ifndef MOEC_TOOLS_MOEC_INTERPRET_PRINTING_H
#define MOEC_TOOLS_MOEC_INTERPRET_PRINTING_H

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include "runtime/base/Status.h"

namespace moec {

/// One line with the type and shape, then one line a row of the last dimension. Numbers are printed
/// so that reading them back gives the same; a value whose type has a layout is printed as it lies
/// in memory.
void printValue(llvm::raw_ostream &stream, llvm::StringRef title,
                const mlir::moec::moe::ReferenceValue &value, mlir::Type type);

/// The elements of the file as a tensor of `type`'s element type; the shape comes from the file.
moert::Result<mlir::moec::moe::ReferenceTensor> readTensor(const std::string &path,
                                                           mlir::RankedTensorType type);

moert::Status writeTensor(const std::string &path, const mlir::moec::moe::ReferenceTensor &tensor);

} // namespace moec

#endif // MOEC_TOOLS_MOEC_INTERPRET_PRINTING_H
