//===- ElementExpression.cpp - one element of a tensor as a formula
//------------------------------===//

#include "ElementExpression.h"

#include "moec/Conversion/ImportONNX.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::moec;

/// Longer chains of ops are no pattern that is looked for.
static constexpr unsigned maximumDepth = 200;

void Expression::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddInteger(static_cast<int>(kind));
  id.AddInteger(llvm::bit_cast<uint64_t>(number));
  id.AddPointer(index ? index.getAsOpaquePointer() : nullptr);
  id.AddPointer(value.getAsOpaquePointer());
  id.AddInteger(indices.size());
  for (AffineExpr part : indices)
    id.AddPointer(part.getAsOpaquePointer());
  id.AddString(name);
  id.AddInteger(predicate);
  for (const Expression *operand : operands)
    id.AddPointer(operand);
}

const Expression *ElementEvaluator::unique(Expression &&expression) {
  llvm::FoldingSetNodeID id;
  expression.Profile(id);
  void *position = nullptr;
  if (Expression *known = expressions.FindNodeOrInsertPos(id, position))
    return known;
  storage.push_back(std::make_unique<Expression>(std::move(expression)));
  expressions.InsertNode(storage.back().get(), position);
  return storage.back().get();
}

const Expression *ElementEvaluator::makeConstant(double number) {
  Expression expression;
  expression.kind = Expression::Kind::Constant;
  expression.number = number;
  return unique(std::move(expression));
}

const Expression *ElementEvaluator::makeIndex(AffineExpr index) {
  Expression expression;
  expression.kind = Expression::Kind::Index;
  expression.index = simplify(index);
  return unique(std::move(expression));
}

const Expression *ElementEvaluator::makeElement(Value value, ArrayRef<AffineExpr> indices) {
  Expression expression;
  expression.kind = Expression::Kind::Element;
  expression.value = value;
  expression.indices.assign(indices.begin(), indices.end());
  return unique(std::move(expression));
}

const Expression *ElementEvaluator::makeOperation(StringRef name,
                                                  ArrayRef<const Expression *> operands,
                                                  int64_t predicate) {
  Expression expression;
  expression.kind = Expression::Kind::Operation;
  expression.name = name;
  expression.predicate = predicate;
  expression.operands.assign(operands.begin(), operands.end());
  return unique(std::move(expression));
}

//===------------------------------------------------------------------------------------------===//
// Sizes and integers
//===------------------------------------------------------------------------------------------===//

/// The name of a dimension of an argument; empty when it has none.
static StringRef dimensionName(BlockArgument argument, int64_t dimension) {
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!function || !type)
    return {};
  auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), onnxDimensionsAttr);
  size_t number = llvm::count_if(type.getShape().take_front(dimension), ShapedType::isDynamic);
  auto name = names && number < names.size() ? dyn_cast<StringAttr>(names[number]) : StringAttr();
  return name ? name.getValue() : StringRef();
}

/// Of several arguments with a dimension of one name, the first one stands for all.
static std::pair<Value, int64_t> canonicalDimension(Value tensor, int64_t dimension) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  StringRef name = argument ? dimensionName(argument, dimension) : StringRef();
  if (name.empty())
    return {tensor, dimension};
  for (BlockArgument other : argument.getOwner()->getArguments())
    if (auto type = dyn_cast<RankedTensorType>(other.getType()))
      for (int64_t i = 0; i < type.getRank(); ++i)
        if (type.isDynamicDim(i) && dimensionName(other, i) == name)
          return {other, i};
  return {tensor, dimension};
}

AffineExpr ElementEvaluator::sizeSymbol(Value tensor, int64_t dimension) {
  std::tie(tensor, dimension) = canonicalDimension(tensor, dimension);
  AffineExpr &symbol = sizeSymbols[{tensor, dimension}];
  if (!symbol) {
    symbol = getAffineSymbolExpr(symbols.size(), context);
    symbols.push_back({tensor, dimension, nullptr});
  }
  return symbol;
}

AffineExpr ElementEvaluator::size(Value tensor, int64_t dimension) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dimension))
    return constant(type.getDimSize(dimension));
  Operation *op = tensor.getDefiningOp();
  if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(op))
    return foldToExpr(empty.getMixedSizes()[dimension]);
  if (auto expand = dyn_cast_or_null<tensor::ExpandShapeOp>(op))
    return foldToExpr(expand.getMixedOutputShape()[dimension]);
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op);
      slice && slice.getType().getRank() == slice.getSourceType().getRank())
    return foldToExpr(slice.getMixedSizes()[dimension]);
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    AffineExpr product = constant(1);
    ReassociationIndices sources = collapse.getReassociationIndices()[dimension];
    for (int64_t source : sources)
      product = product * size(collapse.getSrc(), source);
    return simplifyAffineExpr(product, variables.size(), symbols.size());
  }
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op)) {
    if (static_cast<uint64_t>(dimension) != concat.getDim())
      return size(concat.getInputs().front(), dimension);
    AffineExpr sum = constant(0);
    for (Value input : concat.getInputs())
      sum = sum + size(input, dimension);
    return simplifyAffineExpr(sum, variables.size(), symbols.size());
  }
  if (auto destination = dyn_cast_or_null<DestinationStyleOpInterface>(op))
    return size(destination.getTiedOpOperand(cast<OpResult>(tensor))->get(), dimension);
  // The operands of elementwise ops are of the result's shape.
  if (op && OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (auto operandType = dyn_cast<RankedTensorType>(operand.getType()))
        if (operandType.getRank() == type.getRank())
          return size(operand, dimension);
  // The first dimension of what tokens compute alone is their number.
  if (op && isa<moe::TokenParallelOpInterface>(op) && dimension == 0)
    return size(op->getOperand(0), 0);
  if (op && isa<moe::RMSNormOp, moe::LayerNormOp>(op))
    return size(op->getOperand(0), dimension);
  return sizeSymbol(tensor, dimension);
}

AffineExpr ElementEvaluator::foldToExpr(OpFoldResult fold) {
  if (std::optional<int64_t> number = getConstantIntValue(fold))
    return constant(*number);
  return toIndex(evaluateScalar(cast<Value>(fold)));
}

const Expression *ElementEvaluator::dataOf(AffineExpr expression) const {
  auto symbol = dyn_cast<AffineSymbolExpr>(expression);
  return symbol ? symbols[symbol.getPosition()].data : nullptr;
}

AffineExpr ElementEvaluator::toIndex(const Expression *expression) {
  if (expression->kind == Expression::Kind::Index)
    return expression->index;
  AffineExpr &symbol = dataSymbols[expression];
  if (!symbol) {
    symbol = getAffineSymbolExpr(symbols.size(), context);
    symbols.push_back({Value(), 0, expression});
  }
  return symbol;
}

const Expression *ElementEvaluator::evaluateScalar(Value scalar) {
  const Expression *key = makeElement(scalar, {});
  if (const Expression *known = evaluated.lookup(key))
    return known;
  if (depth >= maximumDepth)
    return key;
  ++depth;
  const Expression *result = computeScalar(scalar);
  --depth;
  return evaluated[key] = result;
}

const Expression *ElementEvaluator::computeScalar(Value scalar) {
  if (auto argument = dyn_cast<BlockArgument>(scalar))
    return makeElement(argument, {});
  Operation *op = scalar.getDefiningOp();
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    if (std::optional<int64_t> dimension = dim.getConstantIndex();
        dimension && isa<RankedTensorType>(dim.getSource().getType()))
      return makeIndex(size(dim.getSource(), *dimension));
    return makeElement(scalar, {});
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<AffineExpr> indices;
    for (Value index : extract.getIndices())
      indices.push_back(toIndex(evaluateScalar(index)));
    return evaluate(extract.getTensor(), indices);
  }
  if (op->getNumRegions() || op->getNumResults() != 1)
    return makeElement(scalar, {});
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op)) {
    if (auto number = dyn_cast<FloatAttr>(constantOp.getValue()))
      return makeConstant(number.getValueAsDouble());
    if (auto number = dyn_cast<IntegerAttr>(constantOp.getValue()))
      return makeIndex(constant(number.getType().isInteger(1)
                                    ? int64_t(number.getValue().getZExtValue())
                                    : number.getValue().getSExtValue()));
  }
  SmallVector<const Expression *> operands;
  for (Value operand : op->getOperands()) {
    if (isa<ShapedType>(operand.getType()))
      return makeElement(scalar, {});
    operands.push_back(evaluateScalar(operand));
  }
  return evaluateOperation(op, operands);
}

//===------------------------------------------------------------------------------------------===//
// Operations on numbers
//===------------------------------------------------------------------------------------------===//

/// Evaluates an op with scalar meaning (arith and math) on the formulas of its operands. Integers
/// stay affine as far as they can, so that positions computed with tensors of integers are
/// positions.
const Expression *ElementEvaluator::evaluateOperation(Operation *op,
                                                      ArrayRef<const Expression *> operands) {
  auto isIndex = [](const Expression *e) { return e->kind == Expression::Kind::Index; };
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op)) {
    // Positions fit every width that a file uses for them.
    if (!getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1))
      return operands[0];
  }
  // Formulas are over the real numbers: where results are rounded is a matter of precision.
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return operands[0];
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) &&
      !getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1)) {
    AffineExpr a = toIndex(operands[0]), b = toIndex(operands[1]);
    if (isa<arith::AddIOp>(op))
      return makeIndex(a + b);
    if (isa<arith::SubIOp>(op))
      return makeIndex(a - b);
    if (isa<AffineConstantExpr>(a) || isa<AffineConstantExpr>(b))
      return makeIndex(a * b);
  }
  if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) {
    bool isMax = isa<arith::MaxSIOp>(op);
    AffineExpr a = toIndex(operands[0]), b = toIndex(operands[1]);
    if (isNonNegative(a - b))
      return makeIndex(isMax ? a : b);
    if (isNonNegative(b - a))
      return makeIndex(isMax ? b : a);
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return makeOperation("arith.cmpi", operands, static_cast<int64_t>(compare.getPredicate()));
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return makeOperation("arith.cmpf", operands, static_cast<int64_t>(compare.getPredicate()));
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) && isIndex(operands[0]))
    if (auto number = dyn_cast<AffineConstantExpr>(operands[0]->index))
      return makeConstant(static_cast<double>(number.getValue()));
  // Arithmetic on two constants: exporters fold most of it, not all.
  if (operands.size() == 2 && operands[0]->kind == Expression::Kind::Constant &&
      operands[1]->kind == Expression::Kind::Constant) {
    double a = operands[0]->number, b = operands[1]->number;
    bool narrow = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
    auto rounded = [&](double x) { return makeConstant(narrow ? static_cast<float>(x) : x); };
    if (isa<arith::AddFOp>(op))
      return rounded(a + b);
    if (isa<arith::SubFOp>(op))
      return rounded(a - b);
    if (isa<arith::MulFOp>(op))
      return rounded(a * b);
    if (isa<arith::DivFOp>(op))
      return rounded(a / b);
  }
  return makeOperation(op->getName().getStringRef(), operands);
}

//===------------------------------------------------------------------------------------------===//
// Tensors
//===------------------------------------------------------------------------------------------===//

std::optional<SmallVector<AffineExpr>>
ElementEvaluator::throughExpand(tensor::ExpandShapeOp op, ArrayRef<AffineExpr> indices) {
  SmallVector<AffineExpr> result;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    AffineExpr position = constant(0);
    for (auto [i, dimension] : llvm::enumerate(group)) {
      AffineExpr extent = size(op.getResult(), dimension);
      bool isFirst = position == constant(0);
      if (!isFirst && !isa<AffineConstantExpr>(extent))
        return std::nullopt;
      position = (isFirst ? constant(0) : position * extent) + indices[dimension];
    }
    result.push_back(simplify(position));
  }
  return result;
}

std::optional<SmallVector<AffineExpr>>
ElementEvaluator::throughCollapse(tensor::CollapseShapeOp op, ArrayRef<AffineExpr> indices) {
  SmallVector<AffineExpr> result(op.getSrcType().getRank(), constant(0));
  for (auto [i, group] : llvm::enumerate(op.getReassociationIndices())) {
    SmallVector<int64_t> large;
    for (int64_t dimension : group)
      if (size(op.getSrc(), dimension) != constant(1))
        large.push_back(dimension);
    AffineExpr position = indices[i];
    while (large.size() > 1) {
      auto extent = dyn_cast<AffineConstantExpr>(size(op.getSrc(), large.back()));
      if (!extent || extent.getValue() <= 0)
        return std::nullopt;
      result[large.back()] = simplify(position % extent.getValue());
      position = simplify(position.floorDiv(extent.getValue()));
      large.pop_back();
    }
    if (!large.empty())
      result[large.front()] = position;
  }
  return result;
}

std::optional<SmallVector<AffineExpr>>
ElementEvaluator::throughSlice(tensor::ExtractSliceOp op, ArrayRef<AffineExpr> indices) {
  SmallVector<AffineExpr> result;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  size_t next = 0;
  for (auto [i, offset, stride] : llvm::enumerate(op.getMixedOffsets(), op.getMixedStrides())) {
    std::optional<int64_t> step = getConstantIntValue(stride);
    if (!step)
      return std::nullopt;
    AffineExpr position = dropped.test(i) ? constant(0) : indices[next++];
    result.push_back(simplify(foldToExpr(offset) + position * *step));
  }
  return result;
}

/// The element of a constant, or null.
static Attribute constantElement(DenseElementsAttr elements, ArrayRef<AffineExpr> indices) {
  if (elements.isSplat())
    return elements.getSplatValue<Attribute>();
  int64_t position = 0;
  for (auto [size, index] : llvm::zip(elements.getType().getShape(), indices)) {
    auto number = dyn_cast<AffineConstantExpr>(index);
    if (!number || number.getValue() < 0 || number.getValue() >= size)
      return {};
    position = position * size + number.getValue();
  }
  return elements.getValues<Attribute>()[position];
}

const Expression *ElementEvaluator::evaluate(Value tensor, ArrayRef<AffineExpr> indices) {
  const Expression *key = makeElement(tensor, indices);
  if (const Expression *known = evaluated.lookup(key))
    return known;
  if (!tensor.getDefiningOp() || depth >= maximumDepth)
    return key;
  ++depth;
  const Expression *result = computeElement(tensor, indices);
  --depth;
  return evaluated[key] = result;
}

const Expression *ElementEvaluator::computeElement(Value tensor, ArrayRef<AffineExpr> indices) {
  Operation *op = tensor.getDefiningOp();

  DenseElementsAttr elements;
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op))
    elements = dyn_cast<DenseElementsAttr>(constantOp.getValue());
  else if (isa<moe::WeightOp>(op))
    elements = op->getAttrOfType<DenseElementsAttr>(onnxConstantValueAttr);
  if (elements) {
    Attribute element = constantElement(elements, indices);
    if (auto number = dyn_cast_or_null<FloatAttr>(element))
      return makeConstant(number.getValueAsDouble());
    if (auto number = dyn_cast_or_null<IntegerAttr>(element))
      return makeIndex(constant(number.getType().isInteger(1)
                                    ? int64_t(number.getValue().getZExtValue())
                                    : number.getValue().getSExtValue()));
    return makeElement(tensor, indices);
  }

  std::optional<SmallVector<AffineExpr>> source;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    if ((source = throughExpand(expand, indices)))
      return evaluate(expand.getSrc(), *source);
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    if ((source = throughCollapse(collapse, indices)))
      return evaluate(collapse.getSrc(), *source);
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if ((source = throughSlice(slice, indices)))
      return evaluate(slice.getSource(), *source);
  } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    return evaluate(cast.getSource(), indices);
  } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    AffineExpr position = indices[concat.getDim()];
    for (Value input : concat.getInputs()) {
      AffineExpr extent = size(input, concat.getDim());
      if (isNonNegative(extent - 1 - position) && isNonNegative(position)) {
        SmallVector<AffineExpr> inner(indices);
        inner[concat.getDim()] = position;
        return evaluate(input, inner);
      }
      position = simplify(position - extent);
    }
  } else if (auto elementsOp = dyn_cast<tensor::FromElementsOp>(op)) {
    if (elementsOp.getElements().size() == 1)
      return evaluateScalar(elementsOp.getElements().front());
  } else if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    return evaluateScalar(splat.getInput());
  } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (const Expression *result = evaluateLinalg(linalgOp, tensor, indices))
      return result;
  } else if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1) {
    SmallVector<const Expression *> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<RankedTensorType>(operand.getType()) ? evaluate(operand, indices)
                                                                  : evaluateScalar(operand));
    return evaluateOperation(op, operands);
  }
  return makeElement(tensor, indices);
}

//===------------------------------------------------------------------------------------------===//
// linalg ops
//===------------------------------------------------------------------------------------------===//

const Expression *ElementEvaluator::evaluateInBody(linalg::LinalgOp op, ArrayRef<AffineExpr> loops,
                                                   Value value, Scope &scope) {
  if (auto known = scope.find(value); known != scope.end())
    return known->second;
  Block *body = op.getBlock();
  const Expression *result = nullptr;
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == body) {
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    if (!isa<RankedTensorType>(operand.get().getType())) {
      result = evaluateScalar(operand.get());
    } else {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      SmallVector<AffineExpr> indices;
      for (AffineExpr expression : map.getResults())
        indices.push_back(simplify(expression.replaceDims(loops)));
      result = evaluate(operand.get(), indices);
    }
  } else if (!value.getDefiningOp() || value.getDefiningOp()->getBlock() != body) {
    result = evaluateScalar(value);
  } else {
    Operation *inner = value.getDefiningOp();
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      result = makeIndex(loops[index.getDim()]);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<AffineExpr> indices;
      for (Value position : extract.getIndices())
        indices.push_back(toIndex(evaluateInBody(op, loops, position, scope)));
      result = evaluate(extract.getTensor(), indices);
    } else if (isa<arith::ConstantOp>(inner)) {
      result = evaluateScalar(value);
    } else {
      SmallVector<const Expression *> operands;
      for (Value operand : inner->getOperands())
        operands.push_back(evaluateInBody(op, loops, operand, scope));
      result = evaluateOperation(inner, operands);
    }
  }
  scope[value] = result;
  return result;
}

const Expression *ElementEvaluator::evaluateLinalg(linalg::LinalgOp op, Value result,
                                                   ArrayRef<AffineExpr> indices) {
  if (!op.hasPureTensorSemantics())
    return nullptr;
  unsigned number = cast<OpResult>(result).getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  AffineMap map = op.getMatchingIndexingMap(init);
  if (!map.isProjectedPermutation())
    return nullptr;
  if (op.getNumReductionLoops()) {
    Expression expression;
    expression.kind = Expression::Kind::Reduction;
    expression.value = result;
    expression.indices.assign(indices.begin(), indices.end());
    return unique(std::move(expression));
  }
  SmallVector<AffineExpr> loops(op.getNumLoops());
  for (auto [dimension, index] : llvm::zip(map.getResults(), indices))
    loops[cast<AffineDimExpr>(dimension).getPosition()] = index;
  if (llvm::is_contained(loops, AffineExpr()))
    return nullptr;
  // The previous content of the result would have to be known.
  if (op.payloadUsesValueFromOperand(init) && !isa<linalg::FillOp>(op))
    return nullptr;
  Scope scope;
  Value yielded = op.getBlock()->getTerminator()->getOperand(number);
  return evaluateInBody(op, loops, yielded, scope);
}

std::optional<ReductionBody> ElementEvaluator::reductionBody(const Expression *reduction,
                                                             AffineExpr at) {
  if (reduction->kind != Expression::Kind::Reduction)
    return std::nullopt;
  auto op = reduction->value.getDefiningOp<linalg::LinalgOp>();
  unsigned number = cast<OpResult>(reduction->value).getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  AffineMap map = op.getMatchingIndexingMap(init);
  SmallVector<AffineExpr> loops(op.getNumLoops());
  for (auto [dimension, index] : llvm::zip(map.getResults(), reduction->indices))
    loops[cast<AffineDimExpr>(dimension).getPosition()] = index;
  ReductionBody result;
  for (auto [position, loop] : llvm::enumerate(loops)) {
    if (loop)
      continue;
    if (at) {
      loop = at;
      at = AffineExpr();
      continue;
    }
    // The loop's extent is the size of any operand dimension that it walks through.
    AffineExpr extent;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap operandMap = op.getMatchingIndexingMap(&operand);
      for (auto [i, expression] : llvm::enumerate(operandMap.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expression); dim && dim.getPosition() == position)
          extent = size(operand.get(), i);
    }
    loop = variable(extent);
    if (auto dim = dyn_cast<AffineDimExpr>(loop))
      result.variables.push_back(dim.getPosition());
  }
  // The body is combiner(accumulator, term), and the accumulator starts at the neutral element.
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  Operation *combiner = op.getBlock()->getTerminator()->getOperand(number).getDefiningOp();
  if (!combiner || combiner->getNumOperands() != 2 || !accumulator.hasOneUse())
    return std::nullopt;
  Value term = combiner->getOperand(0) == accumulator   ? combiner->getOperand(1)
               : combiner->getOperand(1) == accumulator ? combiner->getOperand(0)
                                                        : Value();
  if (!term)
    return std::nullopt;
  const Expression *start = evaluate(init->get(), reduction->indices);
  bool neutral = false;
  if (isa<arith::AddFOp>(combiner))
    neutral = start->isConstant(0.0);
  else if (isa<arith::AddIOp>(combiner))
    neutral = start->kind == Expression::Kind::Index && start->index == constant(0);
  else if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    neutral =
        start->kind == Expression::Kind::Constant && std::isinf(start->number) && start->number < 0;
  if (!neutral)
    return std::nullopt;
  result.combiner = combiner->getName().getStringRef();
  Scope scope;
  result.body = evaluateInBody(op, loops, term, scope);
  return result;
}
