//===- QuantizedWeights.cpp - matrices as checkpoints quantise them ---------------------------===//
//
//   NAME F8_E4M3 or F8_E5M2, NAME_scale_inv:   FP8, a scale a block; the scales may have two other
//                                              names, see findScale
//   NAME_packed I32, NAME_scale, NAME_shape:   int4 of compressed-tensors, a scale a group of a row
//   NAME_packed U8, NAME_scale U8:             MXFP4 of compressed-tensors
//   NAME I8, .scale F8_E8M0 in place of .weight:   MXFP4 as DeepSeek-V4 is published
//
// MXFP4 stays as it is; the others become plain numbers of the activation type at load time.
//
//===------------------------------------------------------------------------------------------===//

#include "ModelBuilder.h"
#include "TransformerConfig.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

using moert::ElementType;
using moert::JsonView;

Value ModelBuilder::matrix(StringRef name, int64_t rows, int64_t columns) {
  return stackedMatrices({(name + ".weight").str()}, {rows, columns}, {rows, columns});
}

static SmallVector<std::string> withSuffix(ArrayRef<std::string> names, StringRef suffix) {
  return llvm::map_to_vector(names, [&](const std::string &name) { return name + suffix.str(); });
}

static bool isFloat8(const CheckpointTensor *tensor) {
  return tensor &&
         (tensor->entry->type == ElementType::F8E4M3 || tensor->entry->type == ElementType::F8E5M2);
}

static bool isPackedFp4(const CheckpointTensor *tensor) {
  return tensor &&
         (tensor->entry->type == ElementType::I8 || tensor->entry->type == ElementType::U8);
}

bool ModelBuilder::isQuantized(const std::string &name) const {
  const CheckpointTensor *tensor = checkpoint.findTensor(name);
  return hasTensor(name + "_packed") || isFloat8(tensor) || isPackedFp4(tensor);
}

/// The scales of the tensor: NAME_scale_inv, NAME_scale of compressed-tensors, or of "A.weight"
/// "A.scale". Where there are none, the first of these is what is missing.
static std::string findScale(const Checkpoint &checkpoint, const std::string &name) {
  SmallVector<std::string> known = {name + "_scale_inv", name + "_scale"};
  if (StringRef(name).ends_with(".weight"))
    known.push_back(StringRef(name).drop_back(StringRef("weight").size()).str() + "scale");
  for (const std::string &each : known)
    if (checkpoint.hasTensor(each))
      return each;
  return known.front();
}

static SmallVector<std::string> findScales(const Checkpoint &checkpoint,
                                           ArrayRef<std::string> names) {
  return llvm::map_to_vector(names,
                             [&](const std::string &name) { return findScale(checkpoint, name); });
}

Value ModelBuilder::stackedMatrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                                    ArrayRef<int64_t> shape) {
  if (const CheckpointTensor *packed = checkpoint.findTensor(names.front() + "_packed"))
    return packed->entry->type == ElementType::I32
               ? int4Matrices(names, partShape, shape)
               : mxfp4Matrices(withSuffix(names, "_packed"), withSuffix(names, "_scale"), partShape,
                               shape);
  const CheckpointTensor *tensor = checkpoint.findTensor(names.front());
  if (isFloat8(tensor))
    return float8Matrices(names, partShape, shape);
  if (isPackedFp4(tensor))
    return mxfp4Matrices(names, findScales(checkpoint, names), partShape, shape);
  return names.size() == 1 && partShape == shape ? weight(names.front(), shape)
                                                 : stackedWeight(names, partShape, shape);
}

Value ModelBuilder::mxfp4Matrices(ArrayRef<std::string> codeNames, ArrayRef<std::string> scaleNames,
                                  ArrayRef<int64_t> partShape, ArrayRef<int64_t> shape) {
  constexpr int64_t codesOfByte = 2, blockSize = moe::BlockTensorType::mxfp4BlockSize;
  if (partShape.back() % blockSize != 0) {
    checkpoint.complain("tensor " + moert::inQuotes(codeNames.front()) + ": rows of " +
                        std::to_string(partShape.back()) +
                        " numbers in MXFP4; expected a multiple of 32, which share a scale");
    return tensor::EmptyOp::create(builder, at(codeNames.front()), shape, activationType);
  }
  auto take = [&](ArrayRef<std::string> names, int64_t divisor, SmallVector<ElementType> accepted) {
    SmallVector<int64_t> ofPart(partShape), ofAll(shape);
    ofPart.back() /= divisor;
    ofAll.back() /= divisor;
    return takeStack(names, ofPart, ofAll, std::move(accepted));
  };
  Value codes = take(codeNames, codesOfByte, {ElementType::U8, ElementType::I8}),
        scales = take(scaleNames, blockSize, {ElementType::U8, ElementType::E8M0});
  auto type = moe::BlockTensorType::get(getContext(), shape, moe::BlockFormat::mxfp4, {});
  return moe::AssembleBlocksOp::create(builder, at(codeNames.front()), type, codes, scales);
}

/// Several parts have a dimension that counts them.
static SmallVector<int64_t> stackShape(size_t parts, ArrayRef<int64_t> partShape) {
  SmallVector<int64_t> shape(partShape);
  if (parts > 1)
    shape.insert(shape.begin(), parts);
  return shape;
}

std::optional<std::pair<int64_t, int64_t>> ModelBuilder::getScaleBlock() {
  if (scaleBlock)
    return *scaleBlock;
  scaleBlock.emplace();
  // Activations are never quantised: scales that a checkpoint has for them are of no use.
  checkpoint.allowUnused("*.input_scale");
  checkpoint.allowUnused("*.activation_scale");
  JsonView config = checkpoint.config(), quantization = config.optional("quantization_config");
  if (!quantization)
    quantization = config.optional("text_config").optional("quantization_config");
  JsonView view = quantization.optional("weight_block_size");
  for (auto &[name, group] : quantization.optional("config_groups").members())
    if (!view)
      view = group.optional("weights").optional("block_structure"); // of compressed-tensors
  std::vector<JsonView> sizes = view.elements();
  if (view && view.raw()->is_array() && sizes.size() != 2)
    view.complain("expected the rows and columns of a block, found " +
                  std::to_string(sizes.size()) + " numbers");
  else if (sizes.size() == 2)
    *scaleBlock = {readSize(sizes[0], mostFeatures), readSize(sizes[1], mostFeatures)};
  return *scaleBlock;
}

Value ModelBuilder::float8Matrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                                   ArrayRef<int64_t> shape) {
  SmallVector<std::string> scaleNames = findScales(checkpoint, names);
  SmallVector<int64_t> found = getTensorShape(scaleNames.front());
  int64_t rows = partShape.end()[-2], columns = partShape.back();
  SmallVector<int64_t> ofRows(partShape);
  ofRows.back() = 1;
  // Without blocks there is a scale for each row, or one for all, which the scales' shape tells.
  std::pair<int64_t, int64_t> whole(found == ofRows ? 1 : rows, columns);
  std::pair<int64_t, int64_t> block = getScaleBlock().value_or(whole);
  SmallVector<int64_t> scalePart(partShape);
  scalePart.end()[-2] = llvm::divideCeil(rows, block.first);
  scalePart.back() = llvm::divideCeil(columns, block.second);
  // One scale for a whole matrix may be stored without dimensions.
  SmallVector<int64_t> storedPart = scalePart;
  if (!getScaleBlock() && hasTensor(scaleNames.front()) && partShape.size() == 2 &&
      found.size() < 2 && llvm::all_of(found, [](int64_t size) { return size == 1; }))
    storedPart = found;
  SmallVector<int64_t> stacked = stackShape(names.size(), partShape);
  Value codes = takeStack(names, partShape, stacked, {ElementType::F8E4M3, ElementType::F8E5M2});
  Value scales =
      takeStack(scaleNames, storedPart, stackShape(names.size(), scalePart),
                {ElementType::F32, ElementType::BF16, ElementType::F16, ElementType::E8M0});
  const CheckpointTensor *first = checkpoint.findTensor(names.front());
  auto format =
      first->entry->type == ElementType::F8E4M3 ? moe::CodeFormat::f8e4m3 : moe::CodeFormat::f8e5m2;
  return dequantize(names.front(), format, codes, scales, block, stacked, shape);
}

Value ModelBuilder::int4Matrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                                 ArrayRef<int64_t> shape) {
  int64_t columns = partShape.back();
  SmallVector<std::string> scaleNames = withSuffix(names, "_scale");
  SmallVector<int64_t> scalePart(partShape), codePart(partShape);
  codePart.back() = llvm::divideCeil(columns, moe::DequantizeCodesOp::int4CodesOfWord);
  // The scales tell how long a group is. A shape that does not fit becomes a complaint of the
  // tensor.
  SmallVector<int64_t> found = getTensorShape(scaleNames.front());
  bool isSound =
      found.size() == partShape.size() && found.back() > 0 && columns % found.back() == 0;
  scalePart.back() = isSound ? found.back() : 1;
  for (const std::string &name : names)
    checkpoint.take(name + "_shape", ArrayRef<int64_t>{int64_t(partShape.size())},
                    ArrayRef{ElementType::I64, ElementType::I32});
  SmallVector<int64_t> stacked = stackShape(names.size(), partShape);
  Value codes = takeStack(withSuffix(names, "_packed"), codePart,
                          stackShape(names.size(), codePart), {ElementType::I32});
  Value scales = takeStack(scaleNames, scalePart, stackShape(names.size(), scalePart),
                           {ElementType::BF16, ElementType::F32, ElementType::F16});
  return dequantize(names.front(), moe::CodeFormat::int4, codes, scales,
                    {1, columns / scalePart.back()}, stacked, shape);
}

Value ModelBuilder::dequantize(StringRef name, moe::CodeFormat format, Value codes, Value scales,
                               std::pair<int64_t, int64_t> block, ArrayRef<int64_t> stacked,
                               ArrayRef<int64_t> shape) {
  Value numbers = moe::DequantizeCodesOp::create(
      builder, at(name), RankedTensorType::get(stacked, activationType),
      moe::CodeFormatAttr::get(getContext(), format), codes, scales,
      builder.getDenseI64ArrayAttr({block.first, block.second}));
  if (stacked == shape)
    return numbers;
  // [parts, rows, columns], the parts of an expert one behind the other: [experts, more rows,
  // columns].
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  auto flat = RankedTensorType::get({stacked[0] * stacked[1], stacked[2]}, activationType);
  numbers = tensor::CollapseShapeOp::create(builder, at(name), flat, numbers, groups);
  return tensor::ExpandShapeOp::create(
      builder, at(name), RankedTensorType::get(shape, activationType), numbers, groups);
}
