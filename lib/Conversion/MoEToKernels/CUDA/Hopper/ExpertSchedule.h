//===- ExpertSchedule.h - which rows of which expert a block works on -------------------------===//
//
// A tile is a few runs of 64 rows of an expert's weight times some of the tokens that were routed to
// it. All tiles are numbered through, those that share rows of a weight one behind the other; blocks
// take them in turn. Where each expert's tiles begin is a sum over the experts before it, which every
// block makes in its own shared memory.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSCHEDULE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSCHEDULE_H

#include "HopperCode.h"

namespace mlir::moec {

class ExpertSchedule {
public:
  /// All i32, the same in all lanes of a warp.
  struct Tile {
    Value expert, firstRun, runs;
    Value firstToken; ///< its place among the sorted pairs
    Value tokens;
  };

  /// `offsets`: where each expert's pairs begin, and the end. `runs`: of an expert.
  ExpertSchedule(HopperCode &code, Value offsets, int64_t experts, int64_t runs);

  /// By all threads, with barriers: tiles are of at most `runsOfTile` runs and `mostTokens` tokens
  /// (i32, a multiple of 8).
  void build(Value runsOfTile, Value mostTokens);
  /// By a whole warp, after build().
  Value countTiles();
  /// The most tokens that a tile has.
  Value getMostTokens();
  Tile getTile(Value number);

private:
  Value countParts(Value tokens);
  Value ceilDivide(Value a, Value b);

  HopperCode &code;
  Value offsets;
  int64_t experts, runs;
  Value runsOfTile, mostTokens, tokenBegins, tileBegins, mostOfExpert;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSCHEDULE_H
