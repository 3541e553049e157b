//===- VisionConfig.h - what a folder says of a model's eyes ----------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_VISIONCONFIG_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_VISIONCONFIG_H

#include "Checkpoint.h"

namespace mlir::moec {

/// Problems become complaints of the config, and stand-ins are read in their place.
struct VisionConfig {
  // The tower.
  int64_t patch;                 ///< pixels of a patch's side
  int64_t hidden, layers, heads; ///< of the encoder
  int64_t attentionWidth;        ///< of all heads together
  int64_t inner;                 ///< of the encoder's dense layers
  int64_t gridRows, gridColumns; ///< of the learned position embeddings
  int64_t frames;                ///< most of one item
  int64_t merge;                 ///< patches of a side that become one embedding
  double epsilon = 0x1p-23;      ///< of the norms, which have that of f32: no config names it
  double projectorEpsilon;
  int64_t placeholder; ///< the token that stands for an image

  // How images become patches.
  int64_t mostPatches = 65536; ///< of an image
  int64_t mostPatchesOfSide = 512;
  std::vector<double> mean{0.5, 0.5, 0.5}, deviation{0.5, 0.5, 0.5};

  /// From config.json and, where it is there, preprocessor_config.json. The vocabulary and the
  /// hidden size are the text model's.
  VisionConfig(Checkpoint &checkpoint, int64_t vocabulary, int64_t textHidden);

private:
  void readTower(const moert::JsonView &config, int64_t textHidden);
  void readProcessor(const moert::JsonView &processor);
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_VISIONCONFIG_H
