// The strategy for the gated delta rule against the reference interpreter, which keeps everything
// within a step in double precision.

#include "RecurrentKernel.h"

using namespace moec_test;

namespace {

struct DeltaCase {
  int64_t keyHeads = 2, heads = 2, keyDim = 32, valueDim = 32;
  std::string type = "f32", resultType = "f32";
  bool perChannel = true, normalizes = true;
  std::function<double(std::mt19937 &)> drawBeta = [](std::mt19937 &random) {
    return 1 / (1 + std::exp(-drawNormal(random)));
  };
  std::function<double(std::mt19937 &)> drawDecay = [](std::mt19937 &random) {
    return -5 / (1 + std::exp(-drawNormal(random)));
  };

  RecurrentCase make() const {
    RecurrentCase shape;
    auto tensor = [](const std::vector<int64_t> &row, const std::string &element) {
      std::string text = "tensor<?x";
      for (int64_t size : row)
        text += std::to_string(size) + "x";
      return text + element + ">";
    };
    std::vector<int64_t> key = {keyHeads, keyDim}, value = {heads, valueDim}, decay = {heads};
    if (perChannel)
      decay.push_back(keyDim);
    // Keys that are not normalised must be small for the rule to be stable.
    double size = normalizes ? 3.0 : 1 / std::sqrt(double(keyDim));
    auto drawKey = [size](std::mt19937 &random) { return size * drawNormal(random); };
    shape.operands = {{type, key, drawKey},
                      {type, key, drawKey},
                      {type, value, drawNormal},
                      {"f32", decay, drawDecay},
                      {"f32", {heads}, drawBeta}};
    shape.result = {resultType, value, {}};
    shape.stateType = "f32";
    shape.stateShape = {heads, keyDim, valueDim};
    shape.op = "moe.delta_rule %0, %1, %2 decay(%3 : " + tensor(decay, "f32") +
               ") beta(%4 : " + tensor({heads}, "f32") +
               ") over %5 at (%6, %7, %8) {strategy = \"cpu.delta_rule\", scale = " +
               std::to_string(1 / std::sqrt(double(keyDim))) +
               (normalizes ? ", norm_epsilon = 1.0e-6}" : "}");
    shape.types = tensor(key, type) + ", " + tensor(key, type) + ", " + tensor(value, type) + ", ";
    shape.namesResult = true;
    return shape;
  }
};

/// Single tokens, prompts, sequences that go on, and slots that others had before.
const std::vector<Step> steps = {
    {{0, 2, 0, 1}},
    {{0, 2, 1, 1}, {1, 0, 0, 17}},
    {{2, 3, 0, 33}, {1, 0, 17, 1}, {0, 2, 2, 5}, {3, 1, 0, 16}},
    {{3, 1, 16, 0}, {1, 0, 18, 2}},
    {{4, 2, 0, 1}, {3, 1, 16, 64}},
    {{4, 2, 1, 7}, {5, 3, 0, 2}},
};

class DeltaRule : public testing::TestWithParam<unsigned> {};

TEST_P(DeltaRule, EqualsTheInterpreter) {
  std::mt19937 random(GetParam());
  auto pick = [&](auto... choices) {
    std::common_type_t<decltype(choices)...> list[] = {choices...};
    return list[random() % std::size(list)];
  };
  DeltaCase shape;
  shape.keyHeads = pick(1, 2, 3);
  shape.heads = shape.keyHeads * pick(1, 1, 2, 3);
  shape.keyDim = pick(1, 7, 16, 32, 50);
  shape.valueDim = pick(1, 5, 16, 33, 48, 70);
  shape.type = pick("f32", "f32", "bf16", "f16");
  shape.resultType = pick("f32", "f32", shape.type.c_str());
  shape.perChannel = pick(true, false);
  shape.normalizes = pick(true, true, false);
  std::string target = pick("cpu", "cpu:x86-64", "cpu:x86-64-v3", "cuda:sm_80");
  if (!canRun(target))
    target = "cpu";
  RecurrentKernel kernel(shape.make(), 4, target);
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  SCOPED_TRACE(shape.make().op + " for " + target);
  for (const Step &step : steps)
    kernel.compare(step, 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeltaRule, testing::Range(0u, 32u));

TEST(DeltaRule, OneThreadOfAGPUTakesWhatIsTooLargeForABlock) {
  DeltaCase shape;
  shape.keyDim = 300;
  shape.valueDim = 5;
  RecurrentKernel kernel(shape.make(), 4, "cuda:sm_80", ".serial");
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  for (const Step &step : steps)
    kernel.compare(step, 5e-6);
}

class DeltaRulePieces : public testing::TestWithParam<const char *> {};

TEST_P(DeltaRulePieces, GiveTheSameBits) {
  DeltaCase shape;
  shape.keyHeads = 1;
  shape.perChannel = false;
  shape.keyDim = 24; // a state that is read the other way round is another one
  shape.valueDim = 40;
  RecurrentKernel whole(shape.make(), 1, GetParam());
  ASSERT_TRUE(whole.isReady()) << whole.getError();
  constexpr int tokens = 130;
  TestBuffer expected = whole.run({{0, 0, 0, tokens}});
  for (int piece : {1, 7, 16, 64, 66, 128}) {
    RecurrentKernel pieces(shape.make(), 3, GetParam());
    std::vector<std::byte> bytes;
    for (int first = 0; first < tokens; first += piece) {
      // Beside another sequence in the same step.
      int count = std::min(piece, tokens - first);
      TestBuffer part = pieces.run({{9, 0, first, count}, {0, 1, first, count}});
      bytes.insert(bytes.end(), part.getBytes().begin() + part.getBytes().size() / 2,
                   part.getBytes().end());
    }
    EXPECT_EQ(bytes, expected.getBytes()) << "in pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, DeltaRulePieces, testing::Values("cpu", "cuda:sm_80"),
                         getTargetName);

class DeltaRuleDrift : public testing::TestWithParam<const char *> {};

/// Long sequences in one step, so that the interpreter keeps their state in double precision
/// throughout, for decays of every size.
TEST_P(DeltaRuleDrift, LongSequencesInOneStep) {
  struct Decay {
    const char *name;
    std::function<double(std::mt19937 &)> draw;
  };
  const Decay decays[] = {
      {"saturated", [](std::mt19937 &) { return -5.0; }},
      {"nearly saturated", [](std::mt19937 &) { return -4.9; }},
      {"mixed", [](std::mt19937 &random) { return -5 / (1 + std::exp(-4 * drawNormal(random))); }},
      {"far below any bound", [](std::mt19937 &) { return -20.0; }},
      {"slow", [](std::mt19937 &) { return -1e-3; }},
      {"slower than bf16 can say", [](std::mt19937 &) { return -8e-5; }},
      {"none", [](std::mt19937 &) { return 0.0; }},
  };
  for (const Decay &decay : decays) {
    DeltaCase shape;
    shape.keyHeads = shape.heads = 1;
    shape.drawDecay = decay.draw;
    RecurrentKernel kernel(shape.make(), 3, GetParam());
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    bool isCUDA = std::string(GetParam()).starts_with("cuda"); // where a block takes its time here
    for (int tokens : isCUDA ? std::vector<int>{64, 300} : std::vector<int>{64, 512, 4096}) {
      SCOPED_TRACE(decay.name);
      double worst = kernel.compare({{tokens, 1, 0, tokens}}, 5e-6);
      RecordProperty(std::string(decay.name) + " " + std::to_string(tokens), std::to_string(worst));
      std::printf("  %s, %d tokens: %.2g\n", decay.name, tokens, worst);
      // A token after all of them, alone.
      kernel.compare({{tokens, 1, tokens, 1}}, 5e-6);
    }
  }
}

/// The rule of one head in double precision.
class ExactRule {
public:
  ExactRule(int64_t keyDim, int64_t valueDim)
      : keyDim(keyDim), valueDim(valueDim), state(keyDim * valueDim, 0) {}

  std::vector<double> append(const std::vector<TestBuffer> &operands) {
    std::vector<double> q = getUnit(operands[0]), k = getUnit(operands[1]), result(valueDim, 0);
    for (int64_t j = 0; j < valueDim; ++j) {
      double prediction = 0;
      for (int64_t i = 0; i < keyDim; ++i) {
        double &s = state[i * valueDim + j];
        s *= std::exp(operands[3].get(i));
        prediction += s * k[i];
      }
      double error = operands[4].get(0) * (operands[2].get(j) - prediction);
      for (int64_t i = 0; i < keyDim; ++i) {
        double &s = state[i * valueDim + j];
        s += k[i] * error;
        result[j] += s * q[i] / std::sqrt(double(keyDim));
      }
    }
    return result;
  }

private:
  std::vector<double> getUnit(const TestBuffer &row) const {
    double squares = 1e-6;
    for (int64_t i = 0; i < keyDim; ++i)
      squares += row.get(i) * row.get(i);
    std::vector<double> unit(keyDim);
    for (int64_t i = 0; i < keyDim; ++i)
      unit[i] = row.get(i) / std::sqrt(squares);
    return unit;
  }

  int64_t keyDim, valueDim;
  std::vector<double> state;
};

/// Ten thousand steps of one token each, the state in f32 in between. With beta = 0.02 and 16
/// channels a state remembers about 800 steps, whose roundings add up to sqrt(800) * 6e-8 = 1.7e-6
/// of it, now and then to a few times that, and to no more however many steps there are. A decay of
/// -8e-5 is exp(-8e-5) = 0.99992, which bf16 would round to 1.
TEST_P(DeltaRuleDrift, TenThousandSteps) {
  bool isCUDA = std::string(GetParam()).starts_with("cuda"); // where a block takes its time here
  for (double decay : isCUDA ? std::vector<double>{-8e-5} : std::vector<double>{-8e-5, -1e-3}) {
    DeltaCase shape;
    shape.keyHeads = shape.heads = 1;
    shape.keyDim = 16;
    shape.valueDim = isCUDA ? 8 : 20;
    shape.drawBeta = [](std::mt19937 &) { return 0.02; }; // forgets little else
    shape.drawDecay = [decay](std::mt19937 &) { return decay; };
    RecurrentKernel kernel(shape.make(), 1, GetParam());
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    ExactRule exact(shape.keyDim, shape.valueDim);
    double largest = 0, early = 0, late = 0;
    for (int step = 0; step < 10'000; ++step) {
      Step one = {{0, 0, step, 1}};
      TestBuffer result = kernel.run(one);
      std::vector<double> expected = exact.append(kernel.makeInputs(one).operands);
      double worst = 0;
      for (int64_t j = 0; j < shape.valueDim; ++j) {
        largest = std::max(largest, std::abs(expected[j]));
        double error = std::abs(result.get(j) - expected[j]);
        worst = error <= worst ? worst : error; // NaN wins
      }
      double &period = step < 1'000 ? early : late;
      period = worst <= period ? period : worst;
      ASSERT_LE(worst, 1e-5 * largest) << "step " << step;
    }
    std::printf(
        "  decay %g: %.2g of the largest number in the first 1,000 steps, %.2g in the next 9,000\n",
        decay, early / largest, late / largest);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, DeltaRuleDrift, testing::Values("cpu", "cuda:sm_80"),
                         getTargetName);

/// Rows of no sequence are nobody's: those of the sequences are right, and those keep what they
/// had.
TEST(DeltaRule, TokensBehindTheLastSequence) {
  for (const char *target : {"cpu", "cuda:sm_80"}) {
    DeltaCase shape;
    RecurrentKernel whole(shape.make(), 2, target), cut(shape.make(), 2, target);
    ASSERT_TRUE(whole.isReady()) << whole.getError();
    Step step = {{0, 0, 0, 2}, {1, 1, 0, 2}};
    TestBuffer expected = whole.run(step);
    cut.forcedOffsets = {0, 2, 3};
    TestBuffer result = cut.run(step);
    int64_t row = shape.heads * shape.valueDim;
    for (int64_t i = 0; i < 4 * row; ++i)
      if (i < 3 * row)
        ASSERT_EQ(result.get(i), expected.get(i)) << target << " element " << i;
      else
        ASSERT_TRUE(std::isnan(result.get(i))) << target << " element " << i << " was written";
  }
}

class DeltaRuleTables : public testing::TestWithParam<const char *> {};

TEST_P(DeltaRuleTables, WriteNothingWhereTheyAreWrong) {
  RecurrentKernel kernel(DeltaCase().make(), 2, GetParam());
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  Step step = {{0, 0, 0, 2}, {1, 1, 0, 2}};
  for (auto [offsets, slots] :
       {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{0, 2, 4}, {-1, 2}},
        {{0, 5, 9}, {0, 1}},
        {{2, 1, -1}, {0, 1}},
        {{-2, -1, 0}, {0, 1}}}) {
    kernel.forcedOffsets = offsets;
    kernel.forcedSlots = slots;
    TestBuffer result = kernel.run(step);
    for (const TestBuffer *buffer : {&result, &kernel.state})
      for (int64_t i = 0; i < buffer->size(); ++i)
        ASSERT_TRUE(std::isnan(buffer->get(i))) << "element " << i << " was written";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, DeltaRuleTables, testing::Values("cpu", "cuda:sm_80"),
                         getTargetName);

} // namespace
