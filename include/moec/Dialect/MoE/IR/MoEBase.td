// The moe dialect and the type constraints that its ops share.
#ifndef MOEC_DIALECT_MOE_IR_MOEBASE_TD
#define MOEC_DIALECT_MOE_IR_MOEBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def MoE_Dialect : Dialect {
  let name = "moe";
  let cppNamespace = "::mlir::moec::moe";
  let summary = "Mixture-of-Experts language models as a graph on tensors";
  let description = [{
    One op for each building block of a Mixture-of-Experts transformer. Everything a token computes alone is written on
    tensors whose first dimension counts the tokens of a ragged step (`[tokens, ...]`); what sequences share (caches, states)
    is held by operands of type `!moe.cache` and `!moe.state`, which ops read and write in place.

    A ragged step holds `tokens` tokens of `sequences` sequences. Ops that need to know which token belongs where take
    - `positions` i32 [tokens]: the position of each token in its sequence,
    - `token_sequences` i32 [tokens]: the index of its sequence in the step,
    - `block_table` i32 [sequences, blocks]: for each sequence the pool blocks that hold its positions, in order,
    - `sequence_offsets` i32 [sequences + 1]: where the tokens of each sequence begin; they follow one another, with ascending
      positions,
    - `state_slots` i32 [sequences]: the slot of each sequence in every state. Two sequences never share one.

    Sums are in f32 whatever the element types; results are rounded once, to the result's element type.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerOperations();
    void registerAttributes();
    void registerTypes();
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

class MoE_Op<string mnemonic, list<Trait> traits = []> : Op<MoE_Dialect, mnemonic, traits>;

def MoE_Float : AnyTypeOf<[F32, BF16, F16], "f32, bf16 or f16">;
def MoE_FloatTensor : RankedTensorOf<[F32, BF16, F16]>;
def MoE_FloatTensor1D : 1DTensorOf<[F32, BF16, F16]>;
def MoE_FloatTensor2D : 2DTensorOf<[F32, BF16, F16]>;
def MoE_FloatTensor3D : 3DTensorOf<[F32, BF16, F16]>;
def MoE_F32Tensor1D : 1DTensorOf<[F32]>;
def MoE_FloatTensor2DOr3D
    : RankedTensorOf<[F32, BF16, F16], [HasAnyRankOfPred<[2, 3]>], "2D or 3D tensor of f32, bf16 or f16">;
def MoE_F32Tensor2D : 2DTensorOf<[F32]>;
def MoE_F64Tensor1D : 1DTensorOf<[F64]>;
def MoE_IndexTensor1D : 1DTensorOf<[I32]>;
def MoE_IndexTensor2D : 2DTensorOf<[I32]>;
def MoE_ByteTensor : RankedTensorOf<[I8]>;
def MoE_CodeTensor : RankedTensorOf<[I8, I32]>;
def MoE_ScaleTensor : RankedTensorOf<[F32, BF16, F16, I8]>;

#endif
