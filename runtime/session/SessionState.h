// What a Session holds. Private to Session.cpp and SessionStep.cpp.
#ifndef MOERT_SESSION_SESSIONSTATE_H
#define MOERT_SESSION_SESSIONSTATE_H

#include "runtime/session/Session.h"
#include "runtime/session/StateStore.h"
#include "runtime/session/Variant.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace moert {

// Tokens of a sequence that are an image's.
struct PlacedImage {
  std::uint64_t position;
  SharedImage image;
  std::uint64_t end() const { return position + image->tokens; }
};

// The past of a sequence.
struct SequenceContent {
  std::uint64_t length = 0;
  std::vector<std::uint32_t> blocks;
  std::int64_t slot = -1;
  std::vector<PlacedImage> images; // in order, also ahead of the length
  std::uint64_t step = 0;          // the last step that it took part in, to find one named twice
};

class SessionState {
public:
  SessionState(std::shared_ptr<const Model> model, const CompiledProgram &program,
               const SessionOptions &options);

  Status advance(std::span<const StepPart> parts);
  Result<Logits> logits();
  std::size_t logitRows() const { return logitRowsThere; }
  Result<std::span<const std::int32_t>> choose(std::span<const TokenChoice> choices);

  Result<SequenceContent *> find(Sequence sequence);
  Status placeImage(SequenceContent &content, std::uint64_t position, SharedImage image);
  // Adds to the shares of everything that `content` uses, or gives them up.
  void retain(const SequenceContent &content);
  void release(const SequenceContent &content);

  std::shared_ptr<const Model> model;
  const moec::bundle::LanguageModel &language;
  ProgramRunner runner;
  std::optional<ProgramRunner> sampler; // chooses tokens; none: an old bundle
  std::shared_ptr<StateStore> store;    // shared with snapshots
  std::unordered_map<std::uint64_t, SequenceContent> sequences;
  std::uint64_t nextSequence = 1;
  std::uint64_t maximumTokens; // 0: unbounded
  std::uint64_t steps = 0;

private:
  struct Sizes {
    std::uint64_t tokens = 0;
    std::uint64_t rows = 0;
    std::uint64_t blocksPerSequence = 0;
    std::uint64_t imageRows = 0; // tokens that are images'
  };
  Status check(std::span<const StepPart> parts, Sizes &sizes);
  Status reserveState(std::span<const StepPart> parts);
  Status takeBlocks(std::span<const StepPart> parts);
  void giveBackBlocks(std::span<const StepPart> parts);
  Status prepareRunner(std::span<const StepPart> parts, const Sizes &sizes);
  void fillInputs(std::span<const StepPart> parts, const Sizes &sizes);
  std::uint64_t blocksFor(std::uint64_t tokens) const;
  void prepareSampler(const SessionOptions &options);
  std::int32_t *input(int index);
  void fillImages(std::span<const StepPart> parts);

  // Indices of the entry's inputs; -1: it has none of this kind.
  int tokensInput, positionsInput, tokenSequencesInput, sequenceOffsetsInput, blockTableInput,
      stateSlotsInput, logitRowsInput, imageRowsInput, imageEmbeddingsInput;
  ElementType imageType = ElementType::Unspecified;
  std::int64_t imageFeatures = 0;
  std::uint64_t imageRowBytes = 0;
  int logitsOutput;
  std::size_t logitRowsThere = 0; // of the last step
  // Indices of the sampler's inputs, its output, and its shapes.
  std::size_t samplerLogits, samplerRows, temperatureInput, topKInput, topPInput, randomInput,
      tokensOutput;
  std::vector<ProgramRunner::Shape> samplerShapes;
  std::vector<ProgramRunner::Shape> shapes;
  std::vector<SequenceContent *> members; // of the step at hand, by part
};

} // namespace moert

#endif
