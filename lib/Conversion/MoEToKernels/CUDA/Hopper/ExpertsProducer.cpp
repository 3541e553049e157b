//===- ExpertsProducer.cpp - codes and rows of tokens into the ring ---------------------------===//
//
// Two warps copy codes, a run at a time. The threads of the two others copy 16-byte pieces of the
// tokens' rows. Pieces are seen by the products only after a fence in the thread that copied them,
// so that a slot is reported full when the pieces of the next one are on their way.
//
//===------------------------------------------------------------------------------------------===//

#include "ExpertsBlock.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr int64_t codeWarps = 2, tokenWarps = 2;
static_assert(codeWarps + tokenWarps == HopperCode::warpgroupSize / BlockCode::warpSize);
static constexpr int64_t pieceBytes = 16, piecesOfRow = 8;
static constexpr int64_t rowsOfPass = tokenWarps * BlockCode::warpSize / piecesOfRow;

struct ExpertsBlock::TokenRows {
  SmallVector<Value> pointers, isRow; ///< for each pass over the rows this thread's
  Value piece;                        ///< which of a row's eight
  Value place;                        ///< where it goes, from the slot's first row on
  Value tokens;
  Value bytesOfTile;                  ///< of all rows, 64 elements each
};

void ExpertsBlock::produce(const Shape &shape) {
  code.choose(
      code.compare(arith::CmpIPredicate::slt, code.warpInWarpgroup(), code.int32(codeWarps)),
      [&] { produceCodes(shape); }, [&] { produceTokens(shape); });
}

void ExpertsBlock::produceCodes(const Shape &shape) {
  SlotRing::Position start = ring.start();
  Value steps = code.int32(countSteps(shape));
  forEachTile({start.slot, start.parity}, [&](const Tile &tile, ValueRange carried) {
    // This warp's runs of a tile, and where they go in a slot.
    SmallVector<Value> isRun, runs, places;
    for (int64_t i = 0; i < llvm::divideCeil(shape.runs, codeWarps); ++i) {
      Value run = code.plus(code.warpInWarpgroup(), i * codeWarps);
      isRun.push_back(code.compare(arith::CmpIPredicate::slt, run, tile.runs));
      runs.push_back(getRun(tile.expert, code.add(tile.firstRun, run)));
      places.push_back(code.times(run, codesOfGroup));
    }
    return code.loop(
        code.int32(0), steps, 1, carried, [&](Value step, ValueRange carried) -> SmallVector<Value> {
          SlotRing::Position position = {carried[0], carried[1]};
          ring.waitEmpty(position);
          code.when(code.electOne(), [&] { copyCodes(shape, step, position, isRun, runs, places); });
          SlotRing::Position next = ring.next(position);
          return {next.slot, next.parity};
        });
  });
}

/// By one thread.
void ExpertsBlock::copyCodes(const Shape &shape, Value step, SlotRing::Position position,
                             ArrayRef<Value> isRun, ArrayRef<Value> runs,
                             ArrayRef<Value> places) {
  int64_t tilesOfSlot = getTilesOfSlot(shape);
  Value left = code.sub(code.int32(fragments.getColumnTiles()), code.times(step, tilesOfSlot));
  Value bytes = code.times(code.minimum(left, code.int32(tilesOfSlot)), CodeFragments::tileBytes);
  Value total = code.int32(0);
  for (Value is : isRun)
    total = code.add(total, code.select(is, bytes, code.int32(0)));
  Value barrier = ring.announce(position, total);
  Value slot = code.mul(position.slot, slotBytes);
  Value offset = code.times(step, tilesOfSlot * CodeFragments::tileBytes);
  for (auto [is, run, place] : llvm::zip_equal(isRun, runs, places))
    code.when(is, [&, run = run, place = place] {
      code.loadBytes(code.dynamicShared(code.add(slot, place)), code.offsetPointer(run, offset),
                     barrier, bytes);
    });
}

void ExpertsBlock::produceTokens(const Shape &shape) {
  SlotRing::Position start = ring.start();
  Value steps = code.int32(countSteps(shape));
  forEachTile({start.slot, start.parity}, [&](const Tile &tile, ValueRange carried) {
    TokenRows rows = findRows(shape, tile);
    SmallVector<Value> done = code.loop(
        code.int32(0), steps, 1, carried, [&](Value step, ValueRange carried) -> SmallVector<Value> {
          SlotRing::Position position = {carried[0], carried[1]};
          ring.waitEmpty(position);
          copyTokens(shape, rows, step, position.slot);
          NVVM::CpAsyncCommitGroupOp::create(code, code.getLoc());
          code.when(code.compare(arith::CmpIPredicate::sgt, step, code.int32(0)),
                    [&] { finishTokens(ring.previous(position.slot), 1); });
          SlotRing::Position next = ring.next(position);
          return {next.slot, next.parity};
        });
    finishTokens(ring.previous(done[0]), 0);
    return done;
  });
}

ExpertsBlock::TokenRows ExpertsBlock::findRows(const Shape &shape, const Tile &tile) {
  TokenRows rows;
  rows.tokens = tile.tokens;
  Value thread = code.plus(code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1),
                           -codeWarps * BlockCode::warpSize);
  Value firstRow = code.shiftedRight(thread, 3);
  rows.piece = code.andBits(thread, piecesOfRow - 1);
  // In rows of 128 bytes, a piece's number is exchanged as the row's number says.
  static_assert(rowsOfPass == 8, "a thread's rows have the same place in a group of eight");
  Value swizzled = arith::XOrIOp::create(code, code.getLoc(), rows.piece, firstRow);
  rows.place = code.add(code.times(firstRow, bytesOfRow), code.times(swizzled, pieceBytes));
  rows.bytesOfTile = code.times(code.andBits(code.plus(tile.tokens, 7), -8), bytesOfRow);
  // The tokens' rows may be columns of a wider matrix.
  auto [strides, offset] = cast<MemRefType>(input.getType()).getStridesAndOffset();
  for (int64_t first = 0; first < shape.tokens; first += rowsOfPass) {
    Value row = code.plus(firstRow, first);
    Value isRow = code.compare(arith::CmpIPredicate::slt, row, tile.tokens);
    Value token = code.toIndex(code.add(tile.firstToken, code.select(isRow, row, code.int32(0))));
    if (op.getGather())
      token = code.divide(code.loadIndex(pairs, token), op.getTopK());
    Value byte = code.add(code.mul(token, strides[0] * 2),
                          code.toIndex(code.times(rows.piece, pieceBytes)));
    rows.pointers.push_back(code.globalPointer(input, code.add(byte, offset * 2)));
    rows.isRow.push_back(isRow);
  }
  return rows;
}

void ExpertsBlock::copyTokens(const Shape &shape, const TokenRows &rows, Value step, Value slot) {
  int64_t tilesOfSlot = getTilesOfSlot(shape);
  Value place = code.plus(code.add(code.mul(slot, slotBytes), rows.place), tokensOffset);
  // Behind the last element come zeros: no bytes are read.
  SmallVector<Value> places, sizes;
  bool isWhole = elements % (tilesOfSlot * CodeFragments::tileColumns) == 0;
  for (int64_t tile = 0; tile < tilesOfSlot; ++tile) {
    places.push_back(code.dynamicShared(code.add(place, code.times(rows.bytesOfTile, tile))));
    Value column = code.add(code.times(step, tilesOfSlot * CodeFragments::tileColumns),
                            code.plus(code.times(rows.piece, 8), tile * CodeFragments::tileColumns));
    Value isInside = code.compare(arith::CmpIPredicate::slt, column, code.int32(elements));
    sizes.push_back(isWhole ? code.int32(pieceBytes)
                            : code.select(isInside, code.int32(pieceBytes), code.int32(0)));
  }
  copyPasses(rows, places, sizes, code.times(step, tilesOfSlot * bytesOfRow), 0);
}

/// The passes from `pass` on. Tokens are few more often than not: the first pass that has none ends
/// it.
void ExpertsBlock::copyPasses(const TokenRows &rows, ArrayRef<Value> places, ArrayRef<Value> sizes,
                              Value offset, size_t pass) {
  if (pass == rows.pointers.size())
    return;
  auto copyPass = [&] {
    code.when(rows.isRow[pass], [&] {
      Value pointer = code.offsetPointer(rows.pointers[pass], offset);
      for (auto [tile, place, size] : llvm::enumerate(places, sizes))
        code.copyPiece(code.offsetPointer(place, code.int32(pass * rowsOfPass * bytesOfRow)),
                       code.offsetPointer(pointer, code.int32(tile * bytesOfRow)), size);
    });
    copyPasses(rows, places, sizes, offset, pass + 1);
  };
  if (pass == 0)
    return copyPass();
  Value hasTokens = code.compare(arith::CmpIPredicate::sgt, rows.tokens,
                                 code.int32(pass * rowsOfPass));
  code.when(hasTokens, copyPass);
}

/// Waits until at most `pending` slots' pieces are on their way and reports `slot` full.
void ExpertsBlock::finishTokens(Value slot, int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(code, code.getLoc(), pending);
  code.fenceAsyncProxy();
  NVVM::SyncWarpOp::create(code, code.getLoc(), code.int32(-1));
  code.when(code.electOne(), [&] { ring.fill(slot); });
}
