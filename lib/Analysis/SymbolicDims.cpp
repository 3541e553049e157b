#include "moec/Analysis/SymbolicDims.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace mlir::moec;

AffineExpr SymbolicDims::getSymbol(StringRef name) {
  auto found = llvm::find(symbols, name);
  unsigned index = found - symbols.begin();
  if (found == symbols.end())
    symbols.push_back(name.str());
  return getAffineSymbolExpr(index, context);
}

/// Reads "name", "name + constant" or "name - constant".
AffineExpr SymbolicDims::parse(StringRef text) {
  size_t sign = text.find_first_of("+-");
  StringRef name = text.take_front(sign).trim();
  if (name.empty() || !(llvm::isAlpha(name.front()) || name.front() == '_') ||
      name.find_first_of(" \t") != StringRef::npos)
    return {};
  int64_t constant = 0;
  if (sign != StringRef::npos) {
    if (text.drop_front(sign + 1).trim().getAsInteger(10, constant))
      return {};
    if (text[sign] == '-')
      constant = -constant;
  }
  return getSymbol(name) + constant;
}

static std::string getArgumentName(func::FuncOp entry, unsigned index) {
  if (auto name = entry.getArgAttrOfType<StringAttr>(index, "moe.name"))
    return name.str();
  return "arg" + std::to_string(index);
}

FailureOr<SymbolicDims> SymbolicDims::create(func::FuncOp entry) {
  SymbolicDims result(entry.getContext());
  for (BlockArgument argument : entry.getArguments()) {
    if (isa<moe::CacheType, moe::StateType>(argument.getType())) {
      result.getPoolSymbol(argument.getType());
      continue;
    }
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    unsigned index = argument.getArgNumber();
    auto texts = entry.getArgAttrOfType<ArrayAttr>(index, "moe.dims");
    if (texts && texts.size() != static_cast<size_t>(type.getNumDynamicDims()))
      return entry.emitError() << "argument '" << getArgumentName(entry, index)
                               << "': expects 'moe.dims' to name " << type.getNumDynamicDims()
                               << " dynamic dimensions, got " << texts.size();
    unsigned next = 0;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      std::string text = getArgumentName(entry, index) + "." + std::to_string(dim);
      if (texts) {
        auto attribute = dyn_cast<StringAttr>(texts[next++]);
        if (!attribute)
          return entry.emitError() << "expects 'moe.dims' to be an array of strings";
        text = attribute.str();
      }
      AffineExpr expr = texts ? result.parse(text) : result.getSymbol(text);
      if (!expr)
        return entry.emitError() << "argument '" << getArgumentName(entry, index)
                                 << "': expects 'moe.dims' to hold names, or a name and a "
                                    "constant like \"sequences + 1\", got \""
                                 << text << "\"";
      result.dims[{argument, dim}] = expr;
    }
  }
  return result;
}

AffineExpr SymbolicDims::getPoolSymbol(Type stateType) {
  return getSymbol(isa<moe::CacheType>(stateType) ? "cache_blocks" : "state_slots_total");
}

AffineMap SymbolicDims::getMap(ArrayRef<AffineExpr> results) const {
  return AffineMap::get(/*dimCount=*/0, symbols.size(), results, context);
}

AffineExpr SymbolicDims::getDim(Value tensor, int64_t dim) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || dim < 0 || dim >= type.getRank())
    return {};
  if (!type.isDynamicDim(dim))
    return getAffineConstantExpr(type.getDimSize(dim), context);
  auto found = dims.find({tensor, dim});
  if (found != dims.end())
    return found->second;
  AffineExpr expr = computeDim(tensor, dim);
  dims[{tensor, dim}] = expr;
  return expr;
}

FailureOr<SmallVector<AffineExpr>> SymbolicDims::getShape(Value tensor) {
  SmallVector<AffineExpr> shape;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(tensor.getType()).getRank(); ++dim) {
    AffineExpr expr = getDim(tensor, dim);
    if (!expr) {
      Operation *op = tensor.getDefiningOp();
      InFlightDiagnostic error = emitError(tensor.getLoc());
      error << "dimension " << dim << " of " << tensor.getType();
      if (op)
        error << ", made by '" << op->getName() << "',";
      return error << " cannot be computed from the sizes of the inputs; sizes that depend on the "
                      "data are not supported";
    }
    shape.push_back(expr);
  }
  return shape;
}

AffineExpr SymbolicDims::computeDim(Value tensor, int64_t dim) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return {};
  unsigned result = cast<OpResult>(tensor).getResultNumber();
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return getIndex(empty.getMixedSizes()[dim]);
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    return getDim(destination.getDpsInitOperand(result)->get(), dim);
  if (auto castOp = dyn_cast<tensor::CastOp>(op))
    return getDim(castOp.getSource(), dim);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    if (!slice.getDroppedDims().any())
      return getIndex(slice.getMixedSizes()[dim]);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return getIndex(expand.getMixedOutputShape()[dim]);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    AffineExpr product = getAffineConstantExpr(1, context);
    ReassociationIndices sources = collapse.getReassociationIndices()[dim];
    for (int64_t source : sources) {
      AffineExpr size = getDim(collapse.getSrc(), source);
      if (!size)
        return {};
      product = product * size;
    }
    return product;
  }
  if (op->hasTrait<OpTrait::Elementwise>()) {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        if (AffineExpr expr = getDim(operand, dim))
          return expr;
    return {};
  }
  // Ask the op: it builds ops that compute its shape, which are read here and thrown away.
  if (auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op)) {
    Block *block = op->getBlock();
    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    ReifiedRankedShapedTypeDims shapes;
    AffineExpr expr;
    if (succeeded(reify.reifyResultShapes(builder, shapes)) && result < shapes.size() &&
        dim < static_cast<int64_t>(shapes[result].size()))
      expr = getIndex(shapes[result][dim]);
    Operation *first = before ? before->getNextNode() : &block->front();
    SmallVector<Operation *> made;
    for (Operation *it = first; it != op; it = it->getNextNode())
      made.push_back(it);
    for (Operation *it : llvm::reverse(made)) {
      forget(it);
      it->erase();
    }
    return expr;
  }
  return {};
}

SmallVector<AffineExpr> SymbolicDims::getMinimum(OpFoldResult value) {
  if (AffineExpr expr = getIndex(value))
    return {expr};
  Operation *op = cast<Value>(value).getDefiningOp();
  if (isa_and_nonnull<arith::MinSIOp, arith::MinUIOp>(op)) {
    SmallVector<AffineExpr> all = getMinimum(op->getOperand(0));
    SmallVector<AffineExpr> others = getMinimum(op->getOperand(1));
    if (all.empty() || others.empty())
      return {};
    llvm::append_range(all, others);
    return all;
  }
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (auto [factor, other] : {std::pair(op->getOperand(1), op->getOperand(0)),
                                 std::pair(op->getOperand(0), op->getOperand(1))})
      if (std::optional<int64_t> constant = getConstantIntValue(factor); constant && *constant >= 0) {
        SmallVector<AffineExpr> all = getMinimum(other);
        for (AffineExpr &expr : all)
          expr = expr * *constant;
        return all;
      }
  return {};
}

void SymbolicDims::forget(Operation *op) {
  for (Value value : op->getResults()) {
    indices.erase(value);
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        dims.erase({value, dim});
  }
}

AffineExpr SymbolicDims::getIndex(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value)) {
    auto integer = dyn_cast<IntegerAttr>(attribute);
    return integer ? getAffineConstantExpr(integer.getInt(), context) : AffineExpr();
  }
  Value index = cast<Value>(value);
  auto found = indices.find(index);
  if (found != indices.end())
    return found->second;
  AffineExpr expr = computeIndex(index);
  indices[index] = expr;
  return expr;
}

AffineExpr SymbolicDims::computeIndex(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return getAffineConstantExpr(*constant, context);
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    return index ? getDim(dim.getSource(), *index) : AffineExpr();
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
          arith::TruncIOp>(op))
    return getIndex(op->getOperand(0));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    SmallVector<AffineExpr> operands;
    for (Value operand : apply.getMapOperands()) {
      operands.push_back(getIndex(operand));
      if (!operands.back())
        return {};
    }
    unsigned dimCount = apply.getAffineMap().getNumDims();
    ArrayRef<AffineExpr> all(operands);
    return apply.getAffineMap().getResult(0).replaceDimsAndSymbols(all.take_front(dimCount),
                                                                   all.drop_front(dimCount));
  }
  if (op->getNumOperands() != 2)
    return {};
  AffineExpr lhs = getIndex(op->getOperand(0)), rhs = getIndex(op->getOperand(1));
  if (!lhs || !rhs)
    return {};
  // Sizes are not negative, so that signed and unsigned division agree.
  if (isa<arith::AddIOp>(op))
    return lhs + rhs;
  if (isa<arith::SubIOp>(op))
    return lhs - rhs;
  if (isa<arith::MulIOp>(op))
    return lhs * rhs;
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(op))
    return lhs.floorDiv(rhs);
  if (isa<arith::CeilDivUIOp, arith::CeilDivSIOp>(op))
    return lhs.ceilDiv(rhs);
  if (isa<arith::RemUIOp, arith::RemSIOp>(op))
    return lhs % rhs;
  return {};
}
