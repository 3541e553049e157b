#include "ExpertSchedule.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::moec;

/// What a tile costs, in hundredths of the time that codes of four runs take from memory: estimates
/// from profiles of an H200, not a fit. Converting and multiplying takes as long for one run as for
/// four, which other warpgroups do, and longer with more tokens.
static constexpr int64_t costOfRun = 25, costOfProducts = 66, tokensForOne = 2, costOfTile = 6,
                         costOfJoining = 10;

ExpertSchedule::ExpertSchedule(HopperCode &code, Value offsets, int64_t experts, int64_t runs,
                               int64_t blocks)
    : code(code), offsets(offsets), experts(experts), runs(runs), blocks(blocks),
      tokenBegins(code.allocateShared({experts + 1}, code.getI32Type())),
      tileBegins(code.allocateShared({experts + 1}, code.getI32Type())) {}

Value ExpertSchedule::countParts(Value tokens, int64_t most) {
  return code.divide(code.plus(tokens, most - 1), code.int32(most));
}

/// The largest or smallest value of a warp's lanes, the same in all of them.
Value ExpertSchedule::reduce(Value value, bool isMinimum) {
  return NVVM::ReduxOp::create(code, code.getLoc(), code.getI32Type(), value,
                               isMinimum ? NVVM::ReduxKind::MIN : NVVM::ReduxKind::MAX,
                               code.int32(-1));
}

/// The sum of a value over this lane and those before it.
Value ExpertSchedule::sumBefore(Value value) {
  Value lane = code.laneNumber();
  for (int64_t distance = 1; distance < BlockCode::warpSize; distance *= 2) {
    Value before = NVVM::ShflOp::create(code, code.getLoc(), code.getI32Type(),
                                        /*thread_mask=*/code.int32(-1), value,
                                        code.int32(distance), /*mask_and_clamp=*/code.int32(0),
                                        NVVM::ShflKind::up, UnitAttr());
    Value isBefore = code.compare(arith::CmpIPredicate::sge, lane, code.int32(distance));
    value = code.add(value, code.select(isBefore, before, code.int32(0)));
  }
  return value;
}

/// Into how many groups the runs of an expert are cut.
Value ExpertSchedule::chooseGroups(const Shape &many, const Shape &fewShape, Value partsOfMany,
                                   Value partsOfFew, Value mostOfMany, bool mayBeFew) {
  auto countRounds = [&](Value tiles) { return countParts(tiles, blocks); };
  // A lane for each number of groups.
  int64_t fewest = llvm::divideCeil(runs, many.runs);
  Value groups = code.minimum(code.plus(code.laneNumber(), fewest), code.int32(runs));
  Value runsOfTile = code.divide(code.add(groups, code.int32(runs - 1)), groups);
  Value products =
      code.plus(code.divide(mostOfMany, code.int32(tokensForOne)), costOfProducts);
  Value cost = code.mul(
      countRounds(code.mul(partsOfMany, groups)),
      code.plus(code.maximum(code.times(runsOfTile, costOfRun), products), costOfTile));
  // The number rides along below the cost; of equal costs the fewest groups win.
  constexpr int64_t lanes = BlockCode::warpSize, mostCost = (int64_t(1) << 30) / lanes;
  Value limited = code.minimum(cost, code.int32(mostCost));
  Value best = reduce(code.add(code.times(limited, lanes), code.laneNumber()), /*isMinimum=*/true);
  Value bestGroups =
      code.minimum(code.plus(code.andBits(best, lanes - 1), fewest), code.int32(runs));
  if (!mayBeFew) {
    few = code.boolean(false);
    return bestGroups;
  }
  Value costOfFew = code.times(countRounds(code.times(partsOfFew, runs)),
                               costOfRun + costOfTile + costOfJoining);
  few = code.compare(arith::CmpIPredicate::slt, costOfFew, code.shiftedRight(best, 5));
  return code.select(few, code.int32(runs), bestGroups);
}

void ExpertSchedule::build(const Shape &many, const Shape &fewShape, bool mayBeFew) {
  // A lane has neighbouring experts.
  int64_t expertsOfLane = llvm::divideCeil(experts, BlockCode::warpSize);
  Value firstExpert = code.times(code.laneNumber(), expertsOfLane);
  SmallVector<Value> begins, partsOfMany, partsOfFew;
  Value sumOfMany = code.int32(0), sumOfFew = code.int32(0), most = code.int32(0);
  for (int64_t i = 0; i <= expertsOfLane; ++i) {
    Value expert = code.minimum(code.plus(firstExpert, i), code.int32(experts));
    begins.push_back(code.loadInt(offsets, code.toIndex(expert)));
    if (i == 0)
      continue;
    partsOfMany.push_back(sumOfMany);
    partsOfFew.push_back(sumOfFew);
    Value tokens = code.sub(begins[i], begins[i - 1]);
    most = code.maximum(most, tokens);
    sumOfMany = code.add(sumOfMany, countParts(tokens, many.tokens));
    sumOfFew = code.add(sumOfFew, countParts(tokens, fewShape.tokens));
  }
  Value throughMany = sumBefore(sumOfMany), throughFew = sumBefore(sumOfFew);
  Value allOfMany = reduce(throughMany, /*isMinimum=*/false);
  Value allOfFew = reduce(throughFew, /*isMinimum=*/false);
  most = reduce(most, /*isMinimum=*/false);
  Value groups = chooseGroups(many, fewShape, allOfMany, allOfFew,
                              code.minimum(most, code.int32(many.tokens)), mayBeFew);
  mostTokens = code.select(few, code.int32(fewShape.tokens), code.int32(many.tokens));
  mostOfTile = code.minimum(most, mostTokens);
  count = code.mul(code.select(few, allOfFew, allOfMany), groups);
  runsOfGroup = code.divide(code.int32(runs), groups);
  largerGroups = code.remainder(code.int32(runs), groups);

  // One warp writes down where experts begin.
  Value beforeLane = code.select(few, code.sub(throughFew, sumOfFew),
                                 code.sub(throughMany, sumOfMany));
  code.when(code.isWithin(code.thread(), code.index(BlockCode::warpSize)), [&] {
    for (int64_t i = 0; i < expertsOfLane; ++i) {
      Value expert = code.plus(firstExpert, i);
      code.when(code.compare(arith::CmpIPredicate::slt, expert, code.int32(experts)), [&] {
        Value at = code.toIndex(expert);
        Value before = code.add(beforeLane, code.select(few, partsOfFew[i], partsOfMany[i]));
        code.storeInt(begins[i], tokenBegins, at);
        code.storeInt(code.mul(before, groups), tileBegins, at);
        code.when(code.isEqual(expert, experts - 1), [&] {
          code.storeInt(begins[i + 1], tokenBegins, code.add(at, 1));
          code.storeInt(count, tileBegins, code.add(at, 1));
        });
      });
    }
  });
}

ExpertSchedule::Tile ExpertSchedule::getTile(Value number) {
  // The first expert whose tiles end behind the number: lanes look at one each.
  Value found = code.int32(experts);
  for (int64_t first = (experts - 1) / BlockCode::warpSize * BlockCode::warpSize; first >= 0;
       first -= BlockCode::warpSize) {
    Value expert = code.plus(code.laneNumber(), first);
    Value end = code.minimum(code.plus(expert, 1), code.int32(experts));
    Value ends = code.loadInt(tileBegins, code.toIndex(end));
    found = code.select(code.compare(arith::CmpIPredicate::slt, number, ends), expert, found);
  }
  Tile tile;
  tile.expert = reduce(found, /*isMinimum=*/true);
  Value at = code.toIndex(tile.expert);
  Value begin = code.loadInt(tokenBegins, at);
  Value tokens = code.sub(code.loadInt(tokenBegins, code.add(at, 1)), begin);
  Value inExpert = code.sub(number, code.loadInt(tileBegins, at));
  // One part more often than not: no divisions then.
  Type i32 = code.getI32Type();
  SmallVector<Value> place = code.choose(
      code.compare(arith::CmpIPredicate::sle, tokens, mostTokens), {i32, i32, i32},
      [&]() -> SmallVector<Value> { return {inExpert, code.int32(0), tokens}; },
      [&]() -> SmallVector<Value> {
        auto ceilDivide = [&](Value a, Value b) {
          return code.divide(code.add(a, code.plus(b, -1)), b);
        };
        Value parts = ceilDivide(tokens, mostTokens);
        // Equal parts, as products count tokens in eights.
        Value ofPart = code.andBits(code.plus(ceilDivide(tokens, parts), 7), -8);
        Value first = code.mul(code.remainder(inExpert, parts), ofPart);
        return {code.divide(inExpert, parts), first,
                code.minimum(code.sub(tokens, first), ofPart)};
      });
  // The first groups have one run more where they do not come out even.
  tile.firstRun =
      code.add(code.mul(place[0], runsOfGroup), code.minimum(place[0], largerGroups));
  Value isLarger = code.compare(arith::CmpIPredicate::slt, place[0], largerGroups);
  tile.runs = code.select(isLarger, code.plus(runsOfGroup, 1), runsOfGroup);
  tile.firstToken = code.add(begin, place[1]);
  tile.tokens = place[2];
  return tile;
}
