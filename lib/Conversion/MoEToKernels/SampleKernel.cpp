//===- SampleKernel.cpp - choosing one token from a row of logits -----------------------------===//
//
// Nothing is sorted. The best columns that stay are those above some rank, and a rank is found two
// bits at a time, by sums over the columns on either side of three candidates. Once few columns
// begin like the rank, only those are looked at. Sums are of whole numbers: threads may add them,
// and list columns, in any order.
//
//===------------------------------------------------------------------------------------------===//

#include "SampleKernel.h"

#include "VectorCode.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Bits of a weight behind the point.
constexpr double weightOfBest = 0x1p40;
/// Columns that a thread loads before it looks at the first.
constexpr int64_t columnsAtOnce = 8;
/// Bits of a rank that are found at once.
constexpr int64_t digitBits = 2, digits = 1 << digitBits, rankBits = 32;
/// How many bits are known before somebody tries to list the columns that begin like them: those of
/// the sign and the larger part of the exponent are the same for most.
constexpr int64_t bitsBeforeList = 6;
constexpr int64_t rankOfMinusInfinity = 0x007fffff, rankOfInfinity = 0xff800000;

} // namespace

SampleKernel::SampleKernel(CodeBuilder &code, SampleTeam &team, moe::SampleOp op,
                           ValueRange operands, Value tokens)
    : code(code), team(team), vocabulary(op.getLogits().getType().getDimSize(1)),
      logits(operands[0]), rows(operands[1]), temperatures(operands[2]), topKs(operands[3]),
      topPs(operands[4]), randoms(operands[5]), tokens(tokens) {}

Value SampleKernel::int64(int64_t value) {
  return arith::ConstantOp::create(code, code.getLoc(), code.getI64IntegerAttr(value));
}

Value SampleKernel::real(double value) {
  return arith::ConstantOp::create(code, code.getLoc(), code.getF64FloatAttr(value));
}

/// The token's number in a memref of f64.
Value SampleKernel::loadReal(Value memref) {
  return memref::LoadOp::create(code, code.getLoc(), memref, token);
}

/// Sums are below 2^63, so that signed conversions do, which every target has.
Value SampleKernel::toReal(Value sum) {
  return arith::SIToFPOp::create(code, code.getLoc(), code.getF64Type(), sum);
}

Value SampleKernel::toSum(Value real) {
  return arith::FPToSIOp::create(code, code.getLoc(), code.getI64Type(), real);
}

//===------------------------------------------------------------------------------------------===//
// Columns
//===------------------------------------------------------------------------------------------===//

/// Of floats that are not negative the bits grow with the number, of negative ones they shrink.
Value SampleKernel::rankOf(Value logit) {
  Location loc = code.getLoc();
  Value bits = bitcastTo(code, logit, code.getI32Type());
  Value sign = arith::ShRSIOp::create(code, loc, bits, code.int32(31));
  Value flip = arith::OrIOp::create(code, loc, sign, code.int32(int32_t(0x80000000)));
  return arith::XOrIOp::create(code, loc, bits, flip);
}

Value SampleKernel::logitOf(Value rank) {
  Location loc = code.getLoc();
  Value isNegative = code.compare(arith::CmpIPredicate::sge, rank, code.int32(0));
  Value flip = code.select(isNegative, code.int32(-1), code.int32(int32_t(0x80000000)));
  return bitcastTo(code, arith::XOrIOp::create(code, loc, rank, flip), code.getF32Type());
}

SampleKernel::Column SampleKernel::load(Value number) {
  Value x = code.loadFloat(logits, {row, number});
  Value isNumber = code.compare(arith::CmpFPredicate::ORD, x, x);
  x = code.select(isNumber, x, code.float32(-std::numeric_limits<double>::infinity()));
  // Adding zero makes -0 equal to 0.
  x = code.add(x, code.float32(0));
  return {number, x, rankOf(x)};
}

/// Calls `body` for the columns of [range.begin, range.end) that are this thread's: each of
/// `range.threads` takes one after the other.
SmallVector<Value> SampleKernel::forEachColumn(const Range &range, ValueRange initial,
                                               ColumnBody body) {
  int64_t step = columnsAtOnce * range.threads;
  Value count = code.sub(range.end, range.begin);
  Value rest = code.add(range.begin, code.mul(code.divide(count, step), step));
  SmallVector<Value> values =
      code.loop(code.add(range.begin, range.thread), rest, step, initial,
                [&](Value first, ValueRange carried) {
                  SmallVector<Column> columns;
                  for (int64_t i = 0; i < columnsAtOnce; ++i)
                    columns.push_back(load(code.add(first, i * range.threads)));
                  SmallVector<Value> values(carried);
                  for (const Column &column : columns)
                    values = body(column, values);
                  return values;
                });
  return code.loop(code.add(rest, range.thread), range.end, range.threads, values,
                   [&](Value number, ValueRange carried) { return body(load(number), carried); });
}

SmallVector<Value> SampleKernel::forEachColumn(ValueRange initial, ColumnBody body) {
  return forEachColumn({code.index(0), code.index(vocabulary), team.member(), team.getMembers()},
                       initial, body);
}

Value SampleKernel::sumOverColumns(Measure measure) {
  Value sum = forEachColumn({int64(0)}, [&](const Column &column, ValueRange carried) {
    return SmallVector<Value>{code.add(carried[0], measure(column))};
  })[0];
  return team.combineAll(sum, [&](Value a, Value b) { return code.add(a, b); });
}

/// The rank of the best column above the complement of its number, as one i64 whose unsigned order
/// is that of columns.
Value SampleKernel::findBest() {
  Location loc = code.getLoc();
  Type wide = code.getI64Type();
  auto best = [&](Value a, Value b) -> Value { return arith::MaxUIOp::create(code, loc, a, b); };
  Value mine = forEachColumn({int64(0)}, [&](const Column &column, ValueRange carried) {
    Value rank = arith::ExtUIOp::create(code, loc, wide, column.rank);
    Value number = arith::IndexCastOp::create(code, loc, wide, column.number);
    Value high = arith::ShLIOp::create(code, loc, rank, int64(32));
    Value key = arith::OrIOp::create(code, loc, high,
                                     code.sub(int64(std::numeric_limits<uint32_t>::max()), number));
    return SmallVector<Value>{best(carried[0], key)};
  })[0];
  return team.combineAll(mine, best);
}

//===------------------------------------------------------------------------------------------===//
// What stays
//===------------------------------------------------------------------------------------------===//

/// In units of 2^-40 of the best column's weight.
Value SampleKernel::weigh(const Column &column) {
  Location loc = code.getLoc();
  // Half of each, so that the distance is a number however far the two are apart.
  auto half = [&](Value x) { return code.mul(x, code.float32(0.5)); };
  Value distance = code.sub(half(column.logit), half(largest));
  Value weight = code.mul(code.exp(code.mul(distance, scale)), code.float32(weightOfBest));
  Value whole = arith::FPToSIOp::create(code, loc, code.getI64Type(), weight);
  Value isInfinite =
      code.compare(arith::CmpIPredicate::ule, column.rank, code.int32(rankOfMinusInfinity));
  return code.select(isInfinite, int64(0), whole);
}

Value SampleKernel::isKept(const Column &column, const Kept &kept) {
  Location loc = code.getLoc();
  Value isAbove = code.compare(arith::CmpIPredicate::ugt, column.rank, kept.rank);
  Value isAt = code.compare(arith::CmpIPredicate::eq, column.rank, kept.rank);
  Value isFirst = code.compare(arith::CmpIPredicate::ule, column.number, kept.last);
  return arith::OrIOp::create(code, loc, isAbove, code.both(isAt, isFirst));
}

Value SampleKernel::weighKept(const Column &column, const Kept &kept) {
  return code.select(isKept(column, kept), weigh(column), int64(0));
}

/// Lists the columns whose rank, shifted, is one of `digits` that begin like the shifted `rank`.
/// Gives their number; -1 when there are too many.
Value SampleKernel::listColumns(Value rank, Value shift) {
  Location loc = code.getLoc();
  Value zero = code.index(0);
  Value isFirst = code.compare(arith::CmpIPredicate::eq, team.member(), zero);
  code.when(isFirst, [&] { code.storeInt(code.int32(0), listed, zero); });
  team.meet();
  forEachColumn({}, [&](const Column &column, ValueRange) {
    Value isInside = code.isWithin(getDigit(column, rank, shift), code.int32(digits));
    code.when(isInside, [&] {
      Value place = code.toIndex(memref::AtomicRMWOp::create(code, loc, arith::AtomicRMWKind::addi,
                                                             code.int32(1), listed, zero));
      code.when(code.isWithin(place, code.index(listSize)),
                [&] { code.storeInt(code.toInt32(column.number), list, place); });
    });
    return SmallVector<Value>();
  });
  team.meet();
  Value count = code.loadInt(listed, zero);
  team.meet(); // before somebody counts again
  Value fits = code.compare(arith::CmpIPredicate::sle, count, code.int32(listSize));
  return code.select(fits, count, code.int32(-1));
}

/// The bits of the column's rank from `shift` on, where those above the digit are those of `rank`;
/// else a large number.
Value SampleKernel::getDigit(const Column &column, Value rank, Value shift) {
  Location loc = code.getLoc();
  Value difference = arith::XOrIOp::create(code, loc, column.rank, rank);
  return arith::ShRUIOp::create(code, loc, difference, shift);
}

/// Adds a column to the sum of its digit, 1 to 3.
SmallVector<Value> SampleKernel::addToDigit(const Column &column, Value digit, ValueRange sums,
                                            Measure measure) {
  Value isCounted = code.isWithin(code.sub(digit, code.int32(1)), code.int32(digits - 1));
  return code.choose(
      isCounted, sums.getTypes(),
      [&] {
        Value value = measure(column);
        SmallVector<Value> more;
        for (int64_t i = 1; i < digits; ++i) {
          Value isDigit = code.compare(arith::CmpIPredicate::eq, digit, code.int32(i));
          more.push_back(code.add(sums[i - 1], code.select(isDigit, value, int64(0))));
        }
        return more;
      },
      [&] { return SmallVector<Value>(sums); });
}

/// `measure` is not negative, and its sum over all columns reaches `wanted`, which is at least 1.
SampleKernel::Threshold SampleKernel::findThreshold(Value wanted, Measure measure) {
  Location loc = code.getLoc();
  auto add = [&](Value a, Value b) { return code.add(a, b); };
  SmallVector<Value> zeros(digits - 1, int64(0));
  SmallVector<Value> found = code.loop(
      code.index(0), code.index(rankBits), digitBits, {code.int32(0), int64(0), code.int32(-1)},
      [&](Value done, ValueRange carried) {
        Value rank = carried[0], above = carried[1], count = carried[2];
        Value shift = code.sub(code.int32(rankBits - digitBits), code.toInt32(done));
        auto isListed = [&] {
          return code.compare(arith::CmpIPredicate::sge, count, code.int32(0));
        };
        Value isLate = code.compare(arith::CmpIPredicate::uge, done, code.index(bitsBeforeList));
        Value tries =
            code.both(isLate, code.compare(arith::CmpIPredicate::slt, count, code.int32(0)));
        count = code.choose(
            tries, {count.getType()}, [&] { return SmallVector<Value>{listColumns(rank, shift)}; },
            [&] { return SmallVector<Value>{count}; })[0];
        // The sums over columns whose rank begins like `rank` and goes on with each digit.
        auto addColumn = [&](const Column &column, ValueRange sums) {
          return addToDigit(column, getDigit(column, rank, shift), sums, measure);
        };
        SmallVector<Value> sums = code.choose(
            isListed(), ValueRange(zeros).getTypes(),
            [&] {
              return code.loop(team.member(), code.toIndex(count), team.getMembers(), zeros,
                               [&](Value place, ValueRange sums) {
                                 return addColumn(load(code.loadIndex(list, place)), sums);
                               });
            },
            [&] { return forEachColumn(zeros, addColumn); });
        // The largest digit that reaches what is wanted.
        Value digit = code.int32(0), running = above, isOpen = code.boolean(true);
        for (int64_t i = digits - 1; i > 0; --i) {
          Value before = running;
          running = code.add(running, team.combineAll(sums[i - 1], add));
          Value reaches =
              code.both(isOpen, code.compare(arith::CmpIPredicate::sge, running, wanted));
          digit = code.select(reaches, code.int32(i), digit);
          above = code.select(reaches, before, above);
          isOpen = code.select(reaches, code.boolean(false), isOpen);
        }
        above = code.select(isOpen, running, above);
        Value bits = arith::ShLIOp::create(code, loc, digit, shift);
        return SmallVector<Value>{arith::OrIOp::create(code, loc, rank, bits), above, count};
      });
  return {found[0], found[1]};
}

/// The first column at which the running sum of `measure` exceeds what `getPoint` makes of the sum
/// of all: narrows a range of columns part by part.
Value SampleKernel::findColumn(function_ref<Value(Value sum)> getPoint, Measure measure) {
  auto add = [&](Value a, Value b) { return code.add(a, b); };
  Value begin = code.index(0), before = int64(0), point;
  for (int64_t width = vocabulary; width > 1; width = llvm::divideCeil(width, rangeParts)) {
    int64_t partWidth = llvm::divideCeil(width, rangeParts);
    code.loop(team.squad(), code.index(rangeParts), team.getSquads(), [&](Value part) {
      Value end = code.index(vocabulary);
      Value from = code.minimum(code.add(begin, code.mul(part, partWidth)), end);
      Value to = code.minimum(code.add(from, partWidth), end);
      Value sum = forEachColumn({from, to, team.lane(), team.getLanes()}, {int64(0)},
                                [&](const Column &column, ValueRange carried) {
                                  return SmallVector<Value>{code.add(carried[0], measure(column))};
                                })[0];
      sum = team.combineLanes(sum, add);
      code.when(code.compare(arith::CmpIPredicate::eq, team.lane(), code.index(0)),
                [&] { code.storeInt(sum, parts, part); });
    });
    team.meet();
    if (!point)
      point = getPoint(code.loop(code.index(0), code.index(rangeParts), 1, {int64(0)},
                                 [&](Value part, ValueRange carried) {
                                   return SmallVector<Value>{
                                       code.add(carried[0], code.loadInt(parts, part))};
                                 })[0]);
    SmallVector<Value> narrowed =
        code.loop(code.index(0), code.index(rangeParts), 1, {before, before, begin},
                  [&](Value part, ValueRange carried) {
                    Value running = code.add(carried[0], code.loadInt(parts, part));
                    Value isBefore = code.compare(arith::CmpIPredicate::sle, running, point);
                    return SmallVector<Value>{
                        running, code.select(isBefore, running, carried[1]),
                        code.select(isBefore, code.add(carried[2], partWidth), carried[2])};
                  });
    team.meet();
    before = narrowed[1];
    begin = narrowed[2];
  }
  return begin;
}

/// The column number `place` (i64) of those of one rank.
Value SampleKernel::findOfRank(Value rank, Value place) {
  return findColumn([&](Value) { return place; },
                    [&](const Column &column) {
                      Value isAt = code.compare(arith::CmpIPredicate::eq, column.rank, rank);
                      return code.select(isAt, int64(1), int64(0));
                    });
}

SampleKernel::Kept SampleKernel::keepTopK() {
  Location loc = code.getLoc();
  Value isCut = code.isWithin(code.sub(topK, code.int32(1)), code.int32(vocabulary - 1));
  SmallVector<Value> kept = code.choose(
      isCut, {code.getI32Type(), code.getIndexType()},
      [&] {
        Value wanted = arith::ExtSIOp::create(code, loc, code.getI64Type(), topK);
        Threshold found = findThreshold(wanted, [&](const Column &) { return int64(1); });
        Value place = code.sub(code.sub(wanted, found.above), int64(1));
        return SmallVector<Value>{found.rank, findOfRank(found.rank, place)};
      },
      [&] {
        return SmallVector<Value>{code.int32(0), code.index(0)};
      });
  return {kept[0], kept[1]};
}

SampleKernel::Kept SampleKernel::keepTopP(const Kept &kept) {
  Value topP = loadReal(topPs);
  Value isCut = code.compare(arith::CmpFPredicate::OLT, topP, real(1));
  SmallVector<Value> less = code.choose(
      isCut, {code.getI32Type(), code.getIndexType()},
      [&] {
        auto measure = [&](const Column &column) { return weighKept(column, kept); };
        Value sum = sumOverColumns(measure);
        Value share = code.maximum(code.mul(topP, toReal(sum)), real(0));
        Value wanted = toSum(share);
        Value isCutOff = code.compare(arith::CmpFPredicate::OLT, toReal(wanted), share);
        wanted = code.add(wanted, code.select(isCutOff, int64(1), int64(0)));
        wanted = code.minimum(code.maximum(wanted, int64(1)), sum);
        Threshold found = findThreshold(wanted, measure);
        // Columns of one rank have one weight.
        Value weight = weigh({{}, logitOf(found.rank), found.rank});
        Value place = code.divide(code.sub(code.sub(wanted, found.above), int64(1)), weight);
        return SmallVector<Value>{found.rank, findOfRank(found.rank, place)};
      },
      [&] {
        return SmallVector<Value>{kept.rank, kept.last};
      });
  return {less[0], less[1]};
}

//===------------------------------------------------------------------------------------------===//
// The choice
//===------------------------------------------------------------------------------------------===//

Value SampleKernel::draw(const Kept &kept) {
  auto getPoint = [&](Value sum) {
    Value point = toSum(code.mul(loadReal(randoms), toReal(sum)));
    return code.minimum(point, code.sub(sum, int64(1)));
  };
  return findColumn(getPoint, [&](const Column &column) { return weighKept(column, kept); });
}

Value SampleKernel::isGreedy(Value bestRank) {
  Location loc = code.getLoc();
  Value temperature = code.loadFloat(temperatures, token);
  auto either = [&](Value a, Value b) { return arith::OrIOp::create(code, loc, a, b); };
  // Also where the temperature is no number.
  Value isCold = code.compare(arith::CmpFPredicate::ULT, temperature,
                              code.float32(std::numeric_limits<float>::min()));
  Value isOne = code.compare(arith::CmpIPredicate::eq, topK, code.int32(1));
  Value isNothing =
      code.compare(arith::CmpIPredicate::ule, bestRank, code.int32(rankOfMinusInfinity));
  Value isAll =
      code.compare(arith::CmpIPredicate::uge, bestRank, code.int32(int32_t(rankOfInfinity)));
  return either(either(isCold, isOne), either(isNothing, isAll));
}

void SampleKernel::build(Value number) {
  Location loc = code.getLoc();
  token = number;
  row = code.loadIndex(rows, token);
  topK = code.loadInt(topKs, token);
  parts = team.allocate(rangeParts, code.getI64Type());
  list = team.allocate(listSize, code.getI32Type());
  listed = team.allocate(1, code.getI32Type());
  Value best = findBest();
  Value shifted = arith::ShRUIOp::create(code, loc, best, int64(32));
  Value bestRank = arith::TruncIOp::create(code, loc, code.getI32Type(), shifted);
  Value bestNumber = arith::TruncIOp::create(
      code, loc, code.getI32Type(), code.sub(int64(std::numeric_limits<uint32_t>::max()), best));
  Value chosen = code.choose(
      isGreedy(bestRank), {code.getI32Type()}, [&] { return SmallVector<Value>{bestNumber}; },
      [&] {
        scale = code.divide(code.float32(2), code.loadFloat(temperatures, token));
        largest = logitOf(bestRank);
        return SmallVector<Value>{code.toInt32(draw(keepTopP(keepTopK())))};
      })[0];
  code.when(code.compare(arith::CmpIPredicate::eq, team.member(), code.index(0)),
            [&] { code.storeInt(chosen, tokens, token); });
}
