//===- Qwen35Moe.cpp - Qwen3.5-MoE (35B-A3B): its text part -----------------------------------===//
//
// See QwenHybrid.h. Rotary sections of the config share frequencies among time, height and width;
// in text these are one position, so that what remains is the plain embedding. Tensors of mtp.,
// layers that predict further tokens, and of model.visual., the image tower, are not part of the
// model.
//
//===------------------------------------------------------------------------------------------===//

#include "ModelFamilies.h"
#include "QwenHybrid.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

Value mlir::moec::buildQwen35Moe(Checkpoint &checkpoint, ModelBuilder &builder) {
  JsonView whole = checkpoint.config(), text = whole.optional("text_config");
  QwenHybridConfig config(whole, /*isGroupedByKeyHead=*/false);
  if (text) {
    config.root = "model.language_model";
    config.tiedEmbeddings =
        whole.optional("tie_word_embeddings").boolean().value_or(config.tiedEmbeddings);
    checkpoint.allowUnused("model.visual.*");
  }
  if (checkpoint.hasJsonProblems())
    return {};
  checkpoint.allowUnused("mtp.*");
  return buildQwenHybrid(builder, config);
}
