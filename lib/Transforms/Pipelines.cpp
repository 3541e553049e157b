//===- Pipelines.cpp - the order of the passes ------------------------------------------------===//

#include "moec/Transforms/Pipelines.h"

#include "moec/Transforms/Passes.h"
#include "moec/Transforms/Raise/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Adds passes unless the options leave them out.
class Optimisations {
public:
  Optimisations(OpPassManager &pm, const PipelineOptions &options) : pm(pm), options(options) {}

  void add(std::unique_ptr<Pass> pass) {
    if (llvm::is_contained(options.disabledPasses, pass->getArgument()))
      return;
    if (pass->getOpName() == ModuleOp::getOperationName())
      pm.addPass(std::move(pass));
    else
      pm.addNestedPass<func::FuncOp>(std::move(pass));
  }

private:
  OpPassManager &pm;
  const PipelineOptions &options;
};

void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

struct PhasePipelineOptions : PassPipelineOptions<PhasePipelineOptions> {
  ListOption<std::string> disable{*this, "disable",
                                  llvm::cl::desc("Optimising passes to leave out")};

  PipelineOptions get() const {
    PipelineOptions options;
    options.disabledPasses.assign(disable.begin(), disable.end());
    return options;
  }
};

} // namespace

std::vector<std::string> mlir::moec::getOptimisingPasses() {
  return {"moec-fuse-residual", "moec-fuse-rotary",      "moec-merge-linears",
          "moec-fuse-norm",     "moec-fuse-elementwise", "moec-deduplicate-kernels",
          "moec-reuse-memory"};
}

void mlir::moec::buildMoePipeline(OpPassManager &pm, const PipelineOptions &options) {
  buildRaisePipeline(pm);
  addCleanup(pm);
  pm.addPass(createVerifyMoe());
}

void mlir::moec::buildOptPipeline(OpPassManager &pm, const PipelineOptions &options) {
  Optimisations optimise(pm, options);
  pm.addPass(createAddSampler());
  addCleanup(pm);
  optimise.add(createFuseResidual());
  optimise.add(createFuseRotary());
  optimise.add(createMergeLinears());
  optimise.add(createFuseNorm());
  pm.addNestedPass<func::FuncOp>(createDecomposeExperts());
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  if (!llvm::is_contained(options.disabledPasses, "moec-fuse-elementwise"))
    pm.addNestedPass<func::FuncOp>(createLinalgElementwiseOpFusionPass());
  addCleanup(pm);
  pm.addPass(createSelectStrategies());
  pm.addPass(createUnifyLayouts());
  pm.addPass(createHoistToLoad());
  addCleanup(pm);
  pm.addPass(createVerifyOpt());
}

void mlir::moec::buildPlanPipeline(OpPassManager &pm, const PipelineOptions &options) {
  Optimisations optimise(pm, options);
  pm.addPass(createFormProgram());
  optimise.add(createDeduplicateKernels());
  PlanMemoryOptions memory;
  memory.reuse = !llvm::is_contained(options.disabledPasses, "moec-reuse-memory");
  pm.addPass(createPlanMemory(memory));
  pm.addPass(createVerifyPlan());
}

void mlir::moec::registerPhasePipelines() {
  static PassPipelineRegistration<PhasePipelineOptions> moe(
      "moec-moe-pipeline", "importer's output -> phase moe",
      [](OpPassManager &pm, const PhasePipelineOptions &options) {
        buildMoePipeline(pm, options.get());
      });
  static PassPipelineRegistration<PhasePipelineOptions> opt(
      "moec-opt-pipeline", "phase moe -> phase opt",
      [](OpPassManager &pm, const PhasePipelineOptions &options) {
        buildOptPipeline(pm, options.get());
      });
  static PassPipelineRegistration<PhasePipelineOptions> plan(
      "moec-plan-pipeline", "phase opt -> phase plan",
      [](OpPassManager &pm, const PhasePipelineOptions &options) {
        buildPlanPipeline(pm, options.get());
      });
}
