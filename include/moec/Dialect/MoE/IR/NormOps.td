// Normalisation.
#ifndef MOEC_DIALECT_MOE_IR_NORMOPS_TD
#define MOEC_DIALECT_MOE_IR_NORMOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_RMSNormOp : MoE_Op<"rms_norm", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "root-mean-square norm over the last dimension";
  let description = [{
    `result = input * rsqrt(mean(input^2) + epsilon) * w` in f32, rounded once; `w` is the weight, `1 + weight` with
    `unit_offset`, 1 without a weight.
  }];
  let arguments = (ins MoE_FloatTensor:$input, Optional<MoE_FloatTensor1D>:$weight, F64Attr:$epsilon,
                       UnitAttr:$unit_offset);
  let results = (outs MoE_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def MoE_LayerNormOp : MoE_Op<"layer_norm", [Pure, AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "layer norm over the last dimension";
  let description = [{
    `result = (input - mean) * rsqrt(variance + epsilon) * weight + bias` in f32, rounded once.
  }];
  let arguments = (ins MoE_FloatTensor:$input, Optional<MoE_FloatTensor1D>:$weight, Optional<MoE_FloatTensor1D>:$bias,
                       F64Attr:$epsilon);
  let results = (outs MoE_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def MoE_GatedRMSNormOp : MoE_Op<"gated_rms_norm", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "root-mean-square norm over the last dimension, then a gate";
  let description = [{
    `result = input * rsqrt(mean(input^2) + epsilon) * weight * f(gate)` in f32, rounded once; `f(g)` is `sigmoid(g)` or, with
    `silu`, `g * sigmoid(g)`. The norm comes before the gate. Without a weight it is 1.

    Constraints: input, gate and result have one shape; weight `[last dimension]`.

    Example: `%y = moe.gated_rms_norm %x by sigmoid(%g : tensor<?x3x32xbf16>) weight(%w : tensor<32xf32>) {epsilon = 1.0e-05 : f64}
    : tensor<?x3x32xf32> -> tensor<?x3x32xbf16>`
  }];
  let arguments = (ins MoE_FloatTensor:$input, MoE_GateFunctionAttr:$function, MoE_FloatTensor:$gate,
                       Optional<MoE_FloatTensor1D>:$weight, F64Attr:$epsilon);
  let results = (outs MoE_FloatTensor:$result);
  let assemblyFormat = [{
    $input `by` $function `(` $gate `:` type($gate) `)` (`weight` `(` $weight^ `:` type($weight) `)`)? attr-dict `:`
    type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
