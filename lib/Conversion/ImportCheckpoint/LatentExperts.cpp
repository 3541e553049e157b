#include "LatentExperts.h"

#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

// The publishers' code multiplies by it where the config has no number.
static constexpr double defaultBeta = 1;

KimiActivation::KimiActivation(const JsonView &config) {
  JsonView view = config["hidden_act"];
  auto name = view.string();
  isSitu = name == "situ";
  if (name && !isSitu && *name != "silu")
    view.complain("expected 'silu' or 'situ', found " + moert::inQuotes(*name));
  if (!isSitu)
    return;
  beta = readPositive(config.optional("activation_situ_beta"), defaultBeta);
  if (JsonView linear = config.optional("activation_situ_linear_beta"))
    linearBeta = readPositive(linear, defaultBeta);
}

moe::ActivationAttr KimiActivation::get(MLIRContext *context) const {
  return isSitu
             ? moe::ActivationAttr::get(context, moe::ActivationKind::situ, linearBeta, beta, 0.0,
                                        /*interleaved=*/false)
             : moe::ActivationAttr::get(context, moe::ActivationKind::silu, 1.0, 0.0, 0.0,
                                        /*interleaved=*/false);
}

LatentExperts::LatentExperts(const JsonView &config, const TransformerConfig &transformer)
    : router(config), activation(config), hidden(transformer.hidden),
      inner(readSize(config["moe_intermediate_size"], mostFeatures)),
      latent(config.optional("routed_expert_hidden_size").integer(1, mostFeatures).value_or(0)),
      hasNorm(config.optional("latent_moe_use_norm").boolean().value_or(false)),
      epsilon(transformer.epsilon) {
  JsonView shared = config.optional("num_shared_experts");
  if (!shared)
    shared = config.optional("n_shared_experts");
  sharedExperts = shared.integer(0, mostExperts).value_or(0);
}

Value LatentExperts::build(ModelBuilder &builder, const std::string &name, Value x) const {
  moe::ActivationAttr function = activation.get(builder.getContext());
  ModelBuilder::Routing routing = router.build(builder, name + ".gate", x);
  Value input = x;
  if (latent > 0)
    input = builder.linear(name + ".routed_expert_down_proj", x, latent, /*hasBias=*/false);
  SwigluExperts experts{router.experts, latent > 0 ? latent : hidden, inner, "w1", "w3", "w2",
                        function};
  Value result = experts.build(builder, name + ".experts", input, routing);
  if (latent > 0) {
    if (hasNorm)
      result = builder.rmsNorm(name + ".routed_expert_norm", result, epsilon);
    result = builder.linear(name + ".routed_expert_up_proj", result, hidden, /*hasBias=*/false);
  }
  if (sharedExperts > 0)
    result = builder.add(
        name, result,
        builder.gatedLayer(name + ".shared_experts", x, sharedExperts * inner, function));
  return result;
}
