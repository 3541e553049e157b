//===- RaisePipeline.cpp - the order of the raising passes
//---------------------------------------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void moec::buildRaisePipeline(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createFoldUnitBatch());
  functions.addPass(createRaiseRope());
  functions.addPass(createRaiseRouting());
  functions.addPass(createRaiseExperts());
  functions.addPass(createRaiseEmbedding());
  functions.addPass(createFoldUnitBatch());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  manager.addPass(createRaiseLanguageModel());
  OpPassManager &cleanup = manager.nest<func::FuncOp>();
  cleanup.addPass(createFoldMovement());
  cleanup.addPass(createFoldUnitBatch());
  cleanup.addPass(createCanonicalizerPass());
  cleanup.addPass(createCSEPass());
  manager.addPass(createSetActivationType());
}

void moec::registerRaisePasses() {
  registerMoecRaisePasses();
  PassPipelineRegistration<>("moec-raise", "Raises an imported graph to moe ops",
                             [](OpPassManager &manager) { buildRaisePipeline(manager); });
}
