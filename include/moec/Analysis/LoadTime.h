//===- LoadTime.h - which ops depend on weights and constants only ----------------------------===//

#ifndef MOEC_ANALYSIS_LOADTIME_H
#define MOEC_ANALYSIS_LOADTIME_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::moec {

class LoadTime {
public:
  explicit LoadTime(func::FuncOp entry);

  /// Whether `op` depends on no input and no state: it can run when the bundle is loaded.
  bool isLoadTime(Operation *op) const { return ops.contains(op); }

  /// Whether computing `op` once is better than where it stands: not for weights themselves, constants and other ops that
  /// cost nothing and would only take memory.
  bool isWorthHoisting(Operation *op) const;

private:
  llvm::DenseSet<Operation *> ops;
};

} // namespace mlir::moec

#endif // MOEC_ANALYSIS_LOADTIME_H
