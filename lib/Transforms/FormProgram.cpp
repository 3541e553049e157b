//===- FormProgram.cpp - entries become flat programs, their ops kernels ----------------------===//
//
// Walks an entry in order. Values become buffers; reshapes become other names of the same buffer;
// every op that computes something becomes a launch of a new kernel function. What a kernel's body
// holds is decided by KernelOutline.
//
//===------------------------------------------------------------------------------------------===//

#include "KernelOutline.h"

#include "moec/Analysis/SymbolicDims.h"
#include "moec/Conversion/KernelStrategy.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FORMPROGRAM
#include "moec/Transforms/Passes.h.inc"

namespace {

/// Bytes of one element in memory: bits are stored a byte each.
int64_t getElementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

/// Builds the program of one entry.
class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp entry, SymbolicDims dims, const TargetDescription &target)
      : entry(entry), dims(std::move(dims)), target(target), builder(entry) {}

  LogicalResult run();

  int64_t launches = 0, views = 0;

private:
  LogicalResult addArguments();
  LogicalResult addOutputs();
  LogicalResult addOp(Operation *op);
  LogicalResult addLaunch(const KernelOutline &outline);

  /// The buffer that holds `value`, made when it is first asked for.
  FailureOr<Value> getBuffer(Value value);
  /// A buffer for the result of a kernel: an output or a global where the value goes there, else a
  /// temporary.
  FailureOr<Value> makeResultBuffer(Value value);

  /// Sees through reshapes to the value that owns the buffer.
  Value getRoot(Value value);

  /// How many bytes the buffer of `value` has.
  FailureOr<AffineExpr> getBytes(Value value);
  AffineMapAttr getMap(ArrayRef<AffineExpr> results) {
    return AffineMapAttr::get(dims.getMap(results));
  }

  func::FuncOp entry;
  SymbolicDims dims;
  const TargetDescription &target;
  OpBuilder builder;
  plan::ProgramOp program;
  DenseMap<Value, Value> buffers;
  DenseMap<Value, SmallVector<Value>> destinations; // values that end in outputs or globals
  llvm::StringMap<Value> globals;
};

bool isView(Operation *op) {
  return isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op);
}

Value ProgramBuilder::getRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

FailureOr<AffineExpr> ProgramBuilder::getBytes(Value value) {
  MemRefType storage;
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType());
      tensor && !moe::getLayout(tensor)) {
    FailureOr<SmallVector<AffineExpr>> shape = dims.getShape(value);
    if (failed(shape))
      return failure();
    AffineExpr bytes = builder.getAffineConstantExpr(getElementBytes(tensor.getElementType()));
    for (AffineExpr size : *shape)
      bytes = size * bytes;
    return bytes;
  }
  storage = moe::getStorageType(value.getType());
  int64_t bytes = getElementBytes(storage.getElementType());
  for (int64_t size : storage.getShape())
    bytes *= size;
  return builder.getAffineConstantExpr(bytes);
}

LogicalResult ProgramBuilder::addArguments() {
  for (BlockArgument argument : entry.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto name = entry.getArgAttrOfType<StringAttr>(index, "moe.name");
    if (!name)
      name = builder.getStringAttr("arg" + std::to_string(index));
    Type type = argument.getType();
    if (isa<moe::CacheType, moe::StateType>(type)) {
      AffineExpr pool = dims.getPoolSymbol(type);
      buffers[argument] = plan::StateOp::create(
          builder, argument.getLoc(), name, TypeAttr::get(type),
          builder.getI64IntegerAttr(cast<AffineSymbolExpr>(pool).getPosition()));
      continue;
    }
    if (!isa<RankedTensorType>(type))
      return entry.emitError() << "argument " << name
                               << ": expects a tensor, a cache or a state, got " << type;
    FailureOr<SmallVector<AffineExpr>> shape = dims.getShape(argument);
    if (failed(shape))
      return failure();
    buffers[argument] = plan::InputOp::create(builder, argument.getLoc(), name, TypeAttr::get(type),
                                              getMap(*shape));
  }
  return success();
}

LogicalResult ProgramBuilder::addOutputs() {
  auto terminator = cast<func::ReturnOp>(entry.getBody().front().getTerminator());
  for (auto [index, value] : llvm::enumerate(terminator.getOperands())) {
    auto name = entry.getResultAttrOfType<StringAttr>(index, "moe.name");
    if (!name)
      name = builder.getStringAttr("result" + std::to_string(index));
    FailureOr<SmallVector<AffineExpr>> shape = dims.getShape(value);
    if (failed(shape))
      return failure();
    Value buffer = plan::OutputOp::create(builder, value.getLoc(), name,
                                          TypeAttr::get(value.getType()), getMap(*shape));
    destinations[getRoot(value)].push_back(buffer);
  }
  for (auto store : entry.getOps<moe::GlobalStoreOp>()) {
    Value &buffer = globals[store.getGlobal()];
    buffer = plan::GlobalOp::create(builder, store.getLoc(), store.getGlobalAttr());
    destinations[getRoot(store.getValue())].push_back(buffer);
  }
  return success();
}

FailureOr<Value> ProgramBuilder::getBuffer(Value value) {
  value = getRoot(value);
  if (Value known = buffers.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (auto weight = dyn_cast_or_null<moe::WeightOp>(op)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&program.getBody().front());
    return buffers[value] =
               plan::WeightOp::create(builder, weight.getLoc(), weight.getNameAttr(),
                                      weight.getRef(), weight.getMoreNamesAttr(),
                                      weight.getMoreRefsAttr(), TypeAttr::get(weight.getType()));
  }
  if (auto load = dyn_cast_or_null<moe::GlobalLoadOp>(op)) {
    Value &buffer = globals[load.getGlobal()];
    if (!buffer) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&program.getBody().front());
      buffer = plan::GlobalOp::create(builder, load.getLoc(), load.getGlobalAttr());
    }
    return buffers[value] = buffer;
  }
  // A constant, or another cheap op whose value is needed in memory: a kernel of its own writes it.
  if (op && (isFreeInKernels(op) || isSliceInKernels(op))) {
    if (failed(addLaunch(KernelOutline::create(op, dims))))
      return failure();
    return buffers.lookup(value);
  }
  emitError(value.getLoc()) << "value of type " << value.getType() << " has no buffer";
  return failure();
}

FailureOr<Value> ProgramBuilder::makeResultBuffer(Value value) {
  auto known = destinations.find(value);
  if (known != destinations.end())
    return known->second.front();
  FailureOr<AffineExpr> bytes = getBytes(value);
  if (failed(bytes))
    return failure();
  // Splits the size into a number of bytes and the part that depends on symbols. Offsets stay
  // aligned to 64 bytes when the number is a multiple of 64; otherwise the scale counts 64-byte
  // lines.
  AffineExpr scale = builder.getAffineConstantExpr(1);
  int64_t constant = 1;
  if (auto number = dyn_cast<AffineConstantExpr>(*bytes)) {
    constant = llvm::alignTo(std::max<int64_t>(number.getValue(), 1), 64);
  } else {
    scale = *bytes;
    if (auto product = dyn_cast<AffineBinaryOpExpr>(*bytes);
        product && product.getKind() == AffineExprKind::Mul)
      if (auto factor = dyn_cast<AffineConstantExpr>(product.getRHS())) {
        scale = product.getLHS();
        constant = factor.getValue();
      }
    if (constant % 64 != 0) {
      scale = bytes->ceilDiv(64);
      constant = 64;
    }
  }
  return Value(plan::BufferOp::create(builder, value.getLoc(), getMap(scale),
                                      builder.getI64IntegerAttr(constant), plan::PlacementAttr()));
}

LogicalResult ProgramBuilder::addLaunch(const KernelOutline &outline) {
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineExpr> dimensions, bindingBytes;
  auto addBinding = [&](Value value) -> LogicalResult {
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType());
        tensor && !moe::getLayout(tensor))
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
        if (tensor.isDynamicDim(dim))
          dimensions.push_back(dims.getDim(value, dim));
    if (isa<moe::CacheType, moe::StateType>(value.getType())) {
      dimensions.push_back(dims.getPoolSymbol(value.getType()));
      bindingBytes.push_back(builder.getAffineConstantExpr(0)); // the session owns and checks it
      return success();
    }
    FailureOr<AffineExpr> bytes = getBytes(value);
    if (failed(bytes))
      return failure();
    bindingBytes.push_back(*bytes);
    return success();
  };
  for (Value value : outline.inputs) {
    FailureOr<Value> buffer = getBuffer(value);
    if (failed(buffer) || failed(addBinding(value)))
      return failure();
    inputs.push_back(*buffer);
  }
  for (Value value : outline.outputs) {
    FailureOr<Value> buffer = makeResultBuffer(value);
    if (failed(buffer) || failed(addBinding(value)))
      return failure();
    buffers[value] = *buffer;
    outputs.push_back(*buffer);
  }
  FailureOr<KernelSize> size = outline.getSize(dims, target);
  if (failed(size))
    return failure();
  std::string name =
      (entry.getName() + "_" + std::to_string(launches++) + "_" + outline.getLabel()).str();
  Cost cost = outline.getCost(dims, bindingBytes);
  if (target.isCUDA())
    llvm::replace(name, '.', '_'); // PTX has no dots in names
  OpBuilder moduleBuilder(program);
  outline.buildFunction(moduleBuilder, name, dims, *size);
  plan::LaunchOp::create(builder, outline.getLoc(),
                         FlatSymbolRefAttr::get(builder.getContext(), name), inputs, outputs,
                         getMap(dimensions), getMap(size->workgroups), getMap(size->scratchBytes),
                         getMap(bindingBytes), builder.getStringAttr(outline.getLabel()),
                         target.isCUDA() ? builder.getI64IntegerAttr(size->threads) : IntegerAttr(),
                         size->sharedBytes ? builder.getI64IntegerAttr(size->sharedBytes)
                                           : IntegerAttr(),
                         cost.flops ? getMap(cost.flops) : AffineMapAttr(),
                         cost.bytesMoved.empty() ? AffineMapAttr() : getMap(cost.bytesMoved));
  // A value with several destinations is computed once and copied.
  for (Value value : outline.outputs) {
    auto known = destinations.find(value);
    if (known == destinations.end())
      continue;
    for (Value copy : llvm::drop_begin(known->second)) {
      FailureOr<AffineExpr> bytes = getBytes(value);
      if (failed(bytes))
        return failure();
      plan::CopyOp::create(builder, value.getLoc(), buffers[value], copy, getMap(*bytes));
    }
  }
  return success();
}

LogicalResult ProgramBuilder::addOp(Operation *op) {
  if (isView(op) || isSliceInKernels(op)) {
    ++views;
    return success();
  }
  if (isFreeInKernels(op) ||
      isa<moe::WeightOp, moe::GlobalLoadOp, moe::GlobalStoreOp, moe::AssembleBlocksOp>(op) ||
      op->hasTrait<OpTrait::IsTerminator>())
    return success();
  return addLaunch(KernelOutline::create(op, dims));
}

LogicalResult ProgramBuilder::run() {
  SmallVector<StringRef> names(dims.getSymbols().begin(), dims.getSymbols().end());
  program = plan::ProgramOp::create(builder, entry.getLoc(), entry.getName(),
                                    builder.getStrArrayAttr(names), entry->hasAttr("moe.load"));
  // The entry keeps its name until it is erased.
  Block *body = &program.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(body);
  if (failed(addArguments()) || failed(addOutputs()))
    return failure();
  for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
    if (failed(addOp(&op)))
      return failure();
  // Inputs and weights that are returned as they are have no launch that would fill the output.
  for (auto &[value, outputs] : destinations) {
    if (llvm::is_contained(outputs, buffers.lookup(value)))
      continue;
    FailureOr<Value> buffer = getBuffer(value);
    FailureOr<AffineExpr> bytes = getBytes(value);
    if (failed(buffer) || failed(bytes))
      return failure();
    for (Value output : outputs)
      if (output != *buffer)
        plan::CopyOp::create(builder, value.getLoc(), *buffer, output, getMap(*bytes));
  }
  return success();
}

struct FormProgramPass : impl::FormProgramBase<FormProgramPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<TargetDescription> target = TargetDescription::get(module);
    if (failed(target))
      return signalPassFailure();
    for (func::FuncOp entry : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (!entry->hasAttr("moe.entry") && !entry->hasAttr("moe.load"))
        continue;
      FailureOr<SymbolicDims> dims = SymbolicDims::create(entry);
      if (failed(dims))
        return signalPassFailure();
      ProgramBuilder program(entry, std::move(*dims), *target);
      if (failed(program.run()))
        return signalPassFailure();
      launches += program.launches;
      views += program.views;
      entry.erase();
    }
  }
};

} // namespace
} // namespace mlir::moec
