// Types: block-quantised tensors, paged caches, per-sequence states.
#ifndef MOEC_DIALECT_MOE_IR_MOETYPES_TD
#define MOEC_DIALECT_MOE_IR_MOETYPES_TD

include "moec/Dialect/MoE/IR/MoEAttrs.td"

class MoE_Type<string name, string typeMnemonic> : TypeDef<MoE_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def MoE_BlockTensorType : MoE_Type<"BlockTensor", "block_tensor"> {
  let summary = "a tensor quantised in blocks along its last dimension";
  let description = [{
    `shape` is logical. Format `mxfp4`: blocks of 32 E2M1 codes (two a byte, the even element in the low nibble) and one E8M0
    scale byte a block. Without a layout the value stands for the pair (codes, scales) of a checkpoint; with one, for a single
    packed buffer.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    MoE_BlockFormatParameter:$format,
    OptionalParameter<"::mlir::moec::moe::LayoutAttr">:$layout);
  let assemblyFormat = "`<` `[` $shape `]` `,` $format (`,` $layout^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t mxfp4BlockSize = 32;
    int64_t getRank() const { return getShape().size(); }
    int64_t getDimSize(int64_t i) const { return getShape()[i]; }
  }];
}

def MoE_CacheType : MoE_Type<"Cache", "cache"> {
  let summary = "the paged key and value cache of one attention layer";
  let description = [{
    A pool of blocks of `block` tokens. Position `p` of a sequence lies at offset `p mod block` of pool block
    `block_table[sequence][p div block]`. What a block holds:

    - form `split`, the usual one: the keys as `[kv_heads][key_dim][block]` (transposed, so that the same channel of
      neighbouring tokens is one vector), then the values as `[kv_heads][block][value_dim]`. A GPU's keys are
      `[kv_heads][block][key_dim]`.
    - form `shared`: the keys as `[kv_heads][block][key_dim]` and nothing else. A value is the first `value_dim` elements of
      its key: of latent attention, whose value is the latent within the key, or of keys without values (`value_dim = 0`).

    Example: `!moe.cache<kv_heads = 1, key_dim = 576, value_dim = 512, block = 64, bf16, shared>`
  }];
  let parameters = (ins "int64_t":$kv_heads, "int64_t":$key_dim, "int64_t":$value_dim, "int64_t":$block, "Type":$element,
    DefaultValuedParameter<"::mlir::moec::moe::CacheForm", "::mlir::moec::moe::CacheForm::split">:$form);
  let assemblyFormat = "`<` struct($kv_heads, $key_dim, $value_dim, $block) `,` $element (`,` $form^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isShared() const { return getForm() == CacheForm::shared; }
    /// Elements of one block.
    int64_t getBlockElements() const {
      return getKvHeads() * getBlock() * (getKeyDim() + (isShared() ? 0 : getValueDim()));
    }
  }];
}

def MoE_StateType : MoE_Type<"State", "state"> {
  let summary = "one slot of fixed size for each sequence: recurrent or convolution state";
  let description = [{
    A pool of slots, each a row-major array of `shape`. A sequence's slot in every state is `state_slots[sequence]`; what it
    holds is that of the sequence after its last step. A sequence that begins (at position 0) begins with zeros, whatever lies
    in its slot.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "Type":$element);
  let assemblyFormat = "`<` `[` $shape `]` `,` $element `>`";
  let genVerifyDecl = 1;
}

def MoE_DenseOrBlockWeight : AnyTypeOf<[MoE_FloatTensor, MoE_BlockTensorType], "a float tensor or a block tensor">;

#endif
