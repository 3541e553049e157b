// The plan dialect, its types and attributes.
#ifndef MOEC_DIALECT_PLAN_IR_PLANBASE_TD
#define MOEC_DIALECT_PLAN_IR_PLANBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::mlir::moec::plan";
  let summary = "the program that the runtime executes: buffers, launches, copies";
  let description = [{
    A `plan.program` is a flat list of commands over buffers, one to one with the bundle's manifest. Sizes are affine maps
    without dimensions over the program's symbols (`affine_map<()[s0, s1] -> (s0 * 1024)>`), which the runtime binds from the
    shapes of a call's inputs.

    Memory comes in arenas. An arena has a scale, an expression of the symbols; a buffer in it lies at `offset * scale` and is
    `bytes * scale` long. So one plan, made once, is exact for every value of the symbols.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerOperations();
    void registerAttributes();
    void registerTypes();
  }];
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_BufferType : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "some bytes of memory";
}

def Plan_PlacementAttr : AttrDef<Plan_Dialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "where a buffer lies and when it is alive";
  let description = [{
    In arena `arena`, from `offset` times the arena's scale on, from command `first` to command `last`, both included.
  }];
  let parameters = (ins "int64_t":$arena, "int64_t":$offset, "int64_t":$first, "int64_t":$last);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
