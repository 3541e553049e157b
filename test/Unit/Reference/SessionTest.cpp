// The interpreter as a language model: a small random gpt-oss against what transformers computes.

#include "moec/Conversion/ImportCheckpoint.h"
#include "moec/Dialect/MoE/Reference/ReferenceSession.h"

#include "runtime/base/File.h"
#include "runtime/base/Safetensors.h"
#include "test/Unit/Reference/TestModules.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace mlir::moec;
using namespace mlir::moec::moe;

using LogitRows = ReferenceSession::LogitRows;

namespace {

template <typename T>
std::vector<T> readTensor(const moert::SafetensorsFile &file, const char *name,
                          moert::ElementType type) {
  const moert::SafetensorsTensor *tensor = file.find(name);
  EXPECT_EQ(tensor->type, type) << name;
  std::vector<T> values(tensor->bytes / sizeof(T));
  EXPECT_TRUE(file.read(*tensor, std::as_writable_bytes(std::span(values))).isOk());
  return values;
}

class SessionTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string folder = MOEC_TEST_MODELS "/gptoss-micro";
    ImportCheckpointOptions options;
    options.precision = ImportCheckpointOptions::Precision::F32;
    options.blockTokens = 4;
    FailureOr<OwningOpRef<ModuleOp>> imported =
        importCheckpoint(folder + "/checkpoint", options, test.get());
    ASSERT_TRUE(succeeded(imported)) << test.takeErrors();
    module = std::move(*imported);
    std::string problem;
    weights = std::move(*openWeightFolder(folder + "/checkpoint", true, problem));

    auto file = moert::SafetensorsFile::open(*moert::File::open(folder + "/reference.safetensors"));
    ASSERT_TRUE(file.isOk()) << file.status().toString();
    tokens = readTensor<int32_t>(*file, "tokens", moert::ElementType::I32);
    expected = readTensor<float>(*file, "logits", moert::ElementType::F32);
    vocabulary = static_cast<int64_t>(expected.size() / tokens.size());
  }

  std::unique_ptr<ReferenceSession> open() {
    auto session = ReferenceSession::create(*module, weights.get());
    EXPECT_TRUE(succeeded(session)) << test.takeErrors();
    return std::move(*session);
  }

  std::vector<float> getRows(const ReferenceTensor &logits, int64_t first, int64_t count) {
    std::vector<float> rows(count * vocabulary);
    logits.readFloats(first * vocabulary, rows);
    return rows;
  }
  std::vector<float> step(ReferenceSession &session, ArrayRef<ReferenceSession::Part> parts) {
    FailureOr<ReferenceTensor> logits = session.step(parts);
    EXPECT_TRUE(succeeded(logits)) << test.takeErrors();
    return logits->getFloats();
  }

  TestContext test;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<WeightSource> weights;
  std::vector<int32_t> tokens;
  std::vector<float> expected; // [tokens, vocabulary]
  int64_t vocabulary = 0;
};

} // namespace

TEST_F(SessionTest, LogitsOfTransformers) {
  FailureOr<ReferenceTensor> logits = open()->computeLogits(tokens);
  ASSERT_TRUE(succeeded(logits)) << test.takeErrors();
  ASSERT_EQ(logits->getSize(), static_cast<int64_t>(expected.size()));
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::fabs(logits->getReal(i) - static_cast<double>(expected[i])));
  EXPECT_LT(largest, 1e-5);
}

TEST_F(SessionTest, ChunksMakeNoDifference) {
  std::unique_ptr<ReferenceSession> session = open();
  std::vector<float> whole = session->computeLogits(tokens)->getFloats();
  for (int64_t chunk : {1, 4, 5, 7, 16})
    EXPECT_EQ(session->computeLogits(tokens, chunk)->getFloats(), whole) << chunk;
}

TEST_F(SessionTest, RaggedStepsEqualSingleOnes) {
  std::unique_ptr<ReferenceSession> session = open();
  ArrayRef<int32_t> all(tokens);
  ArrayRef<int32_t> texts[] = {all.take_front(9), all.slice(5, 1), all.slice(11, 16)};
  std::vector<std::vector<float>> alone;
  for (ArrayRef<int32_t> text : texts)
    alone.push_back(session->computeLogits(text)->getFloats());

  int64_t a = session->createSequence(), b = session->createSequence(),
          c = session->createSequence();
  step(*session, {{a, texts[0].take_front(4), LogitRows::None},
                  {c, texts[2].take_front(7), LogitRows::None}});
  std::vector<float> rows = step(*session, {{c, texts[2].drop_front(7), LogitRows::All},
                                            {b, texts[1], LogitRows::Last},
                                            {a, texts[0].drop_front(4), LogitRows::Last}});
  std::vector<float> together(alone[2].begin() + 7 * vocabulary, alone[2].end());
  together.insert(together.end(), alone[1].begin(), alone[1].end());
  together.insert(together.end(), alone[0].end() - vocabulary, alone[0].end());
  EXPECT_EQ(rows, together);
  EXPECT_EQ(session->getLength(c), 16);
}

TEST_F(SessionTest, TruncatedSequencesGoOnElsewhere) {
  std::unique_ptr<ReferenceSession> session = open();
  ArrayRef<int32_t> all(tokens);
  int64_t sequence = session->createSequence();
  step(*session, {{sequence, all.take_front(20), LogitRows::None}});
  ASSERT_TRUE(succeeded(session->truncate(sequence, 6)));
  std::vector<float> rows = step(*session, {{sequence, all.slice(6, 3), LogitRows::All}});
  std::vector<float> whole = session->computeLogits(all.take_front(9))->getFloats();
  EXPECT_EQ(rows, std::vector<float>(whole.begin() + 6 * vocabulary, whole.end()));
}

TEST_F(SessionTest, GreedyTokensAreTheLargestLogits) {
  std::unique_ptr<ReferenceSession> session = open();
  ArrayRef<int32_t> prompt = ArrayRef(tokens).take_front(5);
  FailureOr<std::vector<int32_t>> generated = session->generateGreedily(prompt, 6);
  ASSERT_TRUE(succeeded(generated)) << test.takeErrors();
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  for (int32_t token : *generated) {
    FailureOr<ReferenceTensor> logits = session->computeLogits(text);
    ASSERT_TRUE(succeeded(logits));
    std::vector<float> last = getRows(*logits, static_cast<int64_t>(text.size()) - 1, 1);
    EXPECT_EQ(token, std::max_element(last.begin(), last.end()) - last.begin());
    text.push_back(token);
  }
}

TEST_F(SessionTest, UnknownTokensAreErrorsAndChangeNothing) {
  std::unique_ptr<ReferenceSession> session = open();
  int64_t sequence = session->createSequence();
  step(*session, {{sequence, ArrayRef(tokens).take_front(3), LogitRows::None}});
  int32_t unknown = static_cast<int32_t>(vocabulary);
  EXPECT_TRUE(failed(session->step({{sequence, unknown, LogitRows::Last}})));
  EXPECT_NE(test.takeErrors().find("is not below the table's"), std::string::npos);
  EXPECT_EQ(session->getLength(sequence), 3);
  std::vector<float> row = step(*session, {{sequence, tokens[3], LogitRows::Last}});
  std::vector<float> whole = session->computeLogits(ArrayRef(tokens).take_front(4))->getFloats();
  EXPECT_EQ(row, std::vector<float>(whole.end() - vocabulary, whole.end()));
}

TEST_F(SessionTest, OtherFunctionsAreRefused) {
  auto refuse = [&](const std::string &text, const std::string &reason) {
    OwningOpRef<ModuleOp> other = test.parse(text);
    EXPECT_TRUE(failed(ReferenceSession::create(*other, nullptr)));
    std::string errors = test.takeErrors();
    EXPECT_NE(errors.find(reason), std::string::npos) << errors;
  };
  refuse("func.func @f() { return }", "found 0; name the entry");
  refuse("func.func @f() attributes {moe.entry} { return }", "expected the logits");
  refuse("func.func @f(%x: tensor<?xi32>) attributes {moe.entry} { return }",
         "argument 0 of type 'tensor<?xi32>' is none of a language model's step");
  refuse(
      "func.func @f(%x: tensor<?xf32> {moe.name = \"tokens\"}) attributes {moe.entry} { return }",
      "argument 0 of type 'tensor<?xf32>' is none of a language model's step");
}

TEST(ReferenceSessionGlobals, TheLoadProgramRunsFirst) {
  TestContext test;
  OwningOpRef<ModuleOp> module = test.parse(R"mlir(
    moe.global @bias : tensor<1x3xf32>
    func.func @load() attributes {moe.load} {
      %0 = arith.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
      moe.global_store %0, @bias : tensor<1x3xf32>
      return
    }
    func.func @step(%tokens: tensor<?xi32> {moe.name = "tokens"}) -> tensor<1x3xf32> attributes {moe.entry} {
      %0 = moe.global_load @bias : tensor<1x3xf32>
      return %0 : tensor<1x3xf32>
    })mlir");
  auto session = ReferenceSession::create(*module, nullptr);
  ASSERT_TRUE(succeeded(session)) << test.takeErrors();
  EXPECT_EQ((*session)->computeLogits({0})->getFloats(), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(failed(ReferenceSession::create(*module, nullptr, "", "fill")));
  EXPECT_NE(test.takeErrors().find("no function 'fill'"), std::string::npos);
}

/// Logits that are a convolution of the tokens' embeddings over a state.
static const char *recurrentModel = R"(
  func.func @step(%tokens: tensor<?xi32> {moe.name = "tokens"}, %positions: tensor<?xi32> {moe.name = "positions"},
                  %offsets: tensor<?xi32> {moe.name = "sequence_offsets"}, %slots: tensor<?xi32> {moe.name = "state_slots"},
                  %rows: tensor<?xi32> {moe.name = "logit_rows"}, %state: !moe.state<[2, 2], f32>)
      -> tensor<?x2xf32> attributes {moe.entry} {
    %table = arith.constant dense<[[0.0, 1.0], [2.0, -3.0], [5.0, 0.5]]> : tensor<3x2xf32>
    %taps = arith.constant dense<[[0.5, 2.0, 1.0], [-1.0, 0.25, 4.0]]> : tensor<2x3xf32>
    %x = moe.embedding %tokens, %table : tensor<?xi32>, tensor<3x2xf32> -> tensor<?x2xf32>
    %y = moe.causal_conv %x weight(%taps : tensor<2x3xf32>) over %state at (%positions, %offsets, %slots)
        : tensor<?x2xf32>, !moe.state<[2, 2], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
    %z = moe.gather_rows %y, %rows : tensor<?x2xf32>, tensor<?xi32> -> tensor<?x2xf32>
    return %z : tensor<?x2xf32>
  })";

TEST(RecurrentSession, StatesFollowTheirSequences) {
  TestContext test;
  OwningOpRef<ModuleOp> module = test.parse(recurrentModel);
  auto created = ReferenceSession::create(*module, nullptr);
  ASSERT_TRUE(succeeded(created)) << test.takeErrors();
  ReferenceSession &session = **created;
  const std::vector<int32_t> text = {1, 2, 0, 2, 1};
  // Taps times the embeddings of the token before the last one, the last one and this one.
  const std::vector<float> expected = {2, -12, 9, 1.25f, 11, 7.125f, 7.5f, 1.75f, 12, -12.875f};
  for (int64_t chunk : {0, 1, 2, 3})
    EXPECT_EQ(session.computeLogits(text, chunk)->getFloats(), expected) << "chunk " << chunk;

  // More sequences than slots at first, one after the other and together.
  std::vector<int64_t> sequences;
  for (int i = 0; i < 9; ++i)
    sequences.push_back(session.createSequence());
  for (size_t t = 0; t < text.size(); ++t) {
    std::vector<ReferenceSession::Part> parts;
    for (int64_t sequence : sequences)
      parts.push_back({sequence, ArrayRef(text).slice(t, 1), LogitRows::Last});
    FailureOr<ReferenceTensor> logits = session.step(parts);
    ASSERT_TRUE(succeeded(logits)) << test.takeErrors();
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(logits->getReal(2 * i), expected[2 * t]);
      EXPECT_EQ(logits->getReal(2 * i + 1), expected[2 * t + 1]);
    }
  }

  EXPECT_TRUE(failed(session.truncate(sequences[0], 2)));
  EXPECT_NE(test.takeErrors().find("cannot go back from 5 tokens to 2"), std::string::npos);
  ASSERT_TRUE(succeeded(session.truncate(sequences[0], 5)));
  ASSERT_TRUE(succeeded(session.truncate(sequences[0], 0)));
  FailureOr<ReferenceTensor> again = session.step({{sequences[0], text, LogitRows::All}});
  EXPECT_EQ(again->getFloats(), expected);
}
