//===- RunPasses.h - whose fault a failing pass is --------------------------------------------===//

#ifndef MOEC_COMPILER_RUNPASSES_H
#define MOEC_COMPILER_RUNPASSES_H

#include "mlir/Pass/PassManager.h"

namespace mlir::moec {

/// Runs the passes. An error that a pass reports is about the input, such as an op that no target
/// has code for. It is the compiler's own, and another error that begins with "internal error" says
/// so, when
///  - the program is not valid any more,
///  - nobody has said what is wrong,
///  - the pass checks what earlier passes have made: moec-verify-opt, moec-verify-plan.
LogicalResult runPasses(PassManager &passes, ModuleOp module);

} // namespace mlir::moec

#endif // MOEC_COMPILER_RUNPASSES_H
