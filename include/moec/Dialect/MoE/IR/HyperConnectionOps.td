// Hyper-connections: a residual stream of several rows for each token.
#ifndef MOEC_DIALECT_MOE_IR_HYPERCONNECTIONOPS_TD
#define MOEC_DIALECT_MOE_IR_HYPERCONNECTIONOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_HyperWeightsOp : MoE_Op<"hyper_weights", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "how a token's residual streams are mixed around a branch";
  let description = [{
    A token has `n` residual streams. `products` are the streams, one behind the other, times a weight; the norm that belongs
    before that product is applied behind it: `x = products / sqrt(mean(streams^2) + norm_epsilon)`. Then, with `b` = base:

    1. `pre[i] = sigmoid(x[i] * scale[0] + b[i]) + epsilon`: what of stream `i` goes into the branch;
    2. `post[k] = 2 * sigmoid(x[n + k] * scale[1] + b[n + k])`: what of the branch's result goes to stream `k`;
    3. `mix[j, k]`: what of stream `j` goes to stream `k`. Starts as the softmax over `k` of
       `x[2 n + j n + k] * scale[2] + b[2 n + j n + k]`, plus epsilon. Then columns (all `j` of a `k`) are divided by their sum
       plus epsilon, and `iterations - 1` times first rows and then columns: both sums get near 1 (Sinkhorn and Knopp).

    A row of the result is `pre`, `post` and the rows of `mix`; with only `n` columns it is `pre` alone, for the end of a model.
    Everything is in f32.

    Constraints: products f32 `[T, C]` with `C = n` or `C = n (n + 2)`; streams `[T, n, features]`; scale `[1]` or `[3]`, base
    `[C]`; at least one iteration.

    Example: `%w = moe.hyper_weights %p of %x scale(%s : tensor<3xf32>) base(%b : tensor<24xf32>) {iterations = 20, epsilon = 1.0e-06
    : f64, norm_epsilon = 1.0e-06 : f64} : tensor<?x24xf32>, tensor<?x4x128xbf16> -> tensor<?x24xf32>`
  }];
  let arguments = (ins MoE_F32Tensor2D:$products, MoE_FloatTensor3D:$streams, MoE_FloatTensor1D:$scale, MoE_FloatTensor1D:$base,
                       DefaultValuedAttr<I64Attr, "1">:$iterations, F64Attr:$epsilon, F64Attr:$norm_epsilon);
  let results = (outs MoE_F32Tensor2D:$result);
  let assemblyFormat = [{
    $products `of` $streams `scale` `(` $scale `:` type($scale) `)` `base` `(` $base `:` type($base) `)` attr-dict `:`
    type($products) `,` type($streams) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MoE_HyperCollapseOp : MoE_Op<"hyper_collapse", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "what goes from the residual streams into a branch";
  let description = [{
    `result[t, d] = sum over i < n of weights[t, i] * streams[t, i, d]` in f32, rounded once; the first `n` weights are `pre` of
    `moe.hyper_weights`.

    Constraints: streams `[T, n, features]`, weights f32 `[T, at least n]`, result `[T, features]`.

    Example: `%x = moe.hyper_collapse %streams by %w : tensor<?x4x128xbf16>, tensor<?x24xf32> -> tensor<?x128xbf16>`
  }];
  let arguments = (ins MoE_FloatTensor3D:$streams, MoE_F32Tensor2D:$weights);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = "$streams `by` $weights attr-dict `:` type($streams) `,` type($weights) `->` type($result)";
  let hasVerifier = 1;
}

def MoE_HyperExpandOp : MoE_Op<"hyper_expand", [Pure, AllTypesMatch<["streams", "result"]>,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "the residual streams behind a branch";
  let description = [{
    `result[t, k, d] = post[t, k] * input[t, d] + sum over j < n of mix[t, j, k] * streams[t, j, d]` in f32, rounded once, with
    the `post` and `mix` of a row of `moe.hyper_weights`.

    Constraints: input `[T, features]`, streams `[T, n, features]`, weights f32 `[T, n (n + 2)]`.

    Example: `%s = moe.hyper_expand %y into %streams by %w : tensor<?x128xbf16>, tensor<?x4x128xbf16>, tensor<?x24xf32>`
  }];
  let arguments = (ins MoE_FloatTensor2D:$input, MoE_FloatTensor3D:$streams, MoE_F32Tensor2D:$weights);
  let results = (outs MoE_FloatTensor3D:$result);
  let assemblyFormat = [{
    $input `into` $streams `by` $weights attr-dict `:` type($input) `,` type($streams) `,` type($weights)
  }];
  let hasVerifier = 1;
}

#endif
