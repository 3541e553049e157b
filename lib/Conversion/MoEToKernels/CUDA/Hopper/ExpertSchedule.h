//===- ExpertSchedule.h - which rows of which expert a block works on -------------------------===//
//
// A tile is a few runs of 64 rows of an expert's weight times some of the tokens that were routed to
// it. All tiles are numbered through, those that share rows of a weight one behind the other; blocks
// take them in turn. Where each expert's tiles begin is a sum over the experts before it, which every
// block makes for itself.
//
// How many runs a tile has is chosen from what the routing left to do: blocks should be done at the
// same time, and tiles be large, for each costs some time of its own.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSCHEDULE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSCHEDULE_H

#include "HopperCode.h"

namespace mlir::moec {

class ExpertSchedule {
public:
  /// Limits of a tile. With `parts` above one all warpgroups work on its one run.
  struct Shape {
    int64_t parts, runs;
    int64_t tokens; ///< a multiple of 8
  };
  /// All i32, the same in all lanes of a warp.
  struct Tile {
    Value expert, firstRun, runs;
    Value firstToken; ///< its place among the sorted pairs
    Value tokens;
  };

  /// `offsets`: where each expert's pairs begin, and the end. `runs`: of an expert. `blocks`: of the
  /// launch.
  ExpertSchedule(HopperCode &code, Value offsets, int64_t experts, int64_t runs, int64_t blocks);

  /// By all threads. Takes the shape that is done sooner; without `mayBeFew` always `many`.
  void build(const Shape &many, const Shape &few, bool mayBeFew);
  /// Whether `few` was taken (i1).
  Value isFew() const { return few; }
  Value countTiles() const { return count; }
  /// The most tokens that a tile has.
  Value getMostTokens() const { return mostOfTile; }
  /// By a whole warp, after a barrier.
  Tile getTile(Value number);

private:
  Value countParts(Value tokens, int64_t most);
  Value chooseGroups(const Shape &many, const Shape &few, Value partsOfMany, Value partsOfFew,
                     Value mostTokens, bool mayBeFew);
  Value reduce(Value value, bool isMinimum);
  Value sumBefore(Value value);

  HopperCode &code;
  Value offsets;
  int64_t experts, runs, blocks;
  Value tokenBegins, tileBegins, few, count, mostTokens, mostOfTile, runsOfGroup, largerGroups;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSCHEDULE_H
