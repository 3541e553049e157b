//===- ModelBuilderCompression.cpp - hyper-connections, and attention over compressed entries -===//

#include "ModelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

Value ModelBuilder::hyperWeights(StringRef prefix, Value streams, const HyperParameters &parameters,
                                 bool isHead) {
  auto name = [&](const char *part) { return (prefix + part).str(); };
  int64_t count = parameters.streams, columns = isHead ? count : count * (count + 2);
  Value flat = mergeHeads(prefix, streams);
  int64_t features = cast<RankedTensorType>(flat.getType()).getDimSize(1);
  Value products =
      product(name("fn"), flat, weight(name("fn"), {columns, features}), builder.getF32Type());
  return moe::HyperWeightsOp::create(
      builder, at(name("fn")), products.getType(), products, streams,
      weight(name("scale"), {isHead ? 1 : 3}), weight(name("base"), {columns}),
      builder.getI64IntegerAttr(parameters.iterations), builder.getF64FloatAttr(parameters.epsilon),
      builder.getF64FloatAttr(parameters.normEpsilon));
}

Value ModelBuilder::hyperCollapse(StringRef name, Value streams, Value weights) {
  int64_t features = cast<RankedTensorType>(streams.getType()).getDimSize(2);
  return moe::HyperCollapseOp::create(
      builder, at(name), typeLike(streams, features, activationType), streams, weights);
}

Value ModelBuilder::hyperExpand(StringRef name, Value input, Value streams, Value weights) {
  return moe::HyperExpandOp::create(builder, at(name), input, streams, weights);
}

// A block of entries is the block of their windows' last tokens, so that sequences that share
// blocks of tokens share the entries of these and no others.
ModelBuilder::EntryBlocks ModelBuilder::getEntryBlocks(int64_t ratio) {
  if (blockTokens % ratio != 0 && ratio % blockTokens != 0) {
    checkpoint.complain("cache blocks of " + std::to_string(blockTokens) +
                        " tokens do not fit to windows of " + std::to_string(ratio) +
                        " tokens: one has to be a multiple of the other (--block-tokens)");
    return {1, 1};
  }
  return {std::max<int64_t>(1, blockTokens / ratio), std::max<int64_t>(1, ratio / blockTokens)};
}

ModelBuilder::WindowPlaces ModelBuilder::getWindowPlaces(int64_t ratio) {
  auto [known, isNew] = windowPlaces.try_emplace(ratio);
  if (!isNew)
    return known->second;
  Location location = at("windows of " + std::to_string(ratio));
  int64_t stride = getEntryBlocks(ratio).stride;
  auto map = [&](function_ref<Value(OpBuilder & b, Value position)> compute) -> Value {
    auto type = cast<RankedTensorType>(positions.getType());
    Value empty = tensor::EmptyOp::create(builder, location,
                                          tensor::getMixedSizes(builder, location, positions),
                                          type.getElementType());
    SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(1));
    return linalg::GenericOp::create(builder, location, type, positions, empty, maps,
                                     ArrayRef{utils::IteratorType::parallel},
                                     [&](OpBuilder &b, Location loc, ValueRange elements) {
                                       linalg::YieldOp::create(b, loc,
                                                               compute(b, elements.front()));
                                     })
        .getResult(0);
  };
  auto constant = [&](OpBuilder &b, int64_t value) -> Value {
    return arith::ConstantOp::create(b, location, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  WindowPlaces places;
  places.starts = map([&](OpBuilder &b, Value position) -> Value {
    Value within = arith::RemSIOp::create(b, location, position, constant(b, ratio));
    return arith::SubIOp::create(b, location, position, within);
  });
  places.entries = map([&](OpBuilder &b, Value position) -> Value {
    Value end = arith::AddIOp::create(b, location, position, constant(b, 1));
    Value rest = arith::RemSIOp::create(b, location, end, constant(b, ratio));
    Value isComplete =
        arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq, rest, constant(b, 0));
    Value count = arith::DivSIOp::create(b, location, end, constant(b, ratio));
    Value last = arith::MulIOp::create(b, location, count, constant(b, stride));
    return arith::SelectOp::create(b, location, isComplete,
                                   Value(arith::SubIOp::create(b, location, last, constant(b, 1))),
                                   constant(b, -1));
  });
  return windowPlaces[ratio] = places;
}

Value ModelBuilder::compress(const std::string &name, Value input,
                             const CompressorParameters &parameters) {
  Type f32 = builder.getF32Type();
  int64_t dimension = parameters.dimension, means = parameters.overlaps ? 2 : 1;
  int64_t width = means * dimension;
  Value keys = linear(name + ".wkv", input, width, /*hasBias=*/false, f32);
  Value gates = linear(name + ".wgate", input, width, /*hasBias=*/false, f32);
  Value bias = weight(name + ".ape", {parameters.ratio, width});
  Value memory = state({3 * means, dimension}, f32);
  Value entries =
      moe::CompressOp::create(builder, at(name), typeLike(input, dimension, f32), keys, gates, bias,
                              memory, positions, sequenceOffsets, stateSlots);
  WindowPlaces places = getWindowPlaces(parameters.ratio);
  entries = splitHeads(name, rmsNorm(name + ".norm", entries, parameters.epsilon), 1);
  entries = ropeAt(name, entries, places.starts, parameters.rotary);
  Value cache = cacheOfBlocks(1, dimension, dimension, getEntryBlocks(parameters.ratio).block);
  moe::KVAppendOp::create(builder, at(name), entries, entries, cache, places.entries,
                          tokenSequences, blockTable, /*rotary=*/moe::RotaryAttr());
  return cache;
}

Value ModelBuilder::selectEntries(StringRef name, Value query, Value weights, Value entries,
                                  int64_t ratio, int64_t count) {
  return moe::SelectEntriesOp::create(
      builder, at(name), typeLike(query, count, builder.getI32Type()), query, weights, entries,
      positions, tokenSequences, blockTable, builder.getI64IntegerAttr(ratio),
      builder.getI64IntegerAttr(getEntryBlocks(ratio).stride));
}

Value ModelBuilder::compressedAttention(StringRef name, Value query, Value rows, Value entries,
                                        Value indices, int64_t ratio,
                                        const AttentionParameters &parameters) {
  int64_t dimension = cast<RankedTensorType>(rows.getType()).getDimSize(2);
  Value recent = cache(1, dimension, dimension);
  moe::KVAppendOp::create(builder, at(name), rows, rows, recent, positions, tokenSequences,
                          blockTable, /*rotary=*/moe::RotaryAttr());
  return moe::CompressedAttentionOp::create(
      builder, at(name), query.getType(), query, recent, entries, positions, tokenSequences,
      blockTable, parameters.sinks, indices, builder.getF64FloatAttr(parameters.scale),
      builder.getI64IntegerAttr(parameters.window), builder.getI64IntegerAttr(ratio),
      builder.getI64IntegerAttr(getEntryBlocks(ratio).stride));
}
