// The experts, as one op and as the three steps that it is made of.
#ifndef MOEC_DIALECT_MOE_IR_EXPERTOPS_TD
#define MOEC_DIALECT_MOE_IR_EXPERTOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_ExpertsOp : MoE_Op<"experts", [Pure, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<AcceptsResidualOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "a mixture of gated experts";
  let description = [{
    For token `t` and its choices `j` with expert `e = indices[t, j]`:

    ```
    a      = gate_up[e] x[t] + gate_up_bias[e]                       # [2 I], split into gate and up as the activation says
    y_j    = down[e] activation(gate, up) + down_bias[e]             # [H], f32
    out[t] = sum_j weights[t, j] * y_j + residual[t]
    ```
    The activation's result is rounded to the input's element type before the second product. Choices with a negative expert
    are skipped.

    Constraints: input `[T, H]`, indices and weights `[T, k]`, gate_up `[E, 2 I, H]`, down `[E, H', I]`, biases `[E, 2 I]` and
    `[E, H']`, result and residual `[T, H']`.
  }];
  let arguments = (ins
    MoE_FloatTensor2D:$input, MoE_IndexTensor2D:$indices, MoE_F32Tensor2D:$weights,
    MoE_DenseOrBlockWeight:$gate_up, MoE_DenseOrBlockWeight:$down,
    Optional<MoE_FloatTensor2D>:$gate_up_bias, Optional<MoE_FloatTensor2D>:$down_bias,
    Optional<MoE_FloatTensor2D>:$residual,
    MoE_ActivationAttr:$activation);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $input `to` $indices `,` $weights `gate_up` `(` $gate_up `:` type($gate_up) `)` `down` `(` $down `:` type($down) `)`
    (`gate_up_bias` `(` $gate_up_bias^ `:` type($gate_up_bias) `)`)? (`down_bias` `(` $down_bias^ `:` type($down_bias) `)`)?
    (`residual` `(` $residual^ `:` type($residual) `)`)? $activation attr-dict `:`
    type($input) `,` type($indices) `,` type($weights) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_GateOp : MoE_Op<"gate", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "a gated activation, between the products of a dense layer";
  let description = [{
    `result = activation(gate, up)`, computed in f32 and rounded once. Experts have their activation within; this is for layers and
    shared experts that every token goes through.

    Constraints: gate, up and result of one shape `[T, I]`; which rows of a weight are gates does not count here, so the activation
    is not interleaved.

    Example: `%h = moe.gate %g, %u <silu> : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x64xbf16>`
  }];
  let arguments = (ins MoE_FloatTensor2D:$gate, MoE_FloatTensor2D:$up, MoE_ActivationAttr:$activation);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $gate `,` $up $activation attr-dict `:` type($gate) `,` type($up) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_GroupedLinearOp : MoE_Op<"grouped_linear", [Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "one product for each expert with the rows that were routed to it";
  let description = [{
    For each expert `e` and each `i` in `[offsets[e], offsets[e + 1])`:

    ```
    row    = gather ? input[pairs[i] / top_k] : input[i]
    a      = weight[e] row + bias[e]
    value  = activation ? activation(gate(a), up(a)) : a
    result[scatter ? pairs[i] : i] = value
    ```
    Rows of the result that no pair names are undefined.

    Constraints: input `[T, K]` with gather, else `[T * top_k, K]`; weight `[E, N, K]`; bias `[E, N]`; offsets i32 `[E + 1]`;
    pairs i32 `[T * top_k]`; result `[T * top_k, N]`, with an activation `[T * top_k, N / 2]`.
  }];
  let arguments = (ins
    MoE_FloatTensor2D:$input, MoE_IndexTensor1D:$offsets, MoE_IndexTensor1D:$pairs,
    MoE_DenseOrBlockWeight:$weight, Optional<MoE_FloatTensor2D>:$bias,
    I64Attr:$top_k, OptionalAttr<MoE_ActivationAttr>:$activation, UnitAttr:$gather, UnitAttr:$scatter,
    OptionalAttr<StrAttr>:$strategy);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $input `by` $offsets `,` $pairs `weight` `(` $weight `:` type($weight) `)` (`bias` `(` $bias^ `:` type($bias) `)`)?
    attr-dict `:` type($input) `,` type($offsets) `,` type($pairs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_CombineOp : MoE_Op<"combine", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<AcceptsResidualOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "weighted sum of the experts' outputs";
  let description = [{
    `result[t] = residual[t] + sum_j weights[t, j] * input[t * k + j]`, j ascending, over the choices whose expert is not
    negative.
    Constraints: input `[T * k, H]`, weights f32 and indices i32 `[T, k]`, result and residual `[T, H]`.
  }];
  let arguments = (ins MoE_FloatTensor2D:$input, MoE_F32Tensor2D:$weights, MoE_IndexTensor2D:$indices,
                       Optional<MoE_FloatTensor2D>:$residual);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $input `,` $weights `,` $indices (`residual` `(` $residual^ `:` type($residual) `)`)? attr-dict `:`
    type($input) `,` type($weights) `,` type($indices) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
