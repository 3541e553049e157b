// The parts of the tensor family that have files of their own.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_TENSORMODELS_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_TENSORMODELS_H

namespace mlir {
class MLIRContext;
}

namespace mlir::moec::moe {

/// extract_slice, insert_slice, concat, pad.
void attachSliceModels(MLIRContext *context);
/// gather, scatter.
void attachGatherModels(MLIRContext *context);

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_TENSORMODELS_H
