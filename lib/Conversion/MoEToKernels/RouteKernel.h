//===- RouteKernel.h - code of one workgroup of routing ---------------------------------------===//
//
// The choice works on ranks: 32-bit integers in the order of the floats that they stand for. An
// expert that has been chosen gets the rank `taken`, below that of minus infinity, so that the same
// search can be repeated; equal ranks leave the lower expert in front.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ROUTEKERNEL_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ROUTEKERNEL_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Target/TargetDescription.h"

namespace mlir::moec {

struct RouteShape {
  RouteShape(moe::RouteOp op, const TargetDescription &target);

  int64_t experts, choices, groups, groupExperts, lanes;
  int64_t paddedExperts, paddedGroups, paddedChoices; ///< whole vectors
  int64_t tileTokens;                                 ///< tokens of a workgroup
  bool limitsGroups;                                  ///< whether some groups are left out
  /// Whether the logits themselves are compared: a softmax has their order, without underflow.
  bool choosesByLogits;
  /// Whether weights are a softmax over the chosen logits.
  bool softmaxOfChosen;
};

/// Scratch memory of a workgroup, for one token at a time.
struct RouteScratch {
  RouteScratch(Builder &builder, const RouteShape &shape, ScratchAllocator allocator);

  int64_t bytes;
  Value logits;     ///< f32 [padded experts]; NaN and padding are minus infinity
  Value scores;     ///< f32 [padded experts]
  Value selection;  ///< f32 [padded experts]: what is compared
  Value ranks;      ///< i32 [padded experts]
  Value groupRanks; ///< i32 [padded groups]
  Value chosen;     ///< f32 [padded choices]: logits or scores of the chosen experts
};

class RouteKernel {
public:
  RouteKernel(CodeBuilder &code, moe::RouteOp op, ValueRange operands, ValueRange results,
              Value scratch, const TargetDescription &target);

  void build(Value workgroup);

private:
  void loadLogits(Value token);
  void buildScores();
  Value scoreOf(Value logits);
  void buildSoftmax();
  void buildSelection();
  void buildRanks();
  Value rankOf(Value selection);

  // Groups.
  void leaveOutGroups();
  Value scoreOfGroup(Value group);
  /// Puts `x` into the pair (largest, second largest).
  std::pair<Value, Value> insert(Value x, Value largest, Value second);

  /// The first of the largest ranks; it becomes `taken`.
  Value takeLargest(Value ranks, int64_t count);
  void chooseExperts(Value token);
  void buildWeights(Value token);
  Value sumOfChosen();
  void replaceChosenByExponentials();

  CodeBuilder &code;
  moe::RouteOp op;
  RouteShape shape;
  Value logits, bias, weights, indices;
  RouteScratch scratch;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ROUTEKERNEL_H
