//===- Layout.h - tensors in the memory order of a layout -------------------------------------===//
//
// A ReferenceValue holds logical elements. These functions give the buffer that a value of a type
// with a `#moe.layout` lies in, as getStorageType describes it, and read it back.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_LAYOUT_H
#define MOEC_DIALECT_MOE_REFERENCE_LAYOUT_H

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include <string>

namespace mlir::moec::moe {

/// The buffer of `value`, which is a tensor or a block tensor of the logical shape of `type`.
/// Padding is zero; in MXFP4 panels code 0 and scale byte 127. Fails with `problem` set when the
/// layout does not suit the type.
FailureOr<ReferenceTensor> packLayout(const ReferenceValue &value, Type type, std::string &problem);

/// The value that lies in `buffer`; `shape` is its logical shape where `type` is dynamic.
FailureOr<ReferenceValue> unpackLayout(const ReferenceTensor &buffer, Type type,
                                       ArrayRef<int64_t> shape, std::string &problem);

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_REFERENCE_LAYOUT_H
