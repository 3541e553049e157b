//===- ExpertsConsumer.cpp - codes to registers, products, sums -------------------------------===//

#include "ExpertsBlock.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::moec;

/// A thread's codes of a tile of 64 x 64: two words for each block of 32 columns, and the scales.
struct ExpertsBlock::CodeWords {
  static constexpr int64_t count = 5;
  Value words[4], scales;

  static CodeWords from(ArrayRef<Value> values) {
    return {{values[0], values[1], values[2], values[3]}, values[4]};
  }
  void appendTo(SmallVectorImpl<Value> &values) const {
    values.append(words, words + 4);
    values.push_back(scales);
  }
};

void ExpertsBlock::consume(const Shape &shape) {
  SlotRing::Position start = ring.start();
  Value group = shape.parts > 1 ? code.int32(0) : code.warpgroupNumber();
  Type i32 = code.getI32Type();
  forEachTile({start.slot, start.parity}, [&](const Tile &tile, ValueRange carried) {
    SlotRing::Position position = {carried[0], carried[1]};
    Value isRun = code.compare(arith::CmpIPredicate::slt, group, tile.runs);
    auto multiplyRun = [&]() -> SmallVector<Value> {
      Value run = code.add(tile.firstRun, group);
      // Asked for early, used last.
      ColumnValues ofColumns = loadColumnValues(tile, run);
      // A product of its own for each number of tokens, in eights.
      SmallVector<int64_t> widths;
      for (int64_t width = 8; width <= shape.tokens; width += 8)
        widths.push_back(width);
      Value eights = code.shiftedRight(code.plus(tile.tokens, 7), 3);
      SmallVector<int64_t> cases;
      for (int64_t width : widths)
        cases.push_back(width / 8);
      auto select = scf::IndexSwitchOp::create(code, code.getLoc(), TypeRange{i32, i32},
                                               code.toIndex(eights), cases, cases.size());
      OpBuilder::InsertionGuard guard(code);
      for (auto [width, region] : llvm::zip_equal(widths, select.getCaseRegions())) {
        code.setInsertionPointToStart(&region.emplaceBlock());
        SlotRing::Position next = position;
        SmallVector<Value> sums = multiply(shape, width, next);
        if (shape.parts > 1)
          joinAndStore(width, sums, tile, ofColumns);
        else
          storeResults(width, sums, tile, ofColumns);
        scf::YieldOp::create(code, code.getLoc(), ValueRange{next.slot, next.parity});
      }
      code.setInsertionPointToStart(&select.getDefaultRegion().emplaceBlock());
      scf::YieldOp::create(code, code.getLoc(), ValueRange{position.slot, position.parity});
      return SmallVector<Value>(select.getResults());
    };
    if (shape.parts > 1)
      return multiplyRun();
    // An expert's last tile may have fewer runs: a warpgroup without one only follows the ring.
    return code.choose(isRun, {i32, i32}, multiplyRun, [&]() -> SmallVector<Value> {
      SlotRing::Position next = skip(shape, position);
      return {next.slot, next.parity};
    });
  });
}

SlotRing::Position ExpertsBlock::skip(const Shape &shape, SlotRing::Position position) {
  SmallVector<Value> done = code.loop(
      code.int32(0), code.int32(countSteps(shape)), 1, {position.slot, position.parity},
      [&](Value, ValueRange carried) -> SmallVector<Value> {
        SlotRing::Position position = {carried[0], carried[1]};
        ring.waitFull(position);
        release(position.slot);
        SlotRing::Position next = ring.next(position);
        return {next.slot, next.parity};
      });
  return {done[0], done[1]};
}

void ExpertsBlock::release(Value slot) {
  code.when(code.isEqual(code.laneNumber(), 0), [&] { ring.release(slot); });
}

ExpertsBlock::CodeWords ExpertsBlock::loadCodes(Value slot, int64_t tile) {
  Location loc = code.getLoc();
  Value thread = code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1);
  Value ofGroup = code.times(code.warpgroupNumber(), codesOfGroup);
  Value ofSlot = code.mul(slot, slotBytes);
  Value codes = code.add(ofSlot, code.add(ofGroup, code.times(thread, 16)));
  Value scales = code.add(ofSlot, code.add(ofGroup, code.times(code.shiftedRight(thread, 2), 4)));
  int64_t offset = tile * CodeFragments::tileBytes;
  Value words = LLVM::LoadOp::create(code, loc, code.intVector(4),
                                     code.dynamicShared(code.plus(codes, offset)),
                                     /*alignment=*/16);
  CodeWords loaded;
  for (int64_t i = 0; i < 4; ++i)
    loaded.words[i] = static_cast<CodeBuilder &>(code).lane(words, i);
  loaded.scales = LLVM::LoadOp::create(
      code, loc, code.getI32Type(),
      code.dynamicShared(code.plus(scales, offset + CodeFragments::codeBytes)));
  return loaded;
}

/// The operands of the given blocks of 32 columns: two of four registers for each.
SmallVector<Value> ExpertsBlock::unpack(const CodeWords &words, ArrayRef<int64_t> blocks) {
  SmallVector<Value> operands;
  for (int64_t block : blocks)
    llvm::append_range(operands, CodeFragments::unpack(
                                     code, words.words[2 * block], words.words[2 * block + 1],
                                     CodeFragments::getFactors(code, words.scales, block)));
  return operands;
}

/// There are two sets of operand registers: one is filled while the other is multiplied. No product
/// runs from one turn of the loop to the next: ptxas would keep its registers in the whole function,
/// for each width others.
SmallVector<Value> ExpertsBlock::multiply(const Shape &shape, int64_t width,
                                          SlotRing::Position &position) {
  FragmentProduct product(code, width);
  int64_t registers = product.getRegisters();
  // What is multiplied at once: whole tiles, or halves where sums leave few registers.
  struct Group {
    int64_t tile;
    SmallVector<int64_t> blocks;
  };
  SmallVector<Group> groups;
  for (int64_t tile = 0; tile < tilesOfGroup; ++tile) {
    if (width <= 64)
      groups.push_back({tile, {0, 1}});
    else
      groups.append({{tile, {0}}, {tile, {1}}});
  }
  Value steps = code.int32(countSteps(shape));
  Value tokens = code.plus(code.toAddress(code.dynamicShared(code.int32(0))), tokensOffset);
  if (shape.parts > 1)
    tokens = code.add(tokens, code.times(code.warpgroupNumber(), tilesOfGroup * width * bytesOfRow));

  ring.waitFull(position);
  SmallVector<CodeWords> words;
  for (int64_t tile = 0; tile < tilesOfGroup; ++tile)
    words.push_back(loadCodes(position.slot, tile));
  SmallVector<Value> left = unpack(words[0], groups[0].blocks);
  SmallVector<Value> carried = {position.slot, position.parity};
  carried.append(registers, code.float32(0));
  llvm::append_range(carried, left);
  for (const CodeWords &loaded : words)
    loaded.appendTo(carried);
  int64_t leftCount = left.size();

  SmallVector<Value> done = code.loop(
      code.int32(0), steps, 1, carried, [&](Value step, ValueRange carried) -> SmallVector<Value> {
        SlotRing::Position here = {carried[0], carried[1]}, next = here;
        SmallVector<Value> sums(carried.slice(2, registers));
        SmallVector<Value> left(carried.slice(2 + registers, leftCount));
        SmallVector<Value> rest(carried.drop_front(2 + registers + leftCount));
        SmallVector<CodeWords> words;
        for (int64_t tile = 0; tile < tilesOfGroup; ++tile)
          words.push_back(CodeWords::from(
              ArrayRef(rest).slice(tile * CodeWords::count, CodeWords::count)));
        Value right = product.describe(code.add(tokens, code.mul(here.slot, slotBytes)));
        for (auto [i, group] : llvm::enumerate(groups)) {
          product.fence();
          for (int64_t k = 0; k < int64_t(group.blocks.size()) * 2; ++k) {
            int64_t offset = group.tile * width * bytesOfRow / 16 + 2 * (2 * group.blocks[0] + k);
            sums = product.multiply(sums, ArrayRef(left).slice(4 * k, 4),
                                    code.plus(right, offset));
          }
          product.commit();
          if (i > 0)
            product.wait(1); // the other set of registers is free again
          if (i + 1 < groups.size())
            left = unpack(words[groups[i + 1].tile], groups[i + 1].blocks);
          if (i + 2 == groups.size()) {
            // The next slot's codes, early enough to hide their way. After the last slot what is
            // read is stale, and nobody uses it.
            next = ring.next(here);
            Value isLast = code.compare(arith::CmpIPredicate::sge, code.plus(step, 1), steps);
            code.choose(isLast, [] {}, [&] { ring.waitFull(next); });
            for (int64_t tile = 0; tile < tilesOfGroup; ++tile)
              words[tile] = loadCodes(next.slot, tile);
          }
        }
        left = unpack(words[0], groups[0].blocks);
        product.wait(0);
        release(here.slot);
        SmallVector<Value> results = {next.slot, next.parity};
        llvm::append_range(results, sums);
        llvm::append_range(results, left);
        for (const CodeWords &loaded : words)
          loaded.appendTo(results);
        return results;
      });
  position = {done[0], done[1]};
  return SmallVector<Value>(ArrayRef(done).slice(2, registers));
}

/// Warpgroups that share a run: the first one adds the others' sums in order and stores the results.
void ExpertsBlock::joinAndStore(int64_t width, SmallVector<Value> sums, const Tile &tile,
                                const ColumnValues &ofColumns) {
  Location loc = code.getLoc();
  Value thread = code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1);
  auto getPlace = [&](Value group, int64_t i) {
    Value ofGroup = code.times(group, sumsBytes / consumers);
    int64_t offset = sumsOffset + i * HopperCode::warpgroupSize * 4;
    return code.dynamicShared(code.plus(code.add(ofGroup, code.times(thread, 16)), offset));
  };
  for (int64_t i = 0; i < int64_t(sums.size()); i += 4) {
    Value four = code.fromLanes(ArrayRef(sums).slice(i, 4));
    LLVM::StoreOp::create(code, loc, four, getPlace(code.warpgroupNumber(), i), /*alignment=*/16);
  }
  constexpr int64_t all = consumers * HopperCode::warpgroupSize;
  code.namedBarrier(1, all);
  Value isFirst = code.isEqual(code.warpgroupNumber(), 0);
  sums = code.choose(
      isFirst, ValueRange(sums).getTypes(),
      [&] {
        SmallVector<Value> joined = sums;
        for (int64_t group = 1; group < consumers; ++group)
          for (int64_t i = 0; i < int64_t(sums.size()); i += 4) {
            Value four = LLVM::LoadOp::create(code, loc, code.floatVector(4),
                                              getPlace(code.int32(group), i), /*alignment=*/16);
            for (int64_t j = 0; j < 4; ++j)
              joined[i + j] =
                  code.add(joined[i + j], static_cast<CodeBuilder &>(code).lane(four, j));
          }
        return joined;
      },
      [&] { return sums; });
  // The sums are read before the next tile's are written. All warpgroups meet at one place, as tools
  // that check barriers want it.
  code.namedBarrier(2, all);
  code.when(isFirst, [&] { storeResults(width, sums, tile, ofColumns); });
}
