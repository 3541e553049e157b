//===- KimiLinear.cpp - Kimi-Linear (48B-A3B) -------------------------------------------------===//

#include "KimiModel.h"
#include "ModelFamilies.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildKimiLinear(Checkpoint &checkpoint, ModelBuilder &builder) {
  KimiConfig config(checkpoint.config(), checkpoint.config());
  if (checkpoint.hasJsonProblems())
    return {};
  return buildKimiModel(builder, config);
}
