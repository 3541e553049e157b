#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;
using namespace mlir::moec::moe;

std::string mlir::moec::moe::describeShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(shape, stream);
  stream << "]";
  return text;
}

std::optional<int64_t> mlir::moec::moe::countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return std::nullopt;
  return count;
}

//===------------------------------------------------------------------------------------------===//
// ReferenceTensor
//===------------------------------------------------------------------------------------------===//

FailureOr<ReferenceTensor> ReferenceTensor::create(Type elementType, ArrayRef<int64_t> shape) {
  ReferenceTensor tensor;
  tensor.elementType = elementType;
  tensor.scalarType = ScalarType::get(elementType);
  tensor.shape.assign(shape.begin(), shape.end());
  std::optional<int64_t> size = countElements(shape);
  if (!tensor.scalarType || !size ||
      static_cast<uint64_t>(*size) > largestBytes / tensor.scalarType->getBytes())
    return failure();
  tensor.size = *size;
  tensor.bytes = std::make_shared<ReferenceBytes>(*size * tensor.scalarType->getBytes());
  return tensor;
}

FailureOr<ReferenceTensor> ReferenceTensor::createPoisoned(Type elementType,
                                                           ArrayRef<int64_t> shape) {
  FailureOr<ReferenceTensor> tensor = create(elementType, shape);
  if (failed(tensor))
    return failure();
  unsigned width = tensor->scalarType->getBytes();
  Scalar poison = tensor->scalarType->getPoison();
  for (size_t i = 0; i < tensor->bytes->size(); i += width)
    tensor->scalarType->store(tensor->bytes->data() + i, poison);
  return tensor;
}

template <typename T>
static FailureOr<ReferenceTensor> createTensor(Type elementType, ArrayRef<int64_t> shape,
                                               ArrayRef<T> values) {
  FailureOr<ReferenceTensor> tensor = ReferenceTensor::create(elementType, shape);
  if (failed(tensor) || tensor->getSize() != static_cast<int64_t>(values.size()) ||
      tensor->getScalarType().isReal() != std::is_floating_point_v<T>)
    return failure();
  for (auto [i, value] : llvm::enumerate(values)) {
    if constexpr (std::is_floating_point_v<T>)
      tensor->set(i, Scalar::fromReal(value));
    else
      tensor->set(i, Scalar::fromInteger(value));
  }
  return tensor;
}

FailureOr<ReferenceTensor> ReferenceTensor::createFrom(Type elementType, ArrayRef<int64_t> shape,
                                                       ArrayRef<double> values) {
  return createTensor(elementType, shape, values);
}

FailureOr<ReferenceTensor> ReferenceTensor::createFrom(Type elementType, ArrayRef<int64_t> shape,
                                                       ArrayRef<int64_t> values) {
  return createTensor(elementType, shape, values);
}

FailureOr<ReferenceTensor> ReferenceTensor::createFrom(Type elementType, ArrayRef<int64_t> shape,
                                                       ArrayRef<int32_t> values) {
  return createTensor(elementType, shape, values);
}

MutableArrayRef<std::byte> ReferenceTensor::getMutableBytes() {
  if (bytes.use_count() != 1)
    bytes = std::make_shared<ReferenceBytes>(*bytes);
  return *bytes;
}

void ReferenceTensor::readFloats(int64_t index, MutableArrayRef<float> result) const {
  unsigned width = scalarType->getBytes();
  const std::byte *from = bytes->data() + index * width;
  if (elementType.isF32()) {
    std::memcpy(result.data(), from, result.size() * sizeof(float));
    return;
  }
  if (elementType.isBF16()) {
    for (size_t i = 0; i < result.size(); ++i) {
      uint16_t upper;
      std::memcpy(&upper, from + 2 * i, 2);
      result[i] = llvm::bit_cast<float>(static_cast<uint32_t>(upper) << 16);
    }
    return;
  }
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(scalarType->load(from + i * width).real);
}

std::vector<float> ReferenceTensor::getFloats() const {
  std::vector<float> result(size);
  readFloats(0, result);
  return result;
}

void ReferenceTensor::writeReals(int64_t index, ArrayRef<double> values) {
  unsigned width = scalarType->getBytes();
  std::byte *to = getMutableBytes().data() + index * width;
  for (size_t i = 0; i < values.size(); ++i)
    scalarType->store(to + i * width, Scalar::fromReal(values[i]));
}

std::vector<Scalar> ReferenceTensor::getScalars() const {
  std::vector<Scalar> result(size);
  for (int64_t i = 0; i < size; ++i)
    result[i] = get(i);
  return result;
}

ReferenceTensor ReferenceTensor::reshape(ArrayRef<int64_t> newShape) const {
  assert(countElements(newShape) == size && "reshape keeps the number of elements");
  ReferenceTensor result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}

ReferenceTensor ReferenceTensor::bitcast(Type newElementType) const {
  ReferenceTensor result = *this;
  result.elementType = newElementType;
  result.scalarType = ScalarType::get(newElementType);
  assert(result.scalarType && result.scalarType->getBytes() == scalarType->getBytes() &&
         "bitcast keeps the width");
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Block tensors, caches, values
//===------------------------------------------------------------------------------------------===//

static float decodeE2M1(unsigned code) {
  static constexpr float magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static double decodeE8M0(unsigned code) {
  return code == 255 ? std::numeric_limits<double>::quiet_NaN()
                     : std::ldexp(1.0, static_cast<int>(code) - 127);
}

void ReferenceBlockTensor::readRow(int64_t row, MutableArrayRef<float> result) const {
  constexpr int64_t blockSize = BlockTensorType::mxfp4BlockSize;
  int64_t first = row * getRowLength();
  for (int64_t k = 0; k < getRowLength(); k += blockSize) {
    double scale = decodeE8M0(static_cast<unsigned>((*scales)[(first + k) / blockSize]));
    float values[16];
    for (unsigned code = 0; code < 16; ++code)
      values[code] = static_cast<float>(decodeE2M1(code) * scale);
    for (int64_t i = 0; i < blockSize; i += 2) {
      auto pair = static_cast<unsigned>((*codes)[(first + k + i) / 2]);
      result[k + i] = values[pair & 15];
      result[k + i + 1] = values[pair >> 4];
    }
  }
}

FailureOr<std::shared_ptr<ReferenceCache>> ReferenceCache::create(CacheType type, int64_t blocks) {
  FailureOr<ReferenceTensor> pool =
      ReferenceTensor::createPoisoned(type.getElement(), {blocks, type.getBlockElements()});
  if (failed(pool))
    return failure();
  return std::shared_ptr<ReferenceCache>(new ReferenceCache(type, std::move(*pool)));
}

LogicalResult ReferenceCache::grow(int64_t blocks) {
  FailureOr<ReferenceTensor> grown =
      ReferenceTensor::createPoisoned(type.getElement(), {blocks, type.getBlockElements()});
  if (failed(grown) || grown->getSize() < pool.getSize())
    return failure();
  llvm::copy(pool.getBytes(), grown->getMutableBytes().begin());
  pool = std::move(*grown);
  return success();
}

int64_t ReferenceCache::getKeyIndex(int64_t block, int64_t offset, int64_t head,
                                    int64_t channel) const {
  if (type.isShared())
    return block * type.getBlockElements() +
           (head * type.getBlock() + offset) * type.getKeyDim() + channel;
  return block * type.getBlockElements() + (head * type.getKeyDim() + channel) * type.getBlock() +
         offset;
}

int64_t ReferenceCache::getValueIndex(int64_t block, int64_t offset, int64_t head,
                                      int64_t channel) const {
  if (type.isShared())
    return getKeyIndex(block, offset, head, channel);
  int64_t keys = type.getKvHeads() * type.getKeyDim() * type.getBlock();
  return block * type.getBlockElements() + keys +
         (head * type.getBlock() + offset) * type.getValueDim() + channel;
}

static FailureOr<ReferenceTensor> createSlots(StateType type, int64_t count) {
  SmallVector<int64_t> shape = {count};
  llvm::append_range(shape, type.getShape());
  return ReferenceTensor::createPoisoned(type.getElement(), shape);
}

FailureOr<std::shared_ptr<ReferenceState>> ReferenceState::create(StateType type, int64_t count) {
  FailureOr<ReferenceTensor> slots = createSlots(type, count);
  if (failed(slots))
    return failure();
  return std::make_shared<ReferenceState>(ReferenceState{type, std::move(*slots)});
}

LogicalResult ReferenceState::grow(int64_t count) {
  FailureOr<ReferenceTensor> grown = createSlots(type, count);
  if (failed(grown) || grown->getSize() < slots.getSize())
    return failure();
  llvm::copy(slots.getBytes(), grown->getMutableBytes().begin());
  slots = std::move(*grown);
  return success();
}

std::string ReferenceValue::explainMismatch(Type expected) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto tensorType = dyn_cast<RankedTensorType>(expected)) {
    if (!isTensor()) {
      stream << "expected " << expected << ", got something that is no tensor";
      return text;
    }
    const ReferenceTensor &tensor = getTensor();
    bool fits = tensor.getElementType() == tensorType.getElementType() &&
                tensor.getRank() == tensorType.getRank();
    for (int64_t i = 0; fits && i < tensor.getRank(); ++i)
      fits = tensorType.isDynamicDim(i) || tensorType.getDimSize(i) == tensor.getDimSize(i);
    if (!fits)
      stream << "expected " << expected << ", got a tensor of " << tensor.getElementType() << " "
             << describeShape(tensor.getShape());
    return text;
  }
  bool fits = false;
  if (auto blocks = dyn_cast<BlockTensorType>(expected))
    fits = is<ReferenceBlockTensor>() && blocks.getShape() == ArrayRef(getBlocks().shape);
  else if (auto cache = dyn_cast<CacheType>(expected))
    fits = is<std::shared_ptr<ReferenceCache>>() && getCache().getType() == cache;
  else if (auto state = dyn_cast<StateType>(expected))
    fits = is<std::shared_ptr<ReferenceState>>() && getState().type == state;
  else
    fits = isScalar() && ScalarType::get(expected).has_value();
  if (!fits)
    stream << "expected " << expected << ", got another kind of value or another shape";
  return text;
}

//===------------------------------------------------------------------------------------------===//
// Constants
//===------------------------------------------------------------------------------------------===//

/// Raw little-endian elements, one in as many bytes as MLIR gives it in a resource.
static LogicalResult readRaw(ArrayRef<char> data, ReferenceTensor &tensor) {
  MutableArrayRef<std::byte> bytes = tensor.getMutableBytes();
  if (data.size() == bytes.size()) {
    std::memcpy(bytes.data(), data.data(), bytes.size());
    return success();
  }
  return failure();
}

FailureOr<ReferenceTensor> mlir::moec::moe::readElementsAttr(ElementsAttr attr) {
  auto type = dyn_cast<RankedTensorType>(attr.getType());
  if (!type)
    return failure();
  FailureOr<ReferenceTensor> tensor =
      ReferenceTensor::create(type.getElementType(), type.getShape());
  if (failed(tensor))
    return failure();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || failed(readRaw(blob->getData(), *tensor)))
      return failure();
    return tensor;
  }
  auto fill = [&](auto values, auto convert) -> FailureOr<ReferenceTensor> {
    for (auto [i, value] : llvm::enumerate(values))
      tensor->set(i, convert(value));
    return tensor;
  };
  bool isUnsigned = type.getElementType().isUnsignedInteger() || type.getElementType().isInteger(1);
  if (auto values = attr.tryGetValues<APFloat>())
    return fill(*values, [](APFloat value) {
      bool losesInformation;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInformation);
      return Scalar::fromReal(value.convertToDouble());
    });
  if (auto values = attr.tryGetValues<APInt>())
    return fill(*values, [&](const APInt &value) {
      return Scalar::fromInteger(isUnsigned ? static_cast<int64_t>(value.getZExtValue())
                                            : value.getSExtValue());
    });
  return failure();
}
