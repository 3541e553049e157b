//===- VisionTower.h - MoonViT and its projector, the eyes of Kimi K3 -------------------------===//
//
//   x = patches * projection + positions (+ time, where an item has several frames)
//   per block:  x = x + wo(attention(rotated wqkv(rms_norm(x))))     # over all patches of the item
//               x = x + fc1(gelu(fc0(rms_norm(x))))
//   merged = mean over frames of rms_norm(x), neighbouring patches one behind the other
//   embeddings = rms_norm(projection(gelu(projection(merged))))
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_VISIONTOWER_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_VISIONTOWER_H

#include "ModelBuilder.h"
#include "VisionConfig.h"

namespace mlir::moec {

/// Whether the checkpoint has one: a config for it, and its tensors.
bool hasVisionTower(Checkpoint &checkpoint);

/// Adds the entry that makes embeddings of `textHidden` features from an image.
void buildVisionTower(ModelBuilder &builder, const VisionConfig &config, int64_t textHidden);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_VISIONTOWER_H
