// Ops of the plan dialect.
#ifndef MOEC_DIALECT_PLAN_IR_PLANOPS_TD
#define MOEC_DIALECT_PLAN_IR_PLANOPS_TD

include "moec/Dialect/Plan/IR/PlanBase.td"
include "moec/Dialect/MoE/IR/MoEAttrs.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Plan_ProgramOp : Plan_Op<"program", [Symbol, NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "one entry of a bundle: declarations, then commands in order";
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols, UnitAttr:$load);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`load` $load^)? $sym_name `symbols` $symbols attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The commands (launches and copies) in order; their positions are what buffer lifetimes count.
    SmallVector<Operation *> getCommands();
  }];
}

def Plan_InputOp : Plan_Op<"input"> {
  let summary = "a tensor that the caller provides";
  let description = [{ `dims` gives every dimension of `type`. }];
  let arguments = (ins StrAttr:$name, TypeAttr:$type, AffineMapAttr:$dims);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$name `:` $type `dims` $dims attr-dict";
}

def Plan_OutputOp : Plan_Op<"output"> {
  let summary = "a tensor that the program fills";
  let arguments = (ins StrAttr:$name, TypeAttr:$type, AffineMapAttr:$dims);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$name `:` $type `dims` $dims attr-dict";
}

def Plan_StateOp : Plan_Op<"state"> {
  let summary = "memory of the session: a cache or a state";
  let description = [{ `pool_symbol` is the symbol that counts its blocks or slots. }];
  let arguments = (ins StrAttr:$name, TypeAttr:$type, I64Attr:$pool_symbol);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$name `:` $type `pool` $pool_symbol attr-dict";
}

def Plan_WeightOp : Plan_Op<"weight"> {
  let summary = "a weight as it lies in its file";
  let description = [{ As moe.weight: more tensors lie behind the first one. }];
  let arguments = (ins StrAttr:$name, MoE_WeightRefAttr:$ref,
                       OptionalAttr<StrArrayAttr>:$more_names, OptionalAttr<MoE_WeightRefArrayAttr>:$more_refs,
                       TypeAttr:$type);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$name `at` $ref (`and` $more_names^ `at` $more_refs)? `:` $type attr-dict";
}

def Plan_GlobalOp : Plan_Op<"global", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a persistent buffer that the load program fills";
  let arguments = (ins FlatSymbolRefAttr:$global);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "$global attr-dict";
}

def Plan_ArenaOp : Plan_Op<"arena"> {
  let summary = "one allocation of `bytes` times `scale`";
  let arguments = (ins I64Attr:$index, AffineMapAttr:$scale, I64Attr:$bytes);
  let assemblyFormat = "$index `scale` $scale `bytes` $bytes attr-dict";
}

def Plan_BufferOp : Plan_Op<"buffer"> {
  let summary = "a temporary of `bytes` times `scale`";
  let description = [{
    Before memory planning there is no placement. `scale` is the part of the size that depends on symbols; it is the scale of
    the arena that the buffer is placed in.
  }];
  let arguments = (ins AffineMapAttr:$scale, I64Attr:$bytes, OptionalAttr<Plan_PlacementAttr>:$placement);
  let results = (outs Plan_BufferType:$buffer);
  let assemblyFormat = "`scale` $scale `bytes` $bytes (`at` $placement^)? attr-dict";
}

def Plan_LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel over workgroups";
  let description = [{
    Bindings are the inputs, then the outputs, as the kernel function takes them. `dimensions` gives the dynamic dimensions of
    its memrefs in order, `binding_bytes` the least size of each binding. `source` says which ops of the model it computes.
    On a GPU `threads` run each workgroup together and share
    `shared_bytes` of dynamic shared memory beside what the kernel itself declares. `flops` and `bytes_moved` are the work, for reports; the least of several results counts.
  }];
  let arguments = (ins
    FlatSymbolRefAttr:$kernel, Variadic<Plan_BufferType>:$inputs, Variadic<Plan_BufferType>:$outputs,
    AffineMapAttr:$dimensions, AffineMapAttr:$workgroups, AffineMapAttr:$scratch_bytes, AffineMapAttr:$binding_bytes,
    StrAttr:$source, OptionalAttr<I64Attr>:$threads, OptionalAttr<I64Attr>:$shared_bytes, OptionalAttr<AffineMapAttr>:$flops, OptionalAttr<AffineMapAttr>:$bytes_moved);
  let assemblyFormat = [{
    $kernel `ins` `(` $inputs `)` `outs` `(` $outputs `)` `dimensions` $dimensions `workgroups` $workgroups
    `scratch` $scratch_bytes `bytes` $binding_bytes $source attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_CopyOp : Plan_Op<"copy"> {
  let summary = "copies bytes from one buffer to another";
  let arguments = (ins Plan_BufferType:$from, Plan_BufferType:$to, AffineMapAttr:$bytes);
  let assemblyFormat = "$from `to` $to `bytes` $bytes attr-dict";
}

def Plan_StoreOp : Plan_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "inside a kernel: the result in a layout goes to this binding";
  let description = [{
    Plain tensors are written by bufferization.materialize_in_destination; a tensor or block tensor in a layout has no memref
    of its own shape, so that this op names the storage that the op's strategy fills.
  }];
  let arguments = (ins AnyType:$value, AnyMemRef:$binding);
  let assemblyFormat = "$value `to` $binding attr-dict `:` type($value) `,` type($binding)";
}

def Plan_TensorMapOp : Plan_Op<"tensor_map", [Pure]> {
  let summary = "inside a kernel: describes a binding for a GPU's tensor copy engine";
  let description = [{
    Boxes of `box` elements, innermost dimension first, are laid out in shared memory with a swizzle of 128 bytes; what lies
    outside of the tensor reads as zeros. The result points to the description, which the launch passes to the kernel.
  }];
  let arguments = (ins AnyMemRef:$binding, DenseI64ArrayAttr:$box);
  let results = (outs AnyType:$map);
  let assemblyFormat = "$binding `box` $box attr-dict `:` type($binding) `->` type($map)";
}

#endif
