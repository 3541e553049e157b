#include "ModelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

using moert::ElementType;

static constexpr int64_t dynamic = ShapedType::kDynamic;

ModelBuilder::ModelBuilder(MLIRContext *context, Checkpoint &checkpoint, Type activationType,
                           int64_t blockTokens, std::optional<std::pair<int64_t, int64_t>> layers)
    : checkpoint(checkpoint), activationType(activationType), blockTokens(blockTokens),
      layers(layers), builder(context) {
  Location location = at("step");
  module = ModuleOp::create(location);
  builder.setInsertionPointToStart(module->getBody());
  step = func::FuncOp::create(builder, location, "step", builder.getFunctionType({}, {}));
  Block *block = step.addEntryBlock();
  builder.setInsertionPointToStart(block);

  tokens = addArgument("tokens", {"tokens"});
  positions = addArgument("positions", {"tokens"});
  tokenSequences = addArgument("token_sequences", {"tokens"});
  sequenceOffsets = addArgument("sequence_offsets", {"sequences + 1"});
  blockTable = addArgument("block_table", {"sequences", "blocks"});
  logitRows = addArgument("logit_rows", {"rows"});
  tokenCount = tensor::DimOp::create(builder, location, tokens, 0);
}

Value ModelBuilder::addArgument(StringRef name, ArrayRef<StringRef> dims) {
  SmallVector<int64_t> shape(dims.size(), dynamic);
  return addArgument(name, RankedTensorType::get(shape, builder.getI32Type()), dims);
}

Value ModelBuilder::addArgument(StringRef name, RankedTensorType type, ArrayRef<StringRef> dims) {
  argumentAttributes.push_back(
      builder.getDictionaryAttr({builder.getNamedAttr("moe.name", builder.getStringAttr(name)),
                                 builder.getNamedAttr("moe.dims", builder.getStrArrayAttr(dims))}));
  return step.getBody().front().addArgument(type, at(name));
}

SmallVector<int64_t> ModelBuilder::getLayers(int64_t count) {
  auto [first, last] = layers.value_or(std::pair<int64_t, int64_t>(0, count - 1));
  if (last >= count) {
    checkpoint.complain("--layers asks for layer " + std::to_string(last) + " of " +
                        std::to_string(count) + ", counted from 0");
    last = count - 1;
  }
  SmallVector<int64_t> result;
  for (int64_t layer = first; layer <= last; ++layer)
    result.push_back(layer);
  return result;
}

Location ModelBuilder::at(StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }

RankedTensorType ModelBuilder::typeLike(Value input, int64_t features, Type elementType) {
  auto rows = cast<RankedTensorType>(input.getType()).getDimSize(0);
  return RankedTensorType::get({rows, features}, elementType);
}

Type ModelBuilder::getElementType(const CheckpointTensor *tensor, ElementType otherwise) {
  switch (tensor ? tensor->entry->type : otherwise) {
  case ElementType::F32:
    return builder.getF32Type();
  case ElementType::BF16:
    return builder.getBF16Type();
  case ElementType::F16:
    return builder.getF16Type();
  case ElementType::I32:
    return builder.getI32Type();
  case ElementType::I64:
    return builder.getI64Type();
  default:
    return builder.getI8Type();
  }
}

moe::WeightRefAttr ModelBuilder::getReference(const CheckpointTensor *tensor) {
  if (!tensor)
    return moe::WeightRefAttr::get(getContext(), "", 0, 0);
  return moe::WeightRefAttr::get(getContext(), tensor->file, tensor->entry->offset,
                                 tensor->entry->bytes);
}

Value ModelBuilder::takeWeight(StringRef name, ArrayRef<int64_t> shape,
                               ArrayRef<ElementType> accepted) {
  Value &known = weights[name];
  if (known && cast<RankedTensorType>(known.getType()).getShape() == shape)
    return known;
  const CheckpointTensor *tensor = checkpoint.take(name.str(), shape, accepted);
  auto type = RankedTensorType::get(shape, getElementType(tensor, accepted.front()));
  known = moe::WeightOp::create(builder, at(name), type, builder.getStringAttr(name),
                                getReference(tensor));
  return known;
}

Value ModelBuilder::stackedWeight(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                                  ArrayRef<int64_t> shape) {
  return takeStack(names, partShape, shape,
                   {ElementType::F32, ElementType::BF16, ElementType::F16});
}

Value ModelBuilder::takeStack(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                              ArrayRef<int64_t> shape, SmallVector<ElementType> accepted) {
  SmallVector<StringRef> moreNames;
  SmallVector<Attribute> references;
  Type elementType;
  for (const std::string &name : names) {
    const CheckpointTensor *tensor = checkpoint.take(name, partShape, accepted);
    references.push_back(getReference(tensor));
    if (!elementType) {
      elementType = getElementType(tensor, accepted.front());
      if (tensor)
        accepted = {tensor->entry->type}; // of all of them
    } else {
      moreNames.push_back(name);
    }
  }
  return moe::WeightOp::create(
      builder, at(names.front()), RankedTensorType::get(shape, elementType),
      builder.getStringAttr(names.front()), cast<moe::WeightRefAttr>(references.front()),
      builder.getStrArrayAttr(moreNames), builder.getArrayAttr(ArrayRef(references).drop_front()));
}

Value ModelBuilder::weight(StringRef name, ArrayRef<int64_t> shape) {
  return takeWeight(name, shape, {ElementType::F32, ElementType::BF16, ElementType::F16});
}

Value ModelBuilder::weightPart(StringRef name, ArrayRef<int64_t> shape, int64_t part,
                               int64_t parts) {
  const CheckpointTensor *tensor =
      checkpoint.take(name.str(), shape, {{ElementType::F32, ElementType::BF16, ElementType::F16}});
  SmallVector<int64_t> ofPart(shape);
  ofPart.front() /= parts;
  auto type = RankedTensorType::get(ofPart, getElementType(tensor, ElementType::F32));
  std::string partName = (name + " " + Twine(part) + "/" + Twine(parts)).str();
  moe::WeightRefAttr whole = getReference(tensor);
  auto bytes = whole.getBytes() / parts;
  auto reference = moe::WeightRefAttr::get(getContext(), whole.getFile(),
                                           whole.getOffset() + part * bytes, bytes);
  return moe::WeightOp::create(builder, at(name), type, builder.getStringAttr(partName), reference);
}

Value ModelBuilder::mxfp4Weight(StringRef name, ArrayRef<int64_t> shape) {
  constexpr int64_t blockSize = moe::BlockTensorType::mxfp4BlockSize;
  SmallVector<int64_t> scalesShape(shape);
  scalesShape.back() /= blockSize;
  SmallVector<int64_t> codesShape(scalesShape);
  codesShape.push_back(blockSize / 2);
  Value codes = takeWeight((name + "_blocks").str(), codesShape, {ElementType::U8});
  Value scales = takeWeight((name + "_scales").str(), scalesShape, {ElementType::U8});
  auto type = moe::BlockTensorType::get(getContext(), shape, moe::BlockFormat::mxfp4, {});
  return moe::AssembleBlocksOp::create(builder, at(name), type, codes, scales);
}

SmallVector<int64_t> ModelBuilder::getTensorShape(StringRef name) const {
  const CheckpointTensor *tensor = checkpoint.findTensor(name);
  return tensor && tensor->entry ? llvm::to_vector_of<int64_t>(tensor->entry->shape)
                                 : SmallVector<int64_t>();
}

Value ModelBuilder::reshapedWeight(StringRef name, ArrayRef<int64_t> stored,
                                   ArrayRef<int64_t> shape) {
  Value tensor = weight(name, stored);
  auto type = cast<RankedTensorType>(tensor.getType());
  auto flatten = [](int64_t rank) {
    ReassociationIndices all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    return SmallVector<ReassociationIndices>{all};
  };
  if (stored.size() > 1)
    tensor = tensor::CollapseShapeOp::create(builder, at(name), tensor, flatten(stored.size()));
  if (shape.size() > 1)
    tensor = tensor::ExpandShapeOp::create(builder, at(name),
                                           RankedTensorType::get(shape, type.getElementType()),
                                           tensor, flatten(shape.size()));
  return tensor;
}

Value ModelBuilder::foldedWeight(StringRef name, ArrayRef<int64_t> stored) {
  ReassociationIndices rest = llvm::to_vector(llvm::seq<int64_t>(1, stored.size()));
  return tensor::CollapseShapeOp::create(builder, at(name), weight(name, stored),
                                         SmallVector<ReassociationIndices>{{0}, rest});
}

/// Blocks become numbers, which can be cut anywhere.
static Value toNumbers(OpBuilder &builder, Location location, Value matrix, Type elementType) {
  auto blocks = dyn_cast<moe::BlockTensorType>(matrix.getType());
  if (!blocks)
    return matrix;
  return moe::DequantizeOp::create(builder, location,
                                   RankedTensorType::get(blocks.getShape(), elementType), matrix);
}

Value ModelBuilder::groupRows(StringRef name, Value matrix, int64_t groups) {
  matrix = toNumbers(builder, at(name), matrix, activationType);
  auto type = cast<RankedTensorType>(matrix.getType());
  int64_t rows = type.getDimSize(0) / groups, columns = type.getDimSize(1);
  return tensor::ExpandShapeOp::create(
      builder, at(name), RankedTensorType::get({groups, rows, columns}, type.getElementType()),
      matrix, SmallVector<ReassociationIndices>{{0, 1}, {2}});
}

Value ModelBuilder::regroupedRows(StringRef name, Value matrix, int64_t groups,
                                  ArrayRef<RowsOfGroup> parts) {
  Value grouped = groupRows(name, matrix, groups);
  SmallVector<Value> taken;
  for (auto [first, count] : parts)
    taken.push_back(tensor::CollapseShapeOp::create(
        builder, at(name), slice(name, grouped, first, count, /*dimension=*/1),
        SmallVector<ReassociationIndices>{{0, 1}, {2}}));
  return tensor::ConcatOp::create(builder, at(name), /*dim=*/0, taken);
}

Value ModelBuilder::transpose(StringRef name, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  ArrayRef<int64_t> shape = type.getShape();
  Value empty = tensor::EmptyOp::create(
      builder, at(name), ArrayRef<int64_t>{shape[0], shape[2], shape[1]}, type.getElementType());
  return linalg::TransposeOp::create(builder, at(name), input, empty, ArrayRef<int64_t>{0, 2, 1})
      ->getResult(0);
}

Value ModelBuilder::transposedWeight(StringRef name, int64_t outer, int64_t rows, int64_t columns) {
  return transpose(name, weight(name, {outer, columns, rows}));
}

Value ModelBuilder::embedding(StringRef name, int64_t vocabulary, int64_t hidden) {
  Value table = weight((name + ".weight").str(), {vocabulary, hidden});
  return spliceImages(name, moe::EmbeddingOp::create(builder, at(name),
                                                     typeLike(tokens, hidden, activationType),
                                                     tokens, table));
}

Value ModelBuilder::plainRmsNorm(StringRef name, Value input, double epsilon) {
  return moe::RMSNormOp::create(builder, at(name), input, /*weight=*/Value(),
                                builder.getF64FloatAttr(epsilon));
}

Value ModelBuilder::rmsNorm(StringRef name, Value input, double epsilon, bool unitOffset) {
  int64_t features = cast<RankedTensorType>(input.getType()).getShape().back();
  Value scale = weight((name + ".weight").str(), {features});
  return moe::RMSNormOp::create(builder, at(name), input, scale, builder.getF64FloatAttr(epsilon),
                                unitOffset ? builder.getUnitAttr() : UnitAttr());
}

Value ModelBuilder::layerNorm(StringRef name, Value input, double epsilon) {
  int64_t features = cast<RankedTensorType>(input.getType()).getShape().back();
  Value scale = weight((name + ".weight").str(), {features});
  std::string biasName = (name + ".bias").str();
  Value bias = hasTensor(biasName) ? weight(biasName, {features}) : Value();
  return moe::LayerNormOp::create(builder, at(name), input, scale, bias,
                                  builder.getF64FloatAttr(epsilon));
}

Value ModelBuilder::linear(StringRef name, Value input, int64_t features, bool hasBias,
                           Type resultType) {
  int64_t inputs = cast<RankedTensorType>(input.getType()).getShape().back();
  Value matrix = this->matrix(name, features, inputs);
  Value bias = hasBias ? weight((name + ".bias").str(), {features}) : Value();
  return moe::LinearOp::create(builder, at(name),
                               typeLike(input, features, resultType ? resultType : activationType),
                               input, matrix, bias, /*residual=*/Value(), /*norm_weight=*/Value(),
                               /*epsilon=*/FloatAttr(), /*strategy=*/StringAttr());
}

Value ModelBuilder::product(StringRef name, Value input, Value matrix, Type resultType) {
  int64_t features = moe::getLogicalShape(matrix.getType()).front();
  return moe::LinearOp::create(builder, at(name),
                               typeLike(input, features, resultType ? resultType : activationType),
                               input, matrix, /*bias=*/Value(), /*residual=*/Value(),
                               /*norm_weight=*/Value(), /*epsilon=*/FloatAttr(),
                               /*strategy=*/StringAttr());
}

Value ModelBuilder::groupedLinear(StringRef name, Value input, int64_t groups, int64_t inputs,
                                  int64_t features) {
  std::string weightName = (name + ".weight").str();
  // A quantised matrix becomes numbers as a whole: one of its blocks may lie in two groups.
  Value whole;
  if (isQuantized(weightName))
    whole = toNumbers(builder, at(name), matrix(name, groups * features, inputs), activationType);
  SmallVector<Value> parts;
  for (int64_t group = 0; group < groups; ++group) {
    Value part = whole ? slice(name, whole, group * features, features, /*dimension=*/0)
                       : weightPart(weightName, {groups * features, inputs}, group, groups);
    parts.push_back(product(name, slice(name, input, group * inputs, inputs), part));
  }
  return concatenate(name, parts);
}

Value ModelBuilder::add(StringRef name, Value left, Value right) {
  return arith::AddFOp::create(builder, at(name), left, right);
}

Value ModelBuilder::sigmoid(StringRef name, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  Value one = arith::ConstantOp::create(builder, at(name),
                                        builder.getFloatAttr(type.getElementType(), 1.0));
  SmallVector<Value> dynamicSizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      dynamicSizes.push_back(tensor::DimOp::create(builder, at(name), input, i));
  Value ones = tensor::SplatOp::create(builder, at(name), type, one, dynamicSizes);
  Value negated = arith::NegFOp::create(builder, at(name), input);
  Value exponential = math::ExpOp::create(builder, at(name), negated);
  return arith::DivFOp::create(builder, at(name), ones,
                               arith::AddFOp::create(builder, at(name), ones, exponential));
}

Value ModelBuilder::mixResiduals(StringRef norm, StringRef projection, ValueRange candidates,
                                 double epsilon) {
  auto type = cast<RankedTensorType>(candidates.front().getType());
  int64_t features = type.getShape().back();
  auto factor = [&](StringRef name, ArrayRef<int64_t> stored) -> Value {
    Value vector = reshapedWeight((name + ".weight").str(), stored, {features});
    auto wide = RankedTensorType::get({features}, builder.getF32Type());
    return vector.getType() == wide ? vector
                                    : Value(arith::ExtFOp::create(builder, at(name), wide, vector));
  };
  Value scale = factor(norm, {features}), direction = factor(projection, {1, features});
  Value product = arith::MulFOp::create(builder, at(projection), scale, direction);
  return moe::MixResidualsOp::create(builder, at(projection), type, candidates, product,
                                     builder.getF64FloatAttr(epsilon));
}

Value ModelBuilder::gate(StringRef name, Value gate, Value up, moe::ActivationAttr activation) {
  return moe::GateOp::create(builder, at(name), gate.getType(), gate, up, activation);
}

Value ModelBuilder::gatedLayer(const std::string &name, Value input, int64_t inner,
                               moe::ActivationAttr activation) {
  int64_t features = cast<RankedTensorType>(input.getType()).getShape().back();
  Value gated = linear(name + ".gate_proj", input, inner, /*hasBias=*/false);
  Value up = linear(name + ".up_proj", input, inner, /*hasBias=*/false);
  return linear(name + ".down_proj", gate(name, gated, up, activation), features,
                /*hasBias=*/false);
}

Value ModelBuilder::swigluLayer(const std::string &name, Value input, int64_t inner) {
  return gatedLayer(name, input, inner,
                    moe::ActivationAttr::get(getContext(), moe::ActivationKind::silu, 1.0, 0.0, 0.0,
                                             /*interleaved=*/false));
}

static SmallVector<ReassociationIndices> headGroups() { return {{0}, {1, 2}}; }

Value ModelBuilder::splitHeads(StringRef name, Value input, int64_t heads) {
  auto type = cast<RankedTensorType>(input.getType());
  int64_t dimension = type.getDimSize(1) / heads;
  SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(builder, at(name), input, 0),
                                     builder.getIndexAttr(heads), builder.getIndexAttr(dimension)};
  return tensor::ExpandShapeOp::create(
      builder, at(name), RankedTensorType::get({dynamic, heads, dimension}, type.getElementType()),
      input, headGroups(), sizes);
}

Value ModelBuilder::mergeHeads(StringRef name, Value input) {
  return tensor::CollapseShapeOp::create(builder, at(name), input, headGroups());
}

Value ModelBuilder::slice(StringRef name, Value input, int64_t first, int64_t count,
                          std::optional<int64_t> dimension) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at(name), input);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0)),
      strides(sizes.size(), builder.getIndexAttr(1));
  int64_t cut = dimension.value_or(sizes.size() - 1);
  offsets[cut] = builder.getIndexAttr(first);
  sizes[cut] = builder.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(builder, at(name), input, offsets, sizes, strides);
}

Value ModelBuilder::concatenate(StringRef name, ValueRange parts) {
  int64_t last = cast<RankedTensorType>(parts.front().getType()).getRank() - 1;
  return tensor::ConcatOp::create(builder, at(name), last, parts);
}

Value ModelBuilder::headLinear(StringRef name, Value input, Value weight) {
  auto type = cast<RankedTensorType>(input.getType());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
  auto resultType =
      RankedTensorType::get({type.getDimSize(0), shape[0], shape[1]}, type.getElementType());
  return moe::HeadLinearOp::create(builder, at(name), resultType, input, weight,
                                   /*transposed=*/false);
}

Value ModelBuilder::repeatHead(StringRef name, Value input, int64_t heads) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<OpFoldResult> sizes = {tokenCount, builder.getIndexAttr(heads),
                                     builder.getIndexAttr(type.getDimSize(1))};
  Value empty = tensor::EmptyOp::create(builder, at(name), sizes, type.getElementType());
  return linalg::BroadcastOp::create(builder, at(name), input, empty, ArrayRef<int64_t>{1})
      ->getResult(0);
}

Value ModelBuilder::sigmoidGate(StringRef name, Value input, Value gate) {
  auto type = cast<RankedTensorType>(input.getType());
  Value empty = tensor::EmptyOp::create(
      builder, at(name), tensor::getMixedSizes(builder, at(name), input), type.getElementType());
  SmallVector<AffineMap> maps(3, builder.getMultiDimIdentityMap(type.getRank()));
  if (cast<RankedTensorType>(gate.getType()).getShape().back() != type.getShape().back()) {
    SmallVector<ReassociationIndices> flat = {{0, 1}};
    gate = tensor::CollapseShapeOp::create(builder, at(name), gate, flat);
    maps[1] = AffineMap::get(2, 0, builder.getAffineDimExpr(0));
  }
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto body = [](OpBuilder &b, Location loc, ValueRange elements) {
    Type f32 = b.getF32Type(), narrow = elements.back().getType();
    auto widen = [&](Value x) -> Value {
      return x.getType() == f32 ? x : Value(arith::ExtFOp::create(b, loc, f32, x));
    };
    Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
    Value exponential =
        math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, widen(elements[1])));
    Value sigmoid =
        arith::DivFOp::create(b, loc, one, arith::AddFOp::create(b, loc, one, exponential));
    Value result = arith::MulFOp::create(b, loc, widen(elements[0]), sigmoid);
    if (narrow != f32)
      result = arith::TruncFOp::create(b, loc, narrow, result);
    linalg::YieldOp::create(b, loc, result);
  };
  return linalg::GenericOp::create(builder, at(name), empty.getType(), ValueRange{input, gate},
                                   empty, maps, iterators, body)
      .getResult(0);
}

Value ModelBuilder::rope(StringRef name, Value input, const RotaryConfig &rotary) {
  return ropeAt(name, input, positions, rotary);
}

Value ModelBuilder::ropeAt(StringRef name, Value input, Value places, const RotaryConfig &rotary) {
  SmallVector<float> frequencies(rotary.frequencies.begin(), rotary.frequencies.end());
  auto attribute = moe::RotaryAttr::get(getContext(), builder.getDenseF32ArrayAttr(frequencies),
                                        rotary.magnitude, rotary.offset, rotary.interleaved);
  return moe::RopeOp::create(builder, at(name), input, places, attribute);
}

Value ModelBuilder::cache(int64_t kvHeads, int64_t keyDimension, int64_t valueDimension,
                          moe::CacheForm form) {
  return cacheOfBlocks(kvHeads, keyDimension, valueDimension, blockTokens, form);
}

Value ModelBuilder::cacheOfBlocks(int64_t kvHeads, int64_t keyDimension, int64_t valueDimension,
                                  int64_t block, moe::CacheForm form) {
  std::string name = "kv." + std::to_string(caches++);
  argumentAttributes.push_back(
      builder.getDictionaryAttr({builder.getNamedAttr("moe.name", builder.getStringAttr(name))}));
  auto type = moe::CacheType::get(getContext(), kvHeads, keyDimension, valueDimension, block,
                                  activationType, form);
  return step.getBody().front().addArgument(type, at(name));
}

void ModelBuilder::append(StringRef name, Value key, Value value, Value cache) {
  moe::KVAppendOp::create(builder, at(name), key, value, cache, positions, tokenSequences,
                          blockTable, /*rotary=*/moe::RotaryAttr());
}

Value ModelBuilder::selectKeys(StringRef name, Value query, Value weights, Value key, Value cache,
                               int64_t topK, double scale) {
  append(name, key, /*value=*/Value(), cache);
  return moe::SelectKeysOp::create(builder, at(name), typeLike(query, topK, builder.getI32Type()),
                                   query, weights, cache, positions, tokenSequences, blockTable,
                                   builder.getI64IntegerAttr(topK), builder.getF64FloatAttr(scale));
}

Value ModelBuilder::attention(StringRef name, Value query, Value key, Value value, Value cache,
                              const AttentionParameters &parameters) {
  append(name, key, value, cache);
  auto queryType = cast<RankedTensorType>(query.getType());
  auto cacheType = cast<moe::CacheType>(cache.getType());
  auto resultType = RankedTensorType::get(
      {queryType.getDimSize(0), queryType.getDimSize(1), cacheType.getValueDim()},
      queryType.getElementType());
  return moe::AttentionOp::create(
      builder, at(name), resultType, query, cache, positions, tokenSequences, blockTable,
      parameters.sinks, parameters.indices, builder.getF64FloatAttr(parameters.scale),
      builder.getI64IntegerAttr(parameters.window), builder.getF64FloatAttr(0.0),
      /*rotary=*/moe::RotaryAttr(), /*strategy=*/StringAttr());
}

ModelBuilder::Routing ModelBuilder::hashRoute(StringRef name, Value logits,
                                              const RouteParameters &parameters) {
  int64_t vocabulary = parameters.vocabulary;
  Value table =
      takeWeight(name, {vocabulary, parameters.topK}, {ElementType::I32, ElementType::I64});
  auto op = moe::HashRouteOp::create(
      builder, at(name), typeLike(logits, parameters.topK, builder.getF32Type()),
      typeLike(logits, parameters.topK, builder.getI32Type()), logits, tokens, table,
      moe::ScoreFunctionAttr::get(getContext(), parameters.score),
      parameters.renormalize ? builder.getUnitAttr() : UnitAttr(),
      builder.getF64FloatAttr(parameters.scale));
  return {op.getWeights(), op.getIndices()};
}

ModelBuilder::Routing ModelBuilder::route(StringRef name, Value logits,
                                          const RouteParameters &parameters) {
  auto op = moe::RouteOp::create(
      builder, at(name), typeLike(logits, parameters.topK, builder.getF32Type()),
      typeLike(logits, parameters.topK, builder.getI32Type()), logits, parameters.selectionBias,
      moe::ScoreFunctionAttr::get(getContext(), parameters.score),
      builder.getI64IntegerAttr(parameters.topK), builder.getI64IntegerAttr(parameters.groups),
      builder.getI64IntegerAttr(parameters.topGroups),
      parameters.renormalize ? builder.getUnitAttr() : UnitAttr(),
      builder.getF64FloatAttr(parameters.scale));
  return {op.getWeights(), op.getIndices()};
}

Value ModelBuilder::experts(StringRef name, Value input, const Routing &routing,
                            const ExpertWeights &weights, moe::ActivationAttr activation) {
  int64_t features = moe::getLogicalShape(weights.down.getType())[1];
  return moe::ExpertsOp::create(builder, at(name), typeLike(input, features, activationType), input,
                                routing.indices, routing.weights, weights.gateUp, weights.down,
                                weights.gateUpBias, weights.downBias, /*residual=*/Value(),
                                activation);
}

Value ModelBuilder::selectLogitRows(Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  return moe::GatherRowsOp::create(builder, at("logit_rows"),
                                   typeLike(logitRows, type.getDimSize(1), type.getElementType()),
                                   input, logitRows);
}

void ModelBuilder::finishEntry(Value result, StringRef name) {
  func::ReturnOp::create(builder, at(step.getName()), result);
  step.setFunctionType(builder.getFunctionType(step.getBody().front().getArgumentTypes(),
                                               TypeRange(result.getType())));
  step.setArgAttrsAttr(builder.getArrayAttr(argumentAttributes));
  step.setResultAttr(0, "moe.name", builder.getStringAttr(name));
  step->setAttr("moe.entry", builder.getUnitAttr());
}

OwningOpRef<ModuleOp> ModelBuilder::finish(Value logits, const LanguageModelConfig &config,
                                           StringRef model, StringRef weightRoot) {
  finishEntry(logits, "logits");
  SmallVector<NamedAttribute> language = {
      builder.getNamedAttr("vocabulary", builder.getI64IntegerAttr(config.vocabulary)),
      builder.getNamedAttr("bos", builder.getI64IntegerAttr(config.bosToken)),
      builder.getNamedAttr("eos", builder.getDenseI64ArrayAttr(config.eosTokens)),
      builder.getNamedAttr("add_bos", builder.getBoolAttr(config.addBos)),
      builder.getNamedAttr("maximum_tokens", builder.getI64IntegerAttr(config.maximumTokens)),
      builder.getNamedAttr("block_tokens", builder.getI64IntegerAttr(blockTokens)),
  };
  if (!config.tokenizer.empty())
    language.push_back(builder.getNamedAttr("tokenizer", builder.getStringAttr(config.tokenizer)));
  if (vision)
    language.push_back(builder.getNamedAttr("vision", vision));
  (*module)->setAttr("moe.language_model", builder.getDictionaryAttr(language));
  (*module)->setAttr("moe.model", builder.getStringAttr(model));
  (*module)->setAttr("moe.weight_root", builder.getStringAttr(weightRoot));
  return std::move(module);
}
