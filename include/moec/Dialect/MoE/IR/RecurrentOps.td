// Linear attention: convolution and delta rule, whose past is a state of fixed size.
#ifndef MOEC_DIALECT_MOE_IR_RECURRENTOPS_TD
#define MOEC_DIALECT_MOE_IR_RECURRENTOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_CausalConvOp : MoE_Op<"causal_conv", [AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "depthwise causal convolution along each sequence";
  let description = [{
    `result[t, c] = f(sum over j < size of weight[c, j] * x[t - (size - 1) + j, c])` in f32, rounded once. `x` is the sequence's
    input: this step's rows and before them the `size - 1` rows of its slot, or zeros where the sequence begins in this step.
    `f` is the identity or, with `silu`, `y * sigmoid(y)`. Afterwards the slot holds the last `size - 1` rows of `x`.

    Constraints: input `[T, channels]`, weight `[channels, size]` with a size of at least 2, state `[size - 1, channels]` of the
    input's element type, so that nothing is lost where a prompt is cut.

    Example: `%y = moe.causal_conv %x weight(%w : tensor<96x4xf32>) over %state at (%positions, %sequence_offsets, %state_slots)
    {silu} : tensor<?x96xbf16>, !moe.state<[3, 96], bf16>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>`
  }];
  let arguments = (ins
    MoE_FloatTensor2D:$input, MoE_FloatTensor2D:$weight,
    Arg<MoE_StateType, "", [MemRead, MemWrite]>:$state,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$sequence_offsets, MoE_IndexTensor1D:$state_slots,
    UnitAttr:$silu);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $input `weight` `(` $weight `:` type($weight) `)` `over` $state `at`
    `(` $positions `,` $sequence_offsets `,` $state_slots `)` attr-dict `:`
    type($input) `,` type($state) `,` type($positions) `,` type($sequence_offsets) `,` type($state_slots)
  }];
  let hasVerifier = 1;
}

def MoE_DecayGateOp : MoE_Op<"decay_gate", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "how much a delta rule forgets, as a logarithm";
  let description = [{
    For head `h` and `x = input + bias`, in f32, rounded once:

    | | result |
    |---|---|
    | with `lower_bound` b | `b * sigmoid(exp(a_log[h]) * x)`: between b and 0 |
    | without | `-exp(a_log[h]) * log(1 + exp(x))` |

    The first is another function, not the second one cut off. `a_log` belongs to heads, never to channels: checkpoints pad it,
    and what lies behind the heads is not read.

    Constraints: input `[T, heads, channels]` or `[T, heads]`; bias of the shape of one token; a_log `[at least heads]`; result of
    the input's shape; `lower_bound < 0`.

    Example: `%g = moe.decay_gate %x a_log(%a : tensor<128xf32>) bias(%b : tensor<96x128xf32>) {lower_bound = -5.0 : f64}
    : tensor<?x96x128xbf16> -> tensor<?x96x128xf32>`
  }];
  let arguments = (ins MoE_FloatTensor2DOr3D:$input, MoE_FloatTensor1D:$a_log, MoE_FloatTensor:$bias,
                       OptionalAttr<F64Attr>:$lower_bound);
  let results = (outs MoE_FloatTensor2DOr3D:$result);
  let assemblyFormat = [{
    $input `a_log` `(` $a_log `:` type($a_log) `)` `bias` `(` $bias `:` type($bias) `)` attr-dict `:`
    type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_DeltaRuleOp : MoE_Op<"delta_rule", [
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "linear attention by the gated delta rule";
  let description = [{
    Each head has a matrix `S` of key_dim rows and value_dim columns in the sequence's slot; it is zero where the sequence begins.
    Value head `h` uses key head `h / (heads / key_heads)`. With `q`, `k`, `v`, `g`, `b` the token's query, key, value, decay and
    beta of the head, for each token of a sequence in order:

    1. with `norm_epsilon`: `q = q / sqrt(sum(q^2) + norm_epsilon)`, and `k` likewise; then `q = q * scale`;
    2. `S = diag(exp(g)) S`: rows decay, each by its channel's factor or all by the head's;
    3. `S = S + b k (v - S^T k)^T`: the error of the prediction of the state that has decayed;
    4. `result = S^T q`: of the state that has been updated.

    Everything is in f32; the result is rounded once.

    Constraints: query and key `[T, key_heads, key_dim]`, value and result `[T, heads, value_dim]`, heads a multiple of key_heads;
    decay `[T, heads, key_dim]` or `[T, heads]`, at most 0; beta `[T, heads]`; state f32 `[heads, key_dim, value_dim]`. What a
    sequence gets does not depend on the others in the step.

    Example: `%o = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x32xf32>) beta(%b : tensor<?x4xf32>) over %state at (%positions,
    %sequence_offsets, %state_slots) {scale = 0.17677669 : f64, norm_epsilon = 1.0e-06 : f64} : tensor<?x2x32xbf16>,
    tensor<?x2x32xbf16>, tensor<?x4x32xbf16>, !moe.state<[4, 32, 32], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> ->
    tensor<?x4x32xf32>`
  }];
  let arguments = (ins
    MoE_FloatTensor3D:$query, MoE_FloatTensor3D:$key, MoE_FloatTensor3D:$value,
    MoE_FloatTensor2DOr3D:$decay, MoE_FloatTensor2D:$beta,
    Arg<MoE_StateType, "", [MemRead, MemWrite]>:$state,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$sequence_offsets, MoE_IndexTensor1D:$state_slots,
    F64Attr:$scale, OptionalAttr<F64Attr>:$norm_epsilon);
  let results = (outs MoE_FloatTensor3D:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `decay` `(` $decay `:` type($decay) `)` `beta` `(` $beta `:` type($beta) `)` `over` $state `at`
    `(` $positions `,` $sequence_offsets `,` $state_slots `)` attr-dict `:`
    type($query) `,` type($key) `,` type($value) `,` type($state) `,` type($positions) `,` type($sequence_offsets) `,`
    type($state_slots) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
