// Attributes: where weights lie, how tensors lie in memory, and the parameters of activations and rotary embeddings.
#ifndef MOEC_DIALECT_MOE_IR_MOEATTRS_TD
#define MOEC_DIALECT_MOE_IR_MOEATTRS_TD

include "moec/Dialect/MoE/IR/MoEBase.td"

class MoE_Attr<string name, string attrMnemonic> : AttrDef<MoE_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def MoE_WeightRefAttr : MoE_Attr<"WeightRef", "weight_ref"> {
  let summary = "where the bytes of a weight lie";
  let description = [{
    `bytes` bytes at `offset` of `file`, a path relative to the module's `moe.weight_root`. Bytes are never read while
    compiling; the bundle refers to them or copies them.
  }];
  let parameters = (ins StringRefParameter<"path below the model's folder">:$file, "uint64_t":$offset, "uint64_t":$bytes);
  let assemblyFormat = "`<` $file `,` $offset `,` $bytes `>`";
}

def MoE_WeightRefArrayAttr : TypedArrayAttrBase<MoE_WeightRefAttr, "places of weights">;

def MoE_Swizzle : I32EnumAttr<"Swizzle", "order of the elements inside a tile", [
    I32EnumAttrCase<"none", 0>,
    I32EnumAttrCase<"pairs", 1>,
    I32EnumAttrCase<"nibble_words", 2>,
    I32EnumAttrCase<"fragments", 3>,
    I32EnumAttrCase<"fragments_of_halves", 4>]> {
  let cppNamespace = "::mlir::moec::moe";
  let genSpecializedAttr = 0;
}
def MoE_SwizzleParameter : EnumParameter<MoE_Swizzle>;

def MoE_LayoutAttr : MoE_Attr<"Layout", "layout"> {
  let summary = "how a tensor lies in memory: tiling, order, swizzle, padding";
  let description = [{
    The trailing `tile.size()` dimensions of the logical shape are cut into tiles of `tile`, padded with zeros at the end. In
    memory come the leading dimensions, then the tile counts, then the elements of one tile with its dimensions in the order
    `order` (outermost first). A tile of 1 keeps its dimension whole. `swizzle` says how the elements of a tile lie:

    - `none`: row-major in `order`;
    - `pairs`: two neighbours along the last logical dimension stay together: tile `[n, k]` lies as `[k / 2][n][2]`, the
      operand order of bf16 dot-product instructions;
    - `nibble_words`: an MXFP4 panel of 16 rows x 32 columns in 272 bytes: four vectors of 32 16-bit words, then the 16 scale
      bytes of the rows. Word `2 n + h` of vector `j` carries in its nibbles `i = 0..3` (low first) the codes of column
      `8 j + 2 i + h` of row `n`.
    - `fragments`: an MXFP4 matrix as the register operands of Hopper's products of warpgroups, tiles of 64 rows x 64 columns.
      A row of tiles lies in one run: for each tile 2,048 bytes of codes and 128 of scales, and behind the last tile 64 f32
      factors, one for each row. Row `16 w + 2 g + s` (`w < 4`, `g < 8`, `s < 2`) of a tile has its codes in the 16 bytes of
      thread `32 w + 4 g + t`, for the columns `32 b + 16 (o / 4) + 8 (o / 2 % 2) + 2 t + h` with `o % 2 = s`: the pair `o` of
      block `b`, `h = 0, 1`. A pair is a word whose half `h` has the code's sign in bit 15 and the rest in bits 8 to 6, rotated
      right by `[4, 10, 14, 0, 6, 12, 2, 8][o]`. Word `2 b` is pairs 0 to 2, word `2 b + 1` pairs 3 to 5; of pairs 6 and 7 word
      `2 b` has the bits that pairs 0 to 2 leave free, word `2 b + 1` the others. Byte `4 (8 w + g) + 2 s + b` of the scales is
      `scale + 126 - shift`, with `shift = max(0, largest scale of the row - 128)`; the row's factor is `2^shift`, or NaN when a
      scale is 255, which then counts as 0 elsewhere. Padding has codes and scales of 0.
    - `fragments_of_halves`: the same for a matrix with its rows `0, N / 2, 1, N / 2 + 1, ...` in this order.

    Example: `#moe.layout<tile = [16, 1], order = [1, 0], swizzle = none>` on `[N, K]` is a row of panels
    `[N / 16][K][1][16]`: the 16 rows of a panel are one vector.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$tile,
    ArrayRefParameter<"int64_t">:$order,
    MoE_SwizzleParameter:$swizzle);
  let assemblyFormat = [{
    `<` `tile` `=` `[` $tile `]` `,` `order` `=` `[` $order `]` `,` `swizzle` `=` $swizzle `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The shape in memory of a tensor of logical shape `shape` (dynamic leading dimensions stay dynamic). For
    /// `nibble_words` the elements are bytes, otherwise the tensor's own.
    SmallVector<int64_t> getStorageShape(ArrayRef<int64_t> shape) const;
  }];
}

def MoE_ActivationKind : I32EnumAttr<"ActivationKind", "gating function of an expert", [
    I32EnumAttrCase<"silu", 0>,
    I32EnumAttrCase<"gelu", 1>,
    I32EnumAttrCase<"gelu_tanh", 2>,
    I32EnumAttrCase<"relu", 3>,
    I32EnumAttrCase<"swiglu", 4>,
    I32EnumAttrCase<"situ", 5>]> {
  let cppNamespace = "::mlir::moec::moe";
  let genSpecializedAttr = 0;
}
def MoE_ActivationKindParameter : EnumParameter<MoE_ActivationKind>;

def MoE_ActivationAttr : MoE_Attr<"Activation", "activation"> {
  let summary = "the activation between an expert's two products";
  let description = [{
    Applied to gate `g` and up `u`, both f32:

    | kind | result |
    |---|---|
    | `silu`, `gelu` (erf), `gelu_tanh`, `relu` | `f(g) * u` |
    | `swiglu` | `g' * sigmoid(alpha * g') * (u' + beta)`, `g' = min(g, limit)`, `u' = clamp(u, -limit, limit)` |
    | `situ` | `(beta * tanh(g / beta) * sigmoid(g)) * (alpha * tanh(u / alpha))`; `alpha = 0`: the second factor is `u` |

    `limit = 0` means no limit. `interleaved`: row `2 i` of the weight is gate `i` and row `2 i + 1` is up `i`; otherwise all
    gate rows come before all up rows.
  }];
  let parameters = (ins
    MoE_ActivationKindParameter:$kind,
    DefaultValuedParameter<"::mlir::moec::moe::Real", "::mlir::moec::moe::Real(1.0)">:$alpha,
    DefaultValuedParameter<"::mlir::moec::moe::Real", "::mlir::moec::moe::Real(0.0)">:$beta,
    DefaultValuedParameter<"::mlir::moec::moe::Real", "::mlir::moec::moe::Real(0.0)">:$limit,
    DefaultValuedParameter<"bool", "false">:$interleaved);
  let assemblyFormat = "`<` $kind (`,` struct($alpha, $beta, $limit, $interleaved)^)? `>`";
  let genVerifyDecl = 1;
}

def MoE_RotaryAttr : MoE_Attr<"Rotary", "rotary"> {
  let summary = "a rotary position embedding";
  let description = [{
    With `n` frequencies, the `2 n` elements of each head from `offset` on are rotated: pair `i` by the angle
    `position * frequencies[i]`, its cosine and sine multiplied by `magnitude`. Pair `i` is elements `(i, i + n)`, or
    `(2 i, 2 i + 1)` when `interleaved`. Every scaling scheme (YaRN and the like) is in the frequencies.
  }];
  let parameters = (ins
    "::mlir::DenseF32ArrayAttr":$frequencies,
    DefaultValuedParameter<"::mlir::moec::moe::Real", "::mlir::moec::moe::Real(1.0)">:$magnitude,
    DefaultValuedParameter<"int64_t", "0">:$offset,
    DefaultValuedParameter<"bool", "false">:$interleaved);
  let hasCustomAssemblyFormat = 1;
}

def MoE_ScoreFunction : I32EnumAttr<"ScoreFunction", "from router logits to scores", [
    I32EnumAttrCase<"softmax", 0>,
    I32EnumAttrCase<"sigmoid", 1>,
    I32EnumAttrCase<"sqrt_softplus", 2>]> {
  let cppNamespace = "::mlir::moec::moe";
  let genSpecializedAttr = 0;
}
def MoE_ScoreFunctionAttr : EnumAttr<MoE_Dialect, MoE_ScoreFunction, "score">;

def MoE_BlockFormat : I32EnumAttr<"BlockFormat", "block-quantised format", [
    I32EnumAttrCase<"mxfp4", 0>]> {
  let cppNamespace = "::mlir::moec::moe";
  let genSpecializedAttr = 0;
}
def MoE_BlockFormatParameter : EnumParameter<MoE_BlockFormat>;

def MoE_CacheForm : I32EnumAttr<"CacheForm", "where the values of a cache are", [
    I32EnumAttrCase<"split", 0>,
    I32EnumAttrCase<"shared", 1>]> {
  let cppNamespace = "::mlir::moec::moe";
  let genSpecializedAttr = 0;
}
def MoE_CacheFormParameter : EnumParameter<MoE_CacheForm>;

def MoE_GateFunction : I32EnumAttr<"GateFunction", "what a gate multiplies by", [
    I32EnumAttrCase<"sigmoid", 0>,
    I32EnumAttrCase<"silu", 1>]> {
  let cppNamespace = "::mlir::moec::moe";
  let genSpecializedAttr = 0;
}
def MoE_GateFunctionAttr : EnumAttr<MoE_Dialect, MoE_GateFunction, "gate_function">;

#endif
