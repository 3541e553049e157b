#include "moec/Dialect/MoE/Reference/Layout.h"

#include "FragmentLayout.h"
#include "IterationSpace.h"

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

/// Row-major index in the buffer of an element of the logical tensor; `none` and `pairs` only.
class StorageIndex {
public:
  StorageIndex(LayoutAttr layout, ArrayRef<int64_t> shape)
      : layout(layout), leading(shape.size() - layout.getTile().size()),
        storage(layout.getStorageShape(shape)) {}

  ArrayRef<int64_t> getStorageShape() const { return storage; }

  int64_t get(ArrayRef<int64_t> point) const {
    ArrayRef<int64_t> tile = layout.getTile();
    SmallVector<int64_t> position(point.take_front(leading)), inside;
    for (auto [i, size] : llvm::zip_equal(point.drop_front(leading), tile)) {
      position.push_back(i / size);
      inside.push_back(i % size);
    }
    if (layout.getSwizzle() == Swizzle::pairs)
      position.append({inside[1] / 2, inside[0], inside[1] % 2});
    else
      for (int64_t dim : layout.getOrder())
        position.push_back(inside[dim]);
    return linearize(position, storage);
  }

private:
  LayoutAttr layout;
  size_t leading;
  SmallVector<int64_t> storage;
};

/// An MXFP4 panel of 16 rows x 32 columns: 128 words of four codes, then 16 scales.
struct NibblePanel {
  static constexpr int64_t rows = 16, columns = 32, scalesAt = 256, bytes = 272;

  /// The byte of a code, and whether it is in the byte's high nibble.
  static std::pair<int64_t, bool> locate(int64_t row, int64_t column) {
    int64_t vector = column / 8, nibble = column % 8 / 2, word = 2 * row + column % 2;
    return {(vector * 32 + word) * 2 + nibble / 2, nibble % 2 == 1};
  }
};

} // namespace

static std::string describe(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Calls `visit(panel byte offset, row index, column of the panel)` for every code of a block
/// tensor.
template <typename Visit>
static void visitPanels(ArrayRef<int64_t> shape, Visit visit) {
  int64_t n = shape[shape.size() - 2], k = shape.back();
  int64_t matrices = *countElements(shape.drop_back(2));
  int64_t panelRows = llvm::divideCeil(n, NibblePanel::rows),
          panelColumns = k / NibblePanel::columns;
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < k; ++column) {
        int64_t panel = (matrix * panelRows + row / NibblePanel::rows) * panelColumns +
                        column / NibblePanel::columns;
        visit(panel * NibblePanel::bytes, (matrix * n + row) * k + column, row % NibblePanel::rows,
              column % NibblePanel::columns);
      }
}

static ReferenceTensor packPanels(const ReferenceBlockTensor &blocks, BlockTensorType type) {
  SmallVector<int64_t> storage = type.getLayout().getStorageShape(type.getShape());
  ReferenceTensor buffer =
      *ReferenceTensor::create(IntegerType::get(type.getContext(), 8), storage);
  MutableArrayRef<std::byte> bytes = buffer.getMutableBytes();
  for (size_t panel = 0; panel < bytes.size(); panel += NibblePanel::bytes)
    for (int64_t row = 0; row < NibblePanel::rows; ++row)
      bytes[panel + NibblePanel::scalesAt + row] = std::byte{127};
  visitPanels(type.getShape(), [&](int64_t panel, int64_t element, int64_t row, int64_t column) {
    auto pair = static_cast<unsigned>((*blocks.codes)[element / 2]);
    unsigned code = element % 2 ? pair >> 4 : pair & 15;
    auto [byte, isHigh] = NibblePanel::locate(row, column);
    bytes[panel + byte] |= static_cast<std::byte>(isHigh ? code << 4 : code);
    bytes[panel + NibblePanel::scalesAt + row] =
        (*blocks.scales)[element / BlockTensorType::mxfp4BlockSize];
  });
  return buffer;
}

static ReferenceBlockTensor unpackPanels(const ReferenceTensor &buffer, BlockTensorType type) {
  int64_t elements = *countElements(type.getShape());
  ReferenceBytes codes(elements / 2), scales(elements / BlockTensorType::mxfp4BlockSize);
  ArrayRef<std::byte> bytes = buffer.getBytes();
  visitPanels(type.getShape(), [&](int64_t panel, int64_t element, int64_t row, int64_t column) {
    auto [byte, isHigh] = NibblePanel::locate(row, column);
    auto pair = static_cast<unsigned>(bytes[panel + byte]);
    unsigned code = isHigh ? pair >> 4 : pair & 15;
    codes[element / 2] |= static_cast<std::byte>(element % 2 ? code << 4 : code);
    scales[element / BlockTensorType::mxfp4BlockSize] = bytes[panel + NibblePanel::scalesAt + row];
  });
  ReferenceBlockTensor blocks;
  blocks.shape.assign(type.getShape().begin(), type.getShape().end());
  blocks.codes = std::make_shared<const ReferenceBytes>(std::move(codes));
  blocks.scales = std::make_shared<const ReferenceBytes>(std::move(scales));
  return blocks;
}

static bool isOfBlocks(Swizzle swizzle) {
  return swizzle == Swizzle::nibble_words || isFragments(swizzle);
}

/// Whether values of `type` lie in one buffer that these functions know. Sets `problem` otherwise.
static bool checkType(Type type, std::string &problem) {
  LayoutAttr layout = getLayout(type);
  if (isa<BlockTensorType>(type)) {
    if (layout && isOfBlocks(layout.getSwizzle()))
      return true;
    problem = "block tensors lie in one buffer only with the swizzle 'nibble_words', 'fragments' or "
              "'fragments_of_halves', got " +
              describe(type);
    return false;
  }
  if (!layout || !isOfBlocks(layout.getSwizzle()))
    return true;
  problem = "the swizzle '" + stringifySwizzle(layout.getSwizzle()).str() +
            "' is for block tensors, got " + describe(type);
  return false;
}

FailureOr<ReferenceTensor> mlir::moec::moe::packLayout(const ReferenceValue &value, Type type,
                                                       std::string &problem) {
  problem = value.explainMismatch(type);
  if (!problem.empty() || !checkType(type, problem))
    return failure();
  if (auto blocks = dyn_cast<BlockTensorType>(type))
    return isFragments(blocks.getLayout().getSwizzle()) ? packFragments(value.getBlocks(), blocks)
                                                        : packPanels(value.getBlocks(), blocks);
  const ReferenceTensor &tensor = value.getTensor();
  LayoutAttr layout = getLayout(type);
  if (!layout)
    return tensor;
  StorageIndex storage(layout, tensor.getShape());
  FailureOr<ReferenceTensor> buffer =
      ReferenceTensor::create(tensor.getElementType(), storage.getStorageShape());
  if (failed(buffer)) {
    problem = "the buffer of " + describe(type) + " is too large";
    return failure();
  }
  int64_t next = 0;
  for (Points point(tensor.getShape()); point.isValid(); point.next())
    buffer->set(storage.get(point.get()), tensor.get(next++));
  return buffer;
}

FailureOr<ReferenceValue> mlir::moec::moe::unpackLayout(const ReferenceTensor &buffer, Type type,
                                                        ArrayRef<int64_t> shape,
                                                        std::string &problem) {
  if (!checkType(type, problem))
    return failure();
  LayoutAttr layout = getLayout(type);
  SmallVector<int64_t> expected =
      layout ? layout.getStorageShape(shape) : SmallVector<int64_t>(shape);
  if (buffer.getShape() != ArrayRef(expected)) {
    problem = "expected a buffer of " + describeShape(expected) + " for " + describe(type) +
              ", got " + describeShape(buffer.getShape());
    return failure();
  }
  if (auto blocks = dyn_cast<BlockTensorType>(type)) {
    if (!isFragments(layout.getSwizzle()))
      return ReferenceValue(unpackPanels(buffer, blocks));
    problem = "scales cannot be read back from " + describe(type);
    return failure();
  }
  if (!layout)
    return ReferenceValue(buffer);
  StorageIndex storage(layout, shape);
  ReferenceTensor tensor = *ReferenceTensor::create(buffer.getElementType(), shape);
  int64_t next = 0;
  for (Points point(shape); point.isValid(); point.next())
    tensor.set(next++, buffer.get(storage.get(point.get())));
  return ReferenceValue(std::move(tensor));
}
