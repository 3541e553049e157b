//===- OrderedScores.h - scores as integers of the same order, and the k-th largest -----------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ORDEREDSCORES_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ORDEREDSCORES_H

#include "CodeBuilder.h"

namespace mlir::moec {

/// Below every score's integer. The largest one is that of infinity, to which one can be added.
inline constexpr int64_t lowestOrder = INT32_MIN;

/// f32 scores, a scalar or a vector, as i32 that compare (signed) like them: -0 like 0, NaN like
/// -inf.
Value orderOfScores(CodeBuilder &code, Value scores);

/// The `rank`-th largest of integers of which at least `rank` are above lowestOrder, where
/// `countAtLeast(x)` says how many are at least x; both are i32. Found bit by bit, so that no
/// number of equal ones is special.
Value findThreshold(CodeBuilder &code, int64_t rank, function_ref<Value(Value)> countAtLeast);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ORDEREDSCORES_H
