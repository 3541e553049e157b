//===- KimiK3.cpp - Kimi K3 and K3.1 ----------------------------------------------------------===//
//
// K3.1 is K3 with an indexer in each layer of latent attention. A folder without the vision tower,
// or without a config for it, gives the language model alone.
//
//===------------------------------------------------------------------------------------------===//

#include "KimiModel.h"
#include "ModelFamilies.h"
#include "VisionTower.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

namespace {

/// `dsa_config`. No published file with one was at hand: its fields may have any of the names that
/// documents and other models use, and a field of another name is an error.
class SparseAttentionConfig {
public:
  explicit SparseAttentionConfig(const JsonView &view) : view(view) {}

  LightningIndexer read(const KimiConfig &config) {
    int64_t heads = readSize(find({"num_heads", "index_n_heads", "n_heads"}), mostFeatures);
    int64_t dimension = readSize(find({"head_dim", "index_head_dim"}), mostFeatures);
    int64_t topK = readSize(find({"top_k", "topk", "index_topk"}), moe::SelectKeysOp::mostKeys);
    LightningIndexer indexer(heads, dimension, topK);
    indexer.epsilon = config.epsilon;
    checkLayers(find({"layers", "dsa_layers"}), config);
    checkUnknown();
    return indexer;
  }

private:
  /// The field by the first of its names that is there; a missing one is told by the first name.
  JsonView find(std::initializer_list<const char *> names) {
    known.append(names.begin(), names.end());
    for (const char *name : names)
      if (JsonView found = view.optional(name))
        return found;
    return view[*names.begin()];
  }

  void checkLayers(const JsonView &list, const KimiConfig &config) {
    std::vector<int64_t> counts = countLayers(list, config.layers);
    for (int64_t layer = 0; layer < config.layers; ++layer)
      if (counts[layer] != (config.hasLatentAttention[layer] ? 1 : 0))
        return list.complain(
            "expected the layers of latent attention, counted from 1, each once; layer " +
            std::to_string(layer + 1) + " is there " + std::to_string(counts[layer]) + " times");
  }

  void checkUnknown() {
    for (const auto &[name, member] : view.members())
      if (!llvm::is_contained(known, StringRef(name)))
        member.complain("unknown; known are " + llvm::join(known, ", "));
  }

  JsonView view;
  SmallVector<StringRef> known;
};

} // namespace

static Value build(Checkpoint &checkpoint, ModelBuilder &builder, bool isSparse) {
  JsonView whole = checkpoint.config(), text = whole["text_config"];
  KimiConfig config(text, whole);
  JsonView dsa = isSparse ? text["dsa_config"] : text.optional("dsa_config");
  if (dsa.raw() && !dsa)
    dsa.complain("expected an object, found null");
  if (dsa) {
    config.indexer = SparseAttentionConfig(dsa).read(config);
    if (config.latentAttention.queryRank == 0)
      (void)text["q_lora_rank"].integer(1, mostFeatures); // complains: indexers need the latent
  }
  std::optional<VisionConfig> vision;
  if (hasVisionTower(checkpoint))
    vision.emplace(checkpoint, config.vocabulary, config.hidden);
  if (checkpoint.hasJsonProblems())
    return {};
  config.root = "language_model." + config.root;
  config.head = "language_model." + config.head;
  if (!vision) {
    checkpoint.allowUnused("vision_tower.*");
    checkpoint.allowUnused("mm_projector.*");
    return buildKimiModel(builder, config);
  }
  builder.expectImages(config.hidden);
  Value logits = buildKimiModel(builder, config);
  buildVisionTower(builder, *vision, config.hidden);
  return logits;
}

Value mlir::moec::buildKimiK3(Checkpoint &checkpoint, ModelBuilder &builder) {
  return build(checkpoint, builder, /*isSparse=*/false);
}

Value mlir::moec::buildKimiK31(Checkpoint &checkpoint, ModelBuilder &builder) {
  return build(checkpoint, builder, /*isSparse=*/true);
}
