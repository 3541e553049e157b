//===- ModelBuilderVision.cpp - images: an entry of their own, and their place in the text ----===//

#include "ModelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::moec;

static constexpr int64_t dynamic = ShapedType::kDynamic;
/// Keys of a block of an item's cache. Nobody but the tower sees it.
static constexpr int64_t keysOfBlock = 16;

void ModelBuilder::expectImages(int64_t hidden) {
  imageRows = addArgument("image_rows", {"tokens"});
  imageEmbeddings =
      addArgument("image_embeddings", RankedTensorType::get({dynamic, hidden}, activationType),
                  {"image_embeddings"});
}

Value ModelBuilder::spliceImages(StringRef name, Value embeddings) {
  if (!imageRows)
    return embeddings;
  return moe::ReplaceRowsOp::create(builder, at(name), embeddings, imageEmbeddings, imageRows);
}

void ModelBuilder::imageEncoder(const VisionConfig &config,
                                function_ref<Value(const ImagePatches &)> build) {
  constexpr llvm::StringLiteral name = "encode_image";
  // The step's insertion point, weights and arguments wait until the entry is done.
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp outer = step;
  llvm::StringMap<Value> outerWeights = std::move(weights);
  SmallVector<Attribute> outerAttributes = std::move(argumentAttributes);
  weights.clear();
  argumentAttributes.clear();

  builder.setInsertionPointToEnd(module->getBody());
  step = func::FuncOp::create(builder, at(name), name, builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(step.addEntryBlock());
  int64_t patchesOfEmbedding = config.merge * config.merge;
  ImagePatches patches;
  patches.pixels = addArgument("patches",
                               RankedTensorType::get({dynamic, patchesOfEmbedding, dynamic,
                                                      /*colours=*/3 * config.patch * config.patch},
                                                     builder.getF32Type()),
                               {"embeddings", "frames"});
  patches.embeddings = tensor::DimOp::create(builder, at(name), patches.pixels, 0);
  patches.frames = tensor::DimOp::create(builder, at(name), patches.pixels, 2);
  auto place = [&](StringRef what) -> Value {
    auto type = RankedTensorType::get({dynamic, patchesOfEmbedding, dynamic}, builder.getI32Type());
    Value argument = addArgument(what, type, {"embeddings", "frames"});
    SmallVector<ReassociationIndices> flat = {{0, 1, 2}};
    return tensor::CollapseShapeOp::create(builder, at(what), argument, flat);
  };
  patches.rows = place("rows");
  patches.heights = place("heights");
  patches.columns = place("columns");
  patches.widths = place("widths");
  patches.times = place("times");
  patches.keys = place("keys");
  patches.lastKeys = place("last_keys");
  patches.items = place("items");
  patches.blockTable = addArgument(
      "block_table", RankedTensorType::get({1, dynamic}, builder.getI32Type()), {"cache_blocks"});
  SmallVector<ReassociationIndices> flat = {{0, 1, 2}, {3}};
  patches.pixels = tensor::CollapseShapeOp::create(builder, at("patches"), patches.pixels, flat);
  Value result = build(patches);
  finishEntry(result, "embeddings");

  step = outer;
  weights = std::move(outerWeights);
  argumentAttributes = std::move(outerAttributes);
  setVision(name, config);
}

/// What the runtime has to know.
void ModelBuilder::setVision(StringRef entry, const VisionConfig &config) {
  auto integer = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  auto numbers = [&](StringRef name, ArrayRef<double> values) {
    return builder.getNamedAttr(name, DenseF64ArrayAttr::get(getContext(), values));
  };
  vision = builder.getDictionaryAttr(
      {builder.getNamedAttr("entry", builder.getStringAttr(entry)),
       integer("placeholder", config.placeholder), integer("patch", config.patch),
       integer("merge", config.merge), integer("frames", config.frames),
       integer("most_patches", config.mostPatches),
       integer("most_patches_of_side", config.mostPatchesOfSide), numbers("mean", config.mean),
       numbers("deviation", config.deviation)});
}

Value ModelBuilder::itemCache(int64_t heads, int64_t dimension) {
  int64_t outer = std::exchange(caches, 0); // names count from 0 in each entry
  Value result = cacheOfBlocks(heads, dimension, dimension, keysOfBlock);
  caches = outer;
  return result;
}

Value ModelBuilder::itemAttention(StringRef name, Value query, Value key, Value value, Value cache,
                                  const ImagePatches &patches, double scale) {
  moe::KVAppendOp::create(builder, at(name), key, value, cache, patches.keys, patches.items,
                          patches.blockTable, /*rotary=*/moe::RotaryAttr());
  return moe::AttentionOp::create(
      builder, at(name), query.getType(), query, cache, patches.lastKeys, patches.items,
      patches.blockTable, /*sinks=*/Value(), /*indices=*/Value(), builder.getF64FloatAttr(scale),
      builder.getI64IntegerAttr(0), builder.getF64FloatAttr(0.0), /*rotary=*/moe::RotaryAttr(),
      /*strategy=*/StringAttr());
}

/// A pair of an even number turns with the column, one of an odd number with the row. Each rotation
/// leaves the pairs of the other one alone: they have frequency 0 there.
Value ModelBuilder::rotateInPlane(StringRef name, Value input, const ImagePatches &patches,
                                  ArrayRef<double> frequencies) {
  RotaryConfig byColumn, byRow;
  for (double frequency : frequencies) {
    byColumn.frequencies.insert(byColumn.frequencies.end(), {frequency, 0.0});
    byRow.frequencies.insert(byRow.frequencies.end(), {0.0, frequency});
  }
  byColumn.interleaved = byRow.interleaved = true;
  input = ropeAt(name, input, patches.columns, byColumn);
  return ropeAt(name, input, patches.rows, byRow);
}

Value ModelBuilder::toActivationType(StringRef name, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getElementType() == activationType)
    return input;
  return arith::TruncFOp::create(builder, at(name), type.clone(activationType), input);
}

Value ModelBuilder::addPositions(StringRef name, Value input, const ImagePatches &patches,
                                 const VisionConfig &config) {
  Value grid =
      weight((name + ".weight").str(), {config.gridRows, config.gridColumns, config.hidden});
  auto type = cast<RankedTensorType>(input.getType());
  Value positions =
      moe::InterpolatePositionsOp::create(builder, at(name), type, grid, patches.rows,
                                          patches.heights, patches.columns, patches.widths);
  // Row 0 is for items of one frame, which have no time.
  int64_t half = config.hidden / 2;
  SmallVector<float> table(config.hidden, 0.0f);
  for (int64_t frame = 0; frame < config.frames; ++frame) {
    auto angle = [&](int64_t i) { return frame * std::pow(10000.0, -double(i) / half); };
    for (int64_t i = 0; i < half; ++i)
      table.push_back(std::sin(angle(i)));
    for (int64_t i = 0; i < half; ++i)
      table.push_back(std::cos(angle(i)));
  }
  std::string timeName = (name + ".time").str();
  auto tableType = RankedTensorType::get({config.frames + 1, config.hidden}, builder.getF32Type());
  Value times = arith::ConstantOp::create(
      builder, at(timeName), DenseElementsAttr::get(tableType, ArrayRef<float>(table)));
  Value time = moe::GatherRowsOp::create(builder, at(timeName), type.clone(builder.getF32Type()),
                                         times, patches.times);
  return add(timeName, add(name, input, positions), toActivationType(timeName, time));
}

Value ModelBuilder::gelu(StringRef name, Value input, bool isApproximate) {
  auto type = cast<RankedTensorType>(input.getType());
  Value empty = tensor::EmptyOp::create(
      builder, at(name), tensor::getMixedSizes(builder, at(name), input), type.getElementType());
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange elements) {
    Type f32 = b.getF32Type(), narrow = elements.back().getType();
    auto number = [&](double x) -> Value {
      return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(x));
    };
    auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, loc, x, y); };
    auto add = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, loc, x, y); };
    Value x = elements[0];
    if (narrow != f32)
      x = arith::ExtFOp::create(b, loc, f32, x);
    Value share;
    if (isApproximate) {
      // tanh(sqrt(2 / pi) (x + 0.044715 x^3))
      Value cube = mul(mul(x, x), x);
      Value inner = add(x, mul(cube, number(0.044715)));
      share = math::TanhOp::create(b, loc, mul(inner, number(std::sqrt(2 * std::numbers::inv_pi))));
    } else {
      share = math::ErfOp::create(b, loc, mul(x, number(std::sqrt(0.5))));
    }
    Value result = mul(mul(x, number(0.5)), add(share, number(1)));
    if (narrow != f32)
      result = arith::TruncFOp::create(b, loc, narrow, result);
    linalg::YieldOp::create(b, loc, result);
  };
  return linalg::GenericOp::create(builder, at(name), empty.getType(), input, empty, maps,
                                   iterators, body)
      .getResult(0);
}

/// [embeddings * merge^2 * frames, features] -> [embeddings, merge^2 * features], the mean over the
/// frames.
Value ModelBuilder::mergePatches(StringRef name, Value input, const ImagePatches &patches,
                                 int64_t merge) {
  Location loc = at(name);
  auto type = cast<RankedTensorType>(input.getType());
  int64_t features = type.getDimSize(1);
  OpFoldResult count = builder.getIndexAttr(merge * merge), width = builder.getIndexAttr(features);
  SmallVector<OpFoldResult> sizes = {patches.embeddings, count, patches.frames, width};
  SmallVector<ReassociationIndices> groups = {{0, 1, 2}, {3}};
  Value apart = tensor::ExpandShapeOp::create(
      builder, loc,
      RankedTensorType::get({dynamic, merge * merge, dynamic, features}, type.getElementType()),
      input, groups, sizes);
  Type f32 = builder.getF32Type();
  SmallVector<OpFoldResult> kept = {patches.embeddings, count, width};
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  Value sums = linalg::FillOp::create(builder, loc, zero,
                                      Value(tensor::EmptyOp::create(builder, loc, kept, f32)))
                   .getResult(0);
  AffineExpr e, p, f, c;
  bindDims(getContext(), e, p, f, c);
  SmallVector<AffineMap> maps = {AffineMap::get(4, 0, {e, p, f, c}, getContext()),
                                 AffineMap::get(4, 0, {e, p, c}, getContext())};
  using utils::IteratorType;
  SmallVector<IteratorType> iterators = {IteratorType::parallel, IteratorType::parallel,
                                         IteratorType::reduction, IteratorType::parallel};
  sums =
      linalg::GenericOp::create(builder, loc, sums.getType(), apart, sums, maps, iterators,
                                [&](OpBuilder &b, Location loc, ValueRange elements) {
                                  Value x = elements[0];
                                  if (x.getType() != f32)
                                    x = arith::ExtFOp::create(b, loc, f32, x);
                                  linalg::YieldOp::create(
                                      b, loc, Value(arith::AddFOp::create(b, loc, elements[1], x)));
                                })
          .getResult(0);
  Value frames = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), patches.frames);
  frames = arith::SIToFPOp::create(builder, loc, f32, frames);
  SmallVector<AffineMap> same(2, builder.getMultiDimIdentityMap(3));
  SmallVector<IteratorType> parallel(3, IteratorType::parallel);
  Value means = tensor::EmptyOp::create(builder, loc, kept, type.getElementType());
  means = linalg::GenericOp::create(
              builder, loc, means.getType(), sums, means, same, parallel,
              [&](OpBuilder &b, Location loc, ValueRange elements) {
                Value mean = arith::DivFOp::create(b, loc, elements[0], frames);
                if (type.getElementType() != f32)
                  mean = arith::TruncFOp::create(b, loc, type.getElementType(), mean);
                linalg::YieldOp::create(b, loc, mean);
              })
              .getResult(0);
  SmallVector<ReassociationIndices> together = {{0}, {1, 2}};
  return tensor::CollapseShapeOp::create(builder, loc, means, together);
}
