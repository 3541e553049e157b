#include "ManifestProgram.h"

using namespace mlir;
using namespace mlir::moec;
namespace bundle = ::moec::bundle;

FailureOr<bundle::ElementType> mlir::moec::convertElementType(Location loc, Type type) {
  if (type.isF32())
    return bundle::F32;
  if (type.isF16())
    return bundle::F16;
  if (type.isBF16())
    return bundle::BF16;
  if (type.isF64())
    return bundle::F64;
  if (isa<Float8E4M3FNType>(type))
    return bundle::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return bundle::F8E5M2;
  if (isa<Float8E8M0FNUType>(type))
    return bundle::E8M0;
  if (isa<Float4E2M1FNType>(type))
    return bundle::F4E2M1;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return bundle::I1;
    case 4:
      return isUnsigned ? bundle::U4 : bundle::I4;
    case 8:
      return isUnsigned ? bundle::U8 : bundle::I8;
    case 16:
      return isUnsigned ? bundle::U16 : bundle::I16;
    case 32:
      return isUnsigned ? bundle::U32 : bundle::I32;
    case 64:
      return isUnsigned ? bundle::U64 : bundle::I64;
    default:
      break;
    }
  }
  return emitError(loc) << "element type " << type << " has no place in a bundle";
}

namespace {

void appendStep(bundle::Expression &expression, bundle::Expression::Operator kind,
                int64_t value = 0) {
  auto *step = expression.add_steps();
  step->set_operator_(kind);
  step->set_value(value);
}

void append(AffineExpr expr, bundle::Expression &expression) {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return appendStep(expression, bundle::Expression::CONSTANT,
                      cast<AffineConstantExpr>(expr).getValue());
  case AffineExprKind::SymbolId:
    return appendStep(expression, bundle::Expression::SYMBOL,
                      cast<AffineSymbolExpr>(expr).getPosition());
  case AffineExprKind::DimId:
    llvm_unreachable("the plan dialect's verifier allows symbols only");
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  append(binary.getLHS(), expression);
  append(binary.getRHS(), expression);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return appendStep(expression, bundle::Expression::ADD);
  case AffineExprKind::Mul:
    return appendStep(expression, bundle::Expression::MULTIPLY);
  case AffineExprKind::FloorDiv:
    return appendStep(expression, bundle::Expression::FLOOR_DIVIDE);
  case AffineExprKind::CeilDiv:
    return appendStep(expression, bundle::Expression::CEIL_DIVIDE);
  default:
    return appendStep(expression, bundle::Expression::MODULO);
  }
}

/// The least of the map's results.
void appendMinimum(AffineMap map, bundle::Expression &expression) {
  for (auto [index, result] : llvm::enumerate(map.getResults())) {
    append(result, expression);
    if (index > 0)
      appendStep(expression, bundle::Expression::MINIMUM);
  }
}

/// Converts the ops of one program in order.
class Converter {
public:
  Converter(const llvm::StringMap<unsigned> &globals, WeightTable &weights,
            bundle::Program &program)
      : globals(globals), weights(weights), program(program) {}

  LogicalResult convert(plan::ProgramOp op);

private:
  LogicalResult convert(plan::InputOp op);
  LogicalResult convert(plan::OutputOp op);
  LogicalResult convert(plan::StateOp op);
  LogicalResult convert(plan::WeightOp op);
  void convert(plan::GlobalOp op);
  void convert(plan::ArenaOp op);
  LogicalResult convert(plan::BufferOp op);
  LogicalResult convert(plan::LaunchOp op);
  LogicalResult addNotesOfKernel(plan::LaunchOp op, bundle::Launch &launch);
  void convert(plan::CopyOp op);
  LogicalResult addTensor(Operation *op, StringRef name, Type type, AffineMap dims,
                          bundle::Tensor &tensor);

  const llvm::StringMap<unsigned> &globals;
  WeightTable &weights;
  bundle::Program &program;
  DenseMap<Value, bundle::Binding> bindings;
};

LogicalResult Converter::addTensor(Operation *op, StringRef name, Type type, AffineMap dims,
                                   bundle::Tensor &tensor) {
  FailureOr<bundle::ElementType> element =
      convertElementType(op->getLoc(), cast<RankedTensorType>(type).getElementType());
  if (failed(element))
    return failure();
  tensor.set_name(name.str());
  tensor.set_type(*element);
  for (AffineExpr size : dims.getResults())
    append(size, *tensor.add_shape());
  return success();
}

LogicalResult Converter::convert(plan::InputOp op) {
  bindings[op.getBuffer()].set_input(program.inputs_size());
  return addTensor(op, op.getName(), op.getType(), op.getDims(), *program.add_inputs());
}

LogicalResult Converter::convert(plan::OutputOp op) {
  bindings[op.getBuffer()].set_output(program.outputs_size());
  return addTensor(op, op.getName(), op.getType(), op.getDims(), *program.add_outputs());
}

LogicalResult Converter::convert(plan::StateOp op) {
  bindings[op.getBuffer()].set_state(program.states_size());
  bundle::State &state = *program.add_states();
  state.set_name(op.getName().str());
  state.set_pool_symbol(op.getPoolSymbol());
  if (auto cache = dyn_cast<moe::CacheType>(op.getType())) {
    state.set_kind(bundle::State::PAGED);
    state.set_block_tokens(cache.getBlock());
    state.set_bytes(cache.getBlockElements() * cache.getElement().getIntOrFloatBitWidth() / 8);
    return success();
  }
  auto slot = cast<moe::StateType>(op.getType());
  state.set_kind(bundle::State::SLOT);
  int64_t bytes = slot.getElement().getIntOrFloatBitWidth() / 8;
  for (int64_t size : slot.getShape())
    bytes *= size;
  state.set_bytes(bytes);
  return success();
}

LogicalResult Converter::convert(plan::WeightOp op) {
  FailureOr<unsigned> index = weights.add(op);
  if (failed(index))
    return failure();
  bindings[op.getBuffer()].set_weight(*index);
  return success();
}

void Converter::convert(plan::GlobalOp op) {
  bindings[op.getBuffer()].set_global(globals.lookup(op.getGlobal()));
}

void Converter::convert(plan::ArenaOp op) {
  bundle::Arena &arena = *program.add_arenas();
  append(op.getScale().getResult(0), *arena.mutable_scale());
  arena.set_bytes(op.getBytes());
}

LogicalResult Converter::convert(plan::BufferOp op) {
  plan::PlacementAttr place = op.getPlacementAttr();
  if (!place)
    return op.emitOpError() << "has no placement: run moec-plan-memory first";
  bindings[op.getBuffer()].set_buffer(program.buffers_size());
  bundle::Buffer &buffer = *program.add_buffers();
  buffer.set_name("b" + std::to_string(program.buffers_size() - 1));
  buffer.set_arena(place.getArena());
  buffer.set_offset(place.getOffset());
  buffer.set_bytes(op.getBytes());
  buffer.set_first(place.getFirst());
  buffer.set_last(place.getLast());
  return success();
}

LogicalResult Converter::convert(plan::LaunchOp op) {
  bundle::Launch &launch = *program.add_commands()->mutable_launch();
  launch.set_kernel(op.getKernel().str());
  launch.set_source(op.getSource().str());
  for (Value buffer : op.getOperands())
    *launch.add_bindings() = bindings.lookup(buffer);
  for (AffineExpr size : op.getDimensions().getResults())
    append(size, *launch.add_dimensions());
  appendMinimum(op.getWorkgroups(), *launch.mutable_workgroups());
  if (std::optional<int64_t> threads = op.getThreads())
    launch.set_threads(*threads);
  if (std::optional<AffineMap> flops = op.getFlops())
    appendMinimum(*flops, *launch.mutable_flops());
  if (std::optional<AffineMap> bytes = op.getBytesMoved())
    appendMinimum(*bytes, *launch.mutable_bytes_moved());
  AffineExpr scratch = op.getScratchBytes().getResult(0);
  if (scratch != getAffineConstantExpr(0, op.getContext()))
    append(scratch, *launch.mutable_scratch_bytes());
  for (AffineExpr bytes : op.getBindingBytes().getResults())
    append(bytes, *launch.add_binding_bytes());
  if (std::optional<int64_t> bytes = op.getSharedBytes())
    launch.set_shared_bytes(*bytes);
  return addNotesOfKernel(op, launch);
}

/// From what phase target wrote down at the kernel.
LogicalResult Converter::addNotesOfKernel(plan::LaunchOp op, bundle::Launch &launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom(op, op.getKernelAttr());
  if (kernel && kernel->hasAttr("plan.overlap"))
    launch.set_overlap(true);
  auto maps = kernel ? kernel->getAttrOfType<ArrayAttr>("plan.tensor_maps") : ArrayAttr();
  if (!maps)
    return success();
  for (auto map : maps.getAsRange<DictionaryAttr>()) {
    bundle::TensorMap &result = *launch.add_tensor_maps();
    result.set_binding(map.getAs<IntegerAttr>("binding").getInt());
    Type element = map.getAs<TypeAttr>("element").getValue();
    FailureOr<bundle::ElementType> type = convertElementType(op.getLoc(), element);
    if (failed(type))
      return failure();
    result.set_type(*type);
    result.set_swizzle(bundle::TensorMap::BYTES_128);
    for (int64_t size : map.getAs<DenseI64ArrayAttr>("box").asArrayRef())
      result.add_box(size);
    // Innermost first; strides are products of the sizes before.
    auto sizes = map.getAs<DenseI64ArrayAttr>("sizes").asArrayRef();
    auto dimensions = map.getAs<DenseI64ArrayAttr>("dimensions").asArrayRef();
    AffineExpr stride =
        getAffineConstantExpr(element.getIntOrFloatBitWidth() / 8, op.getContext());
    for (int64_t i = sizes.size() - 1; i >= 0; --i) {
      AffineExpr size = dimensions[i] >= 0 ? op.getDimensions().getResult(dimensions[i])
                                           : getAffineConstantExpr(sizes[i], op.getContext());
      append(size, *result.add_sizes());
      stride = stride * size;
      if (i > 0)
        append(stride, *result.add_strides_bytes());
    }
  }
  return success();
}

void Converter::convert(plan::CopyOp op) {
  bundle::Copy &copy = *program.add_commands()->mutable_copy();
  *copy.mutable_from() = bindings.lookup(op.getFrom());
  *copy.mutable_to() = bindings.lookup(op.getTo());
  append(op.getBytes().getResult(0), *copy.mutable_bytes());
}

LogicalResult Converter::convert(plan::ProgramOp op) {
  program.set_name(op.getSymName().str());
  for (auto symbol : op.getSymbols().getAsRange<StringAttr>())
    program.add_symbols(symbol.str());
  for (Operation &each : op.getBody().front()) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&each)
            .Case<plan::InputOp, plan::OutputOp, plan::StateOp, plan::WeightOp, plan::BufferOp,
                  plan::LaunchOp>(
                [&](auto concrete) { return convert(concrete); })
            .Case<plan::GlobalOp, plan::ArenaOp, plan::CopyOp>([&](auto concrete) {
              convert(concrete);
              return success();
            })
            .Default([](Operation *other) {
              return other->emitOpError() << "has no place in a bundle";
            });
    if (failed(result))
      return failure();
  }
  return success();
}

} // namespace

LogicalResult mlir::moec::convertProgram(plan::ProgramOp op,
                                         const llvm::StringMap<unsigned> &globals,
                                         WeightTable &weights, bundle::Program &program) {
  return Converter(globals, weights, program).convert(op);
}
