#include "ExpertsBlock.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::moec;

/// Each of the four filling warps reports a slot when its part is there or announced; each warp that
/// uses a slot leaves it.
static constexpr int64_t warpsOfGroup = HopperCode::warpgroupSize / BlockCode::warpSize;

ExpertsBlock::ExpertsBlock(HopperCode &code, moe::GroupedLinearOp op, ValueRange operands,
                           Value result, const TargetDescription &target)
    : code(code), op(op), experts(moe::getLogicalShape(op.getWeight().getType())[0]),
      columns(moe::getLogicalShape(op.getWeight().getType())[1]),
      elements(moe::getLogicalShape(op.getWeight().getType())[2]),
      fragments(moe::getLogicalShape(op.getWeight().getType())), input(operands[0]),
      offsets(operands[1]), pairs(operands[2]), weight(operands[3]),
      bias(op.getBias() ? operands[4] : Value()), result(result),
      schedule(code, offsets, experts, fragments.getRowTiles(), blocks),
      ring(code, mostSlots, warpsOfGroup, consumers * warpsOfGroup),
      isInvariant(target.batchInvariant) {}

void ExpertsBlock::build(Value workgroup) {
  block = code.toInt32(workgroup);
  code.when(code.isEqual(code.threadNumber(), 0), [&] { ring.initialize(); });
  // The two shapes add in different orders.
  schedule.build(manyTokens, fewTokens, /*mayBeFew=*/!isInvariant);
  chooseSlots();
  clearScales();
  code.barrier();
  Value isFew = schedule.isFew();
  // Registers move once for both shapes: the roles are the outer branch.
  code.choose(
      code.isEqual(code.warpgroupNumber(), consumers),
      [&] {
        code.decreaseRegisters(64);
        code.choose(isFew, [&] { produce(fewTokens); }, [&] { produce(manyTokens); });
      },
      [&] {
        code.increaseRegisters(104);
        code.choose(isFew, [&] { consume(fewTokens); }, [&] { consume(manyTokens); });
      });
}

void ExpertsBlock::chooseSlots() {
  Value tokens = code.andBits(code.plus(schedule.getMostTokens(), 7), -8);
  Value bytes = code.times(tokens, bytesOfRow);
  slotBytes = code.plus(code.select(schedule.isFew(), code.times(bytes, getTilesOfSlot(fewTokens)),
                                    code.times(bytes, getTilesOfSlot(manyTokens))),
                        tokensOffset);
  slots = code.minimum(code.divide(code.int32(ringBytes), slotBytes), code.int32(mostSlots));
  ring.limit(slots);
}

/// In the last slot of a tile there may be no codes for some of the elements. The tokens have zeros
/// there, and what the slot holds as codes is any number, but scales must not make it infinite.
void ExpertsBlock::clearScales() {
  Value inGroup = code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1);
  code.when(code.compare(arith::CmpIPredicate::slt, code.warpgroupNumber(), code.int32(consumers)),
            [&] {
              Value at = code.add(code.times(code.shiftedRight(inGroup, 2), 4),
                                  code.times(code.warpgroupNumber(), codesOfGroup));
              code.loop(code.int32(0), slots, 1, {}, [&](Value slot, ValueRange) {
                Value ofSlot = code.add(at, code.mul(slot, slotBytes));
                for (int64_t tile = 0; tile < tilesOfGroup; ++tile) {
                  int64_t offset = tile * CodeFragments::tileBytes + CodeFragments::codeBytes;
                  LLVM::StoreOp::create(code, code.getLoc(), code.int32(0),
                                        code.dynamicShared(code.plus(ofSlot, offset)));
                }
                return SmallVector<Value>();
              });
              // Copies in bulk overwrite what was written here.
              code.fenceAsyncProxy();
            });
}

SmallVector<Value> ExpertsBlock::forEachTile(
    ValueRange initial,
    function_ref<SmallVector<Value>(const Tile &tile, ValueRange carried)> body) {
  return code.loop(block, schedule.countTiles(), blocks, initial, [&](Value number, ValueRange carried) {
    return body(schedule.getTile(number), carried);
  });
}

Value ExpertsBlock::getRun(Value expert, Value run) {
  Value number = code.add(code.mul(code.toIndex(expert), fragments.getRowTiles()),
                          code.toIndex(run));
  return code.globalPointer(weight, code.mul(number, fragments.getRunBytes()));
}
