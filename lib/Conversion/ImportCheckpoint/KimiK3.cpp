//===- KimiK3.cpp - the language model of Kimi K3 and K3.1 ------------------------------------===//
//
// The vision tower is not built: images cannot be read yet, and its tensors are left alone.
//
//===------------------------------------------------------------------------------------------===//

#include "KimiModel.h"
#include "ModelFamilies.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

Value mlir::moec::buildKimiK3(Checkpoint &checkpoint, ModelBuilder &builder) {
  JsonView whole = checkpoint.config();
  KimiConfig config(whole["text_config"], whole);
  if (checkpoint.hasJsonProblems())
    return {};
  config.root = "language_model." + config.root;
  config.head = "language_model." + config.head;
  checkpoint.allowUnused("vision_tower.*");
  checkpoint.allowUnused("mm_projector.*");
  return buildKimiModel(builder, config);
}
