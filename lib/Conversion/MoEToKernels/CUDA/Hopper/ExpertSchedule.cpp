#include "ExpertSchedule.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::moec;

ExpertSchedule::ExpertSchedule(HopperCode &code, Value offsets, int64_t experts, int64_t runs)
    : code(code), offsets(offsets), experts(experts), runs(runs),
      tokenBegins(code.allocateShared({experts + 1}, code.getI32Type())),
      tileBegins(code.allocateShared({experts + 1}, code.getI32Type())),
      mostOfExpert(code.allocateShared({1}, code.getI32Type())) {}

Value ExpertSchedule::ceilDivide(Value a, Value b) {
  return code.divide(code.add(a, code.plus(b, -1)), b);
}

Value ExpertSchedule::countParts(Value tokens) { return ceilDivide(tokens, mostTokens); }

void ExpertSchedule::build(Value ofTile, Value most) {
  runsOfTile = ofTile;
  mostTokens = most;
  code.forEachOfThread(code.index(experts + 1), [&](Value i) {
    code.storeInt(code.loadInt(offsets, i), tokenBegins, i);
  });
  code.barrier();
  Value groups = ceilDivide(code.int32(runs), runsOfTile);
  code.when(code.isWithin(code.thread(), code.index(BlockCode::warpSize)), [&] {
    Value lane = code.laneNumber();
    code.storeInt(code.int32(0), tileBegins, code.index(0));
    SmallVector<Value> done = code.loop(
        code.index(0), code.index(experts), BlockCode::warpSize, {code.int32(0), code.int32(0)},
              [&](Value first, ValueRange carried) -> SmallVector<Value> {
                Value expert = code.add(first, code.toIndex(lane));
                Value isExpert = code.isWithin(expert, code.index(experts));
                Value safe = code.select(isExpert, expert, code.index(0));
                Value tokens = code.sub(code.loadInt(tokenBegins, code.add(safe, 1)),
                                        code.loadInt(tokenBegins, safe));
                Value most = code.maximum(carried[1], tokens);
                Value sum = code.select(isExpert, code.mul(countParts(tokens), groups),
                                        code.int32(0));
                // Lanes add what the lanes before them have.
                for (int64_t distance = 1; distance < BlockCode::warpSize; distance *= 2) {
                  Value before = NVVM::ShflOp::create(
                      code, code.getLoc(), sum.getType(), /*thread_mask=*/code.int32(-1), sum,
                      code.int32(distance), /*mask_and_clamp=*/code.int32(0), NVVM::ShflKind::up,
                      UnitAttr());
                  Value isBefore = code.compare(arith::CmpIPredicate::sge, lane,
                                                code.int32(distance));
                  sum = code.add(sum, code.select(isBefore, before, code.int32(0)));
                }
                sum = code.add(sum, carried[0]);
                code.when(isExpert, [&] { code.storeInt(sum, tileBegins, code.add(expert, 1)); });
                constexpr int64_t lastLane = BlockCode::warpSize - 1;
                return {NVVM::ShflOp::create(code, code.getLoc(), sum.getType(), code.int32(-1), sum,
                                             code.int32(lastLane), code.int32(lastLane),
                                             NVVM::ShflKind::idx, UnitAttr())
                            .getResult(),
                        most};
              });
    Value most = NVVM::ReduxOp::create(code, code.getLoc(), code.getI32Type(), done[1],
                                       NVVM::ReduxKind::MAX, code.int32(-1));
    code.storeInt(most, mostOfExpert, code.index(0));
  });
  code.barrier();
}

Value ExpertSchedule::countTiles() { return code.loadInt(tileBegins, code.index(experts)); }

Value ExpertSchedule::getMostTokens() {
  return code.minimum(code.loadInt(mostOfExpert, code.index(0)), mostTokens);
}

ExpertSchedule::Tile ExpertSchedule::getTile(Value number) {
  Location loc = code.getLoc();
  // The first expert whose tiles end behind the number: lanes look at one each.
  Value found = code.int32(experts);
  for (int64_t first = (experts - 1) / BlockCode::warpSize * BlockCode::warpSize; first >= 0;
       first -= BlockCode::warpSize) {
    Value expert = code.plus(code.laneNumber(), first);
    Value end = code.minimum(code.plus(expert, 1), code.int32(experts));
    Value ends = code.loadInt(tileBegins, code.toIndex(end));
    found = code.select(code.compare(arith::CmpIPredicate::slt, number, ends), expert, found);
  }
  Value expert = NVVM::ReduxOp::create(code, loc, code.getI32Type(), found, NVVM::ReduxKind::MIN,
                                       code.int32(-1));
  Value at = code.toIndex(expert);
  Value begin = code.loadInt(tokenBegins, at);
  Value tokens = code.sub(code.loadInt(tokenBegins, code.add(at, 1)), begin);
  Value inExpert = code.sub(number, code.loadInt(tileBegins, at));
  // One part more often than not: no divisions then.
  Type i32 = code.getI32Type();
  SmallVector<Value> place = code.choose(
      code.compare(arith::CmpIPredicate::sle, tokens, mostTokens), {i32, i32, i32},
      [&]() -> SmallVector<Value> { return {inExpert, code.int32(0), tokens}; },
      [&]() -> SmallVector<Value> {
        Value parts = countParts(tokens);
        // Equal parts, as products count tokens in eights.
        Value ofPart = code.andBits(code.plus(ceilDivide(tokens, parts), 7), -8);
        Value first = code.mul(code.remainder(inExpert, parts), ofPart);
        return {code.divide(inExpert, parts), first,
                code.minimum(code.sub(tokens, first), ofPart)};
      });
  Tile tile;
  tile.expert = expert;
  tile.firstRun = code.mul(place[0], runsOfTile);
  tile.runs = code.minimum(code.sub(code.int32(runs), tile.firstRun), runsOfTile);
  tile.firstToken = code.add(begin, place[1]);
  tile.tokens = place[2];
  return tile;
}
