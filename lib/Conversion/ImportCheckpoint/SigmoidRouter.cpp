#include "SigmoidRouter.h"

#include "runtime/base/Json.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

static moe::ScoreFunction readScoreFunction(const JsonView &view) {
  auto name = view.string();
  if (name == "softmax")
    return moe::ScoreFunction::softmax;
  if (name == "sqrtsoftplus")
    return moe::ScoreFunction::sqrt_softplus;
  if (name && *name != "sigmoid")
    view.complain("expected 'sigmoid', 'softmax' or 'sqrtsoftplus', found " +
                  moert::inQuotes(*name));
  return moe::ScoreFunction::sigmoid;
}

SigmoidRouter::SigmoidRouter(const JsonView &config) {
  auto find = [&](const char *name, const char *otherName) {
    JsonView view = config.optional(name);
    return view ? view : config.optional(otherName);
  };
  auto require = [&](const char *name, const char *otherName) {
    JsonView view = find(name, otherName);
    return view ? view : config[name]; // complains
  };
  JsonView expertsView = require("n_routed_experts", "num_experts");
  experts = readSize(expertsView, mostExperts);
  JsonView topKView = require("num_experts_per_tok", "num_experts_per_token");
  topK = readSize(topKView, mostExperts);
  JsonView groupsView = find("n_group", "num_expert_group");
  groups = groupsView.integer(1, mostExperts).value_or(1);
  JsonView topGroupsView = config.optional("topk_group");
  topGroups = topGroupsView.integer(1, mostExperts).value_or(groups);
  score = readScoreFunction(find("scoring_func", "moe_router_activation_func"));
  renormalize = find("norm_topk_prob", "moe_renormalize").boolean().value_or(true);
  scale = config["routed_scaling_factor"].number().value_or(1);

  JsonView method = config.optional("topk_method");
  if (auto name = method.string(); name && *name != "noaux_tc")
    method.complain("expected 'noaux_tc', found " + moert::inQuotes(*name));
  if (experts % groups != 0)
    groupsView.complain("expected a divisor of the number of experts, " + std::to_string(experts) +
                        ", found " + std::to_string(groups));
  else if (topGroups > groups)
    topGroupsView.complain("expected at most the number of groups, " + std::to_string(groups) +
                           ", found " + std::to_string(topGroups));
  // Outside of the best groups no expert is chosen.
  else if (int64_t most = experts / groups * topGroups; topK > most)
    topKView.complain("expected at most the number of experts to choose from, " +
                      std::to_string(most) + ", found " + std::to_string(topK));
}

ModelBuilder::Routing SigmoidRouter::build(ModelBuilder &builder, const std::string &name,
                                           Value x) const {
  Value logits =
      builder.linear(name, x, experts, /*hasBias=*/false, Float32Type::get(builder.getContext()));
  ModelBuilder::RouteParameters parameters;
  parameters.score = score;
  parameters.selectionBias = builder.weight(name + ".e_score_correction_bias", {experts});
  parameters.topK = topK;
  parameters.groups = groups;
  parameters.topGroups = topGroups;
  parameters.renormalize = renormalize;
  parameters.scale = scale;
  return builder.route(name, logits, parameters);
}
