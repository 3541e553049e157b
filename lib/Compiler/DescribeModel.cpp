#include "DescribeModel.h"

#include "moec/Compiler/Segments.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::moec;

void mlir::moec::describeModel(ModuleOp module) {
  auto language = module->getAttrOfType<DictionaryAttr>("moe.language_model");
  if (!language)
    return;
  auto entry = language.getAs<StringAttr>("entry");
  auto step = module.lookupSymbol<func::FuncOp>(entry ? entry.getValue() : "step");
  if (!step)
    return;
  DenseSet<int64_t> layers;
  int64_t expertLayers = 0, experts = 0, perToken = 0;
  step.walk([&](Operation *op) {
    if (auto weight = dyn_cast<moe::WeightOp>(op)) {
      if (std::optional<int64_t> layer = parseLayer(weight.getName()))
        layers.insert(*layer);
    } else if (auto mixture = dyn_cast<moe::ExpertsOp>(op)) {
      ++expertLayers;
      experts = std::max(experts, moe::getLogicalShape(mixture.getGateUp().getType())[0]);
      perToken = std::max(perToken, mixture.getIndices().getType().getDimSize(1));
    }
  });
  Builder builder(module.getContext());
  NamedAttrList attributes(language);
  for (auto [name, value] : {std::pair("layers", int64_t(layers.size())),
                             {"expert_layers", expertLayers},
                             {"experts", experts},
                             {"experts_per_token", perToken}})
    attributes.set(name, builder.getI64IntegerAttr(value));
  module->setAttr("moe.language_model", attributes.getDictionary(module.getContext()));
}
