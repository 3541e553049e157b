//===- ModelBuilderRecurrent.cpp - the blocks of linear attention -----------------------------===//

#include "ModelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::moec;

Value ModelBuilder::state(ArrayRef<int64_t> shape, Type elementType) {
  if (!stateSlots)
    stateSlots = addArgument("state_slots", {"sequences"});
  std::string name = "state." + std::to_string(states++);
  argumentAttributes.push_back(
      builder.getDictionaryAttr({builder.getNamedAttr("moe.name", builder.getStringAttr(name))}));
  return step.getBody().front().addArgument(moe::StateType::get(getContext(), shape, elementType),
                                            at(name));
}

Value ModelBuilder::causalConv(StringRef name, Value input, int64_t taps) {
  auto type = cast<RankedTensorType>(input.getType());
  int64_t channels = type.getDimSize(1);
  Value matrix = reshapedWeight((name + ".weight").str(), {channels, 1, taps}, {channels, taps});
  Value window = state({taps - 1, channels}, type.getElementType());
  return moe::CausalConvOp::create(builder, at(name), type, input, matrix, window, positions,
                                   sequenceOffsets, stateSlots, builder.getUnitAttr());
}

Value ModelBuilder::decayGate(StringRef name, Value input, Value aLog, Value bias,
                              std::optional<double> lowerBound) {
  auto bound = lowerBound ? builder.getF64FloatAttr(*lowerBound) : FloatAttr();
  return moe::DecayGateOp::create(builder, at(name), input.getType(), input, aLog, bias, bound);
}

Value ModelBuilder::deltaRule(StringRef name, const DeltaRuleOperands &operands, double scale,
                              double normEpsilon) {
  auto key = cast<RankedTensorType>(operands.key.getType());
  auto value = cast<RankedTensorType>(operands.value.getType());
  int64_t heads = value.getDimSize(1);
  Value memory = state({heads, key.getDimSize(2), value.getDimSize(2)}, builder.getF32Type());
  auto result = RankedTensorType::get(value.getShape(), builder.getF32Type());
  return moe::DeltaRuleOp::create(builder, at(name), result, operands.query, operands.key,
                                  operands.value, operands.decay, operands.beta, memory, positions,
                                  sequenceOffsets, stateSlots, builder.getF64FloatAttr(scale),
                                  builder.getF64FloatAttr(normEpsilon));
}

Value ModelBuilder::gatedRmsNorm(StringRef name, Value input, Value gate,
                                 moe::GateFunction function, double epsilon) {
  auto type = cast<RankedTensorType>(input.getType());
  Value scale = weight((name + ".weight").str(), {type.getShape().back()});
  return moe::GatedRMSNormOp::create(builder, at(name),
                                     RankedTensorType::get(type.getShape(), activationType), input,
                                     moe::GateFunctionAttr::get(getContext(), function), gate,
                                     scale, builder.getF64FloatAttr(epsilon));
}
