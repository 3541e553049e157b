#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::moec::moe;

#define GET_TYPEDEF_CLASSES
#include "moec/Dialect/MoE/IR/MoETypes.cpp.inc"

void MoEDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "moec/Dialect/MoE/IR/MoETypes.cpp.inc"
      >();
}

LogicalResult BlockTensorType::verify(function_ref<InFlightDiagnostic()> emitError,
                                      ArrayRef<int64_t> shape, BlockFormat format,
                                      LayoutAttr layout) {
  if (shape.size() < 2)
    return emitError() << "expects a shape of at least two dimensions, got " << shape.size();
  for (int64_t size : shape)
    if (size < 0)
      return emitError() << "expects static dimensions, got " << size;
  if (shape.back() % mxfp4BlockSize != 0)
    return emitError() << "expects the last dimension to be a multiple of " << mxfp4BlockSize
                       << ", got " << shape.back();
  if (layout && layout.getTile().size() > shape.size())
    return emitError() << "expects a layout of at most " << shape.size() << " dimensions";
  return success();
}

LogicalResult CacheType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t kvHeads,
                                int64_t keyDim, int64_t valueDim, int64_t block, Type element,
                                CacheForm form) {
  if (kvHeads < 1 || keyDim < 1 || valueDim < 0 || block < 1)
    return emitError() << "expects positive kv_heads, key_dim and block, and value_dim >= 0";
  if (form == CacheForm::shared && valueDim > keyDim)
    return emitError() << "expects a value_dim of at most key_dim = " << keyDim
                       << " in a cache of form 'shared', got " << valueDim;
  if (!isa<Float32Type, BFloat16Type, Float16Type>(element))
    return emitError() << "expects element type f32, bf16 or f16, got " << element;
  return success();
}

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> shape, Type element) {
  // What a slot of this shape takes is counted in 64 bits in several places.
  int64_t bytes = 4;
  for (int64_t size : shape)
    if (size < 1 || __builtin_mul_overflow(bytes, size, &bytes))
      return emitError() << "expects positive sizes whose product fits in 64 bits";
  if (!isa<Float32Type, BFloat16Type, Float16Type>(element))
    return emitError() << "expects element type f32, bf16 or f16, got " << element;
  return success();
}

ArrayRef<int64_t> mlir::moec::moe::getLogicalShape(Type type) {
  if (auto block = dyn_cast<BlockTensorType>(type))
    return block.getShape();
  return cast<RankedTensorType>(type).getShape();
}

LayoutAttr mlir::moec::moe::getLayout(Type type) {
  if (auto block = dyn_cast<BlockTensorType>(type))
    return block.getLayout();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return dyn_cast_or_null<LayoutAttr>(tensor.getEncoding());
  return {};
}

Type mlir::moec::moe::withLayout(Type type, LayoutAttr layout) {
  if (auto block = dyn_cast<BlockTensorType>(type))
    return BlockTensorType::get(type.getContext(), block.getShape(), block.getFormat(), layout);
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layout);
}

MemRefType mlir::moec::moe::getStorageType(Type type) {
  LayoutAttr layout = getLayout(type);
  if (auto block = dyn_cast<BlockTensorType>(type)) {
    assert(layout && "a block tensor without a layout has no single buffer");
    return MemRefType::get(layout.getStorageShape(block.getShape()),
                           IntegerType::get(type.getContext(), 8));
  }
  auto tensor = cast<RankedTensorType>(type);
  if (!layout)
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  return MemRefType::get(layout.getStorageShape(tensor.getShape()), tensor.getElementType());
}
