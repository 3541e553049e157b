//===- ExpertsBlock.h - MXFP4 experts on Hopper -----------------------------------------------===//
//
// The transposed product: 64 rows of an expert's weight, a run, are the left operand of a warpgroup's
// product, in registers; the tokens are its columns, so that few tokens waste nothing. One block on
// each multiprocessor takes tiles of experts in turn. Four warpgroups turn codes into bf16 in their
// registers and multiply; a fifth one brings codes, as one run of bytes, and the tokens' rows, piece
// by piece from wherever they are, into a ring of slots.
//
// Usually a tile has a run for each of the four warpgroups. With a handful of tokens in all it has one
// run, and the warpgroups share its elements: chains are short, and all multiprocessors have work.
//
// A row's factors may be too large for bf16: their scales are stored smaller by a shift of the row,
// which its factor in f32 makes good in the end.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSBLOCK_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSBLOCK_H

#include "CodeFragments.h"
#include "ExpertSchedule.h"
#include "FragmentProduct.h"
#include "HopperCode.h"

#include "moec/Target/TargetDescription.h"

namespace mlir::moec {

class ExpertsBlock {
public:
  static constexpr int64_t consumers = 4, threads = (consumers + 1) * HopperCode::warpgroupSize;
  /// Blocks of a launch: one for each multiprocessor of an H100 or H200.
  static constexpr int64_t blocks = 132;

  ExpertsBlock(HopperCode &code, moe::GroupedLinearOp op, ValueRange operands, Value result,
               const TargetDescription &target);

  void build(Value workgroup);

  static constexpr int64_t getSharedBytes() { return sumsOffset + sumsBytes; }

private:
  using Shape = ExpertSchedule::Shape;
  static constexpr Shape manyTokens = {1, consumers, 88}, fewTokens = {consumers, 1, 16};

  /// Tiles of 64 columns of the weight in a slot, for each warpgroup that works on a run.
  static constexpr int64_t tilesOfGroup = 2;
  static int64_t getTilesOfSlot(const Shape &shape) { return shape.parts * tilesOfGroup; }

  static constexpr int64_t bytesOfRow = CodeFragments::tileColumns * 2;
  static constexpr int64_t codesOfGroup = tilesOfGroup * CodeFragments::tileBytes;
  static constexpr int64_t tokensOffset = consumers * codesOfGroup;
  /// Slots are as large as the launch's tiles need, and as many as fit.
  static constexpr int64_t ringBytes = 202 * 1024, mostSlots = 10;
  static constexpr int64_t sumsOffset = ringBytes;
  static constexpr int64_t sumsBytes =
      consumers * HopperCode::warpgroupSize * fewTokens.tokens / 2 * 4;
  static_assert(tokensOffset % 1024 == 0, "swizzled rows lie in groups of 1024 bytes");

  using Tile = ExpertSchedule::Tile;
  SmallVector<Value> forEachTile(
      ValueRange initial,
      function_ref<SmallVector<Value>(const Tile &tile, ValueRange carried)> body);
  int64_t countSteps(const Shape &shape) const {
    return llvm::divideCeil(fragments.getColumnTiles(), getTilesOfSlot(shape));
  }
  /// The address of run `run` (i32) of an expert.
  Value getRun(Value expert, Value run);
  void chooseSlots();
  void clearScales();

  /// What a thread's two neighbouring columns of a run have in common for all tokens.
  struct ColumnValues {
    Value column, isColumn; ///< the first one (index), 0 where it is padding
    SmallVector<Value> factors, biases;
  };

  // The warpgroup that fills the ring: ExpertsProducer.cpp.
  struct TokenRows;
  void produce(const Shape &shape);
  void produceCodes(const Shape &shape);
  void copyCodes(const Shape &shape, Value step, SlotRing::Position position,
                 ArrayRef<Value> isRun, ArrayRef<Value> runs, ArrayRef<Value> places);
  void produceTokens(const Shape &shape);
  TokenRows findRows(const Shape &shape, const Tile &tile);
  void copyTokens(const Shape &shape, const TokenRows &rows, Value step, Value slot);
  void copyPasses(const TokenRows &rows, ArrayRef<Value> places, ArrayRef<Value> sizes,
                  Value offset, size_t pass);
  void finishTokens(Value slot, int64_t pending);

  // The warpgroups that multiply: ExpertsConsumer.cpp.
  struct CodeWords;
  void consume(const Shape &shape);
  CodeWords loadCodes(Value slot, int64_t tile);
  SmallVector<Value> unpack(const CodeWords &words, ArrayRef<int64_t> blocks);
  SmallVector<Value> multiply(const Shape &shape, int64_t width, SlotRing::Position &position);
  SlotRing::Position skip(const Shape &shape, SlotRing::Position position);
  void release(Value slot);
  void joinAndStore(int64_t width, SmallVector<Value> sums, const Tile &tile,
                    const ColumnValues &ofColumns);

  // ExpertsResults.cpp.
  Value getWeightRow(Value column);
  ColumnValues loadColumnValues(const Tile &tile, Value run);
  void storeResults(int64_t width, ArrayRef<Value> sums, const Tile &tile,
                    const ColumnValues &ofColumns);
  Value getFirstColumnInRun();

  HopperCode &code;
  moe::GroupedLinearOp op;
  int64_t experts, columns, elements;
  CodeFragments fragments;
  Value input, offsets, pairs, weight, bias, result;
  ExpertSchedule schedule;
  SlotRing ring;
  bool isInvariant;
  Value block, slotBytes, slots;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_EXPERTSBLOCK_H
