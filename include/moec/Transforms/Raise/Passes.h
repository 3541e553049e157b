//===- Passes.h - passes that raise decomposed models to moe ops
//-----------------------------------===//

#ifndef MOEC_TRANSFORMS_RAISE_PASSES_H
#define MOEC_TRANSFORMS_RAISE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;
namespace arith {
class ArithDialect;
}
namespace func {
class FuncOp;
}
namespace linalg {
class LinalgDialect;
}
namespace tensor {
class TensorDialect;
}
} // namespace mlir

namespace mlir::moec {
namespace moe {
class MoEDialect;
}

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "moec/Transforms/Raise/Passes.h.inc"

/// From an imported graph to the moe ops that the checkpoint importer builds. A function that is no
/// language model keeps its inputs and outputs.
void buildRaisePipeline(OpPassManager &manager);

/// Registers the passes and `moec-raise`, the pipeline.
void registerRaisePasses();

} // namespace mlir::moec

#endif // MOEC_TRANSFORMS_RAISE_PASSES_H
