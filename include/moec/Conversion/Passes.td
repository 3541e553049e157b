// Conversions between the phases. Passes on kernels run on the module and look at functions with `plan.kernel` only.
#ifndef MOEC_CONVERSION_PASSES_TD
#define MOEC_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

//===- Phase kernel ---------------------------------------------------------------------------===//

def ExpandStrategiesPass : Pass<"moec-expand-strategies", "ModuleOp"> {
  let summary = "builds the kernels whose op names a strategy";
  let description = [{
    A kernel function whose body is one op with the attribute `strategy` is replaced by what the strategy builds for the
    module's target. The strategy sees memrefs; scratch and the workgroup's id are the function's last arguments.
  }];
  let dependentDialects = ["affine::AffineDialect", "amx::AMXDialect", "arith::ArithDialect", "LLVM::LLVMDialect",
                           "math::MathDialect", "memref::MemRefDialect", "scf::SCFDialect", "vector::VectorDialect"];
  let statistics = [Statistic<"numExpanded", "expanded", "Kernels built by a strategy">];
}

//===- Phase target ---------------------------------------------------------------------------===//

def ConvertKernelsToABIPass : Pass<"moec-convert-kernels-to-abi", "ModuleOp"> {
  let summary = "gives kernels the signature of the kernel ABI and makes the kernel table";
  let description = [{
    A kernel function `@name` becomes `@name.body`, whose memrefs are rebuilt from base pointers and dynamic dimensions, and
    `llvm.func @name`, which reads these from the launch's arguments. The table lists all kernels by name; the module exports
    nothing but the function that returns it.
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect", "LLVM::LLVMDialect"];
}

#endif
