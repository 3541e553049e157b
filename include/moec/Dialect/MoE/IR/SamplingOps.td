// From logits to tokens.
#ifndef MOEC_DIALECT_MOE_IR_SAMPLINGOPS_TD
#define MOEC_DIALECT_MOE_IR_SAMPLINGOPS_TD

include "moec/Dialect/MoE/IR/MoEBase.td"

def MoE_SampleOp : MoE_Op<"sample", [Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "chooses tokens from logits";
  let description = [{
    Token `i` is one of the V columns of `x = logits[rows[i]]`. A logit that is NaN counts as -inf. A column is better than
    another if its logit is larger; of equal ones the lower column is better.

    1. The best column is chosen where `temperature[i]` is not at least 2^-126, where `top_k[i]` is 1, and where the largest logit is
       infinite.
    2. Else column `v` weighs `w[v] = floor(2^40 exp((x[v] - max(x)) / temperature[i]))`, and -inf weighs nothing. Weights are
       whole numbers, so that their sums do not depend on an order.
    3. The `top_k[i]` best columns stay; all, if it is 0 or less.
    4. With `s` the sum of their weights, the fewest best of these stay whose weights reach `top_p[i] * s`, rounded up to a
       whole number from 1 to s; all, if `top_p[i]` is not below 1.
    5. With `s` the sum of the weights that stay, the token is the first column that stays at which the running sum of
       weights, from column 0 on, exceeds `random[i] * s`, rounded down to a whole number below s.

    How the quotient and the exponential are rounded is up to an implementation; a sum that is multiplied, and the product,
    are rounded to f64, and everything else is exact.

    Constraints: logits f32 `[R, V]`, `1 <= V <= 2^22`; `0 <= rows[i] < R`; `0 <= random[i] < 1`; the other operands have the
    size of `rows`.
  }];
  let arguments = (ins
    MoE_F32Tensor2D:$logits, MoE_IndexTensor1D:$rows, MoE_F32Tensor1D:$temperature, MoE_IndexTensor1D:$top_k,
    MoE_F64Tensor1D:$top_p, MoE_F64Tensor1D:$random);
  let results = (outs MoE_IndexTensor1D:$tokens);
  let assemblyFormat = [{
    $logits `rows` `(` $rows `)` `temperature` `(` $temperature `)` `top_k` `(` $top_k `)` `top_p` `(` $top_p `)`
    `random` `(` $random `)` attr-dict `:` type($logits) `,` type($rows) `,` type($temperature) `,` type($top_k) `,`
    type($top_p) `,` type($random) `->` type($tokens)
  }];
  let hasVerifier = 1;
}

#endif
