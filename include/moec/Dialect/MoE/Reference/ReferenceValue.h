//===- ReferenceValue.h - the values that the interpreter computes with -----------------------===//
//
// Tensors are values: copies share their elements until one of them is written to. Caches and
// states are objects: every copy is the same one.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_REFERENCEVALUE_H
#define MOEC_DIALECT_MOE_REFERENCE_REFERENCEVALUE_H

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/MoE/Reference/Scalar.h"

#include <memory>
#include <variant>
#include <vector>

namespace mlir::moec::moe {

using ReferenceBytes = std::vector<std::byte>;

/// A dense tensor in row-major order, each element in its own width (one byte below that). A layout
/// of the type plays no part: a ReferenceTensor always holds the logical elements (see Layout.h for
/// their order in memory).
class ReferenceTensor {
public:
  /// The largest tensor that the interpreter makes: a module must not be able to exhaust the
  /// machine.
  static constexpr uint64_t largestBytes = uint64_t(1) << 33;

  ReferenceTensor() = default;
  /// Zeros. Fails, without a diagnostic, for an unknown element type or a size that is negative or
  /// too large.
  static FailureOr<ReferenceTensor> create(Type elementType, ArrayRef<int64_t> shape);
  /// The same, poisoned (ScalarType::getPoison).
  static FailureOr<ReferenceTensor> createPoisoned(Type elementType, ArrayRef<int64_t> shape);
  static FailureOr<ReferenceTensor> createFrom(Type elementType, ArrayRef<int64_t> shape,
                                               ArrayRef<double> values);
  static FailureOr<ReferenceTensor> createFrom(Type elementType, ArrayRef<int64_t> shape,
                                               ArrayRef<int64_t> values);
  static FailureOr<ReferenceTensor> createFrom(Type elementType, ArrayRef<int64_t> shape,
                                               ArrayRef<int32_t> values);

  Type getElementType() const { return elementType; }
  const ScalarType &getScalarType() const { return *scalarType; }
  ArrayRef<int64_t> getShape() const { return shape; }
  int64_t getRank() const { return shape.size(); }
  int64_t getDimSize(int64_t dim) const { return shape[dim]; }
  int64_t getSize() const { return size; }

  ArrayRef<std::byte> getBytes() const { return *bytes; }
  /// The bytes themselves, for somebody who keeps them. Writing to this tensor makes a copy first.
  std::shared_ptr<const ReferenceBytes> shareBytes() const { return bytes; }
  /// Elements of their own: makes a copy when they are shared.
  MutableArrayRef<std::byte> getMutableBytes();

  Scalar get(int64_t index) const {
    return scalarType->load(bytes->data() + index * scalarType->getBytes());
  }
  void set(int64_t index, Scalar value) {
    scalarType->store(getMutableBytes().data() + index * scalarType->getBytes(), value);
  }
  double getReal(int64_t index) const { return get(index).real; }
  int64_t getInteger(int64_t index) const { return get(index).integer; }

  /// `result.size()` float elements from `index` on, as they are (every float type but f64 fits).
  void readFloats(int64_t index, MutableArrayRef<float> result) const;
  std::vector<float> getFloats() const;
  /// Rounds once.
  void writeReals(int64_t index, ArrayRef<double> values);
  std::vector<Scalar> getScalars() const;

  /// The same elements under another shape of the same size.
  ReferenceTensor reshape(ArrayRef<int64_t> newShape) const;
  /// The same bytes seen as another element type of the same width.
  ReferenceTensor bitcast(Type newElementType) const;

private:
  Type elementType;
  std::optional<ScalarType> scalarType;
  SmallVector<int64_t> shape;
  int64_t size = 0;
  std::shared_ptr<ReferenceBytes> bytes;
};

/// A block tensor: codes as they lie in a checkpoint, two a byte, the even element in the low
/// nibble; one scale byte for each block of 32.
struct ReferenceBlockTensor {
  SmallVector<int64_t> shape;
  std::shared_ptr<const ReferenceBytes> codes, scales;

  int64_t getRowLength() const { return shape.back(); }
  /// The numbers of one row: row `r` of the tensor seen as [.., K]. Values beyond f32 become
  /// infinite.
  void readRow(int64_t row, MutableArrayRef<float> result) const;
};

/// The paged cache of one layer. The pool's bytes lie as the type says.
class ReferenceCache {
public:
  /// Poisoned. Fails, without a diagnostic, when it would be too large.
  static FailureOr<std::shared_ptr<ReferenceCache>> create(CacheType type, int64_t blocks);

  CacheType getType() const { return type; }
  int64_t getBlocks() const { return pool.getDimSize(0); }
  /// Adds poisoned blocks until there are `blocks`. Fails, without a diagnostic, when that would be
  /// too large.
  LogicalResult grow(int64_t blocks);
  /// [blocks, elements of a block].
  const ReferenceTensor &getPool() const { return pool; }
  ReferenceTensor &getPool() { return pool; }

  /// Where in the pool channel `channel` of the key or value of head `head` lies, for the token at
  /// `offset` of block `block`.
  int64_t getKeyIndex(int64_t block, int64_t offset, int64_t head, int64_t channel) const;
  int64_t getValueIndex(int64_t block, int64_t offset, int64_t head, int64_t channel) const;

private:
  ReferenceCache(CacheType type, ReferenceTensor pool) : type(type), pool(std::move(pool)) {}
  CacheType type;
  ReferenceTensor pool;
};

/// One slot for each sequence: [slots, shape of the type].
struct ReferenceState {
  /// Poisoned. Fails, without a diagnostic, when it would be too large.
  static FailureOr<std::shared_ptr<ReferenceState>> create(StateType type, int64_t slots);
  /// Adds poisoned slots until there are `count`. Fails, without a diagnostic, when that would be
  /// too large.
  LogicalResult grow(int64_t count);

  StateType type;
  ReferenceTensor slots;
};

/// Anything that an SSA value can be.
class ReferenceValue {
public:
  ReferenceValue() = default;
  ReferenceValue(Scalar value) : content(value) {}
  ReferenceValue(ReferenceTensor value) : content(std::move(value)) {}
  ReferenceValue(ReferenceBlockTensor value) : content(std::move(value)) {}
  ReferenceValue(std::shared_ptr<ReferenceCache> value) : content(std::move(value)) {}
  ReferenceValue(std::shared_ptr<ReferenceState> value) : content(std::move(value)) {}

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(content);
  }
  bool isScalar() const { return is<Scalar>(); }
  bool isTensor() const { return is<ReferenceTensor>(); }

  Scalar getScalar() const { return std::get<Scalar>(content); }
  const ReferenceTensor &getTensor() const { return std::get<ReferenceTensor>(content); }
  const ReferenceBlockTensor &getBlocks() const { return std::get<ReferenceBlockTensor>(content); }
  ReferenceCache &getCache() const { return *std::get<std::shared_ptr<ReferenceCache>>(content); }
  ReferenceState &getState() const { return *std::get<std::shared_ptr<ReferenceState>>(content); }

  /// Whether this can be a value of `type`: the kind, the element type, the static sizes. The
  /// reason why not, or empty.
  std::string explainMismatch(Type type) const;

private:
  std::variant<std::monostate, Scalar, ReferenceTensor, ReferenceBlockTensor,
               std::shared_ptr<ReferenceCache>, std::shared_ptr<ReferenceState>>
      content;
};

/// "[2, 3]".
std::string describeShape(ArrayRef<int64_t> shape);

/// The product of the sizes; nothing when one is negative or the product overflows.
std::optional<int64_t> countElements(ArrayRef<int64_t> shape);

/// The elements of a constant. Fails, without a diagnostic, for types that the interpreter does not
/// know.
FailureOr<ReferenceTensor> readElementsAttr(ElementsAttr attr);

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_REFERENCE_REFERENCEVALUE_H
