//===- FragmentLayout.h - the layouts of register operands, element by element ----------------===//

#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_FRAGMENTLAYOUT_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_FRAGMENTLAYOUT_H

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

namespace mlir::moec::moe {

/// The buffer of blocks in `fragments` or `fragments_of_halves`. It cannot be read back: what a row's
/// other scales were is lost where one of them is NaN.
ReferenceTensor packFragments(const ReferenceBlockTensor &blocks, BlockTensorType type);

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_FRAGMENTLAYOUT_H
