#include "Models.h"

using namespace mlir;
using namespace mlir::moec::moe;

void mlir::moec::moe::registerReferenceModels(DialectRegistry &registry) {
  registerArithModels(registry);
  registerMathModels(registry);
  registerLinalgModels(registry);
  registerTensorModels(registry);
  registerControlFlowModels(registry);
  registerMoEModels(registry);
}
