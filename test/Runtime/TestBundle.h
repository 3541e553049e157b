// A small bundle made by hand: a language model over a vocabulary of 32 that can be computed with a
// few integer operations, and an entry on plain tensors. It has weights, a load program, globals,
// paged and (on request) slot states.
#ifndef MOERT_TEST_RUNTIME_TESTBUNDLE_H
#define MOERT_TEST_RUNTIME_TESTBUNDLE_H

#include "runtime/bundle/Bundle.h"
#include "test/Runtime/Support.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moert::test {

inline constexpr std::int32_t testVocabulary = 32;
inline constexpr std::int32_t testBlockTokens = 4;
inline constexpr std::uint64_t testMaximumTokens = 100;

struct TestBundleOptions {
  bool recurrent = false;    // with a SLOT state: sequences have a memory besides the cache
  bool weightsInside = true; // else weights.safetensors lies beside the bundle
  bool cuda = false;         // with a variant for GPUs, which comes first
};

// Writes everything but the manifest and returns that, so that a test can change it before it calls
// writeManifest.
moec::bundle::Manifest makeTestBundle(const std::string &folder,
                                      const TestBundleOptions &options = {});
// A whole bundle at `folder`.
void writeTestBundle(const std::string &folder, const TestBundleOptions &options = {});
// A manifest's framing with a right digest around any payload.
std::string frameManifest(std::string_view payload);

// The shared object made of TestKernels.c, beside this program in the build tree.
std::string testKernelsPath();

// The weight of token v, before doubling.
float testWeight(std::int32_t token);

// The logits after the last of `tokens`, computed the obvious way.
std::vector<float> expectedLogits(std::span<const std::int32_t> tokens, bool recurrent = false);

// The token of the largest logit; of equal ones the lowest.
std::int32_t greedyToken(std::span<const float> logits);

moec::bundle::Expression constant(std::int64_t value);
moec::bundle::Expression symbol(std::int64_t index);
moec::bundle::Expression operate(moec::bundle::Expression::Operator operation,
                                 const moec::bundle::Expression &a,
                                 const moec::bundle::Expression &b);

} // namespace moert::test

#endif
