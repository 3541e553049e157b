// Residuals that are more than a sum.
#ifndef MOEC_DIALECT_MOE_IR_RESIDUALOPS_TD
#define MOEC_DIALECT_MOE_IR_RESIDUALOPS_TD

include "moec/Dialect/MoE/IR/MoETypes.td"
include "moec/Dialect/MoE/IR/MoEInterfaces.td"

def MoE_MixResidualsOp : MoE_Op<"mix_residuals", [Pure,
    DeclareOpInterfaceMethods<TokenParallelOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "attention residuals: each token attends to its own past layers";
  let description = [{
    With candidates `V[i]`, for each token alone:

    ```
    score[i] = sum_d V[i, d] * rsqrt(mean(V[i]^2) + epsilon) * weight[d]
    p        = softmax(score)
    result   = sum_i p[i] * V[i]
    ```
    Scores look at the normed candidates, the sum takes them as they are. Everything is in f32, the result is rounded once. The
    order of the candidates does not matter. In checkpoints `weight` is the product of two tensors, a norm's and a projection's.

    Constraints: at least one candidate; candidates and result of one shape `[T, D]`; weight `[D]`; epsilon at least 0.

    Example: `%x = moe.mix_residuals %b0, %b1, %p weight(%w : tensor<128xf32>) {epsilon = 1.0e-05 : f64} : tensor<?x128xbf16>,
    tensor<?x128xbf16>, tensor<?x128xbf16> -> tensor<?x128xbf16>`
  }];
  let arguments = (ins Variadic<MoE_FloatTensor2D>:$candidates, MoE_FloatTensor1D:$weight, F64Attr:$epsilon);
  let results = (outs MoE_FloatTensor2D:$result);
  let assemblyFormat = [{
    $candidates `weight` `(` $weight `:` type($weight) `)` attr-dict `:` type($candidates) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
