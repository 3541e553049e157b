// Products with weights, embeddings and row selection.
#ifndef MOEC_DIALECT_MOE_IR_LINEAROPS_TD
#define MOEC_DIALECT_MOE_IR_LINEAROPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_LinearOp : MoE_Op<"linear", [Pure, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<AcceptsResidualOpInterface>,
    DeclareOpInterfaceMethods<AcceptsNormOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "a product with a weight: y = norm(x) W^T + bias + residual";
  let description = [{
    `result[t, n] = sum_k x'[t, k] * weight[n, k] + bias[n] + residual[t, n]`, where `x'` is `input` or, with `norm_weight`,
    `rms_norm(input, norm_weight, epsilon)`.

    Constraints:
    1. input `[T, K]`, weight `[N, K]`, result `[T, N]`, bias `[N]`, residual `[T, N]`, norm_weight `[K]`.
    2. `epsilon` is there exactly when `norm_weight` is.

    ```mlir
    %y = moe.linear %x, %w bias(%b : tensor<512xbf16>) : tensor<?x256xf32>, tensor<512x256xbf16> -> tensor<?x512xf32>
    ```
  }];
  let arguments = (ins
    MoE_FloatTensor2D:$input,
    MoE_DenseOrBlockWeight:$weight,
    Optional<MoE_FloatTensor1D>:$bias,
    Optional<MoE_FloatTensor2D>:$residual,
    Optional<MoE_FloatTensor1D>:$norm_weight,
    OptionalAttr<F64Attr>:$epsilon,
    OptionalAttr<StrAttr>:$strategy);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    (`norm` `(` $norm_weight^ `:` type($norm_weight) `)`)? attr-dict `:` type($input) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_HeadLinearOp : MoE_Op<"head_linear", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "a product of each head with a weight of its own";
  let description = [{
    `result[t, h, n] = sum_k input[t, h, k] * weight[h, n, k]` or, with `transposed`, `weight[h, k, n]`.

    It takes latent attention's queries into the latent space and its results out of it, and is the first half of an output
    projection in groups.

    Constraints: input `[T, H, K]`, weight `[H, N, K]` (with `transposed`, `[H, K, N]`), result `[T, H, N]`.

    Example: `%y = moe.head_linear %x, %w {transposed} : tensor<?x4x32xbf16>, tensor<4x32x64xbf16> -> tensor<?x4x64xbf16>`
  }];
  let arguments = (ins MoE_FloatTensor3D:$input, MoE_FloatTensor3D:$weight, UnitAttr:$transposed);
  let results = (outs MoE_FloatTensor3D:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_EmbeddingOp : MoE_Op<"embedding", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "rows of a table by token id";
  let description = [{
    `result[t, :] = table[ids[t], :]`, converted to the result's element type. Ids are below the number of rows: the runtime
    checks token ids before a step; kernels clamp them, so that nothing outside the table is read.
  }];
  let arguments = (ins MoE_IndexTensor1D:$ids, MoE_FloatTensor2D:$table);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` type($ids) `,` type($table) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_GatherRowsOp : MoE_Op<"gather_rows", [Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "selects rows of an activation";
  let description = [{
    `result[r, :] = input[rows[r], :]`: which tokens' logits are wanted. Rows are clamped to the input.
  }];
  let arguments = (ins MoE_FloatTensor2D:$input, MoE_IndexTensor1D:$rows);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = "$input `,` $rows attr-dict `:` type($input) `,` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

#endif
