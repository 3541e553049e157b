#include "runtime/session/Session.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/session/Generate.h"
#include "runtime/session/StateStore.h"
#include "test/Runtime/TestBundle.h"

#include <cstring>
#include <random>

using namespace moert;
using namespace moert::test;

namespace {

using Ids = std::vector<std::int32_t>;

std::shared_ptr<const Model> loadTestModel(bool recurrent = false, unsigned threads = 2) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b", {.recurrent = recurrent});
  auto bundle = Bundle::open(folder / "b");
  EXPECT_TRUE(isOk(bundle));
  LoadOptions options;
  options.threads = threads;
  auto model = Model::load(*bundle, options);
  EXPECT_TRUE(isOk(model));
  return *model;
}

Session makeSession(bool recurrent = false, const SessionOptions &options = {}) {
  auto session = Session::create(loadTestModel(recurrent), options);
  EXPECT_TRUE(isOk(session));
  return *std::move(session);
}

Ids randomIds(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Ids ids(count);
  for (std::int32_t &id : ids)
    id = static_cast<std::int32_t>(random() % testVocabulary);
  return ids;
}

std::vector<float> toVector(std::span<const float> row) { return {row.begin(), row.end()}; }

// Feeds tokens and checks the last one's logits against the whole history.
void feed(Session &session, Sequence sequence, Ids &history, const Ids &tokens, bool recurrent) {
  StepPart part{sequence, tokens, LogitRows::Last};
  auto logits = session.step({&part, 1});
  ASSERT_TRUE(isOk(logits));
  history.insert(history.end(), tokens.begin(), tokens.end());
  ASSERT_EQ(logits->rows, 1u);
  EXPECT_EQ(toVector(logits->row(0)), expectedLogits(history, recurrent));
}

} // namespace

TEST(Session, ChunksGiveTheSameLogits) {
  for (bool recurrent : {false, true}) {
    Session session = makeSession(recurrent);
    Ids ids = randomIds(50, 1);
    for (std::size_t chunk : {1, 7, 16, 50}) {
      auto sequence = session.createSequence();
      ASSERT_TRUE(isOk(sequence));
      for (std::size_t at = 0; at < ids.size(); at += chunk) {
        std::size_t count = std::min(chunk, ids.size() - at);
        StepPart part{*sequence, std::span(ids).subspan(at, count), LogitRows::All};
        auto logits = session.step({&part, 1});
        ASSERT_TRUE(isOk(logits));
        ASSERT_EQ(logits->rows, count);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(toVector(logits->row(i)),
                    expectedLogits(std::span(ids).first(at + i + 1), recurrent))
              << chunk << " " << at + i;
      }
      EXPECT_EQ(*session.length(*sequence), 50u);
    }
  }
}

TEST(Session, RaggedBatchesEqualSingles) {
  for (bool recurrent : {false, true}) {
    Session session = makeSession(recurrent);
    std::mt19937 random(5);
    std::vector<Sequence> sequences;
    std::vector<Ids> histories(5);
    for (int i = 0; i < 5; ++i)
      sequences.push_back(*session.createSequence());
    for (int round = 0; round < 12; ++round) {
      std::vector<StepPart> parts;
      std::vector<Ids> tokens(5);
      for (std::size_t i = 0; i < 5; ++i) {
        if (random() % 3 == 0)
          continue;
        tokens[i] = randomIds(1 + random() % 6, static_cast<unsigned>(random()));
        parts.push_back({sequences[i], tokens[i], static_cast<LogitRows>(random() % 3)});
      }
      std::shuffle(parts.begin(), parts.end(), random);
      if (parts.empty())
        continue;
      auto logits = session.step(parts);
      ASSERT_TRUE(isOk(logits));
      std::size_t row = 0;
      for (const StepPart &part : parts) {
        std::size_t which = 0;
        while (sequences[which].id != part.sequence.id)
          ++which;
        for (std::size_t i = 0; i < part.tokens.size(); ++i) {
          histories[which].push_back(part.tokens[i]);
          if (part.logits == LogitRows::All ||
              (part.logits == LogitRows::Last && i + 1 == part.tokens.size())) {
            ASSERT_LT(row, logits->rows);
            ASSERT_EQ(toVector(logits->row(row++)), expectedLogits(histories[which], recurrent));
          }
        }
      }
      EXPECT_EQ(row, logits->rows);
    }
  }
}

TEST(Session, ForkSnapshotRestoreTruncateAtEveryToken) {
  for (bool recurrent : {false, true}) {
    for (std::size_t at = 1; at < 14; ++at) {
      Session session = makeSession(recurrent);
      Sequence first = *session.createSequence();
      Ids history;
      feed(session, first, history, randomIds(at, 3), recurrent);
      auto snapshot = session.snapshot(first);
      ASSERT_TRUE(isOk(snapshot));
      EXPECT_EQ(snapshot->length(), at);
      auto second = session.fork(first);
      ASSERT_TRUE(isOk(second));
      // The two go their own ways, and neither disturbs the other or the snapshot.
      Ids a = history, b = history;
      for (int round = 0; round < 4; ++round) {
        feed(session, first, a, randomIds(2, static_cast<unsigned>(10 + round)), recurrent);
        feed(session, *second, b, randomIds(3, static_cast<unsigned>(20 + round)), recurrent);
      }
      ASSERT_TRUE(isOk(session.release(*second)));
      ASSERT_TRUE(isOk(session.restore(first, *snapshot)));
      EXPECT_EQ(*session.length(first), at);
      Ids again = history;
      feed(session, first, again, randomIds(6, 30), recurrent);
      // Into another sequence, twice.
      Sequence third = *session.createSequence();
      for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(isOk(session.restore(third, *snapshot)));
        Ids more = history;
        feed(session, third, more, randomIds(5, static_cast<unsigned>(40 + round)), recurrent);
      }
      if (recurrent) {
        EXPECT_TRUE(fails(session.truncate(first, at), ErrorCode::Unsupported, "recurrent"));
        ASSERT_TRUE(isOk(session.truncate(first, 0)));
        Ids empty;
        feed(session, first, empty, randomIds(3, 50), recurrent);
        continue;
      }
      ASSERT_TRUE(isOk(session.truncate(first, at)));
      Ids back = history;
      feed(session, first, back, randomIds(6, 60), recurrent);
    }
  }
}

TEST(Session, ReleasedBlocksAreUsedAgainAndCleared) {
  Session session = makeSession(false, {.maximumStateBytes = 16 * 16});
  for (int round = 0; round < 20; ++round) {
    Sequence sequence = *session.createSequence();
    Ids history;
    feed(session, sequence, history, randomIds(60, static_cast<unsigned>(round)), false);
    ASSERT_TRUE(isOk(session.release(sequence)));
  }
  EXPECT_EQ(session.stateBytes(), 256u);
}

TEST(Session, FailedStepsChangeNothing) {
  Session session = makeSession(false, {.maximumTokens = 40, .maximumStateBytes = 16 * 12});
  Sequence a = *session.createSequence(), b = *session.createSequence();
  Ids historyA, historyB;
  feed(session, a, historyA, randomIds(10, 1), false);
  feed(session, b, historyB, randomIds(3, 2), false);
  Ids one = {1}, bad = {1, 32}, negative = {-1}, tooLong(31, 1), empty;
  auto step = [&](std::initializer_list<StepPart> parts) {
    return session.step({parts.begin(), parts.size()});
  };
  EXPECT_TRUE(fails(step({}), ErrorCode::InvalidArgument, "at least one sequence"));
  EXPECT_TRUE(fails(step({{b, one}, {a, bad}}), ErrorCode::InvalidArgument,
                    "part 1 of the step: error: token 1 is 32"));
  EXPECT_TRUE(fails(step({{a, negative}}), ErrorCode::InvalidArgument, "token 0 is -1"));
  EXPECT_TRUE(fails(step({{a, empty}}), ErrorCode::InvalidArgument, "at least one token"));
  EXPECT_TRUE(fails(step({{a, one}, {a, one}}), ErrorCode::InvalidArgument, "only once"));
  EXPECT_TRUE(fails(step({{a, tooLong}}), ErrorCode::InvalidArgument,
                    "would have 41 tokens; the longest context is 40"));
  EXPECT_TRUE(fails(step({{Sequence{77}, one}}), ErrorCode::InvalidArgument, "no sequence 77"));
  Ids thirty(30, 2), twenty(20, 2);
  EXPECT_TRUE(fails(step({{a, thirty}, {b, twenty}}), ErrorCode::OutOfMemory, "limit allows 12"));
  EXPECT_EQ(*session.length(a), 10u);
  feed(session, a, historyA, randomIds(9, 4), false);
  feed(session, b, historyB, randomIds(9, 5), false);
  ASSERT_TRUE(isOk(session.release(b)));
  EXPECT_FALSE(session.release(b).isOk());
  EXPECT_FALSE(session.length(b).isOk());
  EXPECT_FALSE(session.fork(b).isOk());
  EXPECT_FALSE(session.snapshot(b).isOk());
  EXPECT_TRUE(fails(session.truncate(a, 99), ErrorCode::InvalidArgument, "to 99"));
  Session other = makeSession();
  Sequence foreign = *other.createSequence();
  auto snapshot = other.snapshot(foreign);
  ASSERT_TRUE(isOk(snapshot));
  EXPECT_TRUE(fails(session.restore(a, *snapshot), ErrorCode::InvalidArgument, "another session"));
  feed(session, a, historyA, randomIds(20, 6), false);
  EXPECT_TRUE(fails(step({{a, thirty}}), ErrorCode::InvalidArgument, "longest context"));
}

TEST(Session, SnapshotsOutliveTheirSession) {
  auto session = std::make_unique<Session>(makeSession());
  Sequence sequence = *session->createSequence();
  Ids history;
  feed(*session, sequence, history, randomIds(10, 1), false);
  auto snapshot = session->snapshot(sequence);
  session.reset();
  EXPECT_EQ(snapshot->length(), 10u);
}

TEST(Session, SeveralSessionsShareAModel) {
  auto model = loadTestModel();
  auto one = Session::create(model), two = Session::create(model);
  ASSERT_TRUE(isOk(one));
  ASSERT_TRUE(isOk(two));
  auto use = [](Session &session, unsigned seed) {
    Sequence sequence = *session.createSequence();
    Ids history;
    for (unsigned i = 0; i < 30; ++i)
      feed(session, sequence, history, randomIds(2, seed + i), false);
  };
  std::thread thread([&] { use(*one, 100); });
  use(*two, 200);
  thread.join();
}

TEST(Session, ProfilesLaunches) {
  Session session = makeSession(false, {.profile = true});
  Sequence sequence = *session.createSequence();
  Ids history;
  feed(session, sequence, history, randomIds(10, 1), false);
  feed(session, sequence, history, randomIds(1, 2), false);
  auto profile = session.profile();
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile[1].source, "test.attend");
  EXPECT_EQ(profile[1].kernel, "attend");
  EXPECT_EQ(profile[1].launches, 2u);
  EXPECT_EQ(profile[1].flops, 110);
  EXPECT_EQ(profile[1].bytesMoved, 1100);
  EXPECT_GT(profile[1].seconds, 0);
  EXPECT_EQ(session.launchCount(), 3u);
  EXPECT_GT(session.arenaBytes(), 0u);
}

TEST(Generate, GreedyTokensFollowTheLogits) {
  Session session = makeSession();
  Ids prompt = {0, 3, 5}, history = prompt, streamed;
  for (std::uint64_t chunk : {0, 1, 2}) {
    streamed.clear();
    GenerateOptions options;
    options.maximumTokens = 20;
    options.ignoreEos = true;
    options.chunk = chunk;
    options.promptLogits = true;
    options.onToken = [&](std::int32_t id) {
      streamed.push_back(id);
      return true;
    };
    auto result = generate(session, prompt, options);
    ASSERT_TRUE(isOk(result));
    EXPECT_EQ(result->ids, streamed);
    EXPECT_EQ(result->reason, StopReason::MaximumTokens);
    history = prompt;
    for (std::int32_t id : result->ids) {
      ASSERT_EQ(id, greedyToken(expectedLogits(history)));
      history.push_back(id);
    }
    EXPECT_EQ(result->ids.size(), 20u);
    ASSERT_EQ(result->promptLogits.size(), 3u * testVocabulary);
    EXPECT_EQ(toVector(std::span(result->promptLogits).last(testVocabulary)),
              expectedLogits(prompt));
    EXPECT_GT(result->timeToFirstToken, 0);
    EXPECT_GT(result->timePerToken, 0);
  }
  // Every end: the context, the caller, end-of-text, no token at all.
  GenerateOptions options;
  options.maximumTokens = 1000;
  options.ignoreEos = true;
  auto result = generate(session, prompt, options);
  ASSERT_TRUE(isOk(result));
  EXPECT_EQ(result->reason, StopReason::Context);
  EXPECT_EQ(result->ids.size(), testMaximumTokens - prompt.size() + 1);
  options.onToken = [](std::int32_t) { return false; };
  result = generate(session, prompt, options);
  ASSERT_TRUE(isOk(result));
  EXPECT_EQ(result->reason, StopReason::Caller);
  EXPECT_EQ(result->ids.size(), 1u);
  options.maximumTokens = 0;
  result = generate(session, prompt, options);
  ASSERT_TRUE(isOk(result));
  EXPECT_TRUE(result->ids.empty());
  EXPECT_FALSE(generate(session, {}, options).isOk());
  EXPECT_EQ(session.createSequence()->id > 5, true);
}

// Rows of several sequences, in any order, more than once; the options reach the kernel.
TEST(Session, ChoosesTokensOnTheDevice) {
  Session session = makeSession();
  Ids a = randomIds(5, 1), b = randomIds(3, 2);
  StepPart parts[] = {{*session.createSequence(), a, LogitRows::All},
                      {*session.createSequence(), b, LogitRows::Last}};
  ASSERT_TRUE(isOk(session.advance(parts)));
  ASSERT_EQ(session.logitRows(), 6u);
  std::vector<TokenChoice> choices(9);
  Ids expected;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    std::size_t row = i * 5 % 6;
    choices[i].row = row;
    expected.push_back(greedyToken(
        expectedLogits(row < 5 ? std::span(a).first(row + 1) : std::span<const std::int32_t>(b))));
  }
  choices[4].temperature = 1;
  choices[4].random = 0.5;
  expected[4] = testVocabulary / 2;
  auto tokens = session.choose(choices);
  ASSERT_TRUE(isOk(tokens));
  EXPECT_EQ(Ids(tokens->begin(), tokens->end()), expected);
  EXPECT_TRUE(isOk(session.choose({})));
  // The logits are still there.
  auto logits = session.logits();
  ASSERT_TRUE(isOk(logits));
  ASSERT_EQ(logits->rows, 6u);
  EXPECT_EQ(toVector(logits->row(5)), expectedLogits(b));
  EXPECT_EQ(toVector(logits->row(2)), expectedLogits(std::span(a).first(3)));
}

TEST(Session, RefusesChoicesThatCannotBe) {
  Session session = makeSession();
  TokenChoice choice;
  EXPECT_TRUE(fails(session.choose({&choice, 1}), ErrorCode::InvalidArgument, "0 rows of logits"));
  Ids tokens = randomIds(2, 1), wrong = {99};
  Sequence sequence = *session.createSequence();
  StepPart part{sequence, tokens};
  ASSERT_TRUE(isOk(session.advance({&part, 1})));
  choice.row = 1;
  EXPECT_TRUE(fails(session.choose({&choice, 1}), ErrorCode::InvalidArgument, "row 1; the last"));
  choice = {.random = 1};
  EXPECT_TRUE(fails(session.choose({&choice, 1}), ErrorCode::InvalidArgument, "less than 1"));
  // A step that fails leaves no logits.
  part.tokens = wrong;
  EXPECT_FALSE(session.advance({&part, 1}).isOk());
  choice = {};
  EXPECT_TRUE(fails(session.choose({&choice, 1}), ErrorCode::InvalidArgument, "0 rows of logits"));
  // A bundle from before there were samplers.
  auto bundle = Bundle::open(MOERT_TEST_GOLDEN "/format-1.moeb");
  ASSERT_TRUE(isOk(bundle));
  auto old = Session::create(*Model::load(*bundle));
  ASSERT_TRUE(isOk(old));
  EXPECT_TRUE(fails(generate(*old, tokens, {}), ErrorCode::Unsupported, "compile the model again"));
}

TEST(Generate, SamplesWithTheSeedsNumbers) {
  Session session = makeSession();
  GenerateOptions options;
  options.maximumTokens = 20;
  options.ignoreEos = true;
  options.sampling = {.temperature = 1, .seed = 5};
  auto result = generate(session, Ids{1, 2}, options);
  ASSERT_TRUE(isOk(result));
  auto sampler = Sampler::create(options.sampling);
  Ids expected;
  for (int i = 0; i < 20; ++i)
    expected.push_back(static_cast<std::int32_t>(sampler->next(0).random * testVocabulary));
  EXPECT_EQ(result->ids, expected);
}

TEST(Generate, StopsAtEndOfText) {
  Session session = makeSession();
  for (std::int32_t first = 0; first < testVocabulary; ++first) {
    Ids prompt = {first}, history = prompt, expected;
    bool ends = false;
    while (expected.size() < 30 && !ends) {
      std::int32_t next = greedyToken(expectedLogits(history));
      ends = next == 31;
      if (!ends)
        expected.push_back(next);
      history.push_back(next);
    }
    GenerateOptions options;
    options.maximumTokens = 30;
    auto result = generate(session, prompt, options);
    ASSERT_TRUE(isOk(result));
    EXPECT_EQ(result->ids, expected);
    EXPECT_EQ(result->reason, ends ? StopReason::EndOfText : StopReason::MaximumTokens);
  }
}

TEST(Generate, PerplexityCountsWholeWindows) {
  Session session = makeSession();
  Ids ids = randomIds(35, 9);
  auto result = perplexity(session, ids, 10);
  ASSERT_TRUE(isOk(result));
  EXPECT_EQ(result->windows, 3u);
  EXPECT_EQ(result->tokens, 27u);
  double loss = 0;
  for (std::size_t w = 0; w < 3; ++w)
    for (std::size_t i = 0; i < 9; ++i) {
      std::vector<float> logits = expectedLogits(std::span(ids).subspan(w * 10, i + 1));
      double sum = 0;
      for (float value : logits)
        sum += std::exp(static_cast<double>(value));
      loss += std::log(sum) -
              static_cast<double>(logits[static_cast<std::size_t>(ids[w * 10 + i + 1])]);
    }
  EXPECT_NEAR(result->value, std::exp(loss / 27), 1e-9 * result->value);
  EXPECT_TRUE(fails(perplexity(session, ids, 36), ErrorCode::InvalidArgument, "do not fill"));
  EXPECT_FALSE(perplexity(session, ids, 1).isOk());
}

TEST(StateStore, LimitsAndGrows) {
  moec::bundle::Program program;
  for (auto kind :
       {moec::bundle::State::PAGED, moec::bundle::State::PAGED, moec::bundle::State::SLOT}) {
    moec::bundle::State *state = program.add_states();
    state->set_kind(kind);
    state->set_bytes(100);
  }
  auto device = CpuDevice::create(1);
  ASSERT_TRUE(isOk(device));
  StateStore store(program, 10000, *device);
  ASSERT_TRUE(isOk(store.reserve(StateStore::Slots, 2)));
  EXPECT_EQ(store.bytes(), 400u); // four slots at least
  ASSERT_TRUE(isOk(store.reserve(StateStore::Blocks, 48)));
  EXPECT_EQ(store.bytes(), 10000u);
  EXPECT_TRUE(fails(store.reserve(StateStore::Blocks, 49), ErrorCode::OutOfMemory, "need 49"));
  EXPECT_TRUE(fails(store.reserve(StateStore::Slots, 5), ErrorCode::OutOfMemory, "state slots"));
  EXPECT_TRUE(fails(store.reserve(StateStore::Blocks, UINT64_MAX), ErrorCode::OutOfMemory, ""));
  std::uint32_t block = *store.allocate(StateStore::Blocks);
  std::memset(store.spans()[1].data + block * 100, 9, 100);
  store.retain(StateStore::Blocks, block);
  EXPECT_TRUE(store.isShared(StateStore::Blocks, block));
  std::uint32_t copy = *store.makePrivate(StateStore::Blocks, block);
  EXPECT_NE(copy, block);
  EXPECT_EQ(store.spans()[1].data[copy * 100 + 99], std::byte(9));
  store.release(StateStore::Blocks, copy);
  EXPECT_EQ(*store.allocate(StateStore::Blocks), copy); // used again, as zeros
  EXPECT_EQ(store.spans()[1].data[copy * 100 + 99], std::byte(0));
  EXPECT_EQ(store.spans()[1].data[block * 100], std::byte(9));
}
