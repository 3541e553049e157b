//===- AttentionReference.h - attention over a paged cache in double precision ----------------===//

#ifndef MOEC_TEST_UNIT_KERNELS_ATTENTIONREFERENCE_H
#define MOEC_TEST_UNIT_KERNELS_ATTENTIONREFERENCE_H

#include "StrategyKernel.h"
#include "TestBuffer.h"

namespace moec_test {

struct RotaryCase {
  std::vector<float> frequencies;
  double magnitude = 1;
  int64_t offset = 0;
  bool interleaved = false;

  std::string print() const;
  /// Rotates `row` in place.
  void apply(std::vector<double> &row, int64_t position) const;
};

/// The attributes and types of an attention op.
struct AttentionCase {
  int64_t heads = 6, kvHeads = 2, keyDim = 64, valueDim = 64, block = 16;
  int64_t window = 0;
  double scale = 0.125, softcap = 0;
  bool sinks = false;
  std::string cacheType = "f32", queryType = "f32";
  std::vector<RotaryCase> rotary = {}; ///< none or one
  bool shared = false;                 ///< keys hold the values
  int64_t indexWidth = 0;              ///< of the list of positions; 0: there is none
  std::string strategy = "cpu.attention";

  int64_t getBlockElements() const {
    return kvHeads * block * (keyDim + (shared ? 0 : valueDim));
  }
  std::string getCacheTypeText() const;
  KernelText describeAttention(std::string tokens) const;
  KernelText describeAppend(std::string tokens) const;
  std::string getAttentionText(std::string tokens) const {
    return describeAttention(tokens).print();
  }
  std::string getAppendText(std::string tokens) const { return describeAppend(tokens).print(); }
};

/// A sequence of a step: its last `queries` tokens are in the step.
struct SequenceCase {
  int64_t context = 0, queries = 0;
  unsigned seed = 1; ///< keys, values and queries are functions of seed and position
};

/// The buffers of a step: every sequence's keys and values lie in blocks of the pool that are
/// shuffled; what no sequence owns is NaN.
class AttentionStep {
public:
  AttentionStep(const AttentionCase &shape, const std::vector<SequenceCase> &sequences,
                unsigned shuffleSeed = 7);

  TestBuffer makeResult() const;
  std::vector<Binding> getBindings(TestBuffer &result);
  /// Runs the kernel and returns the result buffer, all NaN when the kernel cannot be run.
  TestBuffer run(const StrategyKernel &kernel);
  /// The largest difference between `result` and the reference, over what is allowed: at most 1 is
  /// right.
  double compare(const TestBuffer &result) const;

  /// Sets all of the key and the value at a position of a sequence.
  void setToken(int64_t sequence, int64_t position, double key, double value);
  /// Whether a token of the step sees a position of a sequence.
  bool sees(int64_t token, int64_t sequence, int64_t position) const;

  int64_t getTokens() const { return positions.size(); }
  /// The bytes of one sequence's rows of a result.
  std::vector<std::byte> getRows(const TestBuffer &result, int64_t sequence) const;

  AttentionCase shape;
  std::vector<SequenceCase> sequences;
  std::vector<int32_t> positions, tokenSequences, blockTable;
  int64_t tableBlocks = 0, poolBlocks = 0;
  TestBuffer cache, query, sinks;
  std::vector<int32_t> indices; ///< [tokens][indexWidth]

private:
  void chooseIndices();
  void layOutBlocks(unsigned seed);
  void fillSequence(int64_t index);
  /// The first element of the block that a position lies in.
  int64_t blockElement(int64_t sequence, int64_t position) const;
  double keyAt(int64_t sequence, int64_t position, int64_t head, int64_t i) const;
  double valueAt(int64_t sequence, int64_t position, int64_t head, int64_t i) const;
  std::vector<double> computeRow(int64_t token, int64_t head) const;
};

/// Where element `i` of a key or value lies inside its block.
int64_t keyElement(const AttentionCase &shape, int64_t head, int64_t slot, int64_t i);
int64_t valueElement(const AttentionCase &shape, int64_t head, int64_t slot, int64_t i);

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_ATTENTIONREFERENCE_H
