//===- Pipelines.h - the phases as pass pipelines ---------------------------------------------===//
//
// lib/Transforms/Pipelines.cpp is the only place that orders passes of the phases opt and plan; the phases kernel and target
// are in CompileKernels.h.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_TRANSFORMS_PIPELINES_H
#define MOEC_TRANSFORMS_PIPELINES_H

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace mlir::moec {

struct PipelineOptions {
  /// Names of optimising passes ("moec-fuse-norm") that are left out. Required passes cannot be.
  std::vector<std::string> disabledPasses;
};

/// The passes that disabledPasses may name, in the order in which they run.
std::vector<std::string> getOptimisingPasses();

/// Brings what an importer wrote to phase moe: raises decomposed patterns. Does nothing to a module that is there already.
void buildMoePipeline(OpPassManager &pm, const PipelineOptions &options = {});

/// moe -> opt.
void buildOptPipeline(OpPassManager &pm, const PipelineOptions &options = {});

/// opt -> plan.
void buildPlanPipeline(OpPassManager &pm, const PipelineOptions &options = {});

/// Registers moec-moe-pipeline, moec-opt-pipeline and moec-plan-pipeline.
void registerPhasePipelines();

} // namespace mlir::moec

#endif // MOEC_TRANSFORMS_PIPELINES_H
