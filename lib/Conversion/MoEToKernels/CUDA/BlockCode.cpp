#include "BlockCode.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildThreadId(OpBuilder &builder, Location loc) {
  Value id = NVVM::ThreadIdXOp::create(builder, loc, builder.getI32Type());
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), id);
}

void mlir::moec::buildBarrier(OpBuilder &builder, Location loc) {
  NVVM::Barrier0Op::create(builder, loc);
}

Value mlir::moec::buildExchange(OpBuilder &builder, Location loc, Value value, int64_t distance) {
  auto number = [&](int64_t n) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(n));
  };
  return NVVM::ShflOp::create(builder, loc, value.getType(), /*thread_mask=*/number(-1), value,
                              number(distance), /*mask_and_clamp=*/number(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}

/// A global of the module that holds the kernel.
static memref::GetGlobalOp buildGlobal(OpBuilder &builder, Location loc, func::FuncOp kernel,
                                       StringRef what, MemRefType type, Attribute initial) {
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name;
  for (int64_t number = 0;; ++number) {
    name = (kernel.getName() + "_" + what + "_" + Twine(number)).str();
    if (!module.lookupSymbol(name))
      break;
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(kernel);
    memref::GlobalOp::create(builder, loc, name, builder.getStringAttr("private"), type, initial,
                             /*constant=*/!isa<UnitAttr>(initial),
                             /*alignment=*/builder.getI64IntegerAttr(16));
  }
  return memref::GetGlobalOp::create(builder, loc, type, name);
}

Value mlir::moec::buildSharedMemory(OpBuilder &builder, Location loc, func::FuncOp kernel,
                                    MemRefType type) {
  constexpr int64_t sharedSpace = 3; // NVVM's number of the memory that a block shares
  auto shared = MemRefType::get(type.getShape(), type.getElementType(), MemRefLayoutAttrInterface(),
                                builder.getI64IntegerAttr(sharedSpace));
  Value memory = buildGlobal(builder, loc, kernel, "shared", shared, builder.getUnitAttr());
  // LLVM finds the space again behind the cast.
  return memref::MemorySpaceCastOp::create(builder, loc, type, memory);
}

BlockCode::BlockCode(Location loc, OpBuilder &builder, int64_t threads)
    : CodeBuilder(loc, builder), threads(threads),
      kernel(builder.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>()) {
  if (!kernel)
    kernel = cast<func::FuncOp>(builder.getInsertionBlock()->getParentOp());
  threadId = buildThreadId(*this, loc);
}

void BlockCode::barrier() { buildBarrier(*this, getLoc()); }

Value BlockCode::allocateShared(ArrayRef<int64_t> shape, Type element) {
  return buildSharedMemory(*this, getLoc(), kernel, MemRefType::get(shape, element));
}

Value BlockCode::constantTable(ArrayRef<float> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, getF32Type());
  return buildGlobal(*this, getLoc(), kernel, "table",
                     MemRefType::get(type.getShape(), type.getElementType()),
                     DenseElementsAttr::get(type, values));
}

Value BlockCode::exchange(Value value, int64_t distance) {
  return buildExchange(*this, getLoc(), value, distance);
}

Value BlockCode::sumOverLanes(Value value, int64_t lanes) {
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    value = add(value, exchange(value, distance));
  return value;
}

Value BlockCode::maximumOverLanes(Value value, int64_t lanes) {
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    value = maximum(value, exchange(value, distance));
  return value;
}
