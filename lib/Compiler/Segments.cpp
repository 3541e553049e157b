#include "moec/Compiler/Segments.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::moec;

//===------------------------------------------------------------------------------------------===//
// Names
//===------------------------------------------------------------------------------------------===//

std::optional<int64_t> mlir::moec::parseLayer(StringRef name) {
  SmallVector<StringRef> parts;
  llvm::SplitString(name, parts, "./");
  // torch writes "model_layers_3_mlp" in some of its exports.
  SmallVector<StringRef> words;
  for (StringRef part : parts) {
    int64_t number;
    bool isPlain = !part.getAsInteger(10, number) || !part.contains('_');
    if (isPlain)
      words.push_back(part);
    else
      llvm::SplitString(part, words, "_");
  }
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    int64_t number;
    static constexpr StringRef known[] = {"layers", "layer", "h", "blocks", "block"};
    if (llvm::is_contained(known, words[i]) && !words[i + 1].getAsInteger(10, number) &&
        number >= 0)
      return number;
  }
  return std::nullopt;
}

std::string mlir::moec::getLocationName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string name = getLocationName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return getLocationName(call.getCallee());
  return "";
}

/// What the op reads, also in its regions.
static SetVector<Value> getReadValues(Operation *op) {
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

//===------------------------------------------------------------------------------------------===//
// Cutting
//===------------------------------------------------------------------------------------------===//

/// Ops without effects that read nothing but each other, and sizes of tensors.
void Segmentation::findCopied() {
  for (Operation &op : step.getBody().front().without_terminator()) {
    bool readsData = llvm::any_of(getReadValues(&op), [&](Value value) {
      return !value.getDefiningOp() || !copied.contains(value.getDefiningOp());
    });
    if (isMemoryEffectFree(&op) && (!readsData || isa<tensor::DimOp>(op)))
      copied.insert(&op);
  }
}

void Segmentation::cut() {
  DenseMap<Operation *, std::optional<int64_t>> layerOfCopied;
  auto findLayer = [&](Operation *op) -> std::optional<int64_t> {
    if (std::optional<int64_t> layer = parseLayer(getLocationName(op->getLoc())))
      return layer;
    if (auto weight = dyn_cast<moe::WeightOp>(op))
      return parseLayer(weight.getName());
    for (Value value : getReadValues(op))
      if (auto found = layerOfCopied.find(value.getDefiningOp());
          found != layerOfCopied.end() && found->second)
        return found->second;
    return std::nullopt;
  };
  Segment current{"embedding", std::nullopt, {}, {}, {}};
  size_t named = 0; // how many of its ops, up to the last that is named after its layer
  auto finish = [&] {
    if (!current.ops.empty())
      segments.push_back(std::move(current));
  };
  for (Operation &op : step.getBody().front().without_terminator()) {
    std::optional<int64_t> layer = findLayer(&op);
    if (isCopied(&op)) {
      layerOfCopied[&op] = layer;
      continue;
    }
    if (layer && (!current.layer || *layer > *current.layer)) {
      finish();
      current = {"layer " + std::to_string(*layer), layer, {}, {}, {}};
    }
    current.ops.push_back(&op);
    if (layer)
      named = current.ops.size();
  }
  // What follows the last layer's last op that is named after it.
  Segment head{"head", std::nullopt, {}, {}, {}};
  if (current.layer) {
    // Sums without a name, such as the last residual one in a program whose names are lost, belong
    // to what they follow.
    while (named < current.ops.size() && current.ops[named]->hasTrait<OpTrait::Elementwise>() &&
           getLocationName(current.ops[named]->getLoc()).empty())
      ++named;
    head.ops.assign(current.ops.begin() + named, current.ops.end());
    current.ops.resize(named);
  } else {
    current.name = "program";
  }
  finish();
  current = std::move(head);
  finish();
}

/// A cache that several segments use makes one of them and of all between: none of them could be
/// run without the other.
void Segmentation::mergeSharedStates() {
  for (BlockArgument argument : step.getArguments()) {
    if (!isa<moe::CacheType, moe::StateType>(argument.getType()))
      continue;
    std::optional<size_t> first, last;
    for (auto [index, segment] : llvm::enumerate(segments))
      if (llvm::any_of(segment.ops,
                       [&](Operation *op) { return getReadValues(op).contains(argument); })) {
        first = first.value_or(index);
        last = index;
      }
    if (first == last)
      continue;
    Segment &merged = segments[*first];
    merged.name = "layers " + std::to_string(merged.layer.value_or(0)) + " to " +
                  std::to_string(segments[*last].layer.value_or(0));
    for (size_t index = *first + 1; index <= *last; ++index)
      merged.ops.insert(merged.ops.end(), segments[index].ops.begin(), segments[index].ops.end());
    merged.layer = segments[*last].layer; // what it gives is that layer's
    segments.erase(segments.begin() + *first + 1, segments.begin() + *last + 1);
  }
}

/// Numbers in, integers out: whose result may jump where its input hardly changes.
static bool isChoice(Operation *op) {
  auto isTensorOf = [](Type type, auto test) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && test(tensor.getElementType());
  };
  return llvm::any_of(
             op->getResultTypes(),
             [&](Type type) { return isTensorOf(type, [](Type t) { return t.isInteger(); }); }) &&
         llvm::any_of(op->getOperandTypes(), [&](Type type) {
           return isTensorOf(type, [](Type t) { return isa<FloatType>(t); });
         });
}

void Segmentation::findResults() {
  for (Segment &segment : segments) {
    DenseSet<Operation *> inside(segment.ops.begin(), segment.ops.end());
    for (Operation *op : segment.ops) {
      if (isChoice(op))
        segment.choices.push_back(op);
      for (Value result : op->getResults())
        for (Operation *user : result.getUsers()) {
          Operation *ancestor = step.getBody().front().findAncestorOpInBlock(*user);
          // A size is no data, but its copy reads the tensor.
          if (inside.contains(ancestor) || (isCopied(ancestor) && !isa<tensor::DimOp>(ancestor)))
            continue;
          if (isa<tensor::DimOp>(ancestor) &&
              llvm::all_of(ancestor->getUsers(),
                           [&](Operation *each) { return inside.contains(each); }))
            continue;
          segment.results.push_back(result);
          break;
        }
    }
  }
}

FailureOr<Segmentation> Segmentation::create(func::FuncOp step) {
  Segmentation result(step);
  if (!step.getBody().hasOneBlock())
    return step.emitError() << "expects a function of one block";
  result.findCopied();
  result.cut();
  result.mergeSharedStates();
  result.findResults();
  for (const Segment &segment : result.segments)
    for (Value value : segment.results)
      if (!isa<RankedTensorType>(value.getType()))
        return emitError(value.getLoc())
               << segment.name << " gives a value of type " << value.getType()
               << " to what follows it; only tensors can be compared";
  return result;
}

Segment Segmentation::getWhole() const {
  Segment whole{"program", std::nullopt, {}, {}, {}};
  for (const Segment &segment : segments) {
    whole.ops.insert(whole.ops.end(), segment.ops.begin(), segment.ops.end());
    whole.choices.append(segment.choices);
  }
  for (Value value : step.getBody().front().getTerminator()->getOperands())
    whole.results.push_back(value);
  return whole;
}

Segment Segmentation::getPrefix(const Segment &segment, Operation *last) const {
  Segment prefix{segment.name, segment.layer, {}, {}, {}};
  for (Operation *op : segment.ops) {
    prefix.ops.push_back(op);
    if (llvm::is_contained(segment.choices, op))
      prefix.choices.push_back(op);
    if (op == last)
      break;
  }
  return prefix;
}

//===------------------------------------------------------------------------------------------===//
// Functions of their own
//===------------------------------------------------------------------------------------------===//

ArrayAttr Segmentation::nameDims(Value value, SymbolicDims &dims,
                                 std::vector<std::pair<AffineExpr, std::string>> &named) const {
  SmallVector<Attribute> texts;
  auto type = cast<RankedTensorType>(value.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!type.isDynamicDim(dim))
      continue;
    AffineExpr expr = dims.getDim(value, dim);
    std::string text;
    auto sum = dyn_cast_or_null<AffineBinaryOpExpr>(expr);
    if (auto symbol = dyn_cast_or_null<AffineSymbolExpr>(expr)) {
      text = dims.getSymbols()[symbol.getPosition()];
    } else if (sum && sum.getKind() == AffineExprKind::Add && isa<AffineSymbolExpr>(sum.getLHS()) &&
               isa<AffineConstantExpr>(sum.getRHS())) {
      int64_t constant = cast<AffineConstantExpr>(sum.getRHS()).getValue();
      text = dims.getSymbols()[cast<AffineSymbolExpr>(sum.getLHS()).getPosition()] +
             (constant < 0 ? " - " : " + ") + std::to_string(std::abs(constant));
    } else {
      // A size of its own; equal expressions stay equal.
      for (auto &[known, name] : named)
        if (expr && known == expr)
          text = name;
      if (text.empty()) {
        text = "size_" + std::to_string(named.size());
        named.emplace_back(expr, text);
      }
    }
    texts.push_back(StringAttr::get(step.getContext(), text));
  }
  return ArrayAttr::get(step.getContext(), texts);
}

FailureOr<SegmentProgram> Segmentation::extract(const Segment &segment,
                                                ArrayRef<Value> results) const {
  // The ops, with what they need copied.
  DenseSet<Operation *> wanted;
  SmallVector<Operation *> pending(segment.ops.begin(), segment.ops.end());
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!wanted.insert(op).second)
      continue;
    for (Value value : getReadValues(op))
      if (Operation *source = value.getDefiningOp(); source && isCopied(source))
        pending.push_back(source);
  }
  Block &block = step.getBody().front();
  SegmentProgram program;
  SetVector<Value> read;
  SmallVector<Operation *> ordered;
  for (Operation &op : block.without_terminator())
    if (wanted.contains(&op)) {
      ordered.push_back(&op);
      for (Value value : getReadValues(&op))
        if (!value.getDefiningOp() || !wanted.contains(value.getDefiningOp()))
          read.insert(value);
    }
  for (BlockArgument argument : block.getArguments())
    if (read.contains(argument))
      program.arguments.push_back(argument);
  for (Value value : read)
    if (value.getDefiningOp())
      program.arguments.push_back(value);

  FailureOr<SymbolicDims> dims = SymbolicDims::create(step);
  if (failed(dims))
    return failure();
  MLIRContext *context = step.getContext();
  OpBuilder builder(context);
  program.module = ModuleOp::create(step.getLoc());
  auto parent = step->getParentOfType<ModuleOp>();
  if (Attribute root = parent->getAttr("moe.weight_root"))
    (*program.module)->setAttr("moe.weight_root", root);
  builder.setInsertionPointToEnd(program.module->getBody());
  SmallVector<Type> argumentTypes, resultTypes;
  for (Value value : program.arguments)
    argumentTypes.push_back(value.getType());
  for (Value value : results)
    resultTypes.push_back(value.getType());
  auto function = func::FuncOp::create(builder, step.getLoc(), "segment",
                                       builder.getFunctionType(argumentTypes, resultTypes));
  function->setAttr("moe.entry", builder.getUnitAttr());
  Block *body = function.addEntryBlock();
  IRMapping mapping;
  std::vector<std::pair<AffineExpr, std::string>> named;
  for (auto [index, value] : llvm::enumerate(program.arguments)) {
    mapping.map(value, body->getArgument(index));
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (DictionaryAttr attributes = step.getArgAttrDict(argument.getArgNumber()))
        function.setArgAttrs(index, attributes);
      continue;
    }
    function.setArgAttr(index, "moe.name", builder.getStringAttr("value" + std::to_string(index)));
    if (isa<RankedTensorType>(value.getType()))
      function.setArgAttr(index, "moe.dims", nameDims(value, *dims, named));
  }
  for (size_t index = 0; index < results.size(); ++index)
    function.setResultAttr(index, "moe.name", builder.getStringAttr("r" + std::to_string(index)));
  builder.setInsertionPointToEnd(body);
  for (Operation *op : ordered)
    builder.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Value value : results)
    returned.push_back(mapping.lookup(value));
  func::ReturnOp::create(builder, step.getLoc(), returned);
  return program;
}

FailureOr<SegmentProgram> Segmentation::extract(Operation *op) const {
  Segment segment{"", std::nullopt, {op}, {}, {}};
  SmallVector<Value> results(op->getResults());
  return extract(segment, results);
}

//===------------------------------------------------------------------------------------------===//
// Questions
//===------------------------------------------------------------------------------------------===//

SmallVector<Value> Segmentation::getComputedValues(const Segment &segment) const {
  SmallVector<Value> values;
  for (Operation *op : segment.ops) {
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
      continue;
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.getElementType().isIntOrFloat())
        values.push_back(result);
  }
  return values;
}

bool Segmentation::dependsOn(const Segment &segment, Value value, Operation *choice) const {
  DenseSet<Operation *> inside(segment.ops.begin(), segment.ops.end());
  DenseSet<Operation *> seen;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (op == choice)
      return true;
    if (!op || !inside.contains(op) || !seen.insert(op).second)
      continue;
    SetVector<Value> read = getReadValues(op);
    pending.append(read.begin(), read.end());
  }
  return false;
}
