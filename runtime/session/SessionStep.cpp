// One ragged step of a session. SessionChoice.cpp chooses tokens after it.
#include "runtime/base/CheckedMath.h"
#include "runtime/session/SessionState.h"

#include <algorithm>
#include <bit>
#include <cstring>

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
  imageRowsInput = index(language.vision().image_rows());
  imageEmbeddingsInput = index(language.vision().image_embeddings());
  if (imageEmbeddingsInput >= 0) {
    const moec::bundle::Tensor &input = program.source().inputs(imageEmbeddingsInput);
    imageType = elementType(input.type());
    imageFeatures = input.shape(1).steps(0).value(); // validation saw a constant
    std::int64_t row[] = {imageFeatures};
    imageRowBytes = tensorBytes(imageType, row).value_or(0);
  }
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

// Calls visit(k, image, row) for each of `count` new tokens that is an image's: token `k` of the
// new ones is token `row` of the image. Stops at an error.
template <typename Visit>
static Status forEachImageToken(const SequenceContent &content, std::size_t count, Visit visit) {
  std::uint64_t end = content.length + count;
  for (const PlacedImage &placed : content.images)
    for (std::uint64_t at = std::max(placed.position, content.length);
         at < std::min(placed.end(), end); ++at)
      MOERT_RETURN_IF_ERROR(visit(static_cast<std::size_t>(at - content.length), placed,
                                  static_cast<std::size_t>(at - placed.position)));
  return {};
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
    Status images = forEachImageToken(
        **member, part.tokens.size(),
        [&](std::size_t k, const PlacedImage &, std::size_t) -> Status {
          ++sizes.imageRows;
          if (static_cast<std::uint32_t>(part.tokens[k]) == language.vision().placeholder())
            return {};
          return complain("token " + std::to_string(k) + " is " + std::to_string(part.tokens[k]) +
                              " where an image was placed",
                          "tokens of images are placeholders, " +
                              std::to_string(language.vision().placeholder()));
        });
    MOERT_RETURN_IF_ERROR(std::move(images));
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
  set(imageRowsInput, {tokens});
  // At least one row, which nobody reads where there is no image.
  set(imageEmbeddingsInput,
      {std::max<std::int64_t>(static_cast<std::int64_t>(sizes.imageRows), 1), imageFeatures});
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
  if (imageRowsInput >= 0)
    fillImages(parts);
}

void SessionState::fillImages(std::span<const StepPart> parts) {
  std::span<std::byte> embeddings = runner.input(static_cast<std::size_t>(imageEmbeddingsInput));
  std::int32_t *rows = input(imageRowsInput), next = 0;
  std::fill_n(embeddings.begin(), imageRowBytes, std::byte(0));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::fill_n(rows, parts[i].tokens.size(), -1);
    (void)forEachImageToken(
        *members[i], parts[i].tokens.size(),
        [&](std::size_t k, const PlacedImage &placed, std::size_t row) -> Status {
          std::memcpy(embeddings.data() + static_cast<std::size_t>(next) * imageRowBytes,
                      placed.image->data.data() + row * imageRowBytes, imageRowBytes);
          rows[k] = next++;
          return {};
        });
    rows += parts[i].tokens.size();
  }
}

Status SessionState::placeImage(SequenceContent &content, std::uint64_t position,
                                SharedImage image) {
  auto complain = [&](std::string message, std::string hint = {}) {
    return Status(ErrorCode::InvalidArgument, std::move(message),
                  "an image at token " + std::to_string(position), std::move(hint));
  };
  MOERT_RETURN_IF_ERROR(requireVision(model->bundle()).status());
  std::uint64_t bytes;
  if (!image || image->type != imageType ||
      !checkedMultiply<std::uint64_t>(image->tokens, imageRowBytes, bytes) ||
      image->data.size() != bytes)
    return complain("its embeddings are not this model's", "encode it with the session's model");
  std::uint64_t longest = maximumTokens == 0 ? INT32_MAX : maximumTokens;
  if (!rangeFits(position, image->tokens, longest))
    return complain("it has " + std::to_string(image->tokens) + " tokens; the longest context is " +
                        std::to_string(longest),
                    "shorten the text, or make the image smaller");
  if (position < content.length)
    return complain("the sequence has " + std::to_string(content.length) + " tokens already");
  if (!content.images.empty() && position < content.images.back().end())
    return complain("the image before it ends at token " +
                    std::to_string(content.images.back().end()));
  content.images.push_back({position, std::move(image)});
  return {};
}

} // namespace moert
