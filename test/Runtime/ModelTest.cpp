#include "runtime/session/Model.h"

#include "runtime/session/Session.h"
#include "test/Runtime/TestBundle.h"

#include <cstring>
#include <functional>

using namespace moert;
using namespace moert::test;
using moec::bundle::Manifest;

namespace {

Tensor floats(std::vector<std::int64_t> shape, std::vector<float> values) {
  Tensor tensor{ElementType::F32, std::move(shape), {}};
  auto bytes = std::as_bytes(std::span(values));
  tensor.data.assign(bytes.begin(), bytes.end());
  return tensor;
}

Tensor pairs(std::int64_t count) {
  return {ElementType::I4,
          {count},
          std::vector<std::byte>(static_cast<std::size_t>(count + 1) / 2, std::byte(0x21))};
}

Result<std::shared_ptr<const Model>> load(const std::string &path,
                                          const LoadOptions &options = {}) {
  MOERT_ASSIGN_OR_RETURN(auto bundle, Bundle::open(path));
  return Model::load(bundle, options);
}

// Loads a bundle whose manifest was changed and, if that works, runs a step and the plain entry.
Status useChanged(const std::function<void(Manifest &)> &change) {
  TemporaryFolder folder;
  Manifest manifest = makeTestBundle(folder / "b");
  change(manifest);
  MOERT_RETURN_IF_ERROR(writeManifest(folder / "b", manifest));
  MOERT_ASSIGN_OR_RETURN(auto model, load(folder / "b"));
  MOERT_RETURN_IF_ERROR(
      model->run("plain", {{"x", floats({2, 1}, {1, 2})}, {"pairs", pairs(4)}}).status());
  MOERT_ASSIGN_OR_RETURN(Session session, Session::create(model));
  MOERT_ASSIGN_OR_RETURN(Sequence sequence, session.createSequence());
  std::vector<std::int32_t> tokens = {1, 2, 3};
  StepPart part{sequence, tokens};
  return session.step({&part, 1}).status();
}

moec::bundle::Program &step(Manifest &manifest) {
  return *manifest.mutable_variants(1)->mutable_entries(0);
}
moec::bundle::Program &plain(Manifest &manifest) {
  return *manifest.mutable_variants(1)->mutable_entries(1);
}

} // namespace

TEST(Model, LoadsAndTellsWhatItIs) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  LoadOptions options;
  options.threads = 3;
  std::uint64_t done = 0, total = 0;
  options.progress = [&](std::uint64_t d, std::uint64_t t) {
    done = d;
    total = t;
  };
  auto model = load(folder / "b", options);
  ASSERT_TRUE(isOk(model));
  EXPECT_EQ((*model)->variant(), "cpu:x86-64");
  EXPECT_EQ((*model)->threads(), 3u);
  EXPECT_TRUE((*model)->isLanguageModel());
  EXPECT_EQ((*model)->entries(), (std::vector<std::string>{"step", "plain", "choose"}));
  EXPECT_EQ((*model)->memory().globals, 128u);
  EXPECT_EQ((*model)->memory().weights, 128u); // the plain entry reads it as it lies
  EXPECT_EQ(done, 128u);
  EXPECT_EQ(total, 128u);
}

TEST(Model, WeightsThatOnlyLoadReadsAreFreed) {
  TemporaryFolder folder;
  Manifest manifest = makeTestBundle(folder / "b");
  manifest.mutable_variants(1)->mutable_entries()->DeleteSubrange(1, 1);
  ASSERT_TRUE(isOk(writeManifest(folder / "b", manifest)));
  auto model = load(folder / "b");
  ASSERT_TRUE(isOk(model));
  EXPECT_EQ((*model)->memory().weights, 0u);
}

TEST(Model, PicksAVariant) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  LoadOptions options;
  options.variant = "cpu:imaginary";
  EXPECT_TRUE(fails(load(folder / "b", options).status(), ErrorCode::Unsupported,
                    "it lacks imaginary-feature"));
  options.variant = "cpu:other";
  EXPECT_TRUE(fails(load(folder / "b", options).status(), ErrorCode::NotFound,
                    "it has cpu:imaginary, cpu:x86-64"));
  options.variant = "cpu:x86-64";
  EXPECT_TRUE(isOk(load(folder / "b", options)));
  EXPECT_TRUE(fails(useChanged([](Manifest &m) { m.mutable_variants()->RemoveLast(); }),
                    ErrorCode::Unsupported, "cpu:imaginary needs imaginary-feature"));
  EXPECT_TRUE(
      fails(useChanged([](Manifest &m) { m.mutable_variants(1)->set_target("cuda:sm_90"); }),
            ErrorCode::Unsupported, "a device other than the CPU"));
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  auto fits = fitVariants((*bundle)->manifest());
  ASSERT_EQ(fits.size(), 2u);
  EXPECT_EQ(fits[0].missing, "imaginary-feature");
  EXPECT_EQ(fits[1].missing, "");
}

TEST(Model, RunsOnPlainTensors) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto model = load(folder / "b");
  ASSERT_TRUE(isOk(model));
  RunProfile profile;
  auto outputs = (*model)->run(
      "plain", {{"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}, {"pairs", pairs(6)}}, &profile);
  ASSERT_TRUE(isOk(outputs));
  EXPECT_EQ(outputs->at("z").shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(outputs->at("z").data, floats({}, {2, 3, 4, 5, 6, 7}).data);
  EXPECT_EQ(outputs->at("pairs_out").data, pairs(6).data);
  EXPECT_EQ(outputs->at("w").shape, (std::vector<std::int64_t>{32}));
  float value;
  std::memcpy(&value, outputs->at("w").data.data() + 12, 4);
  EXPECT_EQ(value, testWeight(3));
  ASSERT_EQ(profile.launches.size(), 4u);
  EXPECT_EQ(profile.launches[0].kernel, "increment");
  EXPECT_EQ(profile.launches[1].bytesMoved, 48);
  EXPECT_GT(profile.seconds, 0);
  EXPECT_LT(profile.seconds, 10);
  // Nothing at all is fine, too.
  outputs = (*model)->run("plain", {{"x", floats({0, 2}, {})}, {"pairs", pairs(0)}});
  ASSERT_TRUE(isOk(outputs));
  EXPECT_TRUE(outputs->at("z").data.empty());
}

TEST(Model, PlainTensorsAreChecked) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto model = load(folder / "b");
  ASSERT_TRUE(isOk(model));
  auto run = [&](const char *entry, const std::map<std::string, Tensor> &inputs) {
    return (*model)->run(entry, inputs).status();
  };
  Tensor x = floats({2, 1}, {1, 2});
  EXPECT_TRUE(fails(run("", {}), ErrorCode::InvalidArgument, "several entries: step, plain"));
  EXPECT_TRUE(fails(run("none", {}), ErrorCode::NotFound, "it has step, plain"));
  EXPECT_TRUE(
      fails(run("plain", {{"x", x}, {"y", x}}), ErrorCode::InvalidArgument, "no input 'y'"));
  EXPECT_TRUE(fails(run("plain", {{"x", x}}), ErrorCode::InvalidArgument, "'pairs' is missing"));
  EXPECT_TRUE(fails(run("plain", {{"x", pairs(4)}, {"pairs", pairs(4)}}),
                    ErrorCode::InvalidArgument, "expected f32, found i4"));
  EXPECT_TRUE(fails(run("plain", {{"x", floats({3, 1}, {1, 2})}, {"pairs", pairs(4)}}),
                    ErrorCode::InvalidArgument, "does not take 8 bytes"));
  EXPECT_TRUE(fails(run("plain", {{"x", floats({2}, {1, 2})}, {"pairs", pairs(4)}}),
                    ErrorCode::InvalidArgument, "expected 2 dimensions, found 1"));
  EXPECT_TRUE(fails(run("plain", {{"x", x}, {"pairs", pairs(6)}}), ErrorCode::InvalidArgument,
                    "dimension 0: expected 4, found 6"));
  EXPECT_TRUE(fails(run("plain", {{"x", floats({-2, 1}, {})}, {"pairs", pairs(4)}}),
                    ErrorCode::InvalidArgument, "does not take"));
  EXPECT_FALSE(run("step", {}).isOk());
}

TEST(Model, SymbolsMustAgreeBetweenInputs) {
  EXPECT_TRUE(isOk(useChanged([](Manifest &m) {
    *plain(m).mutable_inputs(1)->mutable_shape(0) =
        operate(moec::bundle::Expression::ADD, symbol(0), symbol(0));
  })));
  EXPECT_TRUE(fails(
      useChanged([](Manifest &m) { *plain(m).mutable_inputs(1)->mutable_shape(0) = symbol(0); }),
      ErrorCode::InvalidArgument, "dimension 0 is 4, but n is already 2"));
}

TEST(Model, SizesAreCheckedBeforeAnythingRuns) {
  using moec::bundle::Expression;
  const Expression huge = constant(INT64_MAX);
  struct Case {
    const char *says;
    std::function<void(Manifest &)> change;
  };
  const Case cases[] = {
      {"binding 0 needs 1000 bytes and has 8",
       [](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_binding_bytes(0) = constant(1000);
       }},
      {"binding 1 needs 1000 bytes and has 128",
       [](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_binding_bytes(1) = constant(1000);
       }},
      {"needs -1 bytes",
       [](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_binding_bytes(1) = constant(-1);
       }},
      {"needs too many bytes",
       [&](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_binding_bytes(1) =
             operate(Expression::ADD, huge, symbol(0));
       }},
      {"(a copy): binding 0 needs 129 bytes and has 128",
       [](Manifest &m) {
         *plain(m).mutable_commands(1)->mutable_copy()->mutable_bytes() = constant(129);
       }},
      {"a dimension is negative",
       [](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_dimensions(0) = constant(-1);
       }},
      {"workgroups is negative or too large",
       [&](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_workgroups() = huge;
       }},
      {"scratch space",
       [](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_scratch_bytes() = constant(-1);
       }},
      {"memory for the scratch space",
       [&](Manifest &m) {
         *plain(m).mutable_commands(0)->mutable_launch()->mutable_scratch_bytes() = huge;
       }},
      {"arena 0 has a size that is negative or overflows",
       [&](Manifest &m) { *plain(m).mutable_arenas(0)->mutable_scale() = huge; }},
      {"arena 0 has a size that is negative or overflows",
       [](Manifest &m) { *plain(m).mutable_arenas(0)->mutable_scale() = constant(-1); }},
      {"memory for temporaries",
       [](Manifest &m) {
         *plain(m).mutable_arenas(0)->mutable_scale() = constant(INT64_C(1) << 52);
       }},
      {"output 'z' has a dimension that is negative or overflows",
       [](Manifest &m) { *plain(m).mutable_outputs(0)->mutable_shape(0) = constant(-1); }},
      {"is too large", [&](Manifest &m) { *plain(m).mutable_outputs(0)->mutable_shape(0) = huge; }},
      {"memory for packed weight 'doubled'",
       [](Manifest &m) {
         m.mutable_variants(1)->mutable_globals(0)->set_bytes(UINT64_C(1) << 58);
       }},
      {"load: entry 'load': error: command 0 'double_weight': binding 0 needs 128 bytes and has 64",
       [](Manifest &m) {
         m.mutable_weights(0)->set_bytes(64);
         m.mutable_weights(0)->set_shape(0, 16);
       }},
      {"the code has no kernel 'absent'",
       [](Manifest &m) { plain(m).mutable_commands(0)->mutable_launch()->set_kernel("absent"); }},
      {"memory for the state of sequences",
       [](Manifest &m) { step(m).mutable_states(0)->set_bytes(UINT64_C(1) << 56); }},
      {"the entry's logits are not [rows, vocabulary]",
       [](Manifest &m) {
         m.mutable_language_model()->set_vocabulary(33);
         m.mutable_language_model()->clear_sampler();
       }},
  };
  EXPECT_TRUE(isOk(useChanged([](Manifest &) {})));
  for (const Case &each : cases) {
    Status status = useChanged(each.change);
    ASSERT_FALSE(status.isOk()) << each.says;
    EXPECT_NE(status.toString().find(each.says), std::string::npos)
        << "expected " << each.says << ", found " << status.toString();
  }
}

TEST(Model, ChangedCodeIsRefused) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  std::string path = folder / "b/code/kernels.so", good = readFile(path);
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  // Every byte counts; a few hundred of them, spread over the file, are tried.
  for (std::size_t i = 0; i < good.size(); i += good.size() / 200) {
    std::string changed = good;
    changed[i] ^= 1;
    writeFile(path, changed);
    ASSERT_TRUE(fails(Model::load(*bundle).status(), ErrorCode::InvalidData, "digest")) << i;
  }
  writeFile(path, good.substr(0, good.size() / 2));
  EXPECT_TRUE(fails(Model::load(*bundle).status(), ErrorCode::InvalidData, "expected"));
  writeFile(path, good);
  EXPECT_TRUE(isOk(Model::load(*bundle).status()));
}

TEST(Model, NeedsItsWeights) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto bundle = Bundle::open(folder / "b", {.openWeightFiles = false});
  ASSERT_TRUE(isOk(bundle));
  EXPECT_TRUE(
      fails(Model::load(*bundle).status(), ErrorCode::WrongState, "without its weight files"));
  bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  writeFile(folder / "b/weights/weights.safetensors", "cut");
  EXPECT_TRUE(fails(Model::load(*bundle).status(), ErrorCode::InvalidData, "tensor 'embedding'"));
}

TEST(Model, ChangedWeightsStillRun) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  std::string path = folder / "b/weights/weights.safetensors", good = readFile(path);
  for (std::size_t i = good.size() - 128; i < good.size(); i += 3) {
    std::string changed = good;
    changed[i] = static_cast<char>(0xff);
    writeFile(path, changed);
    auto model = load(folder / "b");
    ASSERT_TRUE(isOk(model));
  }
}

TEST(Model, AnEntryWithStatesRunsOnPlainTensorsOnlyIfAnInputSizesThem) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto model = load(folder / "b");
  ASSERT_TRUE(isOk(model));
  auto ints = [](std::vector<std::int64_t> shape, std::vector<std::int32_t> values) {
    Tensor tensor{ElementType::I32, std::move(shape), {}};
    auto bytes = std::as_bytes(std::span(values));
    tensor.data.assign(bytes.begin(), bytes.end());
    return tensor;
  };
  EXPECT_TRUE(fails((*model)
                        ->run("step", {{"tokens", ints({1}, {1})},
                                       {"positions", ints({1}, {0})},
                                       {"token_sequences", ints({1}, {0})},
                                       {"sequence_offsets", ints({2}, {0, 1})},
                                       {"block_table", ints({1, 1}, {0})},
                                       {"logit_rows", ints({1}, {0})}})
                        .status(),
                    ErrorCode::Unsupported, "no input says how much"));
}
