//===- InitDialects.h - every dialect that moec reads, writes or makes -------------------------===//

#ifndef MOEC_INITDIALECTS_H
#define MOEC_INITDIALECTS_H

namespace mlir {
class DialectRegistry;
}

namespace mlir::moec {

/// Registers the dialects of all phases and the external interface models that our passes need.
void registerAllDialects(DialectRegistry &registry);

/// Registers every pass and pipeline of moec and the upstream ones that the pipelines use.
void registerAllPasses();

} // namespace mlir::moec

#endif // MOEC_INITDIALECTS_H
