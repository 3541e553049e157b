// Images: where their patches lie, and what their embeddings replace.
#ifndef MOEC_DIALECT_MOE_IR_VISIONOPS_TD
#define MOEC_DIALECT_MOE_IR_VISIONOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_InterpolatePositionsOp : MoE_Op<"interpolate_positions", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    AllTypesMatch<["rows", "heights", "columns", "widths"]>]> {
  let summary = "position embeddings of patches, from a learned grid of another size";
  let description = [{
    Patch `t` lies in row `r = rows[t]` of `heights[t]` and in column `c = columns[t]` of `widths[t]`. With the grid's size `H x W`,

    ```
    y = clamp((r + 0.5) * (H / heights[t]) - 0.5, 0, H - 1),  x = clamp((c + 0.5) * (W / widths[t]) - 0.5, 0, W - 1)
    result[t] = grid[y, x], between its entries bilinear
    ```
    in f32, rounded once; coordinates are f32. That is bilinear interpolation without aligned corners. A frame of the grid's size gets the
    grid's entries exactly.

    Constraints: grid `[H, W, D]`, static; rows, heights, columns and widths `[T]`; result `[T, D]`. Sizes below 1 count as 1.

    Example: `%p = moe.interpolate_positions %g at (%r of %h, %c of %w) : tensor<64x64x1024xbf16>, tensor<?xi32> ->
    tensor<?x1024xbf16>`
  }];
  let arguments = (ins MoE_FloatTensor3D:$grid, MoE_IndexTensor1D:$rows, MoE_IndexTensor1D:$heights, MoE_IndexTensor1D:$columns,
                       MoE_IndexTensor1D:$widths);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $grid `at` `(` $rows `of` $heights `,` $columns `of` $widths `)` attr-dict `:` type($grid) `,` type($rows) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_ReplaceRowsOp : MoE_Op<"replace_rows", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "rows of an activation, some of them taken from elsewhere";
  let description = [{
    `result[t] = rows[t] < 0 ? input[t] : replacements[rows[t]]`, converted to the result's element type: embeddings of images take the
    places of those of the tokens that stand for them.

    Constraints: input and result `[T, D]`, replacements `[N, D]` with at least one row, rows `[T]`. Rows are clamped to N.

    Example: `%y = moe.replace_rows %x with %images at %rows : tensor<?x7168xbf16>, tensor<?x7168xbf16>, tensor<?xi32>`
  }];
  let arguments = (ins MoE_FloatTensor2D:$input, MoE_FloatTensor2D:$replacements, MoE_IndexTensor1D:$rows);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $input `with` $replacements `at` $rows attr-dict `:` type($input) `,` type($replacements) `,` type($rows)
  }];
  let hasVerifier = 1;
}

#endif
