// Passes that raise decomposed models to moe ops. One file each under lib/Transforms/Raise.
#ifndef MOEC_TRANSFORMS_RAISE_PASSES_TD
#define MOEC_TRANSFORMS_RAISE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldUnitBatch : Pass<"moec-fold-unit-batch", "func::FuncOp"> {
  let summary = "computes on [tokens, ...] what is written on [1, tokens, ...]";
  let description = [{
    Moves tensor.expand_shape ops that only add dimensions of size 1 below elementwise ops and norms, where they meet the
    collapses of products and vanish. An addition of a bias becomes the bias operand of its moe.linear.
  }];
  let statistics = [Statistic<"moved", "reshapes-moved", "reshapes moved below their users">,
                    Statistic<"biases", "biases-folded", "additions that became bias operands">];
  let dependentDialects = ["arith::ArithDialect", "tensor::TensorDialect"];
}

def FoldMovement : Pass<"moec-fold-movement", "func::FuncOp"> {
  let summary = "chains of reshapes and transposes that undo each other vanish";
  let description = [{
    Where a tensor.collapse_shape at the end of such a chain reads the elements of the tensor at its beginning in their order, it
    collapses that tensor. A reshaped moe.weight is a moe.weight of the other shape.
  }];
  let statistics = [Statistic<"folded", "chains-folded", "chains that vanished">];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect", "tensor::TensorDialect", "moe::MoEDialect"];
}

def RaiseEmbedding : Pass<"moec-raise-embedding", "func::FuncOp"> {
  let summary = "gathers of rows of a table by token ids become moe.embedding";
  let description = [{
    Fires where each element of a tensor [1, tokens, hidden] is `table[id, column]` and the id comes from an argument of the
    function, whether negative ids are wrapped and clamped or not: ids are checked before a step.
  }];
  let statistics = [Statistic<"raised", "embeddings-raised", "gathers that became moe.embedding">];
  let dependentDialects = ["arith::ArithDialect", "tensor::TensorDialect", "moe::MoEDialect"];
}

def RaiseRope : Pass<"moec-raise-rope", "func::FuncOp"> {
  let summary = "rotations of pairs of channels by position become moe.rope";
  let description = [{
    Evaluates every element of the last dimension and fires where they are `a cos(p f) m - b sin(p f) m` and
    `b cos(p f) m + a sin(p f) m` for pairs (a, b) of the input in either arrangement, p one tensor of positions and f
    constants; channels beside them pass through unchanged.
  }];
  let statistics = [Statistic<"raised", "rotations-raised", "rotations that became moe.rope">];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect", "tensor::TensorDialect", "moe::MoEDialect"];
}

def RaiseRouting : Pass<"moec-raise-routing", "func::FuncOp"> {
  let summary = "top-k choices with softmax weights become moe.route";
  let description = [{
    Fires on a top-k over router logits whose weights are a softmax over the chosen logits, or a softmax over all logits, of
    which the chosen ones are taken and perhaps divided by their sum.
  }];
  let statistics = [Statistic<"raised", "routers-raised", "choices that became moe.route">];
  let dependentDialects = ["arith::ArithDialect", "tensor::TensorDialect", "moe::MoEDialect"];
}

def RaiseExperts : Pass<"moec-raise-experts", "func::FuncOp"> {
  let summary = "gathered expert products become moe.experts";
  let description = [{
    Fires on sums over choices of `weight * (W2[e] activation(W1[e] x + b1[e]) + b2[e])` where every use of e is the same
    choice; the activation is SwiGLU (with alpha, beta and limit) or SiLU, gate and up interleaved or one after the other.
  }];
  let statistics = [Statistic<"raised", "experts-raised", "sums that became moe.experts">];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect", "tensor::TensorDialect", "moe::MoEDialect"];
}

def RaiseLanguageModel : Pass<"moec-raise-language-model", "ModuleOp"> {
  let summary = "masked attention over past and present becomes a ragged step over paged caches";
  let description = [{
    For a function with `moe.onnx_language_model`. Each attention is recognised by the formula of its output's elements: a
    softmax of scaled products, of a mask that lets key `j` be seen by query `i` when `j <= past + i` and, with a window `w`,
    `j > past + i - w`, and of a sink, where keys and values are a past followed by what the step adds. It becomes
    moe.kv_append and moe.attention. The function then takes what a ragged step takes, and states instead of past and present;
    the rows whose logits are wanted are chosen before the last norm. An attention or a past that is not recognised is an
    error that says what is different. Blocks of caches hold as many tokens as the module's `moe.language_model` says, else 16.
  }];
  let statistics = [Statistic<"raised", "attentions-raised", "attentions that became moe.attention">];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect", "tensor::TensorDialect", "moe::MoEDialect"];
}

def SetActivationType : Pass<"moec-set-activation-type", "ModuleOp"> {
  let summary = "changes the type of activations and caches of a language model";
  let description = [{
    The module's `moe.activation_type` names the type; without it nothing happens. Weights stay as the file has them; router
    logits and the model's logits stay f32.
  }];
  let dependentDialects = ["moe::MoEDialect"];
}

#endif
