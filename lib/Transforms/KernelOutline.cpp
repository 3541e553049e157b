#include "KernelOutline.h"

#include "moec/Conversion/CompileKernels.h"
#include "moec/Conversion/KernelStrategy.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/Plan/IR/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::moec;

bool mlir::moec::isFreeInKernels(Operation *op) {
  if (isa<tensor::EmptyOp, tensor::DimOp>(op))
    return true;
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.value().getDefiningOp() && isFreeInKernels(fill.value().getDefiningOp());
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return splat.getInput().getDefiningOp() && isFreeInKernels(splat.getInput().getDefiningOp());
  // Index arithmetic: sizes and offsets.
  return isMemoryEffectFree(op) && op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         op->getResult(0).getType().isIntOrIndexOrFloat();
}

bool mlir::moec::isSliceInKernels(Operation *op) {
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    op = expand.getSrc().getDefiningOp();
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
  return slice && slice.hasUnitStride() && !slice.getDroppedDims().any() &&
         slice.getSourceType().getRank() > 1 && !moe::getLayout(slice.getSourceType());
}

/// Values that `op` reads from outside of itself.
static SetVector<Value> getReadValues(Operation *op) {
  SetVector<Value> values;
  for (Value operand : op->getOperands())
    values.insert(operand);
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (operand.getParentRegion() == op->getParentRegion())
        values.insert(operand);
  });
  return values;
}

/// The binding, and its dimension, that has the size `expr`.
static std::optional<std::pair<unsigned, int64_t>>
findSize(AffineExpr expr, ArrayRef<Value> bindings, SymbolicDims &dims) {
  for (auto [position, value] : llvm::enumerate(bindings)) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || moe::getLayout(type))
      continue;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim) && dims.getDim(value, dim) == expr)
        return std::make_pair(static_cast<unsigned>(position), dim);
  }
  return std::nullopt;
}

SmallVector<Value> KernelOutline::getBindings() const {
  SmallVector<Value> bindings(inputs);
  llvm::append_range(bindings, outputs);
  return bindings;
}

KernelOutline KernelOutline::create(Operation *root, SymbolicDims &dims) {
  KernelOutline outline;
  outline.root = root;
  outline.outputs.assign(root->getResults().begin(), root->getResults().end());
  // Post-order over what is cloned into the kernel.
  SetVector<Operation *> body;
  SetVector<Value> inputs;
  // Panels are made of rows that lie one behind the other: a slice is written out for them.
  bool takesSlices = !isa<moe::RelayoutOp>(root);
  auto visit = [&](auto &&self, Operation *op) -> void {
    for (Value value : getReadValues(op)) {
      Operation *producer = value.getDefiningOp();
      if (auto dim = dyn_cast_or_null<tensor::DimOp>(producer)) {
        // Sizes are looked up at the bindings; only the index is an op of the kernel.
        body.insert(dim);
        continue;
      }
      bool cloned =
          producer && (isFreeInKernels(producer) || (takesSlices && isSliceInKernels(producer)) ||
                       isa<moe::AssembleBlocksOp>(producer));
      if (!cloned)
        inputs.insert(value);
      else if (!body.contains(producer))
        self(self, producer);
    }
    body.insert(op);
  };
  visit(visit, root);
  outline.body = body.takeVector();
  outline.inputs = inputs.takeVector();
  // A tensor whose size is needed, and is that of no binding, becomes a binding itself.
  for (Operation *op : outline.body) {
    auto dim = dyn_cast<tensor::DimOp>(op);
    if (!dim || llvm::is_contained(outline.inputs, dim.getSource()))
      continue;
    AffineExpr expr = dims.getIndex(dim.getResult());
    if (!expr || (!isa<AffineConstantExpr>(expr) && !findSize(expr, outline.getBindings(), dims)))
      outline.inputs.push_back(dim.getSource());
  }
  return outline;
}

Location KernelOutline::getLoc() const { return root->getLoc(); }

std::string KernelOutline::getLabel() const {
  if (auto strategy = root->getAttrOfType<StringAttr>("strategy"))
    return strategy.str();
  return root->getName().getStringRef().str();
}

/// Rows of how many elements a workgroup of a generic kernel should have at least: enough that
/// handing it out costs little; on a GPU enough for all threads, and few enough for shared memory.
static int64_t getElementsPerWorkgroup(const TargetDescription &target) {
  return target.isCUDA() ? 4 * genericThreads : 8192;
}

FailureOr<KernelSize> KernelOutline::getSize(SymbolicDims &dims,
                                             const TargetDescription &target) const {
  MLIRContext *context = root->getContext();
  AffineExpr one = getAffineConstantExpr(1, context), zero = getAffineConstantExpr(0, context);
  if (auto name = root->getAttrOfType<StringAttr>("strategy")) {
    const KernelStrategy *strategy = findKernelStrategy(name);
    if (!strategy)
      return root->emitOpError() << "names the strategy \"" << name.getValue()
                                 << "\", which does not exist";
    // The strategy computes sizes with ops, which are read here and thrown away.
    Operation *before = root->getPrevNode();
    OpBuilder builder(root);
    KernelSize size;
    size.workgroups = dims.getMinimum(strategy->countWorkgroups(builder, root, target));
    size.scratchBytes = dims.getIndex(strategy->countScratchBytes(builder, root, target));
    size.threads = strategy->getThreads(root, target);
    size.sharedBytes = strategy->getSharedBytes(root, target);
    Operation *first = before ? before->getNextNode() : &root->getBlock()->front();
    SmallVector<Operation *> made;
    for (Operation *op = first; op != root; op = op->getNextNode())
      made.push_back(op);
    for (Operation *op : llvm::reverse(made)) {
      dims.forget(op);
      op->erase();
    }
    if (size.workgroups.empty() || !size.scratchBytes)
      return root->emitOpError()
             << "strategy \"" << name.getValue()
             << "\" needs a size that is not an expression of the inputs' sizes";
    return size;
  }
  KernelSize size{{one}, zero, {}, target.isCUDA() ? genericThreads : 1};
  bool tilable = isa<linalg::LinalgOp>(root) || root->hasTrait<OpTrait::Elementwise>() ||
                 isa<moe::TokenParallelOpInterface, moe::GatherRowsOp, moe::DequantizeOp>(root);
  auto type =
      outputs.empty() ? RankedTensorType() : dyn_cast<RankedTensorType>(outputs.front().getType());
  if (!tilable || !type || type.getRank() == 0)
    return size;
  // Cut the first dimension that is worth cutting, so that rows behind it stay whole.
  int64_t rest = 1;
  for (int64_t dim = type.getRank() - 1; dim > 0; --dim)
    if (!type.isDynamicDim(dim))
      rest *= std::max<int64_t>(type.getDimSize(dim), 1);
  int64_t cut = 0;
  while (cut + 1 < type.getRank() && type.getDimSize(cut) == 1)
    ++cut;
  int64_t tile = std::max<int64_t>(1, getElementsPerWorkgroup(target) / rest);
  if (!type.isDynamicDim(cut) && type.getDimSize(cut) <= tile)
    return size;
  AffineExpr extent = dims.getDim(outputs.front(), cut);
  if (!extent)
    return size;
  size.tiles.assign(cut, 0);
  size.tiles.push_back(tile);
  AffineExpr workgroups = extent.ceilDiv(tile);
  // Heads have nothing in common: where one token's are many, workgroups share them.
  if (isa<moe::HeadLinearOp>(root) && cut == 0 && tile == 1 && type.getRank() == 3) {
    int64_t heads = type.getDimSize(1), columns = type.getDimSize(2);
    int64_t headsOfTile = std::clamp<int64_t>(getElementsPerWorkgroup(target) / columns, 1, heads);
    size.tiles.push_back(headsOfTile);
    workgroups = workgroups * llvm::divideCeil(heads, headsOfTile);
  }
  size.workgroups = {workgroups};
  return size;
}

/// The memref type that binds a value.
static MemRefType getBindingType(Type type) {
  if (auto cache = dyn_cast<moe::CacheType>(type))
    return MemRefType::get({ShapedType::kDynamic, cache.getBlockElements()}, cache.getElement());
  if (auto state = dyn_cast<moe::StateType>(type)) {
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    llvm::append_range(shape, state.getShape());
    return MemRefType::get(shape, state.getElement());
  }
  return moe::getStorageType(type);
}

static bool isPlainTensor(Type type) {
  return isa<RankedTensorType>(type) && !moe::getLayout(type);
}

void KernelOutline::buildFunction(OpBuilder &builder, StringRef name, SymbolicDims &dims,
                                  const KernelSize &size) const {
  Location loc = root->getLoc();
  SmallVector<Type> arguments;
  for (Value value : inputs)
    arguments.push_back(getBindingType(value.getType()));
  for (Value value : outputs)
    arguments.push_back(getBindingType(value.getType()));
  arguments.push_back(MemRefType::get({ShapedType::kDynamic}, builder.getI8Type()));
  arguments.push_back(builder.getIndexType());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
  function.setPrivate();
  function->setAttr("plan.kernel", builder.getUnitAttr());
  if (!size.tiles.empty())
    function->setAttr("plan.tile_sizes", builder.getDenseI64ArrayAttr(size.tiles));
  if (size.threads > 1)
    function->setAttr("plan.threads", builder.getI64IntegerAttr(size.threads));

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip(inputs, function.getArguments())) {
    if (isPlainTensor(value.getType()))
      mapping.map(value, bufferization::ToTensorOp::create(builder, loc, value.getType(), argument,
                                                           /*restrict=*/true)
                             .getResult());
    else
      mapping.map(value, UnrealizedConversionCastOp::create(builder, loc, value.getType(),
                                                            ValueRange(argument))
                             .getResult(0));
  }
  SmallVector<Value> bindings = getBindings();
  ArrayRef<BlockArgument> outputArguments =
      function.getArguments().slice(inputs.size(), outputs.size());

  for (Operation *op : body) {
    // Sizes first: an index whose value is a size of a binding, or a number, needs no arithmetic.
    if (op != root && op->getNumResults() == 1 && op->getResult(0).getType().isIndex()) {
      AffineExpr expr = dims.getIndex(op->getResult(0));
      Value size;
      if (auto constant = dyn_cast_or_null<AffineConstantExpr>(expr))
        size = arith::ConstantIndexOp::create(builder, loc, constant.getValue());
      else if (auto found = expr ? findSize(expr, bindings, dims) : std::nullopt)
        size =
            memref::DimOp::create(builder, loc, function.getArgument(found->first), found->second);
      if (size) {
        mapping.map(op->getResult(0), size);
        continue;
      }
    }
    builder.clone(*op, mapping);
  }
  for (auto [value, argument] : llvm::zip(outputs, outputArguments)) {
    Value result = mapping.lookup(value);
    if (isPlainTensor(value.getType())) {
      auto materialize =
          bufferization::MaterializeInDestinationOp::create(builder, loc, result, argument);
      materialize.setRestrict(true);
      materialize.setWritable(true);
    } else {
      plan::StoreOp::create(builder, loc, result, argument);
    }
  }
  func::ReturnOp::create(builder, loc);
}
