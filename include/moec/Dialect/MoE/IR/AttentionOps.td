// Rotary embeddings, caches, attention.
#ifndef MOEC_DIALECT_MOE_IR_ATTENTIONOPS_TD
#define MOEC_DIALECT_MOE_IR_ATTENTIONOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_RopeOp : MoE_Op<"rope", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "rotary position embedding";
  let description = [{
    With `c = magnitude * cos(position * frequency)` and `s` the like sine, a pair `(a, b)` becomes
    `(a c - b s, b c + a s)`, in f32. See `#moe.rotary` for which elements form a pair. The angle is computed in f32.

    Constraints: input `[T, heads, dim]`; `offset + 2 * frequencies <= dim`.
  }];
  let arguments = (ins MoE_FloatTensor3D:$input, MoE_IndexTensor1D:$positions, MoE_RotaryAttr:$rotary);
  let results = (outs MoE_FloatTensor3D:$result);
  let assemblyFormat = "$input `at` $positions $rotary attr-dict `:` type($input) `,` type($positions)";
  let hasVerifier = 1;
}

def MoE_KVAppendOp : MoE_Op<"kv_append", [
    DeclareOpInterfaceMethods<AcceptsRotaryOpInterface>]> {
  let summary = "writes keys and values of the step's tokens into a cache";
  let description = [{
    Token `t` goes to position `positions[t]` of sequence `token_sequences[t]`, or nowhere when that is -1. With `rotary`, keys
    are rotated first. Values are given exactly when the cache holds any apart from its keys: not for one of form `shared`.

    Constraints: key `[T, kv_heads, key_dim]`, value `[T, kv_heads, value_dim]`; both are rounded to the cache's element
    type. Positions lie within the block table (the runtime checks).
  }];
  let arguments = (ins
    MoE_FloatTensor3D:$key, Optional<MoE_FloatTensor3D>:$value,
    Arg<MoE_CacheType, "", [MemWrite]>:$cache,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$token_sequences, MoE_IndexTensor2D:$block_table,
    OptionalAttr<MoE_RotaryAttr>:$rotary);
  let assemblyFormat = [{
    $key (`,` $value^)? `into` $cache `at` `(` $positions `,` $token_sequences `,` $block_table `)` attr-dict `:`
    custom<AppendedTypes>(type($key), type($value), type($cache)) `,` type($positions) `,` type($token_sequences) `,` type($block_table)
  }];
  let hasVerifier = 1;
}

def MoE_AttentionOp : MoE_Op<"attention", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<AcceptsRotaryOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "attention of the step's tokens over a paged cache";
  let description = [{
    Query head `h` of token `t` at position `p` sees the keys and values of head `h / (heads / kv_heads)` at those positions
    `j` of its sequence with `j <= p` and, with `window` w, `p - j < w`; with `indices`, only those of its row (-1 ends
    nothing and is skipped, duplicates are an error of the producer).

    `score_j = query . key_j * scale`, then `softcap * tanh(score / softcap)` when there is a softcap; the probabilities are
    the softmax over the scores and, with `sinks`, one more column of value `sinks[h]` that is dropped afterwards. A token that
    sees nothing gets zeros. With `rotary`, queries are rotated first. `window = 0` means none.

    Constraints: query `[T, heads, key_dim]`, result `[T, heads, value_dim]`, heads a multiple of kv_heads, sinks `[heads]`,
    indices i32 `[T, top_k]`; the cache has values, apart from its keys or as parts of them.
  }];
  let arguments = (ins
    MoE_FloatTensor3D:$query,
    Arg<MoE_CacheType, "", [MemRead]>:$cache,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$token_sequences, MoE_IndexTensor2D:$block_table,
    Optional<MoE_FloatTensor1D>:$sinks, Optional<MoE_IndexTensor2D>:$indices,
    F64Attr:$scale, DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<F64Attr, "0.0">:$softcap,
    OptionalAttr<MoE_RotaryAttr>:$rotary,
    OptionalAttr<StrAttr>:$strategy);
  let results = (outs MoE_FloatTensor3D:$result);
  let assemblyFormat = [{
    $query `over` $cache `at` `(` $positions `,` $token_sequences `,` $block_table `)`
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)? (`indices` `(` $indices^ `:` type($indices) `)`)? attr-dict `:`
    type($query) `,` type($cache) `,` type($positions) `,` type($token_sequences) `,` type($block_table) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_SelectKeysOp : MoE_Op<"select_keys", [
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "the positions that a sparse attention looks at: a lightning indexer's best keys";
  let description = [{
    Token `t` at position `p` scores the keys of its sequence at positions `j <= p`:
    `score_j = scale * sum_h weights[t, h] * max(query[t, h] . key_j, 0)`, in f32. Its row of the result is the positions of the
    `min(top_k, p + 1)` largest scores, ascending, and -1 behind them: what `moe.attention` takes as `indices`.

    Of equal scores the lower position is chosen first; -0 equals 0, and a score that is NaN counts as -inf. `max(x, 0)` is
    NaN where `x` is.

    Scores of different targets may differ in their last bits, and with them which of two keys with nearly equal scores is
    chosen. On one target they depend on nothing else in the step. Scores are never held for a whole step: a workgroup holds
    those of one token's best keys so far.

    Constraints:
    1. query `[T, heads, dim]`, weights f32 `[T, heads]`; the cache has form `shared`, kv_heads 1 and key_dim `dim`.
    2. `1 <= top_k <= 4096`: the best keys so far are held in the memory that a block of a GPU shares; result i32 `[T, top_k]`.

    Example:
    ```mlir
    %i = moe.select_keys %q weights(%w) over %keys at (%positions, %sequences, %table) {scale = 0.011048543456039806 : f64, top_k = 2048 : i64}
        : tensor<?x64x128xbf16>, tensor<?x64xf32>, !moe.cache<kv_heads = 1, key_dim = 128, value_dim = 0, block = 64, bf16, shared>,
          tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2048xi32>
    ```
  }];
  let arguments = (ins
    MoE_FloatTensor3D:$query, MoE_F32Tensor2D:$weights,
    Arg<MoE_CacheType, "", [MemRead]>:$cache,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$token_sequences, MoE_IndexTensor2D:$block_table,
    I64Attr:$top_k, F64Attr:$scale);
  let results = (outs MoE_IndexTensor2D:$result);
  let assemblyFormat = [{
    $query `weights` `(` $weights `)` `over` $cache `at` `(` $positions `,` $token_sequences `,` $block_table `)` attr-dict `:`
    type($query) `,` type($weights) `,` type($cache) `,` type($positions) `,` type($token_sequences) `,` type($block_table)
    `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{ static constexpr int64_t mostKeys = 4096; }];
}

#endif
