#include "VisionTower.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

static constexpr llvm::StringLiteral projectionName = "vision_tower.patch_embed.proj";
static constexpr double rotaryTheta = 10000; // no config names it

bool mlir::moec::hasVisionTower(Checkpoint &checkpoint) {
  return checkpoint.config().optional("vision_config") &&
         checkpoint.hasTensor((projectionName + ".weight").str());
}

namespace {

class VisionTower {
public:
  VisionTower(ModelBuilder &builder, const VisionConfig &config, int64_t textHidden)
      : builder(builder), config(config), textHidden(textHidden),
        headDimension(config.attentionWidth / config.heads) {
    for (int64_t i = 0; i < headDimension / 4; ++i)
      frequencies.push_back(std::pow(rotaryTheta, -4.0 * i / headDimension));
  }

  Value build(const ModelBuilder::ImagePatches &patches) const {
    Value x = embed(patches);
    Value cache = builder.itemCache(config.heads, headDimension);
    std::string encoder = "vision_tower.encoder.";
    for (int64_t block = 0; block < config.layers; ++block) {
      std::string name = encoder + "blocks." + std::to_string(block);
      Value normed = builder.rmsNorm(name + ".norm0", x, config.epsilon);
      x = builder.add(name, x, attend(name, normed, cache, patches));
      normed = builder.rmsNorm(name + ".norm1", x, config.epsilon);
      x = builder.add(name, x, buildDense(name + ".mlp", normed));
    }
    x = builder.rmsNorm(encoder + "final_layernorm", x, config.epsilon);
    return project(builder.mergePatches("vision_tower.merge", x, patches, config.merge));
  }

private:
  Value embed(const ModelBuilder::ImagePatches &patches) const {
    std::string name = projectionName.str();
    int64_t side = config.patch;
    Value matrix = builder.foldedWeight(name + ".weight", {config.hidden, 3, side, side});
    Value pixels = builder.toActivationType(name, patches.pixels);
    return builder.addPositions("vision_tower.patch_embed.pos_emb",
                                builder.product(name, pixels, matrix), patches, config);
  }

  Value attend(const std::string &name, Value x, Value cache,
               const ModelBuilder::ImagePatches &patches) const {
    int64_t width = config.attentionWidth;
    Value all = builder.linear(name + ".wqkv", x, 3 * width, /*hasBias=*/false);
    auto part = [&](int64_t index) {
      return builder.splitHeads(name, builder.slice(name, all, index * width, width), config.heads);
    };
    Value query = builder.rotateInPlane(name, part(0), patches, frequencies);
    Value key = builder.rotateInPlane(name, part(1), patches, frequencies);
    Value attended = builder.itemAttention(name, query, key, part(2), cache, patches,
                                           1 / std::sqrt(double(headDimension)));
    return builder.linear(name + ".wo", builder.mergeHeads(name, attended), config.hidden,
                          /*hasBias=*/false);
  }

  Value buildDense(const std::string &name, Value x) const {
    Value inner = builder.linear(name + ".fc0", x, config.inner, /*hasBias=*/false);
    return builder.linear(name + ".fc1", builder.gelu(name, inner, /*isApproximate=*/true),
                          config.hidden, /*hasBias=*/false);
  }

  Value project(Value merged) const {
    std::string name = "mm_projector.";
    int64_t width = config.merge * config.merge * config.hidden;
    Value x = builder.linear(name + "proj.0", merged, width, /*hasBias=*/false);
    x = builder.gelu(name + "proj.1", x, /*isApproximate=*/false);
    x = builder.linear(name + "proj.2", x, textHidden, /*hasBias=*/false);
    return builder.rmsNorm(name + "post_norm", x, config.projectorEpsilon);
  }

  ModelBuilder &builder;
  const VisionConfig &config;
  int64_t textHidden, headDimension;
  SmallVector<double> frequencies;
};

} // namespace

void mlir::moec::buildVisionTower(ModelBuilder &builder, const VisionConfig &config,
                                  int64_t textHidden) {
  VisionTower tower(builder, config, textHidden);
  builder.imageEncoder(
      config, [&](const ModelBuilder::ImagePatches &patches) { return tower.build(patches); });
}
