// Passes on moe and plan programs. One file each under lib/Transforms; Pipelines.cpp alone orders them.
#ifndef MOEC_TRANSFORMS_PASSES_TD
#define MOEC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===------------------------------------------------------------------------------------------===//
// Phase opt
//===------------------------------------------------------------------------------------------===//

def AddSampler : Pass<"moec-add-sampler", "ModuleOp"> {
  let summary = "gives a language model an entry that chooses tokens from its logits";
  let description = [{
    Required. In a module with `moe.language_model` the entry `sample`, of one moe.sample, joins the model's own, and the
    attribute names it as `sampler`. A module whose attribute names one already stays as it is.
  }];
  let dependentDialects = ["moe::MoEDialect", "func::FuncDialect"];
}

def FuseResidual : Pass<"moec-fuse-residual"> {
  let summary = "adds a residual stream inside the op that makes the other summand";
  let description = [{
    `arith.addf` of a tensor and a result whose only use it is becomes the residual operand of the op that makes the result,
    where that op has AcceptsResidualOpInterface and none yet.
  }];
  let statistics = [Statistic<"fused", "residuals-fused", "additions moved into their producers">];
}

def FuseRotary : Pass<"moec-fuse-rotary"> {
  let summary = "applies rotary embeddings where queries and keys are read";
  let description = [{
    A moe.rope whose only use is the rotated operand of an op with AcceptsRotaryOpInterface at the same positions becomes that
    op's attribute.
  }];
  let statistics = [Statistic<"fused", "rotary-fused", "rotary embeddings moved into their users">];
}

def FuseNorm : Pass<"moec-fuse-norm"> {
  let summary = "applies RMS norms while products read their input";
  let description = [{
    A moe.rms_norm whose users all have AcceptsNormOpInterface and take it as their normalised operand is computed inside them.
    Norms with other users stay: computing them twice would cost more than the launch saves.
  }];
  let statistics = [Statistic<"fused", "norms-fused", "norms moved into their users">];
}

def MergeLinears : Pass<"moec-merge-linears"> {
  let summary = "makes one product of several that read the same input";
  let description = [{
    moe.linear ops of the same input, norm and weight type become one whose weight is the concatenation of theirs, and slices of
    its result. The concatenation is done once, in the load program.
  }];
  let statistics = [Statistic<"merged", "linears-merged", "products that became part of another">];
  let dependentDialects = ["tensor::TensorDialect"];
}

def DecomposeExperts : Pass<"moec-decompose-experts"> {
  let summary = "experts become sorting, two grouped products and a weighted sum";
  let description = [{
    Required. The activation goes into the first product.
  }];
  let statistics = [Statistic<"decomposed", "experts-decomposed", "moe.experts ops decomposed">];
  let dependentDialects = ["tensor::TensorDialect"];
}

def SelectStrategies : Pass<"moec-select-strategies", "ModuleOp"> {
  let summary = "chooses the kernel strategy of each op";
  let description = [{
    Required. Each op takes the best of the strategies that support it for the module's target.
  }];
  let statistics = [
    Statistic<"chosen", "strategies-chosen", "ops that got a strategy">,
  ];
}

def UnifyLayouts : Pass<"moec-unify-layouts", "ModuleOp"> {
  let summary = "gives weights the layouts that the strategies ask for";
  let description = [{
    Required. A strategy names the layout of each of its weight operands; a moe.relayout is put in between, one for each pair of
    value and layout, and pairs that cancel are removed. Relayouts of weights move to the load program; what stays in a step is
    counted.
  }];
  let statistics = [
    Statistic<"inserted", "relayouts-inserted", "relayouts of weights">,
    Statistic<"removed", "relayouts-removed", "relayouts that cancelled or were shared">,
    Statistic<"remaining", "relayouts-in-steps", "relayouts that a step would have to do">,
  ];
}

def HoistToLoad : Pass<"moec-hoist-to-load", "ModuleOp"> {
  let summary = "computes once, at load time, whatever depends on weights only";
  let description = [{
    Required: steps cannot read a quantised weight in a strategy's layout before the load program has made it. Creates the
    function `load`; each value that a step needs becomes a moe.global.
  }];
  let statistics = [
    Statistic<"hoisted", "ops-hoisted", "ops moved to the load program">,
    Statistic<"globals", "globals", "values that the load program hands to the steps">,
  ];
  let dependentDialects = ["func::FuncDialect"];
}

def VerifyMoe : Pass<"moec-verify-moe", "ModuleOp"> {
  let summary = "checks that a module is of phase moe";
}

def VerifyOpt : Pass<"moec-verify-opt", "ModuleOp"> {
  let summary = "checks that a module is of phase opt";
  let description = [{
    No moe.experts and no block tensor without a layout is left in a step, every strategy exists and supports its op.
  }];
}

//===------------------------------------------------------------------------------------------===//
// Phase plan
//===------------------------------------------------------------------------------------------===//

def FormProgram : Pass<"moec-form-program", "ModuleOp"> {
  let summary = "entries become plan.programs, their ops kernels";
  let description = [{
    Required. Each entry becomes a flat list of launches over buffers. An op with a strategy becomes a kernel of its own; other
    ops become generic kernels together with the cheap ops that feed them. Reshapes become other views of the same buffer.
  }];
  let statistics = [
    Statistic<"launches", "launches", "launches of all programs">,
    Statistic<"views", "views", "reshapes that cost nothing">,
  ];
  let dependentDialects = ["plan::PlanDialect", "bufferization::BufferizationDialect", "func::FuncDialect"];
}

def DeduplicateKernels : Pass<"moec-deduplicate-kernels", "ModuleOp"> {
  let summary = "layers that do the same share one kernel";
  let statistics = [Statistic<"removed", "kernels-removed", "kernels that were copies of another">];
}

def PlanMemory : Pass<"moec-plan-memory", "ModuleOp"> {
  let summary = "places every temporary buffer in an arena by its lifetime";
  let description = [{ Required. }];
  let options = [
    Option<"reuse", "reuse", "bool", "true", "let buffers share bytes when they are not alive together">,
  ];
  let statistics = [
    Statistic<"buffers", "buffers", "buffers placed">,
    Statistic<"saved", "bytes-saved", "bytes saved by sharing, at scale 1">,
  ];
}

def VerifyPlan : Pass<"moec-verify-plan", "ModuleOp"> {
  let summary = "checks that a module is of phase plan";
  let description = [{
    Every buffer has a placement inside its arena and a lifetime that covers its uses; buffers that are alive at the same time
    share no byte; every launched kernel exists.
  }];
}

#endif
