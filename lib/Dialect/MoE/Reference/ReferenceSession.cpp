#include "moec/Dialect/MoE/Reference/ReferenceSession.h"

#include "moec/Dialect/MoE/Reference/Sampling.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::moec::moe;

static constexpr llvm::StringLiteral nameAttr = "moe.name", entryAttr = "moe.entry",
                                     imageEmbeddings = "image_embeddings";

//===------------------------------------------------------------------------------------------===//
// Opening
//===------------------------------------------------------------------------------------------===//

static FailureOr<func::FuncOp> findEntry(ModuleOp module, StringRef name) {
  if (!name.empty()) {
    if (auto function = SymbolTable(module).lookup<func::FuncOp>(name))
      return function;
    return module.emitError() << "the module has no function '" << name << "'";
  }
  // The entries that choose tokens and that encode images are not the model.
  StringAttr sampler, encoder;
  if (auto language = module->getAttrOfType<DictionaryAttr>("moe.language_model")) {
    sampler = language.getAs<StringAttr>("sampler");
    if (auto vision = language.getAs<DictionaryAttr>("vision"))
      encoder = vision.getAs<StringAttr>("entry");
  }
  SmallVector<func::FuncOp> entries;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(entryAttr) && function.getNameAttr() != sampler &&
        function.getNameAttr() != encoder)
      entries.push_back(function);
  if (entries.size() != 1)
    return module.emitError() << "expected one function with the attribute '" << entryAttr
                              << "', found " << entries.size() << "; name the entry";
  return entries.front();
}

FailureOr<std::unique_ptr<ReferenceSession>> ReferenceSession::create(ModuleOp module,
                                                                      WeightSource *weights,
                                                                      StringRef entryName,
                                                                      StringRef loadEntry) {
  FailureOr<func::FuncOp> entry = findEntry(module, entryName);
  if (failed(entry))
    return failure();
  std::unique_ptr<ReferenceSession> session(new ReferenceSession(module, weights, *entry));
  if (failed(session->findArguments()) || failed(session->interpreter.checkSupported(*entry)) ||
      failed(session->loadGlobals(loadEntry)))
    return failure();
  return session;
}

LogicalResult ReferenceSession::findArguments() {
  static constexpr llvm::StringLiteral known[] = {
      "tokens", "positions", "token_sequences", "sequence_offsets", "block_table", "state_slots",
      "logit_rows", "image_rows"};
  for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes())) {
    if (auto cache = dyn_cast<CacheType>(type)) {
      // Caches of compressed entries have smaller blocks, for as many tokens.
      blockTokens = std::max(blockTokens, cache.getBlock());
      caches.push_back(*ReferenceCache::create(cache, 0));
      argumentNames.push_back("");
      continue;
    }
    if (auto state = dyn_cast<StateType>(type)) {
      states.push_back(*ReferenceState::create(state, 0));
      argumentNames.push_back("");
      continue;
    }
    auto name = entry.getArgAttrOfType<StringAttr>(i, nameAttr);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (name && name.getValue() == imageEmbeddings && tensor && tensor.getRank() == 2 &&
        !tensor.isDynamicDim(1)) {
      argumentNames.push_back(name.str());
      continue;
    }
    int64_t rank = name && name.getValue() == "block_table" ? 2 : 1;
    if (!name || !llvm::is_contained(known, name.getValue()) || !tensor ||
        !tensor.getElementType().isInteger(32) || tensor.getRank() != rank)
      return entry.emitError() << "argument " << i << " of type " << type
                               << " is none of a language model's step: expected an i32 tensor "
                                  "whose '"
                               << nameAttr << "' is one of tokens, positions, token_sequences, "
                               << "sequence_offsets, block_table, state_slots, logit_rows and "
                                  "image_rows, or image_embeddings, a cache or a state";
    argumentNames.push_back(name.str());
  }
  if (entry.getNumResults() == 0)
    return entry.emitError() << "expected the logits as first result";
  auto logits = dyn_cast<RankedTensorType>(entry.getResultTypes().front());
  if (!logits || logits.getRank() != 2 || !isa<FloatType>(logits.getElementType()))
    return entry.emitError() << "expected logits [rows, vocabulary] as first result, found "
                             << entry.getResultTypes().front();
  return success();
}

LogicalResult ReferenceSession::loadGlobals(StringRef loadEntry) {
  ModuleOp module = interpreter.getModule();
  if (module.getOps<GlobalOp>().empty())
    return success();
  return interpreter.call(loadEntry, {});
}

//===------------------------------------------------------------------------------------------===//
// Steps
//===------------------------------------------------------------------------------------------===//

int64_t ReferenceSession::createSequence() {
  sequences.emplace_back();
  return static_cast<int64_t>(sequences.size()) - 1;
}

/// Gives a sequence the blocks for `length` tokens.
LogicalResult ReferenceSession::reserve(Sequence &sequence, int64_t length) {
  auto needed = static_cast<size_t>(llvm::divideCeil(length, blockTokens));
  while (sequence.blocks.size() < needed) {
    if (freeBlocks.empty()) {
      int64_t grown = std::max<int64_t>(8, 2 * poolBlocks);
      for (std::shared_ptr<ReferenceCache> &cache : caches)
        if (failed(cache->grow(grown)))
          return entry.emitError()
                 << "while interpreting: a cache of " << grown << " blocks is too large";
      // The last block is handed out first: a program that takes a block's place in the table for
      // its number goes wrong.
      for (int64_t block = poolBlocks; block < grown; ++block)
        freeBlocks.push_back(static_cast<int32_t>(block));
      poolBlocks = grown;
    }
    sequence.blocks.push_back(freeBlocks.pop_back_val());
  }
  return success();
}

LogicalResult ReferenceSession::reserveSlot(Sequence &sequence) {
  if (states.empty() || sequence.slot >= 0)
    return success();
  if (freeSlots.empty()) {
    int64_t count = states.front()->slots.getDimSize(0), grown = std::max<int64_t>(4, 2 * count);
    for (std::shared_ptr<ReferenceState> &state : states)
      if (failed(state->grow(grown)))
        return entry.emitError()
               << "while interpreting: a state of " << grown << " slots is too large";
    // The last one first, as with blocks.
    for (int64_t slot = count; slot < grown; ++slot)
      freeSlots.push_back(static_cast<int32_t>(slot));
  }
  sequence.slot = freeSlots.pop_back_val();
  return success();
}

LogicalResult ReferenceSession::truncate(int64_t sequence, int64_t length) {
  if (!states.empty() && length != 0 && length != sequences[sequence].length)
    return entry.emitError() << "while interpreting: a sequence with a state cannot go back from "
                             << sequences[sequence].length << " tokens to " << length;
  sequences[sequence].length = length;
  return success();
}

FailureOr<ReferenceValue> ReferenceSession::makeArgument(StringRef name, ArrayRef<Part> parts) {
  std::vector<int32_t> values;
  auto count = static_cast<int64_t>(parts.size());
  SmallVector<int64_t> shape;
  if (name == "block_table") {
    size_t width = 1;
    for (const Part &part : parts)
      width = std::max(width, sequences[part.sequence].blocks.size());
    values.assign(count * width, -1);
    for (auto [i, part] : llvm::enumerate(parts))
      llvm::copy(sequences[part.sequence].blocks, values.begin() + i * width);
    shape = {count, static_cast<int64_t>(width)};
  } else {
    int32_t first = 0;
    for (auto [i, part] : llvm::enumerate(parts)) {
      auto tokens = static_cast<int32_t>(part.tokens.size());
      for (int32_t t = 0; t < tokens; ++t) {
        if (name == "tokens")
          values.push_back(part.tokens[t]);
        else if (name == "image_rows")
          values.push_back(-1); // a session of text
        else if (name == "positions")
          values.push_back(static_cast<int32_t>(sequences[part.sequence].length) + t);
        else if (name == "token_sequences")
          values.push_back(static_cast<int32_t>(i));
        else if (name == "logit_rows" && (part.logits == LogitRows::All ||
                                          (part.logits == LogitRows::Last && t + 1 == tokens)))
          values.push_back(first + t);
      }
      if (name == "sequence_offsets")
        values.push_back(first);
      if (name == "state_slots")
        values.push_back(sequences[part.sequence].slot);
      first += tokens;
    }
    if (name == "sequence_offsets")
      values.push_back(first);
    shape = {static_cast<int64_t>(values.size())};
  }
  return ReferenceValue(*ReferenceTensor::createFrom(IntegerType::get(entry.getContext(), 32),
                                                     shape, ArrayRef<int32_t>(values)));
}

FailureOr<SmallVector<ReferenceValue>> ReferenceSession::makeArguments(ArrayRef<Part> parts) {
  for (const Part &part : parts) {
    Sequence &sequence = sequences[part.sequence];
    if (failed(reserve(sequence, sequence.length + static_cast<int64_t>(part.tokens.size()))) ||
        failed(reserveSlot(sequence)))
      return failure();
  }
  SmallVector<ReferenceValue> arguments;
  size_t nextCache = 0, nextState = 0;
  for (auto [i, name] : llvm::enumerate(argumentNames)) {
    if (name.empty() && isa<StateType>(entry.getArgumentTypes()[i])) {
      arguments.push_back(states[nextState++]);
      continue;
    }
    if (name.empty()) {
      arguments.push_back(caches[nextCache++]);
      continue;
    }
    if (name == imageEmbeddings) {
      auto type = cast<RankedTensorType>(entry.getArgumentTypes()[i]);
      std::vector<double> nothing(type.getDimSize(1));
      arguments.push_back(ReferenceValue(*ReferenceTensor::createFrom(
          type.getElementType(), {1, type.getDimSize(1)}, ArrayRef<double>(nothing))));
      continue;
    }
    FailureOr<ReferenceValue> argument = makeArgument(name, parts);
    if (failed(argument))
      return failure();
    arguments.push_back(std::move(*argument));
  }
  return arguments;
}

void ReferenceSession::advance(ArrayRef<Part> parts) {
  for (const Part &part : parts)
    sequences[part.sequence].length += static_cast<int64_t>(part.tokens.size());
}

FailureOr<ReferenceTensor> ReferenceSession::step(ArrayRef<Part> parts) {
  FailureOr<SmallVector<ReferenceValue>> arguments = makeArguments(parts);
  if (failed(arguments))
    return failure();
  FailureOr<SmallVector<ReferenceValue>> results = interpreter.call(entry.getName(), *arguments);
  if (failed(results))
    return failure();
  advance(parts);
  return results->front().getTensor();
}

FailureOr<ReferenceTensor> ReferenceSession::computeLogits(ArrayRef<int32_t> tokens,
                                                           int64_t chunk) {
  int64_t sequence = createSequence();
  auto count = static_cast<int64_t>(tokens.size());
  if (chunk <= 0)
    chunk = std::max<int64_t>(count, 1);
  std::vector<double> rows;
  int64_t vocabulary = 0;
  for (int64_t first = 0; first < count; first += chunk) {
    FailureOr<ReferenceTensor> logits =
        step({{sequence, tokens.slice(first, std::min(chunk, count - first)), LogitRows::All}});
    if (failed(logits))
      return failure();
    vocabulary = logits->getDimSize(1);
    std::vector<float> part = logits->getFloats();
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return ReferenceTensor::createFrom(Float32Type::get(entry.getContext()), {count, vocabulary},
                                     ArrayRef<double>(rows));
}

FailureOr<std::vector<int32_t>> ReferenceSession::generateGreedily(ArrayRef<int32_t> prompt,
                                                                   int64_t count) {
  int64_t sequence = createSequence();
  std::vector<int32_t> generated, next(prompt.begin(), prompt.end());
  while (static_cast<int64_t>(generated.size()) < count) {
    FailureOr<ReferenceTensor> logits = step({{sequence, next, LogitRows::Last}});
    if (failed(logits))
      return failure();
    std::vector<float> row = logits->getFloats();
    next = {sampleToken(row, {})};
    generated.push_back(next.front());
  }
  return generated;
}
