#include "VisionConfig.h"

#include "TransformerConfig.h"

namespace mlir::moec {

using moert::JsonView;

static constexpr int64_t mostSide = 1 << 16, mostMerge = 16;
// Their product is the size of a table that is made before any tensor is looked at.
static constexpr int64_t mostFrames = 1024, mostTowerFeatures = 1 << 16;

/// The member by the first of its names that is there.
static JsonView findOptional(const JsonView &config, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (JsonView found = config.optional(name))
      return found;
  return config.optional(*names.begin());
}

/// The same; a missing one is told by the first name.
static JsonView find(const JsonView &config, std::initializer_list<const char *> names) {
  JsonView found = findOptional(config, names);
  return found ? found : config[*names.begin()];
}

static void expect(const JsonView &config, const char *name, std::string_view expected) {
  JsonView view = config.optional(name);
  if (auto found = view.string(); found && *found != expected)
    view.complain("expected " + moert::inQuotes(expected) + ", found " + moert::inQuotes(*found));
}

static void expectFalse(const JsonView &config, const char *name) {
  JsonView view = config.optional(name);
  if (view.boolean().value_or(false))
    view.complain("expected false: a vision tower with biases is not supported");
}

static void expectSize(const JsonView &config, const char *name, int64_t expected,
                       const char *what) {
  JsonView view = config.optional(name);
  if (auto found = view.integer(); found && *found != expected)
    view.complain(std::string("expected ") + what + ", " + std::to_string(expected) + ", found " +
                  std::to_string(*found));
}

/// A number, or two that are equal.
static int64_t readSquare(const JsonView &view) {
  if (!view || !view.raw()->is_array())
    return readSize(view, mostMerge);
  std::vector<JsonView> sides = view.elements();
  if (sides.size() != 2 || *sides[0].raw() != *sides[1].raw()) {
    view.complain("expected two equal numbers, found " + view.raw()->dump().substr(0, 100));
    return 1;
  }
  return readSize(sides[0], mostMerge);
}

VisionConfig::VisionConfig(Checkpoint &checkpoint, int64_t vocabulary, int64_t textHidden) {
  JsonView whole = checkpoint.config(), config = whole["vision_config"];
  JsonView token = whole.optional("media_placeholder_token_id");
  if (!token)
    token = config.optional("media_placeholder_token_id");
  if (!token)
    token = whole["media_placeholder_token_id"]; // complains
  placeholder = token.integer(0, vocabulary - 1).value_or(0);
  readTower(config, textHidden);
  JsonView processor = checkpoint.json("preprocessor_config.json");
  // The publisher's processors have what belongs to images in an object of its own.
  JsonView inner = processor.optional("media_proc_cfg");
  readProcessor(inner ? inner : processor);
}

void VisionConfig::readTower(const JsonView &config, int64_t textHidden) {
  patch = readSize(config["patch_size"], 1024);
  hidden = readSize(find(config, {"vt_hidden_size", "hidden_size"}), mostTowerFeatures);
  layers = readSize(find(config, {"vt_num_hidden_layers", "num_hidden_layers"}), mostLayers);
  JsonView headsView = find(config, {"vt_num_attention_heads", "num_attention_heads"});
  heads = readSize(headsView, mostFeatures);
  inner = readSize(find(config, {"vt_intermediate_size", "intermediate_size"}), mostFeatures);
  attentionWidth = config.optional("qkv_hidden_size").integer(1, mostFeatures).value_or(hidden);
  if (attentionWidth % heads != 0 || attentionWidth / heads % 4 != 0)
    headsView.complain("expected heads that have a multiple of 4 of the " +
                       std::to_string(attentionWidth) + " features of the attention each, found " +
                       std::to_string(heads) + " heads");
  if (hidden % 2 != 0)
    find(config, {"vt_hidden_size", "hidden_size"})
        .complain("expected an even number, found " + std::to_string(hidden));
  gridRows = readSize(config["init_pos_emb_height"], mostSide);
  gridColumns = readSize(config["init_pos_emb_width"], mostSide);
  frames = readSize(config["init_pos_emb_time"], mostFrames);
  merge = readSquare(config["merge_kernel_size"]);
  projectorEpsilon = readPositive(config.optional("projector_ln_eps"), 1e-5);
  expect(config, "pos_emb_type", "divided_fixed");
  expect(config, "pos_emb_interpolation_mode", "bilinear");
  expect(config, "norm_type", "rmsnorm");
  expect(config, "mlp_type", "mlp2");
  expect(config, "activation_func", "gelu_pytorch_tanh");
  expect(config, "merge_type", "sd2_tpool");
  expect(config, "mm_projector_type", "patchmergerv2");
  expect(config, "projector_hidden_act", "gelu");
  for (const char *bias : {"attn_bias", "linear_bias", "patch_embed_proj_bias"})
    expectFalse(config, bias);
  expectSize(config, "mm_hidden_size", hidden, "the tower's hidden size");
  expectSize(config, "text_hidden_size", textHidden, "the text model's hidden size");
}

void VisionConfig::readProcessor(const JsonView &processor) {
  if (!processor)
    return;
  mostPatches = findOptional(processor, {"in_patch_limit", "max_patches"})
                    .integer(merge * merge, 1 << 24)
                    .value_or(mostPatches);
  JsonView side = processor.optional("patch_limit_on_one_side");
  if (!side)
    side = processor.optional("size").optional("max_height");
  mostPatchesOfSide = side.integer(merge, mostSide).value_or(mostPatchesOfSide);
  expectSize(processor, "patch_size", patch, "vision_config.patch_size");
  if (JsonView view = findOptional(processor, {"merge_kernel_size", "merge_size"}))
    if (int64_t found = readSquare(view); found != merge)
      view.complain("expected vision_config.merge_kernel_size, " + std::to_string(merge) +
                    ", found " + std::to_string(found));
  auto readColours = [&](const char *name, std::vector<double> &values, bool arePositive) {
    JsonView view = processor.optional(name);
    if (!view)
      return;
    std::vector<JsonView> members = view.elements();
    if (members.size() != values.size())
      return view.complain("expected three numbers, one a colour, found " +
                           view.raw()->dump().substr(0, 100));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = arePositive ? readPositive(members[i], values[i])
                              : members[i].number().value_or(values[i]);
  };
  readColours("image_mean", mean, /*arePositive=*/false);
  readColours("image_std", deviation, /*arePositive=*/true);
}

} // namespace mlir::moec
