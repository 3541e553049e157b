// From router logits to experts and weights.
#ifndef MOEC_DIALECT_MOE_IR_ROUTINGOPS_TD
#define MOEC_DIALECT_MOE_IR_ROUTINGOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_RouteOp : MoE_Op<"route", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "chooses experts and their weights";
  let description = [{
    1. `s = softmax(logits)`, `sigmoid(logits)` or `sqrt(softplus(logits))` over all E experts. A logit that is NaN counts as
       -inf; where all are -inf a softmax is 0.
    2. `sel = s + selection_bias` (used for the choice only).
    3. With `groups > 1` and `top_groups < groups`: the experts form `groups` contiguous groups; a group's score is the sum of
       its two largest `sel`; outside the `top_groups` best groups `sel = -inf`.
    4. `indices` = the `top_k` largest `sel`, largest first; equal values: the lower expert first. A `sel` that is NaN
       counts as -inf.
    5. `weights = s[indices]`; with `renormalize` divided by their sum (+ 1e-20); multiplied by `scale` last.

    Softmax with `renormalize` equals a softmax over the chosen logits, which is how kernels compute it.

    Constraints: logits f32 `[T, E]`; `1 <= top_k <= E`; groups divide E; `1 <= top_groups <= groups`; bias `[E]`.
  }];
  let arguments = (ins
    MoE_F32Tensor2D:$logits, Optional<MoE_FloatTensor1D>:$selection_bias,
    MoE_ScoreFunctionAttr:$score, I64Attr:$top_k,
    DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$top_groups,
    UnitAttr:$renormalize, DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs MoE_F32Tensor2D:$weights, MoE_IndexTensor2D:$indices);
  let assemblyFormat = [{
    $score `(` $logits `)` (`bias` `(` $selection_bias^ `:` type($selection_bias) `)`)? attr-dict `:` type($logits) `->`
    type($weights) `,` type($indices)
  }];
  let hasVerifier = 1;
}

def MoE_HashRouteOp : MoE_Op<"hash_route", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "experts by token id, and their weights";
  let description = [{
    1. `indices[t, j] = table[tokens[t], j]`: which experts a token goes to follows from its id alone. Ids and experts are clamped
       to what there is.
    2. `s = sigmoid(logits)` or `sqrt(softplus(logits))`; `weights = s[indices]`, with `renormalize` divided by their sum
       (+ 1e-20); multiplied by `scale` last.

    Constraints: logits f32 `[T, E]`, tokens `[T]`, table i32 or i64 `[ids, k]`; a score of one logit each, not a softmax.

    Example: `%w, %i = moe.hash_route sqrt_softplus(%logits) of %tokens in %table {renormalize, scale = 1.5 : f64} :
    tensor<?x8xf32>, tensor<?xi32>, tensor<512x2xi64> -> tensor<?x2xf32>, tensor<?x2xi32>`
  }];
  let arguments = (ins
    MoE_F32Tensor2D:$logits, MoE_IndexTensor1D:$tokens, 2DTensorOf<[I32, I64]>:$table,
    MoE_ScoreFunctionAttr:$score, UnitAttr:$renormalize, DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs MoE_F32Tensor2D:$weights, MoE_IndexTensor2D:$indices);
  let assemblyFormat = [{
    $score `(` $logits `)` `of` $tokens `in` $table attr-dict `:` type($logits) `,` type($tokens) `,` type($table) `->`
    type($weights) `,` type($indices)
  }];
  let hasVerifier = 1;
}

def MoE_GroupTokensOp : MoE_Op<"group_tokens", [Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "sorts (token, choice) pairs by expert";
  let description = [{
    Pair `p = t * k + j` is choice `j` of token `t`. `pairs` lists all pairs with a valid expert, ordered by expert and then by
    pair; those of expert `e` are at `[offsets[e], offsets[e + 1])`. Pairs whose expert is negative (not on this rank) are left
    out; entries of `pairs` from `offsets[experts]` on are undefined.

    Constraints: indices i32 `[T, k]`, offsets i32 `[experts + 1]`, pairs i32 `[T * k]`.
  }];
  let arguments = (ins MoE_IndexTensor2D:$indices);
  let results = (outs MoE_IndexTensor1D:$offsets, MoE_IndexTensor1D:$pairs);
  let assemblyFormat = "$indices attr-dict `:` type($indices) `->` type($offsets) `,` type($pairs)";
  let hasVerifier = 1;
}

#endif
