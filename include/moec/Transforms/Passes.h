//===- Passes.h - passes on moe and plan programs ---------------------------------------------===//

#ifndef MOEC_TRANSFORMS_PASSES_H
#define MOEC_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
namespace bufferization {
class BufferizationDialect;
}
namespace func {
class FuncDialect;
}
namespace tensor {
class TensorDialect;
}
} // namespace mlir

namespace mlir::moec {
namespace moe {
class MoEDialect;
}
namespace plan {
class PlanDialect;
}

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "moec/Transforms/Passes.h.inc"

void populateFuseResidualPatterns(RewritePatternSet &patterns);
void populateFuseRotaryPatterns(RewritePatternSet &patterns);
void populateDecomposeExpertsPatterns(RewritePatternSet &patterns);

} // namespace mlir::moec

#endif // MOEC_TRANSFORMS_PASSES_H
