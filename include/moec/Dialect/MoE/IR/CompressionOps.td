// Attention over tokens of the past that were compressed, several into one entry.
#ifndef MOEC_DIALECT_MOE_IR_COMPRESSIONOPS_TD
#define MOEC_DIALECT_MOE_IR_COMPRESSIONOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_CompressOp : MoE_Op<"compress", [
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "one entry for each window of tokens";
  let description = [{
    Positions `w * ratio` to `(w + 1) * ratio - 1` of a sequence are its window `w`; row `j` of the bias belongs to the window's
    token `j`. The window's entry is, for each channel `c` by itself, the mean of keys weighted by the softmax of gates:

    `entry[c] = sum over s of softmax(g)[s] * k[s]`, `k[s] = keys[s, c]`, `g[s] = gates[s, c] + bias[s mod ratio, c]`

    over the window's tokens `s`. When keys have twice the result's channels, windows overlap: the window's tokens take part with
    their second half of the channels and those of the window before, if there is one, with their first half, in one softmax.

    Row `t` of the result is the entry of the window that token `t` completes, and zeros where it completes none. In f32, rounded
    once; a window's sums are made token by token, in order, so that its entry is the same wherever a prompt was cut.

    Constraints: keys and gates `[T, c D]` with `c` 1 or 2, bias `[ratio, c D]`, result `[T, D]`; state f32 `[3 c, D]`: maximum,
    sum of weights and weighted sum of the window, and with overlap those that the next one begins with.

    Example: `%e = moe.compress %k gates(%g : tensor<?x256xf32>) bias(%b : tensor<4x256xf32>) over %state at (%positions,
    %sequence_offsets, %state_slots) : tensor<?x256xf32>, !moe.state<[6, 128], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> ->
    tensor<?x128xf32>`
  }];
  let arguments = (ins
    MoE_FloatTensor2D:$keys, MoE_FloatTensor2D:$gates, MoE_FloatTensor2D:$bias,
    Arg<MoE_StateType, "", [MemRead, MemWrite]>:$state,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$sequence_offsets, MoE_IndexTensor1D:$state_slots);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $keys `gates` `(` $gates `:` type($gates) `)` `bias` `(` $bias `:` type($bias) `)` `over` $state `at`
    `(` $positions `,` $sequence_offsets `,` $state_slots `)` attr-dict `:`
    type($keys) `,` type($state) `,` type($positions) `,` type($sequence_offsets) `,` type($state_slots) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Tokens of a window.
    int64_t getRatio() { return getBias().getType().getDimSize(0); }
    /// Whether a window's entry also takes the window before it.
    bool hasOverlap() { return getKeys().getType().getDimSize(1) != getResult().getType().getDimSize(1); }
  }];
}

def MoE_SelectEntriesOp : MoE_Op<"select_entries", [
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "the compressed entries that a token attends to";
  let description = [{
    A token at position `p` sees the entries `w < (p + 1) div ratio` of its sequence: those of windows that are complete. Entry
    `w` lies at position `w * stride + stride - 1` of the cache and is the value there. Its score is

    `score[w] = sum over h of weights[t, h] * max(query[t, h] . entry, 0)`

    in f32. A row of the result has the `top_k` entries of the largest scores in ascending order, and -1 behind them where the
    token sees fewer. Of equal scores the lower entry is taken; a NaN counts as -inf.

    Constraints: query `[T, heads, dim]`, weights f32 `[T, heads]`; a cache of one head with values of `dim`; result i32
    `[T, top_k]`.

    Example: `%i = moe.select_entries %q weights(%w : tensor<?x64xf32>) over %entries at (%positions, %token_sequences, %block_table)
    {ratio = 4} : tensor<?x64x128xbf16>, !moe.cache<kv_heads = 1, key_dim = 128, value_dim = 128, block = 4, bf16>, tensor<?xi32>,
    tensor<?xi32>, tensor<?x?xi32> -> tensor<?x512xi32>`
  }];
  let arguments = (ins
    MoE_FloatTensor3D:$query, MoE_F32Tensor2D:$weights,
    Arg<MoE_CacheType, "", [MemRead]>:$entries,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$token_sequences, MoE_IndexTensor2D:$block_table,
    I64Attr:$ratio, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs MoE_IndexTensor2D:$result);
  let assemblyFormat = [{
    $query `weights` `(` $weights `:` type($weights) `)` `over` $entries `at`
    `(` $positions `,` $token_sequences `,` $block_table `)` attr-dict `:`
    type($query) `,` type($entries) `,` type($positions) `,` type($token_sequences) `,` type($block_table) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_CompressedAttentionOp : MoE_Op<"compressed_attention", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "attention over the last tokens and compressed entries of all of the past";
  let description = [{
    Every head of a token at position `p` sees the same rows of its sequence, and each row is key and value at once:

    1. the values in `cache` at positions `j <= p` with `p - j < window`;
    2. the values in `entries` of windows that are complete, `w < (p + 1) div ratio`; with `indices` only those of its row (-1
       and entries that it does not see are skipped, duplicates are an error of the producer). Entry `w` lies at position
       `w * stride + stride - 1`.

    `result[t, h] = sum over rows of softmax(query[t, h] . row * scale) * row`; with `sinks` the softmax has one more column of
    value `sinks[h]` that is dropped afterwards.

    Constraints: query and result `[T, heads, dim]`; caches of one head with values of `dim`; sinks `[heads]`, indices i32
    `[T, top_k]`; a window of at least 1.

    Example: `%o = moe.compressed_attention %q over %cache and %entries at (%positions, %token_sequences, %block_table) {scale =
    0.044 : f64, window = 128, ratio = 128, stride = 8} : tensor<?x64x512xbf16>, !moe.cache<kv_heads = 1, key_dim = 512, value_dim =
    512, block = 16, bf16>, !moe.cache<kv_heads = 1, key_dim = 512, value_dim = 512, block = 1, bf16>, tensor<?xi32>, tensor<?xi32>,
    tensor<?x?xi32> -> tensor<?x64x512xbf16>`
  }];
  let arguments = (ins
    MoE_FloatTensor3D:$query,
    Arg<MoE_CacheType, "", [MemRead]>:$cache, Arg<MoE_CacheType, "", [MemRead]>:$entries,
    MoE_IndexTensor1D:$positions, MoE_IndexTensor1D:$token_sequences, MoE_IndexTensor2D:$block_table,
    Optional<MoE_FloatTensor1D>:$sinks, Optional<MoE_IndexTensor2D>:$indices,
    F64Attr:$scale, I64Attr:$window, I64Attr:$ratio, DefaultValuedAttr<I64Attr, "1">:$stride);
  let results = (outs MoE_FloatTensor3D:$result);
  let assemblyFormat = [{
    $query `over` $cache `and` $entries `at` `(` $positions `,` $token_sequences `,` $block_table `)`
    (`sinks` `(` $sinks^ `:` type($sinks) `)`)? (`indices` `(` $indices^ `:` type($indices) `)`)? attr-dict `:`
    type($query) `,` type($cache) `,` type($entries) `,` type($positions) `,` type($token_sequences) `,` type($block_table)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
