#include "runtime/session/Session.h"

#include "runtime/session/SessionState.h"

namespace moert {

struct Snapshot::Content {
  std::shared_ptr<StateStore> store;
  SequenceContent sequence;

  ~Content() {
    for (std::uint32_t block : sequence.blocks)
      store->release(StateStore::Blocks, block);
    if (sequence.slot >= 0)
      store->release(StateStore::Slots, static_cast<std::uint32_t>(sequence.slot));
  }
};

Snapshot::Snapshot(std::unique_ptr<Content> content) : content(std::move(content)) {}
Snapshot::Snapshot(Snapshot &&) noexcept = default;
Snapshot &Snapshot::operator=(Snapshot &&) noexcept = default;
Snapshot::~Snapshot() = default;
std::uint64_t Snapshot::length() const { return content->sequence.length; }

Session::Session(std::unique_ptr<SessionState> state) : state(std::move(state)) {}
Session::Session(Session &&) noexcept = default;
Session &Session::operator=(Session &&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(std::shared_ptr<const Model> model, const SessionOptions &options) {
  const moec::bundle::Manifest &manifest = model->bundle().manifest();
  if (!manifest.has_language_model())
    return Status(ErrorCode::InvalidArgument, "the bundle holds no language model",
                  model->bundle().path(), "run it on plain tensors");
  // Validation saw the entry in every variant.
  const CompiledProgram *program = model->loaded().entry(manifest.language_model().entry());
  return Session(std::make_unique<SessionState>(std::move(model), *program, options));
}

const Model &Session::model() const { return *state->model; }
std::size_t Session::vocabulary() const { return state->language.vocabulary(); }
std::uint64_t Session::maximumTokens() const { return state->maximumTokens; }

Result<Sequence> Session::createSequence() {
  Sequence sequence{state->nextSequence++};
  state->sequences.emplace(sequence.id, SequenceContent());
  return sequence;
}

Status Session::release(Sequence sequence) {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  state->release(*content);
  state->sequences.erase(sequence.id);
  return {};
}

Result<std::uint64_t> Session::length(Sequence sequence) const {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  return content->length;
}

Status Session::placeImage(Sequence sequence, std::uint64_t position, SharedImage image) {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  return state->placeImage(*content, position, std::move(image));
}

Result<Logits> Session::step(std::span<const StepPart> parts) {
  MOERT_RETURN_IF_ERROR(state->advance(parts));
  return state->logits();
}

Status Session::advance(std::span<const StepPart> parts) { return state->advance(parts); }
Result<Logits> Session::logits() { return state->logits(); }
std::size_t Session::logitRows() const { return state->logitRows(); }

Result<std::span<const std::int32_t>> Session::choose(std::span<const TokenChoice> choices) {
  return state->choose(choices);
}

Status Session::truncate(Sequence sequence, std::uint64_t length) {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  if (length > content->length)
    return {ErrorCode::InvalidArgument, "cannot truncate a sequence of " +
                                            std::to_string(content->length) + " tokens to " +
                                            std::to_string(length)};
  auto isBehind = [&](const PlacedImage &placed) { return placed.position >= length; };
  if (length == content->length) {
    std::erase_if(content->images, isBehind);
    return {};
  }
  if (length != 0 && content->slot >= 0)
    return {ErrorCode::Unsupported,
            "the model keeps a recurrent state, which cannot go back",
            {},
            "take a snapshot where you may want to return to"};
  SequenceContent kept;
  kept.length = length;
  kept.images = content->images;
  std::erase_if(kept.images, isBehind);
  if (length != 0) {
    std::uint64_t blockTokens = state->language.block_tokens();
    std::uint64_t blocks = content->blocks.empty() ? 0 : (length + blockTokens - 1) / blockTokens;
    kept.blocks.assign(content->blocks.begin(),
                       content->blocks.begin() + static_cast<std::ptrdiff_t>(blocks));
  }
  state->retain(kept);
  state->release(*content);
  *content = std::move(kept);
  return {};
}

Result<Sequence> Session::fork(Sequence sequence) {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  SequenceContent copy = *content;
  state->retain(copy);
  Sequence fresh{state->nextSequence++};
  state->sequences.emplace(fresh.id, std::move(copy));
  return fresh;
}

Result<Snapshot> Session::snapshot(Sequence sequence) {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  state->retain(*content);
  return Snapshot(
      std::unique_ptr<Snapshot::Content>(new Snapshot::Content{state->store, *content}));
}

Status Session::restore(Sequence sequence, const Snapshot &snapshot) {
  MOERT_ASSIGN_OR_RETURN(SequenceContent * content, state->find(sequence));
  if (snapshot.content->store != state->store)
    return {ErrorCode::InvalidArgument, "the snapshot was taken in another session"};
  SequenceContent copy = snapshot.content->sequence;
  state->retain(copy);
  state->release(*content);
  copy.step = content->step;
  *content = std::move(copy);
  return {};
}

void Session::setProfiling(bool on) {
  state->runner.setProfiling(on);
  if (state->sampler)
    state->sampler->setProfiling(on);
}

std::vector<ProfileEntry> Session::profile() const {
  std::vector<ProfileEntry> result = state->runner.profile();
  if (state->sampler)
    for (ProfileEntry &entry : state->sampler->profile())
      result.push_back(std::move(entry));
  return result;
}

std::uint64_t Session::stateBytes() const { return state->store->bytes(); }
std::uint64_t Session::arenaBytes() const {
  return state->runner.arenaBytes() + (state->sampler ? state->sampler->arenaBytes() : 0);
}

std::size_t Session::launchCount() const {
  return state->runner.launchCount() + (state->sampler ? state->sampler->launchCount() : 0);
}

} // namespace moert
