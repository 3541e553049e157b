// Weights, globals, layouts, quantised blocks.
#ifndef MOEC_DIALECT_MOE_IR_WEIGHTOPS_TD
#define MOEC_DIALECT_MOE_IR_WEIGHTOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

def MoE_WeightOp : MoE_Op<"weight", [Pure]> {
  let summary = "a weight of the model, by reference";
  let description = [{
    Stands for `bytes` bytes of a file that are read when the bundle is loaded. The reference must be exactly as long as the
    result's type.

    ```mlir
    %w = moe.weight "model.norm.weight" at <"model-00001.safetensors", 8192, 512> : tensor<256xbf16>
    ```
    Several tensors that lie one behind the other in memory, whatever their places in files, are one weight: the experts of a
    layer, each a tensor of its own.

    ```mlir
    %w = moe.weight "experts.0.up" at <"a.safetensors", 8192, 512> and ["experts.1.up"] at [<"b.safetensors", 64, 512>]
      : tensor<2x16x16xbf16>
    ```
  }];
  let arguments = (ins StrAttr:$name, MoE_WeightRefAttr:$ref,
                       OptionalAttr<StrArrayAttr>:$more_names, OptionalAttr<MoE_WeightRefArrayAttr>:$more_refs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name `at` $ref (`and` $more_names^ `at` $more_refs)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::StringAttr":$name, "WeightRefAttr":$ref), [{
    build($_builder, $_state, type, name, ref, ::mlir::ArrayAttr(), ::mlir::ArrayAttr());
  }]>];
  let extraClassDeclaration = [{
    /// All tensors of the weight in their order: names and places.
    SmallVector<std::pair<StringRef, WeightRefAttr>> getParts();
  }];
}

def MoE_GlobalOp : MoE_Op<"global", [Symbol]> {
  let summary = "a persistent buffer that the load program fills";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def MoE_GlobalLoadOp : MoE_Op<"global_load", [Pure]> {
  let summary = "reads a global";
  let description = [{ Pure: a global never changes after loading. }];
  let arguments = (ins FlatSymbolRefAttr:$global);
  let results = (outs AnyTypeOf<[AnyRankedTensor, MoE_BlockTensorType]>:$result);
  let assemblyFormat = "$global attr-dict `:` type($result)";
}

def MoE_GlobalStoreOp : MoE_Op<"global_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "fills a global; only in the load program, once for each global";
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, MoE_BlockTensorType]>:$value, FlatSymbolRefAttr:$global);
  let assemblyFormat = "$value `,` $global attr-dict `:` type($value)";
}

def MoE_AssembleBlocksOp : MoE_Op<"assemble_blocks", [Pure]> {
  let summary = "codes and scales of a checkpoint, seen as one block tensor";
  let description = [{
    For `mxfp4` and a logical shape `[..., K]`: codes hold `K / 2` bytes and scales `K / 32` bytes for each row, in any
    grouping of dimensions that keeps the order of the bytes (`[E, N, K / 32, 16]` and `[N, K / 2]` are both seen in files).
    Constraints: K is a multiple of 32; the byte counts agree with the logical shape.
  }];
  let arguments = (ins MoE_ByteTensor:$codes, MoE_ByteTensor:$scales);
  let results = (outs MoE_BlockTensorType:$result);
  let assemblyFormat = "$codes `,` $scales attr-dict `:` type($codes) `,` type($scales) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_DequantizeOp : MoE_Op<"dequantize", [Pure]> {
  let summary = "a block tensor as plain numbers";
  let description = [{
    `result[..., k] = e2m1(code[..., k]) * 2^(scale[..., k / 32] - 127)`, exact in f32 and bf16 (subnormal results included);
    scale byte 255 makes its block NaN.
  }];
  let arguments = (ins MoE_BlockTensorType:$source);
  let results = (outs MoE_FloatTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_DequantizeCodesOp : MoE_Op<"dequantize_codes", [Pure]> {
  let summary = "codes times the scale of their block, as plain numbers";
  let description = [{
    `result[..., n, k] = decode(codes[..., n, k]) * scale(scales[..., n / block[0], k / block[1]])`, each index divided downwards, in
    f32, rounded once. What `decode` is says the format:

    | format | codes | decode |
    |---|---|---|
    | `f8e4m3` | bytes | 1 sign, 4 exponent bits of bias 7, 3 mantissa bits; exponent and mantissa all ones: NaN; no infinities |
    | `f8e5m2` | bytes | 1 sign, 5 exponent bits of bias 15, 2 mantissa bits; as IEEE 754 has it |
    | `int4` | words of eight | bits `4 (k mod 8)` and up of word `k / 8`, less 8: -8 to 7 |

    Scales are numbers or bytes; a byte `e` is `2^(e - 127)`, 255 NaN. The last blocks of a row or column may be cut short.

    Constraints: two sizes of a block, at least 1; result `[..., N, K]`, codes likewise, of `int4` `[..., N, ceil(K / 8)]`; scales
    `[..., ceil(N / block[0]), ceil(K / block[1])]`; all static.

    Example: `%w = moe.dequantize_codes f8e4m3 %c, %s blocks [128, 128] : tensor<576x7168xi8>, tensor<5x56xf32> ->
    tensor<576x7168xbf16>`
  }];
  let arguments = (ins MoE_CodeFormatAttr:$format, MoE_CodeTensor:$codes, MoE_ScaleTensor:$scales, DenseI64ArrayAttr:$block);
  let results = (outs MoE_FloatTensor:$result);
  let assemblyFormat = [{
    $format $codes `,` $scales `blocks` $block attr-dict `:` type($codes) `,` type($scales) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t int4CodesOfWord = 8;
  }];
}

def MoE_RelayoutOp : MoE_Op<"relayout", [Pure]> {
  let summary = "the same values in another memory layout";
  let description = [{
    The result's type is the source's with another `#moe.layout` (or none). Padding is filled with zeros; for MXFP4 panels
    with code 0 and scale byte 127.
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, MoE_BlockTensorType]>:$source);
  let results = (outs AnyTypeOf<[AnyRankedTensor, MoE_BlockTensorType]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif
