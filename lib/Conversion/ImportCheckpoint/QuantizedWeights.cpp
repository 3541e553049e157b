//===- QuantizedWeights.cpp - matrices as checkpoints quantise them ---------------------------===//
//
//   NAME F8_E4M3 or F8_E5M2, NAME_scale_inv (or .scale in place of .weight):   FP8, a scale a block
//   NAME_packed I32, NAME_scale, NAME_shape:   int4 of compressed-tensors, a scale a group of a row
//   NAME_packed U8, NAME_scale U8:             MXFP4 of compressed-tensors
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

Value ModelBuilder::stackedMatrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                                    ArrayRef<int64_t> shape) {
  if (const CheckpointTensor *packed = checkpoint.findTensor(names.front() + "_packed"))
    return packed->entry->type == ElementType::I32 ? int4Matrices(names, partShape, shape)
                                                   : stackedMxfp4Weight(names, partShape, shape);
  const CheckpointTensor *tensor = checkpoint.findTensor(names.front());
  if (tensor &&
      (tensor->entry->type == ElementType::F8E4M3 || tensor->entry->type == ElementType::F8E5M2))
    return float8Matrices(names, partShape, shape);
  return names.size() == 1 && partShape == shape ? weight(names.front(), shape)
                                                 : stackedWeight(names, partShape, shape);
}

/// Several parts have a dimension that counts them.
static SmallVector<int64_t> stackShape(size_t parts, ArrayRef<int64_t> partShape) {
  SmallVector<int64_t> shape(partShape);
  if (parts > 1)
    shape.insert(shape.begin(), parts);
  return shape;
}

static SmallVector<std::string> withSuffix(ArrayRef<std::string> names, StringRef suffix) {
  return llvm::map_to_vector(names, [&](const std::string &name) { return name + suffix.str(); });
}

std::optional<std::pair<int64_t, int64_t>> ModelBuilder::getScaleBlock() {
  if (scaleBlock)
    return *scaleBlock;
  scaleBlock.emplace();
  JsonView config = checkpoint.config(), quantization = config.optional("quantization_config");
  if (!quantization)
    quantization = config.optional("text_config").optional("quantization_config");
  JsonView view = quantization.optional("weight_block_size");
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
  SmallVector<std::string> scaleNames;
  for (const std::string &name : names) {
    std::string published = name + "_scale_inv", shorter = name;
    if (StringRef(name).ends_with(".weight"))
      shorter = StringRef(name).drop_back(StringRef("weight").size()).str() + "scale";
    scaleNames.push_back(
        !hasTensor(published) && hasTensor(shorter) && shorter != name ? shorter : published);
  }
  int64_t rows = partShape.end()[-2], columns = partShape.back();
  std::pair<int64_t, int64_t> block = getScaleBlock().value_or(std::pair(rows, columns));
  SmallVector<int64_t> scalePart(partShape);
  scalePart.end()[-2] = llvm::divideCeil(rows, block.first);
  scalePart.back() = llvm::divideCeil(columns, block.second);
  // One scale for a whole matrix may be stored without dimensions.
  SmallVector<int64_t> storedPart = scalePart;
  if (SmallVector<int64_t> found = getTensorShape(scaleNames.front());
      !getScaleBlock() && hasTensor(scaleNames.front()) && partShape.size() == 2 &&
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
