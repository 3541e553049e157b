// The public C++ interface over the C one, linked from the shared library like any user's program.
#include "moert/moert.hpp"

#include "test/Runtime/InterfaceSupport.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "gtest/gtest.h"

namespace {

using namespace moert::test;
namespace api = moert;

using Ids = std::vector<std::int32_t>;

struct Fixture {
  BundleOnDisk disk;
  api::Result<api::Bundle> bundle = api::Bundle::open(disk.path());
  api::Result<api::Model> model = api::Model::load(*bundle, {.threads = 2});
};

} // namespace

TEST(Interface, VersionAndErrors) {
  EXPECT_EQ(moert_interface_version(), static_cast<unsigned>(MOERT_INTERFACE_VERSION));
  EXPECT_STRNE(moert_version(), "");
  auto none = api::Bundle::open("/nowhere/at/all");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, static_cast<int>(MOERT_NOT_FOUND));
  EXPECT_EQ(none.error().location, "/nowhere/at/all");
  EXPECT_NE(none.error().toString().find("cannot open"), std::string::npos);
  EXPECT_EQ(moert_error_code(nullptr), 0);
  moert_error_free(nullptr);
  moert_bundle_close(nullptr);
  moert_model_free(nullptr);
  moert_session_free(nullptr);
  moert_snapshot_free(nullptr);
  moert_tokenizer_free(nullptr);
  moert_tensors_free(nullptr);
}

TEST(Interface, DevicesAreNamed) {
  Fixture fixture;
  ASSERT_TRUE(fixture.model);
  EXPECT_EQ(fixture.model->device(), "cpu");
  EXPECT_STREQ(moert_model_device(nullptr), "");
  auto onCpu = api::Model::load(*fixture.bundle, {.device = "cpu", .captureGraphs = false});
  ASSERT_TRUE(onCpu);
  // The bundle has no variant for GPUs.
  auto onGpu = api::Model::load(*fixture.bundle, {.device = "cuda"});
  ASSERT_FALSE(onGpu);
  EXPECT_EQ(onGpu.error().code, static_cast<int>(MOERT_UNSUPPORTED));
  auto nowhere = api::Model::load(*fixture.bundle, {.device = "abacus"});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, static_cast<int>(MOERT_INVALID_ARGUMENT));
  EXPECT_NE(nowhere.error().message.find("there is no device 'abacus'"), std::string::npos);
  // Options of a program that was built before there were devices.
  moert_load_options old;
  std::memset(&old, 0xff, sizeof old);
  old.size = offsetof(moert_load_options, device);
  old.threads = 1;
  old.variant = nullptr;
  old.progress = nullptr;
  moert_model *model = nullptr;
  ASSERT_EQ(moert_model_load(fixture.bundle->get(), &old, &model), nullptr);
  EXPECT_STREQ(moert_model_device(model), "cpu");
  moert_model_free(model);
}

TEST(Interface, NullArgumentsAreErrors) {
  moert_bundle *bundle = nullptr;
  for (moert_error *error : {moert_bundle_open(nullptr, nullptr, &bundle),
                             moert_bundle_open("x", nullptr, nullptr),
                             moert_bundle_verify(nullptr, nullptr, nullptr),
                             moert_model_load(nullptr, nullptr, nullptr),
                             moert_model_run(nullptr, nullptr, nullptr, 0, nullptr),
                             moert_tokenizer_create(nullptr, nullptr),
                             moert_tokenizer_encode(nullptr, nullptr, 0, nullptr, nullptr),
                             moert_tokenizer_decode(nullptr, nullptr, 0, 0, nullptr, nullptr),
                             moert_session_create(nullptr, nullptr, nullptr),
                             moert_sequence_create(nullptr, nullptr),
                             moert_sequence_release(nullptr, 1),
                             moert_sequence_length(nullptr, 1, nullptr),
                             moert_sequence_truncate(nullptr, 1, 0),
                             moert_sequence_fork(nullptr, 1, nullptr),
                             moert_snapshot_take(nullptr, 1, nullptr),
                             moert_snapshot_restore(nullptr, 1, nullptr),
                             moert_session_step(nullptr, nullptr, 0, nullptr),
                             moert_session_advance(nullptr, nullptr, 0, nullptr),
                             moert_session_logits(nullptr, nullptr),
                             moert_session_choose(nullptr, nullptr, 0, nullptr),
                             moert_generate(nullptr, nullptr, 0, nullptr, nullptr, nullptr)}) {
    EXPECT_EQ(moert_error_code(error), MOERT_INVALID_ARGUMENT);
    moert_error_free(error);
  }
  EXPECT_EQ(moert_tensors_get(nullptr, 0), nullptr);
  std::size_t bytes = 7;
  EXPECT_STREQ(moert_tokenizer_bytes(nullptr, 0, 0, &bytes), "");
  EXPECT_EQ(bytes, 0u);
}

TEST(Interface, ModelInformation) {
  Fixture fixture;
  const api::Model &model = *fixture.model;
  moert_model_info info = model.info();
  EXPECT_EQ(info.threads, 2u);
  EXPECT_EQ(info.is_language_model, 1u);
  EXPECT_EQ(info.vocabulary, 32u);
  EXPECT_EQ(info.maximum_tokens, longestTestSequence());
  EXPECT_EQ(info.weight_bytes, 256u);
  EXPECT_TRUE(model.isEnd(31));
  EXPECT_FALSE(model.isEnd(-1));
  // A caller compiled against an older header gets only what it knows.
  struct {
    std::size_t size;
    std::uint32_t threads;
    std::uint32_t guard;
  } old = {offsetof(moert_model_info, is_language_model), 0, 77};
  moert_model_get_info(model.get(), reinterpret_cast<moert_model_info *>(&old));
  EXPECT_EQ(old.threads, 2u);
  EXPECT_EQ(old.guard, 77u);
  std::uint64_t done = 0;
  EXPECT_TRUE(fixture.bundle->verify([&](std::uint64_t d, std::uint64_t) { done = d; }));
  EXPECT_GT(done, 0u);
  auto tokenizer = api::Tokenizer::create(model);
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, static_cast<int>(MOERT_NOT_FOUND));
}

TEST(Interface, ModelsWithoutEyesRefuseImages) {
  Fixture fixture;
  const api::Model &model = *fixture.model;
  EXPECT_EQ(model.info().image_token, -1);
  auto image = api::Image::encode(model, {});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, static_cast<int>(MOERT_UNSUPPORTED));
  EXPECT_NE(image.error().message.find("takes no images"), std::string::npos);
  std::vector<float> numbers(48);
  auto patches = api::Image::encodePatches(model, numbers, 1, 1, 1);
  ASSERT_FALSE(patches);
  EXPECT_EQ(patches.error().code, static_cast<int>(MOERT_UNSUPPORTED));
  EXPECT_EQ(moert_image_tokens(nullptr), 0u);
  moert_image_free(nullptr);
  for (moert_error *error :
       {moert_image_encode_file(model.get(), nullptr, 1, nullptr),
        moert_image_encode_patches(model.get(), nullptr, nullptr),
        moert_sequence_place_image(nullptr, 1, 0, nullptr)}) {
    EXPECT_EQ(moert_error_code(error), MOERT_INVALID_ARGUMENT);
    moert_error_free(error);
  }
}

TEST(Interface, StepsAndSequences) {
  Fixture fixture;
  auto session = api::Session::create(*fixture.model);
  ASSERT_TRUE(session);
  auto first = session->createSequence();
  ASSERT_TRUE(first);
  Ids tokens = {1, 2, 3, 4, 5};
  api::StepPart part{*first, tokens, api::LogitRows::All};
  auto logits = session->step({&part, 1});
  ASSERT_TRUE(logits) << logits.error().toString();
  ASSERT_EQ(logits->rows, 5u);
  ASSERT_EQ(logits->vocabulary, 32u);
  EXPECT_EQ(std::vector<float>(logits->row(4).begin(), logits->row(4).end()),
            expectedLogitsOf(tokens));
  auto snapshot = session->snapshot(*first);
  ASSERT_TRUE(snapshot);
  auto second = session->fork(*first);
  ASSERT_TRUE(second);
  ASSERT_TRUE(session->truncate(*first, 2));
  EXPECT_EQ(*session->length(*first), 2u);
  EXPECT_EQ(*session->length(*second), 5u);
  ASSERT_TRUE(session->restore(*first, *snapshot));
  EXPECT_EQ(*session->length(*first), 5u);
  ASSERT_TRUE(session->release(*second));
  EXPECT_FALSE(session->length(*second));
  Ids bad = {99};
  part = {*first, bad};
  auto refused = session->step({&part, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, static_cast<int>(MOERT_INVALID_ARGUMENT));
  EXPECT_EQ(refused.error().location, "part 0 of the step");
}

TEST(Interface, Generates) {
  Fixture fixture;
  auto session = api::Session::create(*fixture.model);
  ASSERT_TRUE(session);
  Ids prompt = {0, 3}, streamed;
  api::GenerateOptions options;
  options.maximumTokens = 10;
  options.ignoreEnd = true;
  options.onToken = [&](std::int32_t id) {
    streamed.push_back(id);
    return streamed.size() < 5;
  };
  auto ids = session->generate(prompt, options);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, streamed);
  EXPECT_EQ(ids->size(), 5u);
  Ids history = prompt;
  for (std::int32_t id : *ids) {
    std::vector<float> logits = expectedLogitsOf(history);
    EXPECT_EQ(id, std::max_element(logits.begin(), logits.end()) - logits.begin());
    history.push_back(id);
  }
  EXPECT_FALSE(session->generate({}));
  options.temperature = -1;
  EXPECT_FALSE(session->generate(prompt, options));
}

TEST(Interface, ChoosesTokens) {
  Fixture fixture;
  auto session = api::Session::create(*fixture.model);
  ASSERT_TRUE(session);
  Ids first = {1, 2, 3}, second = {4, 5};
  api::StepPart parts[] = {{*session->createSequence(), first},
                           {*session->createSequence(), second}};
  auto rows = session->advance(parts);
  ASSERT_TRUE(rows) << rows.error().toString();
  EXPECT_EQ(*rows, 2u);
  api::Choice choices[] = {{1, 0, 0, 1, 0}, {0, 0, 0, 1, 0}, {0, 1, 0, 1, 0.75}};
  auto tokens = session->choose(choices);
  ASSERT_TRUE(tokens) << tokens.error().toString();
  auto best = [](const std::vector<float> &logits) {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
  };
  EXPECT_EQ(*tokens, (Ids{best(expectedLogitsOf(second)), best(expectedLogitsOf(first)), 24}));
  auto logits = session->logits();
  ASSERT_TRUE(logits);
  ASSERT_EQ(logits->rows, 2u);
  EXPECT_EQ(std::vector<float>(logits->row(1).begin(), logits->row(1).end()),
            expectedLogitsOf(second));
  choices[0].row = 2;
  auto refused = session->choose(choices);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().location, "choice 0");
}

TEST(Interface, RunsOnPlainTensors) {
  Fixture fixture;
  const float x[] = {1, 2};
  api::Tensor tensor{MOERT_F32, {2, 1}, {}};
  tensor.data.resize(sizeof x);
  std::memcpy(tensor.data.data(), x, sizeof x);
  api::Tensor pairs{MOERT_I4, {4}, std::vector<std::byte>(2, std::byte(0x12))};
  auto outputs = fixture.model->run("plain", {{"x", tensor}, {"pairs", pairs}});
  ASSERT_TRUE(outputs) << outputs.error().toString();
  float z[2];
  ASSERT_EQ(outputs->at("z").data.size(), sizeof z);
  std::memcpy(z, outputs->at("z").data.data(), sizeof z);
  EXPECT_EQ(z[0], 2);
  EXPECT_EQ(z[1], 3);
  EXPECT_EQ(outputs->at("pairs_out").type, static_cast<unsigned>(MOERT_I4));
  auto refused = fixture.model->run("plain", {{"x", tensor}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'pairs' is missing"), std::string::npos);
  moert_tensor twice[] = {{"x", MOERT_F32, 0, nullptr, x, 4}, {"x", MOERT_F32, 0, nullptr, x, 4}};
  moert_tensors *result = nullptr;
  moert_error *error = moert_model_run(fixture.model->get(), "plain", twice, 2, &result);
  EXPECT_STREQ(moert_error_message(error), "moert_model_run: an input is given twice");
  moert_error_free(error);
}
