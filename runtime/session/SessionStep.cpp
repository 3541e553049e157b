// One ragged step of a session. SessionChoice.cpp chooses tokens after it.
#include "runtime/base/CheckedMath.h"
#include "runtime/session/SessionState.h"

#include <algorithm>
#include <bit>

namespace moert {

SessionState::SessionState(std::shared_ptr<const Model> model, const CompiledProgram &program,
                           const SessionOptions &options)
    : model(model), language(model->bundle().manifest().language_model()),
      runner(model->loaded().runner(program)),
      store(std::make_shared<StateStore>(program.source(), options.maximumStateBytes,
                                         model->device())),
      maximumTokens(language.maximum_tokens()) {
  if (options.maximumTokens != 0)
    maximumTokens =
        maximumTokens == 0 ? options.maximumTokens : std::min(maximumTokens, options.maximumTokens);
  auto index = [&](const std::string &name) {
    return name.empty() ? -1 : program.inputIndex(name);
  };
  tokensInput = index(language.tokens());
  positionsInput = index(language.positions());
  tokenSequencesInput = index(language.token_sequences());
  sequenceOffsetsInput = index(language.sequence_offsets());
  blockTableInput = index(language.block_table());
  stateSlotsInput = index(language.state_slots());
  logitRowsInput = index(language.logit_rows());
  logitsOutput = program.outputIndex(language.logits());
  shapes.resize(static_cast<std::size_t>(program.source().inputs_size()));
  runner.setProfiling(options.profile, options.timeline);
  prepareSampler(options);
}

Result<SequenceContent *> SessionState::find(Sequence sequence) {
  auto place = sequences.find(sequence.id);
  if (place == sequences.end())
    return Status(ErrorCode::InvalidArgument,
                  "the session has no sequence " + std::to_string(sequence.id), {},
                  "it was never created here, or was released");
  return &place->second;
}

void SessionState::retain(const SequenceContent &content) {
  for (std::uint32_t block : content.blocks)
    store->retain(StateStore::Blocks, block);
  if (content.slot >= 0)
    store->retain(StateStore::Slots, static_cast<std::uint32_t>(content.slot));
}

void SessionState::release(const SequenceContent &content) {
  for (std::uint32_t block : content.blocks)
    store->release(StateStore::Blocks, block);
  if (content.slot >= 0)
    store->release(StateStore::Slots, static_cast<std::uint32_t>(content.slot));
}

std::uint64_t SessionState::blocksFor(std::uint64_t tokens) const {
  return store->has(StateStore::Blocks)
             ? (tokens + language.block_tokens() - 1) / language.block_tokens()
             : 0;
}

Status SessionState::advance(std::span<const StepPart> parts) {
  Sizes sizes;
  logitRowsThere = 0;
  MOERT_RETURN_IF_ERROR(check(parts, sizes));
  MOERT_RETURN_IF_ERROR(reserveState(parts));
  Status status = takeBlocks(parts);
  if (status.isOk())
    status = prepareRunner(parts, sizes);
  if (status.isOk()) {
    fillInputs(parts, sizes);
    status = runner.start();
  }
  if (!status.isOk()) {
    giveBackBlocks(parts);
    return status;
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    members[i]->length += parts[i].tokens.size();
  logitRowsThere = static_cast<std::size_t>(sizes.rows);
  return {};
}

Result<Logits> SessionState::logits() {
  MOERT_RETURN_IF_ERROR(runner.fetch());
  auto output = static_cast<std::size_t>(logitsOutput);
  return Logits{reinterpret_cast<const float *>(runner.output(output).data()), logitRowsThere,
                language.vocabulary()};
}

Status SessionState::check(std::span<const StepPart> parts, Sizes &sizes) {
  if (parts.empty())
    return {ErrorCode::InvalidArgument, "a step needs at least one sequence"};
  ++steps;
  members.clear();
  auto vocabulary = static_cast<std::int64_t>(language.vocabulary());
  std::uint64_t longest = maximumTokens == 0 ? INT32_MAX : maximumTokens;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StepPart &part = parts[i];
    auto complain = [&](std::string message, std::string hint = {}) {
      return Status(ErrorCode::InvalidArgument, std::move(message),
                    "part " + std::to_string(i) + " of the step", std::move(hint));
    };
    Result<SequenceContent *> member = find(part.sequence);
    if (!member.isOk())
      return complain(member.status().message(), member.status().hint());
    if (std::exchange((*member)->step, steps) == steps)
      return complain("a sequence takes part in a step only once");
    if (part.tokens.empty())
      return complain("a sequence takes part with at least one token");
    for (std::size_t k = 0; k < part.tokens.size(); ++k)
      if (part.tokens[k] < 0 || part.tokens[k] >= vocabulary)
        return complain("token " + std::to_string(k) + " is " + std::to_string(part.tokens[k]) +
                        "; the vocabulary has 0 to " + std::to_string(vocabulary - 1));
    if (!rangeFits((*member)->length, part.tokens.size(), longest))
      return complain("the sequence would have " +
                          std::to_string((*member)->length + part.tokens.size()) +
                          " tokens; the longest context is " + std::to_string(longest),
                      "shorten the text");
    sizes.tokens += part.tokens.size();
    sizes.rows += part.logits == LogitRows::All    ? part.tokens.size()
                  : part.logits == LogitRows::Last ? 1
                                                   : 0;
    sizes.blocksPerSequence =
        std::max(sizes.blocksPerSequence, blocksFor((*member)->length + part.tokens.size()));
    members.push_back(*member);
  }
  // A table of a power of two: its width, and with it all that follows from shapes, changes rarely.
  if (sizes.blocksPerSequence != 0)
    sizes.blocksPerSequence = std::bit_ceil(sizes.blocksPerSequence);
  if (sizes.tokens > INT32_MAX)
    return {ErrorCode::InvalidArgument,
            "a step of " + std::to_string(sizes.tokens) + " tokens is too large"};
  return {};
}

// Whether a sequence's last block, which holds some tokens already and gets more, must be copied
// first.
static bool mustCopyLastBlock(const StateStore &store, const SequenceContent &content,
                              std::uint32_t blockTokens) {
  return !content.blocks.empty() && content.length < content.blocks.size() * blockTokens &&
         store.isShared(StateStore::Blocks, content.blocks.back());
}

// After this takeBlocks fails only where the device does.
Status SessionState::reserveState(std::span<const StepPart> parts) {
  std::uint64_t blocks = 0, slots = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SequenceContent &member = *members[i];
    blocks += blocksFor(member.length + parts[i].tokens.size()) - member.blocks.size();
    blocks += mustCopyLastBlock(*store, member, language.block_tokens());
    if (store->has(StateStore::Slots))
      slots += member.slot < 0 ||
               store->isShared(StateStore::Slots, static_cast<std::uint32_t>(member.slot));
  }
  MOERT_RETURN_IF_ERROR(store->reserve(StateStore::Blocks, blocks));
  return store->reserve(StateStore::Slots, slots);
}

Status SessionState::takeBlocks(std::span<const StepPart> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    SequenceContent &member = *members[i];
    if (mustCopyLastBlock(*store, member, language.block_tokens())) {
      MOERT_ASSIGN_OR_RETURN(member.blocks.back(),
                             store->makePrivate(StateStore::Blocks, member.blocks.back()));
    }
    std::uint64_t needed = blocksFor(member.length + parts[i].tokens.size());
    while (member.blocks.size() < needed) {
      MOERT_ASSIGN_OR_RETURN(std::uint32_t block, store->allocate(StateStore::Blocks));
      member.blocks.push_back(block);
    }
    if (!store->has(StateStore::Slots))
      continue;
    if (member.slot < 0) {
      MOERT_ASSIGN_OR_RETURN(member.slot, store->allocate(StateStore::Slots));
    } else if (auto slot = static_cast<std::uint32_t>(member.slot);
               store->isShared(StateStore::Slots, slot)) {
      MOERT_ASSIGN_OR_RETURN(member.slot, store->makePrivate(StateStore::Slots, slot));
    }
  }
  return {};
}

// A private copy of what was shared is as good as the original and stays.
void SessionState::giveBackBlocks(std::span<const StepPart> parts) {
  for (SequenceContent *member : members)
    while (member->blocks.size() > blocksFor(member->length)) {
      store->release(StateStore::Blocks, member->blocks.back());
      member->blocks.pop_back();
    }
}

Status SessionState::prepareRunner(std::span<const StepPart> parts, const Sizes &sizes) {
  auto sequences = static_cast<std::int64_t>(parts.size());
  auto tokens = static_cast<std::int64_t>(sizes.tokens);
  auto set = [&](int index, std::initializer_list<std::int64_t> shape) {
    if (index >= 0)
      shapes[static_cast<std::size_t>(index)].assign(shape);
  };
  set(tokensInput, {tokens});
  set(positionsInput, {tokens});
  set(tokenSequencesInput, {tokens});
  set(sequenceOffsetsInput, {sequences + 1});
  set(blockTableInput, {sequences, static_cast<std::int64_t>(sizes.blocksPerSequence)});
  set(stateSlotsInput, {sequences});
  set(logitRowsInput, {static_cast<std::int64_t>(sizes.rows)});
  MOERT_RETURN_IF_ERROR(runner.prepare(shapes, store->spans()));
  std::uint64_t logitBytes = sizes.rows * language.vocabulary() * sizeof(float);
  if (runner.output(static_cast<std::size_t>(logitsOutput)).size() != logitBytes)
    return {ErrorCode::InvalidData, "the entry's logits are not [rows, vocabulary]",
            model->bundle().path()};
  return {};
}

std::int32_t *SessionState::input(int index) {
  return index < 0 ? nullptr
                   : reinterpret_cast<std::int32_t *>(
                         runner.input(static_cast<std::size_t>(index)).data());
}

void SessionState::fillInputs(std::span<const StepPart> parts, const Sizes &sizes) {
  std::int32_t *tokens = input(tokensInput), *positions = input(positionsInput);
  std::int32_t *tokenSequences = input(tokenSequencesInput);
  std::int32_t *offsets = input(sequenceOffsetsInput), *table = input(blockTableInput);
  std::int32_t *slots = input(stateSlotsInput), *rows = input(logitRowsInput);
  std::int32_t token = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StepPart &part = parts[i];
    const SequenceContent &member = *members[i];
    auto sequence = static_cast<std::int32_t>(i);
    if (offsets)
      offsets[i] = token;
    if (slots)
      slots[i] = static_cast<std::int32_t>(member.slot);
    for (std::uint64_t b = 0; table && b < sizes.blocksPerSequence; ++b)
      *table++ = b < member.blocks.size() ? static_cast<std::int32_t>(member.blocks[b]) : -1;
    for (std::size_t k = 0; k < part.tokens.size(); ++k, ++token) {
      tokens[token] = part.tokens[k];
      if (positions)
        positions[token] = static_cast<std::int32_t>(member.length + k);
      if (tokenSequences)
        tokenSequences[token] = sequence;
      if (part.logits == LogitRows::All)
        *rows++ = token;
    }
    if (part.logits == LogitRows::Last)
      *rows++ = token - 1;
  }
  if (offsets)
    offsets[parts.size()] = token;
}

} // namespace moert
