//===- ModelBuilderRecurrent.cpp - states of fixed size -------------------------------------===//

#include "ModelBuilder.h"

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
