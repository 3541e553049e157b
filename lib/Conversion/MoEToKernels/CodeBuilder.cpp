#include "CodeBuilder.h"

#include "VectorCode.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::moec;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

Value CodeBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, getLoc(), value);
}

Value CodeBuilder::int32(int64_t value) {
  return arith::ConstantOp::create(*this, getLoc(), getI32IntegerAttr(value));
}

Value CodeBuilder::float32(double value) {
  return arith::ConstantOp::create(*this, getLoc(), getF32FloatAttr(static_cast<float>(value)));
}

Value CodeBuilder::boolean(bool value) {
  return arith::ConstantOp::create(*this, getLoc(), getBoolAttr(value));
}

Value CodeBuilder::floatSplat(double value, int64_t lanes) {
  return arith::ConstantOp::create(
      *this, getLoc(), DenseElementsAttr::get(floatVector(lanes), static_cast<float>(value)));
}

Value CodeBuilder::intSplat(int64_t value, int64_t lanes) {
  return arith::ConstantOp::create(
      *this, getLoc(), DenseElementsAttr::get(intVector(lanes), static_cast<int32_t>(value)));
}

Value CodeBuilder::iota(int64_t lanes) {
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  return arith::ConstantOp::create(
      *this, getLoc(), DenseElementsAttr::get(intVector(lanes), ArrayRef<int32_t>(numbers)));
}

Value CodeBuilder::broadcast(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(*this, getLoc(), VectorType::get({lanes}, scalar.getType()),
                                     scalar);
}

Value CodeBuilder::add(Value a, Value b) {
  if (isFloat(a))
    return arith::AddFOp::create(*this, getLoc(), a, b);
  return arith::AddIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::sub(Value a, Value b) {
  if (isFloat(a))
    return arith::SubFOp::create(*this, getLoc(), a, b);
  return arith::SubIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::mul(Value a, Value b) {
  if (isFloat(a))
    return arith::MulFOp::create(*this, getLoc(), a, b);
  return arith::MulIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::divide(Value a, Value b) {
  if (isFloat(a))
    return arith::DivFOp::create(*this, getLoc(), a, b);
  return arith::DivUIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::remainder(Value a, Value b) {
  return arith::RemUIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::minimum(Value a, Value b) {
  if (isFloat(a))
    return select(compare(arith::CmpFPredicate::OLT, a, b), a, b);
  return arith::MinSIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::maximum(Value a, Value b) {
  if (isFloat(a))
    return select(compare(arith::CmpFPredicate::OGT, a, b), a, b);
  return arith::MaxSIOp::create(*this, getLoc(), a, b);
}

Value CodeBuilder::fma(Value a, Value b, Value c) {
  // Not vector.fma: that leaves it to the target whether the product is rounded.
  return math::FmaOp::create(*this, getLoc(), a, b, c);
}

Value CodeBuilder::exp(Value x) { return math::ExpOp::create(*this, getLoc(), x); }

Value CodeBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(*this, getLoc(), predicate, a, b);
}

Value CodeBuilder::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return arith::CmpFOp::create(*this, getLoc(), predicate, a, b);
}

Value CodeBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(*this, getLoc(), condition, a, b);
}

Value CodeBuilder::both(Value a, Value b) { return arith::AndIOp::create(*this, getLoc(), a, b); }

Value CodeBuilder::isWithin(Value value, Value limit) {
  // A negative value is a large unsigned one.
  return compare(arith::CmpIPredicate::ult, value, limit);
}

Value CodeBuilder::toIndex(Value value) {
  return arith::IndexCastOp::create(*this, getLoc(), getIndexType(), value);
}

Value CodeBuilder::toInt32(Value value) {
  return arith::IndexCastOp::create(*this, getLoc(), getI32Type(), value);
}

Value CodeBuilder::dim(Value memref, int64_t dimension) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dimension))
    return index(type.getDimSize(dimension));
  return memref::DimOp::create(*this, getLoc(), memref, dimension);
}

Value CodeBuilder::loadFloat(Value memref, ValueRange indices) {
  return loadWidened(*this, memref, indices);
}

Value CodeBuilder::loadFloats(Value memref, ValueRange indices, int64_t lanes) {
  return loadWidened(*this, memref, indices, lanes);
}

void CodeBuilder::storeFloat(Value value, Value memref, ValueRange indices) {
  storeRounded(*this, value, memref, indices);
}

void CodeBuilder::storeFloats(Value value, Value memref, ValueRange indices) {
  storeRounded(*this, value, memref, indices);
}

Value CodeBuilder::loadInt(Value memref, ValueRange indices) {
  return memref::LoadOp::create(*this, getLoc(), memref, indices);
}

Value CodeBuilder::loadInts(Value memref, ValueRange indices, int64_t lanes) {
  return vector::LoadOp::create(*this, getLoc(), intVector(lanes), memref, indices);
}

void CodeBuilder::storeInt(Value value, Value memref, ValueRange indices) {
  memref::StoreOp::create(*this, getLoc(), value, memref, indices);
}

void CodeBuilder::storeInts(Value value, Value memref, ValueRange indices) {
  vector::StoreOp::create(*this, getLoc(), value, memref, indices);
}

void CodeBuilder::prefetch(Value memref, ValueRange indices) {
  memref::PrefetchOp::create(*this, getLoc(), memref, indices, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

Value CodeBuilder::lane(Value vector, int64_t i) {
  return vector::ExtractOp::create(*this, getLoc(), vector, i);
}

Value CodeBuilder::fromLanes(ValueRange scalars) {
  auto type = VectorType::get({static_cast<int64_t>(scalars.size())}, scalars[0].getType());
  return vector::FromElementsOp::create(*this, getLoc(), type, scalars);
}

Value CodeBuilder::reduceLanes(Value vector, function_ref<Value(Value, Value)> combine) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  if (!llvm::isPowerOf2_64(lanes)) {
    Value result = lane(vector, 0);
    for (int64_t i = 1; i < lanes; ++i)
      result = combine(result, lane(vector, i));
    return result;
  }
  for (; lanes > 1; lanes /= 2) {
    SmallVector<int64_t> low(lanes / 2), high(lanes / 2);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), lanes / 2);
    vector = combine(vector::ShuffleOp::create(*this, getLoc(), vector, vector, low),
                     vector::ShuffleOp::create(*this, getLoc(), vector, vector, high));
  }
  return lane(vector, 0);
}

Value CodeBuilder::sumLanes(Value vector) {
  return reduceLanes(vector, [&](Value a, Value b) { return add(a, b); });
}

Value CodeBuilder::maximumLane(Value vector) {
  return reduceLanes(vector, [&](Value a, Value b) { return maximum(a, b); });
}

Value CodeBuilder::minimumLane(Value vector) {
  return reduceLanes(vector, [&](Value a, Value b) { return minimum(a, b); });
}

SmallVector<Value> CodeBuilder::loop(Value from, Value to, int64_t step, ValueRange initial,
                                     LoopBody body) {
  Value by = from.getType().isIndex() ? index(step) : int32(step);
  auto loop = scf::ForOp::create(*this, getLoc(), from, to, by, initial);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  SmallVector<Value> results = body(loop.getInductionVar(), loop.getRegionIterArgs());
  // Without carried values the loop comes with its terminator.
  if (!initial.empty())
    scf::YieldOp::create(*this, getLoc(), results);
  return SmallVector<Value>(loop.getResults());
}

void CodeBuilder::loop(Value from, Value to, int64_t step, function_ref<void(Value)> body) {
  loop(from, to, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

SmallVector<Value> CodeBuilder::choose(Value condition, TypeRange types,
                                       function_ref<SmallVector<Value>()> then,
                                       function_ref<SmallVector<Value>()> otherwise) {
  auto branch = scf::IfOp::create(*this, getLoc(), types, condition, /*withElseRegion=*/true);
  auto fill = [&](Region &region, function_ref<SmallVector<Value>()> body) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(&region.front());
    SmallVector<Value> results = body();
    if (!types.empty())
      scf::YieldOp::create(*this, getLoc(), results);
  };
  fill(branch.getThenRegion(), then);
  fill(branch.getElseRegion(), otherwise);
  return SmallVector<Value>(branch.getResults());
}

void CodeBuilder::choose(Value condition, function_ref<void()> then,
                         function_ref<void()> otherwise) {
  auto withoutResults = [](function_ref<void()> body) {
    body();
    return SmallVector<Value>();
  };
  choose(
      condition, TypeRange(), [&] { return withoutResults(then); },
      [&] { return withoutResults(otherwise); });
}

SmallVector<Value> CodeBuilder::unrolledLoop(int64_t count, int64_t unrolled, ValueRange initial,
                                             LoopBody body) {
  if (count % unrolled != 0)
    unrolled = 1;
  return loop(index(0), index(count), unrolled, initial, [&](Value iv, ValueRange carried) {
    SmallVector<Value> values(carried);
    for (int64_t i = 0; i < unrolled; ++i)
      values = body(add(iv, i), values);
    return values;
  });
}

void CodeBuilder::when(Value condition, function_ref<void()> then) {
  auto branch = scf::IfOp::create(*this, getLoc(), condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&branch.getThenRegion().front());
  then();
}

void CodeBuilder::panels(int64_t count, int64_t lanes,
                         function_ref<void(Value offset, int64_t lanes)> body) {
  int64_t whole = count / lanes * lanes;
  if (whole > 0)
    loop(0, whole, lanes, [&](Value offset) { body(offset, lanes); });
  if (whole < count)
    body(index(whole), count - whole);
}

Value ScratchAllocator::allocate(ArrayRef<int64_t> shape, Type element) {
  int64_t offset = bytes;
  int64_t width = element.isIndex() ? 8 : element.getIntOrFloatBitWidth() / 8;
  bytes += llvm::alignTo(width * ShapedType::getNumElements(shape), 64);
  if (!code)
    return {};
  return memref::ViewOp::create(*code, code->getLoc(), MemRefType::get(shape, element), scratch,
                                code->index(offset), ValueRange());
}
