// Whole programs of a bundle on every kind of device: the results are those of the plain formula.
#include "runtime/session/ChooseVariant.h"
#include "runtime/session/Generate.h"
#include "runtime/session/Program.h"
#include "runtime/session/Session.h"
#include "runtime/session/Timeline.h"
#include "test/Runtime/DeviceFixture.h"

#include <cstring>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

using namespace moert;
using namespace moert::test;

namespace {

using Ids = std::vector<std::int32_t>;

Ids randomIds(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Ids ids(count);
  for (std::int32_t &id : ids)
    id = static_cast<std::int32_t>(random() % testVocabulary);
  return ids;
}

class DeviceProgram : public DeviceTest {
protected:
  void loadModel(bool recurrent, bool captureGraphs = true) {
    ASSERT_TRUE(isOk(makeFolder(folder / "bundles")));
    std::string path = folder / (recurrent ? "bundles/recurrent" : "bundles/plain");
    writeTestBundle(path, {.recurrent = recurrent, .cuda = true});
    auto bundle = Bundle::open(path);
    ASSERT_TRUE(isOk(bundle));
    LoadOptions options;
    options.threads = 2;
    options.device = isCuda() ? device->name() : "cpu";
    options.captureGraphs = captureGraphs;
    auto loaded = Model::load(*bundle, options);
    ASSERT_TRUE(isOk(loaded));
    model = *loaded;
    EXPECT_EQ(model->device()->name(), device->name());
    EXPECT_EQ(model->variant(), isCuda() ? "cuda:sm_70" : "cpu:x86-64");
  }

  // Feeds tokens and checks the last one's logits against the whole history.
  static void feed(Session &session, Sequence sequence, Ids &history, const Ids &tokens,
                   bool recurrent) {
    StepPart part{sequence, tokens, LogitRows::Last};
    auto logits = session.step({&part, 1});
    ASSERT_TRUE(isOk(logits));
    history.insert(history.end(), tokens.begin(), tokens.end());
    ASSERT_EQ(logits->rows, 1u);
    std::span<const float> row = logits->row(0);
    ASSERT_EQ(std::vector<float>(row.begin(), row.end()), expectedLogits(history, recurrent));
  }

  TemporaryFolder folder;
  std::shared_ptr<const Model> model;
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceProgram, testing::Values("cpu", "cuda"),
                         [](const auto &info) { return info.param; });

} // namespace

// Prompts of many lengths, single tokens, batches that grow and shrink: sizes change and come
// again, pools and temporaries move.
TEST_P(DeviceProgram, StepsOfAllSizes) {
  for (bool recurrent : {false, true})
    for (bool captureGraphs : {true, false}) {
      loadModel(recurrent, captureGraphs);
      ASSERT_TRUE(model);
      auto session = Session::create(model);
      ASSERT_TRUE(isOk(session));
      std::mt19937 random(7);
      std::vector<Sequence> sequences;
      std::vector<Ids> histories;
      for (int round = 0; round < 40; ++round) {
        if (round % 8 == 0) {
          sequences.push_back(*session->createSequence());
          histories.emplace_back();
        }
        std::size_t taking = 1 + random() % sequences.size();
        std::vector<Ids> tokens;
        std::vector<StepPart> parts;
        for (std::size_t i = 0; i < taking; ++i)
          tokens.push_back(randomIds(round % 8 == 0 ? 5 : 1, static_cast<unsigned>(random())));
        for (std::size_t i = 0; i < taking; ++i)
          parts.push_back({sequences[i], tokens[i], LogitRows::Last});
        auto logits = session->step(parts);
        ASSERT_TRUE(isOk(logits));
        for (std::size_t i = 0; i < taking; ++i) {
          histories[i].insert(histories[i].end(), tokens[i].begin(), tokens[i].end());
          std::span<const float> row = logits->row(i);
          ASSERT_EQ(std::vector<float>(row.begin(), row.end()),
                    expectedLogits(histories[i], recurrent))
              << "round " << round << ", sequence " << i;
        }
      }
    }
}

TEST_P(DeviceProgram, ForksSnapshotsAndUsedBlocks) {
  for (bool recurrent : {false, true}) {
    loadModel(recurrent);
    ASSERT_TRUE(model);
    auto session = Session::create(model);
    ASSERT_TRUE(isOk(session));
    for (std::size_t at : {1, 4, 6, 9}) {
      Sequence first = *session->createSequence();
      Ids history;
      feed(*session, first, history, randomIds(at, 3), recurrent);
      auto snapshot = session->snapshot(first);
      auto second = session->fork(first);
      ASSERT_TRUE(isOk(second));
      Ids a = history, b = history;
      for (unsigned round = 0; round < 3; ++round) {
        feed(*session, first, a, randomIds(2, 10 + round), recurrent);
        feed(*session, *second, b, randomIds(3, 20 + round), recurrent);
      }
      ASSERT_TRUE(isOk(session->restore(first, *snapshot)));
      Ids again = history;
      feed(*session, first, again, randomIds(6, 30), recurrent);
      ASSERT_TRUE(isOk(session->release(first)));
      ASSERT_TRUE(isOk(session->release(*second)));
    }
  }
}

TEST_P(DeviceProgram, GeneratesTheSameWithAndWithoutGraphs) {
  Ids texts[2];
  for (bool captureGraphs : {false, true}) {
    loadModel(false, captureGraphs);
    ASSERT_TRUE(model);
    auto session = Session::create(model);
    ASSERT_TRUE(isOk(session));
    GenerateOptions options;
    options.maximumTokens = 60;
    options.ignoreEos = true;
    auto result = generate(*session, Ids{0, 3, 5}, options);
    ASSERT_TRUE(isOk(result));
    texts[captureGraphs] = result->ids;
  }
  EXPECT_EQ(texts[0].size(), 60u);
  EXPECT_EQ(texts[0], texts[1]);
}

// Batches grow and shrink, so that logits move; steps whose logits nobody asks for come in between.
TEST_P(DeviceProgram, ChoosesTokensOfManySequences) {
  for (bool captureGraphs : {true, false}) {
    loadModel(false, captureGraphs);
    ASSERT_TRUE(model);
    auto session = Session::create(model);
    ASSERT_TRUE(isOk(session));
    std::vector<Sequence> sequences;
    std::vector<Ids> histories;
    for (unsigned i = 0; i < 40; ++i) {
      sequences.push_back(*session->createSequence());
      histories.push_back(randomIds(1 + i % 3, i));
      StepPart part{sequences[i], histories[i], LogitRows::None};
      ASSERT_TRUE(isOk(session->advance({&part, 1})));
      EXPECT_EQ(session->logitRows(), 0u);
    }
    Ids next(40, 7);
    for (std::size_t batch : {1, 3, 3, 3, 40, 40, 40, 3, 40, 1, 1}) {
      std::vector<StepPart> parts;
      std::vector<TokenChoice> choices(batch);
      for (std::size_t i = 0; i < batch; ++i) {
        histories[i].push_back(next[i]);
        parts.push_back({sequences[i], {&next[i], 1}, LogitRows::Last});
        choices[i].row = i;
      }
      ASSERT_TRUE(isOk(session->advance(parts)));
      auto tokens = session->choose(choices);
      ASSERT_TRUE(isOk(tokens));
      for (std::size_t i = 0; i < batch; ++i) {
        next[i] = (*tokens)[i];
        ASSERT_EQ(next[i], greedyToken(expectedLogits(histories[i])));
      }
    }
  }
}

// Two threads hand over steps, recordings and copies at once.
TEST_P(DeviceProgram, SeveralSessionsShareAModel) {
  loadModel(true);
  ASSERT_TRUE(model);
  auto use = [&](unsigned seed) {
    auto session = Session::create(model);
    ASSERT_TRUE(isOk(session));
    for (unsigned round = 0; round < 3; ++round) {
      Sequence sequence = *session->createSequence();
      Ids history;
      for (unsigned i = 0; i < 30; ++i)
        feed(*session, sequence, history, randomIds(1 + i % 2, seed + i), true);
      ASSERT_TRUE(isOk(session->release(sequence)));
    }
  };
  std::thread thread([&] { use(100); });
  use(200);
  thread.join();
}

TEST_P(DeviceProgram, AutoTakesTheFirstVariantThatFits) {
  writeTestBundle(folder / "b", {.cuda = true});
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  auto loaded = Model::load(*bundle, {.threads = 1});
  ASSERT_TRUE(isOk(loaded));
  bool hasGpu = cuda::findDevice({7, 0, false, 0}, -1).index >= 0;
  EXPECT_EQ((*loaded)->variant(), hasGpu ? "cuda:sm_70" : "cpu:x86-64");
  EXPECT_EQ((*loaded)->device()->isHostAccessible(), !hasGpu);
}

TEST_P(DeviceProgram, RunsOnPlainTensors) {
  loadModel(false);
  ASSERT_TRUE(model);
  for (std::int64_t n : {3, 0, 1000}) {
    Tensor x{ElementType::F32, {n, 2}, std::vector<std::byte>(static_cast<std::size_t>(8 * n))};
    for (std::int64_t i = 0; i < 2 * n; ++i) {
      auto value = static_cast<float>(i);
      std::memcpy(x.data.data() + 4 * i, &value, 4);
    }
    Tensor pairs{ElementType::I4,
                 {2 * n},
                 std::vector<std::byte>(static_cast<std::size_t>(n), std::byte(0x21))};
    auto outputs = model->run("plain", {{"x", x}, {"pairs", pairs}});
    ASSERT_TRUE(isOk(outputs));
    for (std::int64_t i = 0; i < 2 * n; ++i) {
      float value;
      std::memcpy(&value, outputs->at("z").data.data() + 4 * i, 4);
      ASSERT_EQ(value, static_cast<float>(i + 1));
    }
    EXPECT_EQ(outputs->at("pairs_out").data, pairs.data);
    float weight;
    std::memcpy(&weight, outputs->at("w").data.data() + 12, 4);
    EXPECT_EQ(weight, testWeight(3));
  }
}

TEST_P(DeviceProgram, ProfilesAndKeepsATimeline) {
  loadModel(false);
  ASSERT_TRUE(model);
  Timeline timeline;
  SessionOptions options;
  options.timeline = &timeline;
  auto session = Session::create(model, options);
  ASSERT_TRUE(isOk(session));
  Sequence sequence = *session->createSequence();
  Ids history;
  feed(*session, sequence, history, randomIds(10, 1), false);
  feed(*session, sequence, history, randomIds(1, 2), false);
  auto profile = session->profile();
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile[1].kernel, "attend");
  EXPECT_EQ(profile[1].launches, 2u);
  EXPECT_EQ(profile[1].flops, 110);
  EXPECT_GT(profile[1].seconds, 0);
  ASSERT_EQ(timeline.events().size(), 8u); // three launches and the program itself, twice
  double end = 0;
  for (const Timeline::Event &event : timeline.events()) {
    if (event.kernel.empty())
      continue;
    EXPECT_GE(event.begin, end * 0.999);
    end = event.begin + event.seconds;
  }
  auto json = nlohmann::json::parse(timeline.toJson("a \"device\""), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  const auto &event = json["traceEvents"][4];
  EXPECT_EQ(event["name"], "test.attend");
  EXPECT_EQ(event["args"]["kernel"], "attend");
  EXPECT_EQ(event["args"]["workgroups"], 10);
  EXPECT_EQ(event["args"]["flops"], 100);
}

// A tensor map follows the sizes of a step, and is refused where it leaves its binding.
TEST_P(DeviceProgram, TensorMapsFollowSizes) {
  if (!isCuda())
    GTEST_SKIP() << "the CPU has no tensor maps";
  if (cuda::Fit fit = cuda::findDevice({9, 0, false, 12000}, cudaIndex); fit.index < 0)
    GTEST_SKIP() << "it needs " << fit.missing;
  using moec::bundle::Expression;
  constexpr std::int64_t rows = 8, tile = 16;
  const Expression columns = symbol(0);
  const Expression tiles = operate(Expression::CEIL_DIVIDE, columns, constant(tile));
  moec::bundle::Program program;
  program.set_name("main");
  program.add_symbols("columns");
  auto tensor = [](moec::bundle::Tensor &result, const char *name,
                   std::initializer_list<Expression> shape) {
    result.set_name(name);
    result.set_type(moec::bundle::I32);
    for (const Expression &size : shape)
      *result.add_shape() = size;
  };
  tensor(*program.add_inputs(), "source", {constant(rows), columns});
  tensor(*program.add_outputs(), "result", {tiles, constant(rows * tile)});
  moec::bundle::Launch &launch = *program.add_commands()->mutable_launch();
  launch.set_kernel("tiles");
  launch.set_threads(128);
  launch.add_bindings()->set_input(0);
  launch.add_bindings()->set_output(0);
  *launch.add_binding_bytes() = operate(Expression::MULTIPLY, columns, constant(4 * rows));
  *launch.add_binding_bytes() = operate(Expression::MULTIPLY, tiles, constant(4 * rows * tile));
  *launch.mutable_workgroups() = tiles;
  moec::bundle::TensorMap &map = *launch.add_tensor_maps();
  map.set_type(moec::bundle::I32);
  *map.add_sizes() = columns;
  *map.add_sizes() = constant(rows);
  *map.add_strides_bytes() = operate(Expression::MULTIPLY, columns, constant(4));
  map.add_box(tile);
  map.add_box(rows);

  auto code = device->load({tensorMapTestKernel, "tiles.ptx"});
  ASSERT_TRUE(isOk(code));
  auto compiled = CompiledProgram::create(program, **code, "a test");
  ASSERT_TRUE(isOk(compiled));
  ProgramRunner runner(*compiled, {}, {}, *device, true);
  for (std::int64_t width : {40, 4, 16, 40, 40, 40, 1000}) {
    const ProgramRunner::Shape shape = {rows, width};
    ASSERT_TRUE(isOk(runner.prepare({&shape, 1}, {})));
    auto *source = reinterpret_cast<std::int32_t *>(runner.input(0).data());
    for (std::int32_t i = 0; i < rows * width; ++i)
      source[i] = i;
    ASSERT_TRUE(isOk(runner.run()));
    auto *result = reinterpret_cast<const std::int32_t *>(runner.output(0).data());
    for (std::int64_t w = 0; w < (width + tile - 1) / tile; ++w)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < tile; ++i) {
          std::int64_t column = w * tile + i;
          ASSERT_EQ(*result++, column < width ? row * width + column : 0) << width;
        }
  }
  ProgramRunner::Shape shape = {rows, 7};
  EXPECT_TRUE(fails(runner.prepare({&shape, 1}, {}), ErrorCode::InvalidData,
                    "command 0 'tiles': tensor map 0: a stride is negative, overflows or is no "
                    "multiple of 16 bytes"));
  *map.mutable_sizes(1) = constant(rows + 1);
  auto larger = CompiledProgram::create(program, **code, "a test");
  ASSERT_TRUE(isOk(larger));
  ProgramRunner wrong(*larger, {}, {}, *device, true);
  shape = {rows, 40};
  EXPECT_TRUE(fails(wrong.prepare({&shape, 1}, {}), ErrorCode::InvalidData,
                    "tensor map 0: it reaches beyond its binding"));
}

TEST(RecordingCache, TheOneUnusedForTheLongestTimeGoes) {
  RecordingCache cache;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(RecordingCache::capacity); ++i)
    cache.find({i, 7}).ranBefore = true;
  EXPECT_TRUE(cache.find({0, 7}).ranBefore); // now used last
  EXPECT_FALSE(cache.find({100, 7}).ranBefore);
  EXPECT_TRUE(cache.find({0, 7}).ranBefore);
  EXPECT_TRUE(cache.find({2, 7}).ranBefore);
  EXPECT_FALSE(cache.find({1, 7}).ranBefore); // it made room
  cache.clear();
  EXPECT_FALSE(cache.find({2, 7}).ranBefore);
}

TEST(ChooseVariant, ReadsNamesOfDevices) {
  for (const char *name : {"", "auto", "cpu", "cuda", "cuda:0", "cuda:12"})
    EXPECT_TRUE(isOk(parseDevice(name))) << name;
  EXPECT_EQ(parseDevice("cuda:12")->index, 12);
  for (const char *name : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "CPU"})
    EXPECT_TRUE(fails(parseDevice(name).status(), ErrorCode::InvalidArgument, "there is no device"))
        << name;
}

TEST(ChooseVariant, FallsBackToTheCpuAndSaysWhatIsMissing) {
  TemporaryFolder folder;
  moec::bundle::Manifest manifest = makeTestBundle(folder / "b", {.cuda = true});
  auto choose = [&](const char *target, const char *device) {
    return chooseVariant(manifest, target, *parseDevice(device), "b");
  };
  // A GPU that nobody has.
  manifest.mutable_variants(0)->mutable_cuda()->set_major(999);
  auto found = choose("", "auto");
  ASSERT_TRUE(isOk(found));
  EXPECT_EQ(found->variant->target(), "cpu:x86-64");
  EXPECT_EQ(found->cudaDevice, -1);
  auto refused = choose("", "cuda");
  EXPECT_TRUE(fails(refused, ErrorCode::Unsupported,
                    "no variant of the bundle runs on the device "
                    "'cuda':\n  cuda:sm_70 needs "));
  EXPECT_TRUE(fails(refused, ErrorCode::Unsupported, "\n  cpu:x86-64 is for the CPU"));
  EXPECT_TRUE(fails(choose("cpu:x86-64", "cuda:0"), ErrorCode::InvalidArgument,
                    "is for the CPU, not for the device 'cuda:0'"));
  EXPECT_TRUE(fails(choose("cuda:sm_70", "cpu"), ErrorCode::InvalidArgument, "a GPU of NVIDIA"));
  EXPECT_TRUE(fails(choose("cuda:sm_70", ""), ErrorCode::Unsupported, "it lacks "));
  auto cpu = choose("", "cpu");
  ASSERT_TRUE(isOk(cpu));
  EXPECT_EQ(cpu->variant->target(), "cpu:x86-64");
  EXPECT_EQ(fitVariants(manifest).size(), 3u);
  EXPECT_NE(fitVariants(manifest)[0].missing, "");
}
