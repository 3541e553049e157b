//===- RaiseLanguageModel.cpp - attention over past and present becomes a ragged step
//----------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "AttentionMatcher.h"

#include "moec/Conversion/ImportONNX.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_RAISELANGUAGEMODEL
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Which arguments and results play which part; from the importer's attribute.
struct Interface {
  BlockArgument tokens, positions;
  SmallVector<BlockArgument> past; // keys and values by turns
  SmallVector<int64_t> present;    // result numbers
  int64_t logits = 0;
};

/// Rewrites one function.
class StepBuilder {
public:
  StepBuilder(func::FuncOp function, int64_t blockTokens)
      : function(function), blockTokens(blockTokens), evaluator(function.getContext()),
        builder(function.getContext()) {}

  LogicalResult run();
  unsigned attentions() const { return matches.size(); }

private:
  LogicalResult readInterface();
  LogicalResult matchAttentions();
  void addArguments();
  LogicalResult buildOperands(const AttentionMatch &match);
  void rewriteAttention(size_t layer);
  LogicalResult rewriteLogits();
  void eraseDeadOps();
  LogicalResult removeOldArguments();
  std::string nameOf(BlockArgument argument);

  func::FuncOp function;
  int64_t blockTokens;
  ElementEvaluator evaluator;
  OpBuilder builder;
  Interface interface;
  struct Operands {
    Value query, key, value, sinks; // sinks may be null
  };
  SmallVector<AttentionMatch> matches; // by layer
  SmallVector<Operands> operands;      // by layer
  Value tokens, positions, tokenSequences, blockTable, logitRows;
  SmallVector<Value> caches;
};

} // namespace

std::string StepBuilder::nameOf(BlockArgument argument) {
  auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), onnxNameAttr);
  return name ? name.str() : "argument " + std::to_string(argument.getArgNumber());
}

LogicalResult StepBuilder::readInterface() {
  auto parts = function->getAttrOfType<DictionaryAttr>(onnxLanguageModelAttr);
  auto number = [&](StringRef key) {
    auto attribute = parts.getAs<IntegerAttr>(key);
    return attribute ? attribute.getInt() : -1;
  };
  auto past = parts.getAs<DenseI64ArrayAttr>("past");
  auto present = parts.getAs<DenseI64ArrayAttr>("present");
  int64_t arguments = function.getNumArguments(), results = function.getNumResults();
  auto isArgument = [&](int64_t i) { return i >= 0 && i < arguments; };
  auto isResult = [&](int64_t i) { return i >= 0 && i < results; };
  if (!isArgument(number("tokens")) || !isArgument(number("positions")) ||
      !isResult(number("logits")) || !past || !present || past.size() != present.size() ||
      past.size() % 2 || !llvm::all_of(past.asArrayRef(), isArgument) ||
      !llvm::all_of(present.asArrayRef(), isResult))
    return emitError(function.getLoc())
           << "'" << onnxLanguageModelAttr << "' does not name arguments and results";
  interface.tokens = function.getArgument(number("tokens"));
  interface.positions = function.getArgument(number("positions"));
  interface.logits = number("logits");
  for (int64_t i : past.asArrayRef())
    interface.past.push_back(function.getArgument(i));
  interface.present.assign(present.asArrayRef().begin(), present.asArrayRef().end());
  for (BlockArgument ids : {interface.tokens, interface.positions}) {
    auto type = dyn_cast<RankedTensorType>(ids.getType());
    if (!type || type.getRank() != 2 || type.getDimSize(0) != 1 ||
        !type.getElementType().isSignlessInteger())
      return emitError(function.getLoc()) << "input '" << nameOf(ids) << "' is of type "
                                          << ids.getType() << ", expected integers [1, tokens]";
  }
  return success();
}

LogicalResult StepBuilder::matchAttentions() {
  size_t layers = interface.past.size() / 2;
  SmallVector<std::optional<AttentionMatch>> found(layers);
  SmallVector<std::pair<Location, std::string>> reasons;
  auto returned = cast<func::ReturnOp>(function.front().getTerminator());
  function.walk([&](linalg::LinalgOp op) {
    if (op->getNumResults() != 1 || op.getNumReductionLoops() != 1 ||
        !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())))
      return;
    std::string why;
    std::optional<AttentionMatch> match =
        matchAttention(evaluator, op->getResult(0), interface.positions, why);
    if (!match) {
      if (!why.empty())
        reasons.push_back({op->getLoc(), why});
      return;
    }
    auto key = llvm::find(interface.past, match->keys.past);
    auto value = llvm::find(interface.past, match->values.past);
    size_t keyNumber = key - interface.past.begin(), valueNumber = value - interface.past.begin();
    if (keyNumber % 2 || valueNumber != keyNumber + 1 || keyNumber / 2 >= layers ||
        found[keyNumber / 2]) {
      reasons.push_back(
          {op->getLoc(), "its keys and values are not the past of one layer, read once"});
      return;
    }
    for (auto [concat, number] :
         {std::pair(match->keys.concat, keyNumber), std::pair(match->values.concat, valueNumber)}) {
      if (returned.getOperand(interface.present[number]) != concat.getResult()) {
        reasons.push_back(
            {op->getLoc(), "the graph does not return its keys and values as they are"});
        return;
      }
    }
    found[keyNumber / 2] = match;
  });
  if (llvm::all_of(found, [](const auto &match) { return match.has_value(); })) {
    for (auto &match : found)
      matches.push_back(*match);
    return success();
  }
  InFlightDiagnostic diagnostic = emitError(function.getLoc())
                                  << "this language model cannot be run as one: no attention that "
                                     "is understood reads ";
  bool first = true;
  for (auto [layer, match] : llvm::enumerate(found)) {
    if (match)
      continue;
    diagnostic << (first ? "'" : ", '") << nameOf(interface.past[2 * layer]) << "'";
    first = false;
  }
  for (auto &[location, why] : reasons)
    diagnostic.attachNote(location) << "an attention here is different: " << why;
  return diagnostic;
}

//===------------------------------------------------------------------------------------------===//
// The new interface
//===------------------------------------------------------------------------------------------===//

void StepBuilder::addArguments() {
  Location location = function.getLoc();
  Type i32 = builder.getI32Type();
  unsigned position = 0;
  auto add = [&](StringRef name, Type type, ArrayRef<StringRef> dims) -> Value {
    SmallVector<NamedAttribute> attributes = {
        builder.getNamedAttr(onnxNameAttr, builder.getStringAttr(name))};
    if (!dims.empty())
      attributes.push_back(builder.getNamedAttr(onnxDimensionsAttr, builder.getStrArrayAttr(dims)));
    (void)function.insertArgument(position, type, builder.getDictionaryAttr(attributes), location);
    return function.getArgument(position++);
  };
  int64_t dynamic = ShapedType::kDynamic;
  auto vector = RankedTensorType::get({dynamic}, i32);
  auto matrix = RankedTensorType::get({dynamic, dynamic}, i32);
  tokens = add("tokens", vector, {"tokens"});
  positions = add("positions", vector, {"tokens"});
  tokenSequences = add("token_sequences", vector, {"tokens"});
  add("sequence_offsets", vector, {"sequences + 1"});
  blockTable = add("block_table", matrix, {"sequences", "blocks"});
  logitRows = add("logit_rows", vector, {"rows"});
  for (auto [layer, match] : llvm::enumerate(matches)) {
    Type element = getElementTypeOrSelf(match.keys.concat.getType());
    auto type = moe::CacheType::get(function.getContext(), match.keys.heads, match.keys.channels,
                                    match.values.channels, blockTokens, element,
                                    moe::CacheForm::split);
    caches.push_back(add("kv." + std::to_string(layer), type, {}));
  }
  // The graph goes on reading [1, tokens] integers.
  builder.setInsertionPointToStart(&function.front());
  for (auto [old, ids] :
       {std::pair(interface.tokens, tokens), std::pair(interface.positions, positions)}) {
    Type element = getElementTypeOrSelf(old.getType());
    if (!element.isInteger(32))
      ids = arith::ExtSIOp::create(builder, old.getLoc(), vector.clone(element), ids);
    SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(1),
                                       tensor::getMixedSize(builder, old.getLoc(), ids, 0)};
    Value wide = tensor::ExpandShapeOp::create(builder, old.getLoc(),
                                               RankedTensorType::get({1, dynamic}, element), ids,
                                               ArrayRef<ReassociationIndices>{{0, 1}}, sizes);
    old.replaceAllUsesWith(wide);
  }
}

/// Builds what the ops take. Positions in formulas speak of the old arguments, so this comes before
/// they are replaced.
LogicalResult StepBuilder::buildOperands(const AttentionMatch &match) {
  builder.setInsertionPointAfterValue(match.result);
  Location location = match.result.getLoc();
  auto build = [&](const Expression *expression, ArrayRef<AffineExpr> variables) {
    return materialize(evaluator, builder, location, expression, variables);
  };
  Operands built;
  const CacheRead &k = match.keys, &v = match.values;
  built.query = build(match.query, {match.token, match.head, match.depth});
  auto buildRows = [&](const CacheRead &cache) -> Value {
    if (cache.head)
      return build(cache.rows, {cache.token, cache.head, cache.channel});
    Value rows = build(cache.rows, {cache.token, cache.channel});
    if (!rows)
      return rows;
    auto type = cast<RankedTensorType>(rows.getType());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, location, rows);
    sizes.insert(sizes.begin() + 1, builder.getIndexAttr(1));
    return tensor::ExpandShapeOp::create(
        builder, location,
        RankedTensorType::get({type.getDimSize(0), 1, type.getDimSize(1)}, type.getElementType()),
        rows, ArrayRef<ReassociationIndices>{{0}, {1, 2}}, sizes);
  };
  built.key = buildRows(k);
  built.value = buildRows(v);
  built.sinks = match.sinks ? build(match.sinks, match.head) : Value();
  StringRef missing = !built.query                  ? "queries"
                      : !built.key                  ? "keys"
                      : !built.value                ? "values"
                      : match.sinks && !built.sinks ? "sinks"
                                                    : "";
  if (!missing.empty())
    return emitError(location) << "this attention cannot be run over a cache: its " << missing
                               << " lie in an order that is not understood";
  operands.push_back(built);
  return success();
}

void StepBuilder::rewriteAttention(size_t layer) {
  const AttentionMatch &match = matches[layer];
  const CacheRead &v = match.values;
  auto [query, key, value, sinks] = operands[layer];
  Location location = match.result.getLoc();
  // Behind the last of the operands, and before the first use of the result.
  builder.setInsertionPointAfterValue(match.result);
  for (Value operand : {query, key, value, sinks})
    if (operand && operand.getDefiningOp() &&
        builder.getInsertionPoint() != builder.getInsertionBlock()->end() &&
        !operand.getDefiningOp()->isBeforeInBlock(&*builder.getInsertionPoint()))
      builder.setInsertionPointAfterValue(operand);
  moe::KVAppendOp::create(builder, location, key, value, caches[layer], positions, tokenSequences,
                          blockTable, /*rotary=*/moe::RotaryAttr());
  auto type = cast<RankedTensorType>(match.result.getType());
  auto rowsType = RankedTensorType::get({ShapedType::kDynamic, match.heads, v.channels},
                                        getElementTypeOrSelf(query.getType()));
  Value rows = moe::AttentionOp::create(
      builder, location, rowsType, query, caches[layer], positions, tokenSequences, blockTable,
      sinks, /*indices=*/Value(), builder.getF64FloatAttr(match.scale),
      builder.getI64IntegerAttr(match.window), builder.getF64FloatAttr(match.softcap),
      /*rotary=*/moe::RotaryAttr(), /*strategy=*/StringAttr());
  rows = convertFloats(builder, location, rows, type.getElementType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, location, rows);
  std::swap(sizes[0], sizes[1]);
  Value init = tensor::EmptyOp::create(builder, location, sizes, type.getElementType());
  Value back =
      linalg::TransposeOp::create(builder, location, rows, init, ArrayRef<int64_t>{1, 0, 2})
          ->getResult(0);
  Value result = match.result;
  result.replaceAllUsesWith(back);
}

//===------------------------------------------------------------------------------------------===//
// Results
//===------------------------------------------------------------------------------------------===//

/// Moves the choice of rows above what works on rows alone, up to the last norm: it then works on
/// wanted rows only.
static void hoistRowChoice(moe::GatherRowsOp gather) {
  while (true) {
    Operation *producer = gather.getInput().getDefiningOp();
    if (!producer || !isa<moe::LinearOp, moe::RMSNormOp, moe::LayerNormOp>(producer) ||
        !producer->hasOneUse())
      return;
    auto linear = dyn_cast<moe::LinearOp>(producer);
    if (linear && linear.getResidual())
      return;
    OpBuilder builder(gather);
    Value input = producer->getOperand(0);
    auto inputType = cast<RankedTensorType>(input.getType());
    if (inputType.getRank() != 2)
      return;
    int64_t rows = gather.getType().getDimSize(0);
    auto above = moe::GatherRowsOp::create(
        builder, gather.getLoc(),
        RankedTensorType::get({rows, inputType.getDimSize(1)}, inputType.getElementType()), input,
        gather.getRows());
    Operation *moved = builder.clone(*producer);
    moved->setOperand(0, above);
    moved->getResult(0).setType(RankedTensorType::get({rows, gather.getType().getDimSize(1)},
                                                      gather.getType().getElementType()));
    gather.replaceAllUsesWith(moved->getResult(0));
    gather.erase();
    producer->erase();
    gather = above;
  }
}

LogicalResult StepBuilder::rewriteLogits() {
  auto returned = cast<func::ReturnOp>(function.front().getTerminator());
  Location location = returned.getLoc();
  Value logits = returned.getOperand(interface.logits);
  builder.setInsertionPoint(returned);
  // What was computed from old arguments is evaluated anew.
  ElementEvaluator fresh(function.getContext());
  SmallVector<AffineExpr> variables = fresh.variablesFor(logits);
  if (variables.size() != 3 || !isa<AffineDimExpr>(variables[1]) ||
      !isa<AffineDimExpr>(variables[2]))
    return emitError(function.getLoc())
           << "the logits are of type " << logits.getType() << ", expected [1, tokens, vocabulary]";
  Value rows = materialize(fresh, builder, location, fresh.evaluate(logits, variables),
                           {variables[1], variables[2]});
  if (!rows)
    rows = materialize(fresh, builder, location, fresh.makeElement(logits, variables),
                       {variables[1], variables[2]});
  auto type = rows ? cast<RankedTensorType>(rows.getType()) : RankedTensorType();
  if (!rows || type.isDynamicDim(1))
    return emitError(function.getLoc())
           << "the logits are of type " << logits.getType() << ", expected [1, tokens, vocabulary]";
  auto gather = moe::GatherRowsOp::create(
      builder, location,
      RankedTensorType::get({ShapedType::kDynamic, type.getDimSize(1)}, type.getElementType()),
      rows, logitRows);
  Value result = gather;
  result = convertFloats(builder, location, result, builder.getF32Type());
  func::ReturnOp::create(builder, location, result);
  returned.erase();
  eraseDeadOps();
  hoistRowChoice(gather);
  return success();
}

void StepBuilder::eraseDeadOps() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

LogicalResult StepBuilder::removeOldArguments() {
  eraseDeadOps();
  llvm::BitVector old(function.getNumArguments());
  old.set(interface.tokens.getArgNumber());
  old.set(interface.positions.getArgNumber());
  LogicalResult result = success();
  for (BlockArgument past : interface.past) {
    old.set(past.getArgNumber());
    if (past.use_empty())
      continue;
    InFlightDiagnostic diagnostic = emitError(function.getLoc())
                                    << "this language model cannot be run as one: '" << nameOf(past)
                                    << "' is read by something else than an attention";
    for (Operation *user : past.getUsers())
      diagnostic.attachNote(user->getLoc()) << "here, by '" << user->getName() << "'";
    result = diagnostic;
  }
  if (failed(result))
    return failure();
  (void)function.eraseArguments(old);
  return success();
}

LogicalResult StepBuilder::run() {
  if (failed(readInterface()) || failed(matchAttentions()))
    return failure();
  for (const AttentionMatch &match : matches)
    if (failed(buildOperands(match)))
      return failure();
  addArguments();
  for (size_t layer = 0; layer < matches.size(); ++layer)
    rewriteAttention(layer);
  if (failed(rewriteLogits()) || failed(removeOldArguments()))
    return failure();
  auto returned = cast<func::ReturnOp>(function.front().getTerminator());
  function.setResAttrsAttr(builder.getArrayAttr(builder.getDictionaryAttr(
      builder.getNamedAttr(onnxNameAttr, builder.getStringAttr("logits")))));
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), returned.getOperandTypes()));
  function->removeAttr(onnxLanguageModelAttr);
  function.setName("step");
  return success();
}

namespace {
struct RaiseLanguageModelPass : moec::impl::RaiseLanguageModelBase<RaiseLanguageModelPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(module.getContext());
    NamedAttrList language(module->getAttrOfType<DictionaryAttr>("moe.language_model"));
    int64_t blockTokens = 16;
    if (auto given = dyn_cast_or_null<IntegerAttr>(language.get("block_tokens")))
      blockTokens = given.getInt();
    if (blockTokens < 1 || blockTokens > 4096) {
      emitError(module.getLoc()) << "the tokens of a cache block have to be 1 to 4096, not "
                                 << blockTokens;
      return signalPassFailure();
    }
    for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!function->hasAttr(onnxLanguageModelAttr))
        continue;
      StepBuilder step(function, blockTokens);
      if (failed(step.run()))
        return signalPassFailure();
      raised += step.attentions();
      language.set("block_tokens", builder.getI64IntegerAttr(blockTokens));
      module->setAttr("moe.language_model", language.getDictionary(module.getContext()));
    }
    // Nothing looks at the values of weights any more.
    module.walk([](moe::WeightOp weight) { weight->removeAttr(onnxConstantValueAttr); });
  }
};
} // namespace
