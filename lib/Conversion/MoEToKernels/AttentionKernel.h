//===- AttentionKernel.h - code of one workgroup of attention ---------------------------------===//
//
// Online softmax: for each chunk of keys the scores of a row, the new running maximum, the
// probabilities relative to it, and the products with the values; sums that were made under the old
// maximum are scaled. See AttentionShape.h for the cuts.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ATTENTIONKERNEL_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ATTENTIONKERNEL_H

#include "AttentionShape.h"
#include "CodeBuilder.h"
#include "Rotary.h"

namespace mlir::moec {

/// Scratch memory of a workgroup.
struct AttentionScratch {
  AttentionScratch(moe::AttentionOp op, const AttentionShape &shape, ScratchAllocator allocator);

  int64_t bytes;
  Rotary rotary;
  Value query;      ///< f32 [rows][key_dim], rotated
  Value output;     ///< f32 [rows][value_dim]: sums of probability * value
  Value sums;       ///< f32 [rows][lanes]: sums of probabilities, lane by lane
  Value maxima;     ///< f32 [rows]: running maxima
  Value positions;  ///< i32 [rows]
  Value scores;     ///< f32 [row block][chunk]: scores, then probabilities
  Value blocks;     ///< i32 [blocks of a chunk]: pool blocks, -1 where nothing is to be read
  Value nextBlocks; ///< those of the next chunk, to be fetched ahead; where there are none, the
                    ///< same again
};

class AttentionKernel {
public:
  AttentionKernel(CodeBuilder &code, moe::AttentionOp op, ValueRange operands, Value result,
                  Value scratch, const TargetDescription &target);

  void build(Value workgroup);

private:
  /// Consecutive tokens of one sequence inside the workgroup's tile.
  struct Run {
    Value first, end, sequence;
    Value rows;              ///< query rows
    Value firstKey, keysEnd; ///< keys that any row may see
  };

  // AttentionKernel.cpp: runs of tokens, chunks of keys.
  Value findTileSize(Value tokens);
  Value findRunEnd(Value first, Value tileEnd, Value sequence);
  void buildRun(Value first, Value end, Value sequence);
  void findKeys(Run &run);
  Value resolveBlocks(const Run &run, Value chunkStart);
  Value resolveBlock(const Run &run, Value firstKey, Value otherwise);
  void forEachRowBlock(const Run &run, function_ref<void(Value firstRow)> body);

  // AttentionRows.cpp: queries in, results out.
  void prepareRows(const Run &run);
  void prepareRow(Value token, Value head, Value row, Value position);
  void padRows(const Run &run);
  void startSoftmax(Value row, Value head);
  void finishRows(const Run &run);

  // AttentionProducts.cpp: scores, softmax, products with values, for one row block and one chunk.
  /// What the rows of a block see of a chunk, relative to it: keys that some row sees, and among
  /// them those that every row sees.
  struct VisibleKeys {
    Value first, end;
    Value sharedFirst, sharedEnd; ///< empty when sharedEnd <= sharedFirst
  };
  /// Keys of a chunk that a block of rows looks at.
  struct Keys {
    Value firstRow;
    Value chunkStart; ///< position of the chunk
    VisibleKeys visible;
    bool isWhole; ///< all of the chunk, seen by all rows, in blocks that exist
  };
  void buildChunk(Value firstRow, Value chunkStart, Value allBlocksExist);
  VisibleKeys findVisibleKeys(Value firstRow, Value chunkStart);
  void buildProducts(const Keys &keys);
  SmallVector<Value> buildScores(const Keys &keys);
  Value firstPanelKey(const Keys &keys);
  SmallVector<Value> buildScorePanel(const Keys &keys, Value key, Value block);
  SmallVector<Value> addProducts(ValueRange sums, Value vector,
                                 function_ref<Value(int64_t row)> factor);
  Value finishScores(Value product);
  void hideScores(const Keys &keys, Value key, MutableArrayRef<Value> scores);
  SmallVector<Value> buildSoftmax(const Keys &keys, ValueRange chunkMaxima);
  Value buildProbability(int64_t row, Value key, Value maximum);
  void buildValues(const Keys &keys, ValueRange factors);
  SmallVector<Value> addValues(const Keys &keys, ValueRange sums, Value column, int64_t lanes);
  SmallVector<Value> addBlockValues(const Keys &keys, ValueRange sums, Value i, Value block,
                                    Value column, int64_t lanes);
  Value seesKey(const Keys &keys, int64_t row, Value key);

  CodeBuilder &code;
  moe::AttentionOp op;
  AttentionShape shape;
  Value query, cache, positions, tokenSequences, blockTable, sinks, result;
  AttentionScratch scratch;
  Value kvHead, firstHead, headCount; ///< of the workgroup
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ATTENTIONKERNEL_H
