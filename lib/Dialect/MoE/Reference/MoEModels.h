// The moe ops, one file a family, and what they share.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_MOEMODELS_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_MOEMODELS_H

#include "Models.h"

namespace mlir::moec::moe {

void attachWeightModels(MLIRContext *context);
void attachLinearModels(MLIRContext *context);
void attachNormModels(MLIRContext *context);
void attachRotaryModels(MLIRContext *context);
void attachAttentionModels(MLIRContext *context);
void attachRecurrentModels(MLIRContext *context);
void attachResidualModels(MLIRContext *context);
void attachCompressionModels(MLIRContext *context);
void attachHyperConnectionModels(MLIRContext *context);
void attachRoutingModels(MLIRContext *context);
void attachExpertModels(MLIRContext *context);
void attachSamplingModels(MLIRContext *context);
void attachSelectKeysModel(MLIRContext *context);
void attachVisionModels(MLIRContext *context);

/// The sum of products in double precision.
double dot(ArrayRef<float> a, ArrayRef<float> b);

/// Rows of a weight, plain or block-quantised, along the last dimension; leading dimensions are
/// counted through.
class WeightRows {
public:
  WeightRows(ReferenceFrame &frame, Value weight);
  int64_t getRowLength() const { return length; }
  void read(int64_t row, MutableArrayRef<float> result) const;

private:
  const ReferenceTensor *dense = nullptr;
  const ReferenceBlockTensor *blocks = nullptr;
  int64_t length = 0;
};

/// `row` normalised as `#moe.rms_norm` says, before rounding. `weight` may be empty.
std::vector<double> normalizeRow(ArrayRef<float> row, ArrayRef<float> weight, double epsilon,
                                 bool unitOffset);

/// Rotates the heads of one token, `heads` x `dim` numbers, in place and without rounding.
void rotateHeads(MutableArrayRef<double> heads, int64_t dim, int64_t position, RotaryAttr rotary);

/// The activation of a gate and an up value.
double activate(ActivationAttr activation, double gate, double up);

/// What an activation makes of a row of gates and ups.
std::vector<double> activateRow(ActivationAttr activation, ArrayRef<double> row);

/// Numbers rounded to an element type, as floats.
std::vector<float> roundTo(Type elementType, ArrayRef<double> values);

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_MOEMODELS_H
