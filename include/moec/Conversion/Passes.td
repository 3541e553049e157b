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

def ConvertMoEToLinalgPass : Pass<"convert-moe-to-linalg"> {
  let summary = "decomposes moe ops without a strategy to linalg";
  let description = [{
    Norms, rotary embeddings, embeddings, row selection, products with weights that lie as in the checkpoint, combination of
    experts and dequantisation become linalg on tensors, with sums in f32 and results rounded once. Other moe ops stay.
  }];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect", "math::MathDialect", "tensor::TensorDialect"];
}

def VerifyDecomposedPass : Pass<"moec-verify-decomposed", "ModuleOp"> {
  let summary = "reports every moe op that has neither a strategy nor a decomposition";
}

def FuseKernelsPass : Pass<"moec-fuse-kernels", "ModuleOp"> {
  let summary = "fuses elementwise ops inside generic kernels";
  let description = [{
    Elementwise and named ops become linalg.generic; chains that read each other's elements in the same order become one op.
    Reshapes and concatenations at a kernel's border become views of its buffers.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect", "bufferization::BufferizationDialect",
                           "linalg::LinalgDialect", "memref::MemRefDialect", "tensor::TensorDialect"];
}

def DistributeKernelsPass : Pass<"moec-distribute-kernels", "ModuleOp"> {
  let summary = "cuts generic kernels into what one workgroup computes";
  let description = [{
    The attribute `plan.tile_sizes` says how the leading dimensions of a kernel's results are cut over workgroups; the
    workgroup's id counts the tiles in row-major order. Inside a tile, and where a dimension is dynamic, one row is computed
    after the other, together with all that leads to it.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect", "bufferization::BufferizationDialect",
                           "linalg::LinalgDialect", "memref::MemRefDialect", "scf::SCFDialect", "tensor::TensorDialect"];
}

def SplitReductionsPass : Pass<"moec-split-reductions", "ModuleOp"> {
  let summary = "keeps partial results of reductions in vector lanes";
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect", "linalg::LinalgDialect", "scf::SCFDialect",
                           "tensor::TensorDialect"];
}

def PlaceTemporariesPass : Pass<"moec-place-temporaries", "ModuleOp"> {
  let summary = "puts temporaries of kernels on the stack";
  let description = [{
    Kernels allocate nothing. Every temporary becomes stack of the kernel's entry; one without a bound, or more than a megabyte
    of them, is an error.
  }];
  let dependentDialects = ["arith::ArithDialect", "memref::MemRefDialect"];
}

def VectorizeKernelsPass : Pass<"moec-vectorize-kernels", "ModuleOp"> {
  let summary = "turns linalg on buffers into vector code";
  let description = [{
    Loops over rows, vectors along the dimension whose elements are neighbours in memory, a remainder. Ops with gathers,
    booleans or unusual indexing are left to scalar loops.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect", "linalg::LinalgDialect", "memref::MemRefDialect",
                           "scf::SCFDialect", "vector::VectorDialect"];
  let statistics = [Statistic<"numVectorized", "vectorized", "Ops that became vector code">,
                    Statistic<"numScalar", "scalar", "Ops left to scalar loops">];
}

def VerifyKernelsPass : Pass<"moec-verify-kernels", "ModuleOp"> {
  let summary = "checks that kernels hold nothing but loops, vectors and memory";
}

def DistributeOverThreadsPass : Pass<"moec-distribute-over-threads", "ModuleOp"> {
  let summary = "spreads linalg on buffers over the threads of a GPU's block";
  let description = [{
    Neighbouring threads take neighbouring elements. Reductions to few results are shared by the block: partial results meet
    through warp exchanges and shared memory, in an order that the sizes fix. A barrier follows each op.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect", "linalg::LinalgDialect", "memref::MemRefDialect",
                           "NVVM::NVVMDialect", "scf::SCFDialect"];
  let statistics = [Statistic<"numDistributed", "distributed", "Ops spread over threads">];
}

def ShareTemporariesPass : Pass<"moec-share-temporaries", "ModuleOp"> {
  let summary = "puts temporaries of kernels into a GPU's shared memory";
  let description = [{
    Every temporary becomes shared memory of its kernel; one without a bound, or more than 48 KiB of them, is an error.
  }];
  let dependentDialects = ["arith::ArithDialect", "memref::MemRefDialect"];
}

//===- Phase target ---------------------------------------------------------------------------===//

def EmulateAMXPass : Pass<"moec-emulate-amx", "ModuleOp"> {
  let summary = "replaces AMX and AVX-512 intrinsics by plain code (for tests)";
  let description = [{
    With this pass before phase target, kernels of strategies for AMX run on any machine and give the results of the hardware:
    bf16 products in pairs, sums in f32, subnormal inputs flushed. Not part of any pipeline.
  }];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect", "memref::MemRefDialect", "scf::SCFDialect",
                           "vector::VectorDialect"];
}

def ExpandMathPass : Pass<"moec-expand-math", "ModuleOp"> {
  let summary = "replaces elementary functions by arithmetic";
  let description = [{
    Kernels call no C library. Functions on f32 are accurate to one or two units in the last place, those on f64 (exp, log, tanh,
    erf, sin, cos, sqrt and rsqrt; others are refused) to four, those on bf16 and f16 are computed in f32 and rounded once.
    `arith.remf` is exact. On targets without fused multiply-add `math.fma` becomes two operations.
  }];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect", "scf::SCFDialect", "vector::VectorDialect"];
}

def LegalizeFloatsPass : Pass<"moec-legalize-floats", "ModuleOp"> {
  let summary = "computes bf16 and f16 arithmetic in f32";
  let description = [{
    Every operation on bf16 or f16 extends its operands, works in f32 and rounds its result to nearest even. Conversions between
    bf16 and f32 become integer operations; so do those between f16 and f32 on targets without F16C.
  }];
  let dependentDialects = ["arith::ArithDialect", "vector::VectorDialect"];
}

def ConvertKernelsToABIPass : Pass<"moec-convert-kernels-to-abi", "ModuleOp"> {
  let summary = "gives kernels the signature of the kernel ABI and makes the kernel table";
  let description = [{
    A kernel function `@name` becomes `@name.body`, whose memrefs are rebuilt from base pointers and dynamic dimensions, and
    `llvm.func @name`, which reads these from the launch's arguments. The table lists all kernels by name; the module exports
    nothing but the function that returns it.
  }];
  let dependentDialects = ["arith::ArithDialect", "func::FuncDialect", "LLVM::LLVMDialect"];
}

def ConvertKernelsToNVVMPass : Pass<"moec-convert-kernels-to-nvvm", "ModuleOp"> {
  let summary = "gives kernels the signature of a GPU's entry point";
  let description = [{
    A pointer for each binding, then the dynamic dimensions (i64), then scratch where the kernel uses it. The workgroup becomes
    the number of the block.
  }];
  let dependentDialects = ["arith::ArithDialect", "LLVM::LLVMDialect", "NVVM::NVVMDialect"];
}

def MarkEntryPointsPass : Pass<"moec-mark-entry-points", "ModuleOp"> {
  let summary = "makes functions with `plan.threads` entry points of a GPU, for blocks of so many threads";
  let dependentDialects = ["NVVM::NVVMDialect"];
}

def VerifyTargetPass : Pass<"moec-verify-target", "ModuleOp"> {
  let summary = "checks that kernels are in the llvm dialect and the kernel table is there";
}

#endif
