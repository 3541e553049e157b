#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

/// Bytes of a static shape, or nothing when that overflows.
static std::optional<uint64_t> countBytes(RankedTensorType type) {
  uint64_t bits = type.getElementType().getIntOrFloatBitWidth();
  for (int64_t size : type.getShape())
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits))
      return std::nullopt;
  return (bits + 7) / 8;
}

LogicalResult WeightOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitOpError() << "expects a static shape of integers or floats, got " << type;
  std::optional<uint64_t> bytes = countBytes(type);
  if (!bytes)
    return emitOpError() << "'" << getName() << "': the size of " << type << " overflows";
  if (getMoreNames().has_value() != getMoreRefs().has_value() ||
      (getMoreNames() && getMoreNames()->size() != getMoreRefs()->size()))
    return emitOpError() << "'" << getName() << "' expects as many names as places";
  uint64_t found = 0;
  for (auto [name, ref] : getParts())
    if (__builtin_add_overflow(found, ref.getBytes(), &found))
      return emitOpError() << "'" << getName() << "': the size of its tensors overflows";
  if (*bytes != found)
    return emitOpError() << "'" << getName() << "' expects a reference to " << *bytes
                         << " bytes for " << type << ", got " << found;
  return success();
}

SmallVector<std::pair<StringRef, WeightRefAttr>> WeightOp::getParts() {
  SmallVector<std::pair<StringRef, WeightRefAttr>> parts = {{getName(), getRef()}};
  if (getMoreNames())
    for (auto [name, ref] : llvm::zip_equal(*getMoreNames(), *getMoreRefs()))
      parts.push_back({cast<StringAttr>(name).getValue(), cast<WeightRefAttr>(ref)});
  return parts;
}

LogicalResult AssembleBlocksOp::verify() {
  BlockTensorType type = getResult().getType();
  if (type.getLayout())
    return emitOpError() << "expects a result without a layout";
  uint64_t elements = 1;
  for (int64_t size : type.getShape())
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements))
      return emitOpError() << "the size of " << type << " overflows";
  auto check = [&](StringRef what, Value value, uint64_t expected) -> LogicalResult {
    auto tensor = cast<RankedTensorType>(value.getType());
    std::optional<uint64_t> bytes = tensor.hasStaticShape() ? countBytes(tensor) : std::nullopt;
    if (bytes && *bytes == expected)
      return success();
    return emitOpError() << "expects " << expected << " bytes of " << what << " for " << type
                         << ", got " << tensor;
  };
  if (failed(check("codes", getCodes(), elements / 2)))
    return failure();
  return check("scales", getScales(), elements / BlockTensorType::mxfp4BlockSize);
}

LogicalResult DequantizeOp::verify() {
  return checkShape(*this, "a result", getResult(), getSource().getType().getShape());
}

LogicalResult DequantizeCodesOp::verify() {
  auto codes = cast<RankedTensorType>(getCodes().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  bool isInt4 = getFormat() == CodeFormat::int4;
  if (codes.getElementTypeBitWidth() != (isInt4 ? 32 : 8))
    return emitOpError() << "expects codes in " << (isInt4 ? "i32 words of eight" : "i8")
                         << " for the format " << stringifyCodeFormat(getFormat()) << ", got "
                         << codes;
  if (getBlock().size() != 2 || getBlock()[0] < 1 || getBlock()[1] < 1)
    return emitOpError() << "expects the two sizes of a block, each at least 1, got [" << getBlock()
                         << "]";
  if (!result.hasStaticShape() || result.getRank() < 2)
    return emitOpError() << "expects a result of a static shape [..., N, K], got " << result;
  SmallVector<int64_t> expected(result.getShape());
  if (isInt4)
    expected.back() = llvm::divideCeil(expected.back(), int4CodesOfWord);
  if (failed(checkShape(*this, "codes", getCodes(), expected)))
    return failure();
  expected.assign(result.getShape().begin(), result.getShape().end());
  for (auto [size, block] : llvm::zip_equal(MutableArrayRef(expected).take_back(2), getBlock()))
    size = llvm::divideCeil(size, block);
  if (failed(checkShape(*this, "scales", getScales(), expected)))
    return failure();
  if (!codes.hasStaticShape() || !cast<RankedTensorType>(getScales().getType()).hasStaticShape())
    return emitOpError() << "expects codes and scales of static shapes, got " << codes << " and "
                         << getScales().getType();
  return success();
}

LogicalResult RelayoutOp::verify() {
  if (withLayout(getSource().getType(), {}) != withLayout(getResult().getType(), {}))
    return emitOpError() << "expects source and result to differ in layout only, got "
                         << getSource().getType() << " and " << getResult().getType();
  if (LayoutAttr layout = getLayout(getResult().getType()))
    if (layout.getTile().size() > getLogicalShape(getResult().getType()).size())
      return emitOpError() << "expects a layout of at most the rank of " << getSource().getType();
  return success();
}

OpFoldResult RelayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  // There and back again.
  if (auto producer = getSource().getDefiningOp<RelayoutOp>())
    if (producer.getSource().getType() == getResult().getType())
      return producer.getSource();
  return {};
}
