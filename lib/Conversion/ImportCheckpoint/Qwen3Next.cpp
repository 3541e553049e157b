//===- Qwen3Next.cpp - Qwen3-Next (80B-A3B) ---------------------------------------------------===//
//
// See QwenHybrid.h. Tensors of mtp., layers that predict further tokens, are not part of the model.
//
//===------------------------------------------------------------------------------------------===//

#include "ModelFamilies.h"
#include "QwenHybrid.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildQwen3Next(Checkpoint &checkpoint, ModelBuilder &builder) {
  QwenHybridConfig config(checkpoint.config(), /*isGroupedByKeyHead=*/true);
  if (checkpoint.hasJsonProblems())
    return {};
  checkpoint.allowUnused("mtp.*");
  return buildQwenHybrid(builder, config);
}
