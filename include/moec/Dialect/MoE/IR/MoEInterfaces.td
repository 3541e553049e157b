// How generic passes ask moe ops about themselves.
#ifndef MOEC_DIALECT_MOE_IR_MOEINTERFACES_TD
#define MOEC_DIALECT_MOE_IR_MOEINTERFACES_TD

include "mlir/IR/OpBase.td"

def TokenParallelOpInterface : OpInterface<"TokenParallelOpInterface"> {
  let cppNamespace = "::mlir::moec::moe";
  let description = [{
    An op whose results' first dimension counts tokens, and where row `t` of a result depends only on row `t` of the token
    operands and on the whole of the others. Such ops may be cut along the tokens and fused row by row.
  }];
  let methods = [
    InterfaceMethod<"Whether operand `index` is cut along the tokens together with the results.", "bool",
                    "isTokenOperand", (ins "unsigned":$index)>,
  ];
}

def AcceptsResidualOpInterface : OpInterface<"AcceptsResidualOpInterface"> {
  let cppNamespace = "::mlir::moec::moe";
  let description = [{
    An op with one result that can add a tensor of the result's shape and element type to its sum before it rounds. The
    addition of a residual stream is fused into its producer through this interface.
  }];
  let methods = [
    InterfaceMethod<"Whether a residual is already there.", "bool", "hasResidual", (ins)>,
    InterfaceMethod<"Adds the residual operand.", "void", "setResidual", (ins "::mlir::Value":$residual)>,
  ];
}

def AcceptsNormOpInterface : OpInterface<"AcceptsNormOpInterface"> {
  let cppNamespace = "::mlir::moec::moe";
  let description = [{
    An op that can apply an RMS norm to its activation operand while it reads it.
  }];
  let methods = [
    InterfaceMethod<"Whether a norm is already there.", "bool", "hasNorm", (ins)>,
    InterfaceMethod<"The activation operand.", "::mlir::OpOperand &", "getNormalizedOperand", (ins)>,
    InterfaceMethod<"Adds the norm: weight [hidden] and epsilon.", "void", "setNorm",
                    (ins "::mlir::Value":$weight, "::mlir::FloatAttr":$epsilon)>,
  ];
}

def AcceptsRotaryOpInterface : OpInterface<"AcceptsRotaryOpInterface"> {
  let cppNamespace = "::mlir::moec::moe";
  let description = [{
    An op that can apply a rotary embedding to one operand of shape [tokens, heads, dim] while it reads it, at the positions
    that it takes anyway.
  }];
  let methods = [
    InterfaceMethod<"The operand that may be rotated.", "::mlir::OpOperand &", "getRotatedOperand", (ins)>,
    InterfaceMethod<"The positions that the op takes.", "::mlir::Value", "getRotaryPositions", (ins)>,
    InterfaceMethod<"The rotation that is already there, or null.", "::mlir::moec::moe::RotaryAttr", "getAppliedRotary", (ins)>,
    InterfaceMethod<"Adds the rotation.", "void", "setAppliedRotary", (ins "::mlir::moec::moe::RotaryAttr":$rotary)>,
  ];
}

#endif
