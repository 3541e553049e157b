#include "runtime/bundle/Bundle.h"

#include "runtime/bundle/Expression.h"
#include "runtime/session/Session.h"
#include "test/Runtime/TestBundle.h"

#include <array>
#include <cmath>
#include <functional>

#include <sys/stat.h>
#include <unistd.h>

using namespace moert;
using namespace moert::test;
using moec::bundle::Expression;
using moec::bundle::Manifest;

namespace {

// Opens a bundle whose manifest was changed by `change`, with a right digest, so that only
// validation stands in the way.
Status openChanged(const std::function<void(Manifest &)> &change) {
  TemporaryFolder folder;
  Manifest manifest = makeTestBundle(folder / "b.moeb");
  change(manifest);
  writeFile(folder / "b.moeb/manifest.moeb", frameManifest(manifest.SerializeAsString()));
  return Bundle::open(folder / "b.moeb").status();
}

moec::bundle::Program &step(Manifest &manifest) {
  return *manifest.mutable_variants(1)->mutable_entries(0);
}

// Gives the model eyes: an entry that computes nothing, and the step's inputs for what it gives.
void addVision(Manifest &manifest) {
  moec::bundle::LanguageModel &language = *manifest.mutable_language_model();
  moec::bundle::Vision &vision = *language.mutable_vision();
  vision.set_entry("encode_image");
  vision.set_image_rows("image_rows");
  vision.set_image_embeddings("image_embeddings");
  vision.set_placeholder(7);
  vision.set_patch(4);
  vision.set_merge(2);
  vision.set_frames(3);
  vision.set_most_patches(100);
  vision.set_most_patches_of_side(10);
  for (int i = 0; i < 3; ++i) {
    vision.add_mean(0.5);
    vision.add_deviation(0.5);
  }
  using moec::bundle::Expression;
  auto addTensor = [](auto &list, const char *name, moec::bundle::ElementType type,
                      std::initializer_list<Expression> shape) {
    moec::bundle::Tensor &tensor = *list.Add();
    tensor.set_name(name);
    tensor.set_type(type);
    for (const Expression &size : shape)
      *tensor.add_shape() = size;
  };
  for (moec::bundle::Variant &variant : *manifest.mutable_variants()) {
    moec::bundle::Program &entry = *variant.mutable_entries(0);
    Expression tokens = entry.inputs(0).shape(0);
    addTensor(*entry.mutable_inputs(), "image_rows", moec::bundle::I32, {tokens});
    addTensor(*entry.mutable_inputs(), "image_embeddings", moec::bundle::F32,
              {symbol(entry.symbols_size()), constant(8)});
    entry.add_symbols("images");
    moec::bundle::Program &encoder = *variant.add_entries();
    encoder.set_name("encode_image");
    for (const char *name : {"embeddings", "frames", "cache_blocks"})
      encoder.add_symbols(name);
    addTensor(*encoder.mutable_inputs(), "patches", moec::bundle::F32,
              {symbol(0), constant(4), symbol(1), constant(48)});
    for (const char *name :
         {"rows", "heights", "columns", "widths", "times", "keys", "last_keys", "items"})
      addTensor(*encoder.mutable_inputs(), name, moec::bundle::I32,
                {symbol(0), constant(4), symbol(1)});
    addTensor(*encoder.mutable_inputs(), "block_table", moec::bundle::I32,
              {constant(1), symbol(2)});
    addTensor(*encoder.mutable_outputs(), "embeddings", moec::bundle::F32,
              {symbol(0), constant(8)});
    moec::bundle::State &state = *encoder.add_states();
    state.set_name("kv.0");
    state.set_bytes(64);
    state.set_block_tokens(16);
    state.set_pool_symbol(2);
  }
  manifest.add_required_features("images");
}

// Small, for tests that open it thousands of times.
void writeOneVariant(const std::string &folder) {
  Manifest manifest = makeTestBundle(folder);
  manifest.mutable_variants()->DeleteSubrange(0, 1);
  manifest.mutable_variants(0)->mutable_entries()->DeleteSubrange(1, 1);
  ASSERT_TRUE(isOk(writeManifest(folder, manifest)));
}

} // namespace

TEST(Bundle, OpensAndVerifies) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b.moeb");
  auto bundle = Bundle::open(folder / "b.moeb");
  ASSERT_TRUE(isOk(bundle));
  EXPECT_EQ((*bundle)->manifest().model(), "a test");
  EXPECT_TRUE((*bundle)->hasWeightFiles());
  std::uint64_t done = 0, total = 0, unchecked = 99;
  EXPECT_TRUE(isOk((*bundle)->verify(
      [&](std::uint64_t d, std::uint64_t t) {
        EXPECT_GE(d, done);
        done = d;
        total = t;
      },
      &unchecked)));
  EXPECT_EQ(done, total);
  EXPECT_GT(total, 128u);
  EXPECT_EQ(unchecked, 0u);
  std::vector<float> weight(testVocabulary);
  EXPECT_TRUE(isOk((*bundle)->readWeight(0, std::as_writable_bytes(std::span(weight)))));
  EXPECT_EQ(weight[3], testWeight(3));
  EXPECT_FALSE((*bundle)->readWeight(1, std::as_writable_bytes(std::span(weight))).isOk());
  EXPECT_FALSE((*bundle)->readWeightPart(0, 4, std::as_writable_bytes(std::span(weight))).isOk());
  EXPECT_TRUE(fails((*bundle)->readFile("weights/weights.safetensors"), ErrorCode::NotFound,
                    "lists no file"));
}

// A bundle that the first release of the format wrote. It must open, verify and run for ever; never
// write it anew.
TEST(Bundle, FormatOneIsReadForEver) {
  auto bundle = Bundle::open(MOERT_TEST_GOLDEN "/format-1.moeb");
  ASSERT_TRUE(isOk(bundle));
  EXPECT_TRUE(isOk((*bundle)->verify()));
  auto model = Model::load(*bundle);
  ASSERT_TRUE(isOk(model));
  auto session = Session::create(*model);
  ASSERT_TRUE(isOk(session));
  std::vector<std::int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
  StepPart part{*session->createSequence(), tokens};
  auto logits = session->step({&part, 1});
  ASSERT_TRUE(isOk(logits));
  EXPECT_EQ(std::vector<float>(logits->row(0).begin(), logits->row(0).end()),
            expectedLogits(tokens, true));
}

TEST(Bundle, WritingIsDeterministicAndChecks) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  std::string first = readFile(folder / "b/manifest.moeb");
  Manifest manifest = makeTestBundle(folder / "b");
  EXPECT_EQ(first, frameManifest(manifest.SerializeAsString()));
  manifest.mutable_variants(0)->set_code("none");
  EXPECT_TRUE(fails(writeManifest(folder / "b", manifest), ErrorCode::InvalidData,
                    "'none' is not among the files"));
  EXPECT_EQ(readFile(folder / "b/manifest.moeb"), first);
}

TEST(Bundle, WeightFilesCanBeElsewhere) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b", {.weightsInside = false});
  EXPECT_TRUE(isOk(Bundle::open(folder / "b")));
  ASSERT_TRUE(isOk(makeFolder(folder / "moved")));
  ASSERT_EQ(rename((folder / "weights.safetensors").c_str(),
                   (folder / "moved/weights.safetensors").c_str()),
            0);
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "--weights"));
  auto bundle = Bundle::open(folder / "b", {.weightsFolder = folder / "moved"});
  ASSERT_TRUE(isOk(bundle));
  EXPECT_EQ((*bundle)->weightFilePath(0), folder / "moved/weights.safetensors");
  EXPECT_TRUE(isOk((*bundle)->verify()));
  auto without = Bundle::open(folder / "b", {.openWeightFiles = false});
  ASSERT_TRUE(isOk(without));
  EXPECT_FALSE((*without)->verify().isOk());
  std::vector<std::byte> bytes(128);
  EXPECT_TRUE(fails((*without)->readWeight(0, bytes), ErrorCode::WrongState, "without"));
}

TEST(Bundle, WeightFilesOfOneNameAreToldApartByTheirFolder) {
  TemporaryFolder folder;
  Manifest manifest = makeTestBundle(folder / "b", {.weightsInside = false});
  std::string content = readFile(folder / "weights.safetensors");
  for (const char *name : {"one", "two"}) {
    ASSERT_TRUE(isOk(makeFolder(folder / name)));
    writeFile(folder / (std::string(name) + "/w"), content);
  }
  manifest.mutable_weight_files(0)->set_path("/nowhere/one/w");
  *manifest.add_weight_files() = manifest.weight_files(0);
  manifest.mutable_weight_files(1)->set_path("/nowhere/two/w");
  ASSERT_TRUE(isOk(writeManifest(folder / "b", manifest)));
  auto bundle = Bundle::open(folder / "b", {.weightsFolder = folder.path()});
  ASSERT_TRUE(isOk(bundle));
  EXPECT_EQ((*bundle)->weightFilePath(1), folder / "two/w");
}

TEST(Bundle, ChangedWeightsAreNamed) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  std::string path = folder / "b/weights/weights.safetensors", good = readFile(path),
              changed = good;
  changed.back() ^= 1;
  writeFile(path, changed);
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle)); // opening reads no weights
  EXPECT_TRUE(fails((*bundle)->verify(), ErrorCode::InvalidData, "tensor 'embedding'"));
  changed = good;
  changed[10] ^= 1;
  writeFile(path, changed);
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "header"));
  writeFile(path, good.substr(0, good.size() - 1));
  EXPECT_TRUE(
      fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "expected 208 bytes, found 207"));
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "cannot open"));
  writeFile(folder / "elsewhere", good);
  ASSERT_EQ(symlink("../../elsewhere", path.c_str()), 0);
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "symbolic links"));
}

TEST(Bundle, TruncatedWhileOpenIsAnError) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  ASSERT_EQ(truncate((folder / "b/weights/weights.safetensors").c_str(), 150), 0);
  std::vector<std::byte> bytes(128);
  EXPECT_TRUE(fails((*bundle)->readWeight(0, bytes), ErrorCode::InvalidData, "tensor 'embedding'"));
  EXPECT_FALSE((*bundle)->verify().isOk());
}

TEST(Bundle, EveryTruncationAndEveryChangedByteOfTheManifestIsAnError) {
  TemporaryFolder folder;
  writeOneVariant(folder / "b");
  std::string path = folder / "b/manifest.moeb", good = readFile(path);
  for (std::size_t length = 0; length < good.size(); ++length) {
    writeFile(path, good.substr(0, length));
    ASSERT_FALSE(Bundle::open(folder / "b").isOk()) << length;
  }
  writeFile(path, good + "x");
  EXPECT_FALSE(Bundle::open(folder / "b").isOk());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    writeFile(path, changed);
    ASSERT_FALSE(Bundle::open(folder / "b").isOk()) << i;
  }
}

// The digest only guards against accidents: whoever forges a manifest also writes its digest.
TEST(Bundle, EveryChangedByteUnderARightDigestIsSurvived) {
  TemporaryFolder folder;
  writeOneVariant(folder / "b");
  std::string path = folder / "b/manifest.moeb", good = readFile(path).substr(48);
  std::size_t opened = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ "\x01\x80\x02\xff"[i % 4]);
    writeFile(path, frameManifest(changed));
    if (auto bundle = Bundle::open(folder / "b"); bundle.isOk()) {
      ++opened;
      (void)(*bundle)->verify();
    }
  }
  EXPECT_GT(opened, 0u); // names and notes may change
  for (std::size_t length = 0; length < good.size(); ++length) {
    writeFile(path, frameManifest(good.substr(0, length)));
    (void)Bundle::open(folder / "b");
  }
}

TEST(Bundle, FramingIsChecked) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  std::string path = folder / "b/manifest.moeb", good = readFile(path);
  writeFile(path, "MOEB" + littleEndian(2, 4) + good.substr(8));
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::Unsupported, "bundle format 2"));
  writeFile(path, frameManifest(std::string(100, '\x0b'))); // groups opened and never closed
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "no valid protobuf"));
  writeFile(path, frameManifest(""));
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "the bundle has none"));
  EXPECT_TRUE(fails(Bundle::open(folder / "none"), ErrorCode::NotFound, "none"));
  EXPECT_TRUE(fails(Bundle::open(folder.path()), ErrorCode::NotFound, "moec compile"));
}

TEST(Bundle, FilesAreChecked) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  std::string path = folder / "b/code/kernels.so", good = readFile(path);
  writeFile(path, good + "x");
  EXPECT_TRUE(
      fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "code/kernels.so: expected"));
  std::string changed = good;
  changed[good.size() / 2] ^= 1;
  writeFile(path, changed);
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  EXPECT_TRUE(fails((*bundle)->readFile("code/kernels.so"), ErrorCode::InvalidData, "digest"));
  EXPECT_TRUE(fails((*bundle)->verify(), ErrorCode::InvalidData, "kernels.so"));
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "cannot open"));
  writeFile(folder / "kernels.so", good);
  ASSERT_EQ(symlink((folder / "kernels.so").c_str(), path.c_str()), 0);
  EXPECT_TRUE(fails(Bundle::open(folder / "b"), ErrorCode::InvalidData, "symbolic links"));
}

TEST(Bundle, EveryRuleOfTheManifestIsChecked) {
  struct Case {
    const char *says;
    std::function<void(Manifest &)> change;
  };
  const Case cases[] = {
      {"does not know 'telepathy'", [](Manifest &m) { m.add_required_features("telepathy"); }},
      {"the path has a part '..'", [](Manifest &m) { m.mutable_files(0)->set_path("../x"); }},
      {"the path is absolute", [](Manifest &m) { m.mutable_files(0)->set_path("/etc/passwd"); }},
      {"cannot list itself", [](Manifest &m) { m.mutable_files(0)->set_path("manifest.moeb"); }},
      {"occurs twice", [](Manifest &m) { *m.add_files() = m.files(0); }},
      {"found 5", [](Manifest &m) { m.mutable_files(0)->set_sha256("12345"); }},
      {"the path has a part '..'", [](Manifest &m) { m.mutable_weight_files(0)->set_path("../w"); }},
      {"a path has 1 to 4096 bytes", [](Manifest &m) { m.mutable_weight_files(0)->set_inside(false); m.mutable_weight_files(0)->set_path(""); }},
      {"a header of 1000000 bytes", [](Manifest &m) { m.mutable_weight_files(0)->set_header_bytes(1000000); }},
      {"header_sha256", [](Manifest &m) { m.mutable_weight_files(0)->clear_header_sha256(); }},
      {"taken twice", [](Manifest &m) { *m.add_weights() = m.weights(0); }},
      {"weights behind it of 0", [](Manifest &m) { m.mutable_weights(m.weights_size() - 1)->set_joined(4000000000u); }},
      {"lies behind another one, which must be named",
       [](Manifest &m) {
         moec::bundle::Weight first = m.weights(0);
         first.set_name("before");
         first.set_joined(1);
         m.mutable_weights()->Add(std::move(first));
         m.mutable_weights()->SwapElements(0, m.weights_size() - 1);
         m.mutable_weights()->SwapElements(1, m.weights_size() - 1);
         for (auto &variant : *m.mutable_variants())
           for (auto &command : *variant.mutable_load()->mutable_commands())
             for (auto &binding : *command.mutable_launch()->mutable_bindings())
               if (binding.what_case() == moec::bundle::Binding::kWeight)
                 binding.set_weight(1);
         for (auto &variant : *m.mutable_variants())
           for (auto &entry : *variant.mutable_entries())
             for (auto &command : *entry.mutable_commands())
               for (auto &binding : *command.mutable_launch()->mutable_bindings())
                 if (binding.what_case() == moec::bundle::Binding::kWeight)
                   binding.set_weight(1);
       }},
      {"file 7 of 1", [](Manifest &m) { m.mutable_weights(0)->set_file(7); }},
      {"bytes at offset 18446744073709551615", [](Manifest &m) { m.mutable_weights(0)->set_offset(UINT64_MAX); }},
      {"do not take", [](Manifest &m) { m.mutable_weights(0)->set_shape(0, INT64_C(1) << 62); }},
      {"do not take", [](Manifest &m) { m.mutable_weights(0)->set_shape(0, -32); }},
      {"do not take", [](Manifest &m) { m.mutable_weights(0)->set_type(moec::bundle::U8); }},
      {"do not take", [](Manifest &m) { m.mutable_weights(0)->set_type(static_cast<moec::bundle::ElementType>(77)); }},
      {"the target 'cpu:x86-64' occurs twice", [](Manifest &m) { m.mutable_variants(0)->set_target("cpu:x86-64"); }},
      {"is not among the files", [](Manifest &m) { m.mutable_variants(1)->set_code("code/other.so"); }},
      {"global 'doubled': occurs twice", [](Manifest &m) { *m.mutable_variants(1)->add_globals() = m.variants(1).globals(0); }},
      {"18446744073709551615 bytes", [](Manifest &m) { m.mutable_variants(1)->mutable_globals(0)->set_bytes(UINT64_MAX); }},
      {"no entries", [](Manifest &m) { m.mutable_variants(1)->clear_entries(); }},
      {"entry 'plain': occurs twice", [](Manifest &m) { step(m).set_name("plain"); }},
      {"the load program has no inputs", [](Manifest &m) { *m.mutable_variants(1)->mutable_load()->add_inputs() = step(m).inputs(0); }},
      {"input 5 of 0", [](Manifest &m) { m.mutable_variants(1)->mutable_load()->mutable_commands(0)->mutable_launch()->mutable_bindings(0)->set_input(5); }},
      {"symbol 'tokens' occurs twice", [](Manifest &m) { step(m).set_symbols(1, "tokens"); }},
      {"no input's dimension gives the symbol 'extra'", [](Manifest &m) { step(m).add_symbols("extra"); }},
      {"input 'tokens' occurs twice", [](Manifest &m) { step(m).mutable_inputs(1)->set_name("tokens"); }},
      {"unknown element type 99", [](Manifest &m) { step(m).mutable_inputs(0)->set_type(static_cast<moec::bundle::ElementType>(99)); }},
      {"40 dimensions", [](Manifest &m) { for (int i = 0; i < 39; ++i) *step(m).mutable_inputs(0)->add_shape() = constant(1); }},
      {"dimension 0: the expression is missing", [](Manifest &m) { step(m).mutable_inputs(0)->mutable_shape(0)->clear_steps(); }},
      {"names symbol 9 of 5", [](Manifest &m) { *step(m).mutable_inputs(0)->mutable_shape(0) = symbol(9); }},
      {"names symbol -1 of 5", [](Manifest &m) { *step(m).mutable_outputs(0)->mutable_shape(0) = symbol(-1); }},
      {"lacks operands", [](Manifest &m) { step(m).mutable_arenas(0)->mutable_scale()->add_steps()->set_operator_(Expression::ADD); }},
      {"leaves 2 values", [](Manifest &m) { step(m).mutable_arenas(0)->mutable_scale()->add_steps(); }},
      {"unknown operator 55", [](Manifest &m) { step(m).mutable_arenas(0)->mutable_scale()->add_steps()->set_operator_(static_cast<Expression::Operator>(55)); }},
      {"exceeds the stack", [](Manifest &m) { for (int i = 0; i < 100; ++i) step(m).mutable_arenas(0)->mutable_scale()->add_steps(); }},
      {"blocks of 0 bytes", [](Manifest &m) { step(m).mutable_states(0)->set_bytes(0); }},
      {"blocks of 18446744073709551615 bytes", [](Manifest &m) { step(m).mutable_states(0)->set_bytes(UINT64_MAX); }},
      {"blocks of 0 tokens", [](Manifest &m) { step(m).mutable_states(0)->set_block_tokens(0); }},
      {"has blocks of 8 tokens, the model of 4", [](Manifest &m) { step(m).mutable_states(0)->set_block_tokens(8); }},
      {"pool_symbol 50 of 5", [](Manifest &m) { step(m).mutable_states(0)->set_pool_symbol(50); }},
      {"unknown kind 3", [](Manifest &m) { step(m).mutable_states(0)->set_kind(static_cast<moec::bundle::State::Kind>(3)); }},
      {"arena 4 of 1", [](Manifest &m) { step(m).mutable_buffers(0)->set_arena(4); }},
      {"bytes at offset 18446744073709551552", [](Manifest &m) { step(m).mutable_buffers(0)->set_offset(UINT64_MAX - 63); }},
      {"65 bytes at offset 64 of an arena of 128", [](Manifest &m) { step(m).mutable_buffers(0)->set_bytes(65); }},
      {"no multiple of 64", [](Manifest &m) { step(m).mutable_buffers(0)->set_offset(32); }},
      {"lives from command 9 to 2", [](Manifest &m) { step(m).mutable_buffers(0)->set_first(9); }},
      {"lives only from command 2 to 2", [](Manifest &m) { step(m).mutable_buffers(0)->set_first(2); }},
      {"neither a launch nor a copy", [](Manifest &m) { step(m).mutable_commands(0)->Clear(); }},
      {"the kernel has no name", [](Manifest &m) { step(m).mutable_commands(0)->mutable_launch()->set_kernel(""); }},
      {"weight 1 of 1", [](Manifest &m) { step(m).mutable_commands(0)->mutable_launch()->mutable_bindings(0)->set_weight(1); }},
      {"buffer 4294967295 of 1", [](Manifest &m) { step(m).mutable_commands(1)->mutable_launch()->mutable_bindings(0)->set_buffer(UINT32_MAX); }},
      {"state 2147483648 of 1", [](Manifest &m) { step(m).mutable_commands(1)->mutable_launch()->mutable_bindings(0)->set_state(UINT32_C(1) << 31); }},
      {"bound to nothing", [](Manifest &m) { step(m).mutable_commands(1)->mutable_launch()->mutable_bindings(0)->Clear(); }},
      {"5 binding_bytes for 6 bindings", [](Manifest &m) { step(m).mutable_commands(0)->mutable_launch()->mutable_binding_bytes()->RemoveLast(); }},
      {"workgroups: the expression is missing", [](Manifest &m) { step(m).mutable_commands(0)->mutable_launch()->clear_workgroups(); }},
      {"more than 4096", [](Manifest &m) { for (int i = 0; i < 5000; ++i) *step(m).mutable_commands(0)->mutable_launch()->add_dimensions() = constant(1); }},
      {"output 9 of 3", [](Manifest &m) { m.mutable_variants(1)->mutable_entries(1)->mutable_commands(1)->mutable_copy()->mutable_to()->set_output(9); }},
{"found 0", [](Manifest &m) { m.mutable_files(0)->clear_sha256(); }},
      {"a path has 1 to 4096 bytes", [](Manifest &m) { m.mutable_weight_files(0)->set_inside(false); m.mutable_weight_files(0)->set_path(std::string(5000, 'x')); }},
      {"a path has 1 to 4096 bytes", [](Manifest &m) { m.mutable_weight_files(0)->set_inside(false); m.mutable_weight_files(0)->set_path(std::string("a\0b", 3)); }},
      {"weight_files[1] 'weights/weights.safetensors': occurs twice", [](Manifest &m) { *m.add_weight_files() = m.weight_files(0); }},
      {"bytes in a file of 18446744073709551615", [](Manifest &m) { m.mutable_weight_files(0)->set_bytes(UINT64_MAX); }},
      {"the name is empty", [](Manifest &m) { m.mutable_weights(0)->set_name(""); }},
      {"sha256: a SHA-256 digest has 32 bytes, found 3", [](Manifest &m) { m.mutable_weights(0)->set_sha256("abc"); }},
      {"do not take", [](Manifest &m) { for (int i = 0; i < 40; ++i) m.mutable_weights(0)->add_shape(1); }},
      {"an empty target", [](Manifest &m) { m.mutable_variants(1)->set_target(""); }},
      {"global '': the name is empty", [](Manifest &m) { m.mutable_variants(1)->mutable_globals(0)->set_name(""); }},
      {"entry '': the name is empty", [](Manifest &m) { m.mutable_variants(1)->mutable_entries(1)->set_name(""); }},
      {"input without a name", [](Manifest &m) { step(m).mutable_inputs(0)->set_name(""); }},
      {"a vocabulary of 4294967295", [](Manifest &m) { m.mutable_language_model()->set_vocabulary(UINT32_MAX); }},
      {"bos_token -2", [](Manifest &m) { m.mutable_language_model()->set_bos_token(-2); }},
      {"tokens is not named", [](Manifest &m) { m.mutable_language_model()->set_tokens(""); }},
      {"logits: the entry has no output ''", [](Manifest &m) { m.mutable_language_model()->set_logits(""); }},
      {"a vocabulary of 0", [](Manifest &m) { m.mutable_language_model()->set_vocabulary(0); }},
      {"bos_token 32", [](Manifest &m) { m.mutable_language_model()->set_bos_token(32); }},
      {"add_bos without", [](Manifest &m) { m.mutable_language_model()->set_bos_token(-1); m.mutable_language_model()->set_add_bos(true); }},
      {"eos token 99", [](Manifest &m) { m.mutable_language_model()->add_eos_tokens(99); }},
      {"the file 'tokenizer.json' is not among", [](Manifest &m) { m.mutable_language_model()->set_tokenizer("tokenizer.json"); }},
      {"maximum_tokens", [](Manifest &m) { m.mutable_language_model()->set_maximum_tokens(UINT64_MAX); }},
      {"sampler: no entry 'none'", [](Manifest &m) { m.mutable_language_model()->set_sampler("none"); }},
      {"sampler: the input 'logits' is missing", [](Manifest &m) { m.mutable_language_model()->set_sampler("plain"); }},
      {"sampler: the input 'top_p' has another type or rank", [](Manifest &m) { m.mutable_variants(1)->mutable_entries(2)->mutable_inputs(4)->set_type(moec::bundle::F32); }},
      {"sampler: the output 'tokens' is missing", [](Manifest &m) { m.mutable_variants(1)->mutable_entries(2)->mutable_outputs(0)->set_name("x"); }},
      {"do not have the 33 columns", [](Manifest &m) { m.mutable_language_model()->set_vocabulary(33); }},
      {"no entry 'other'", [](Manifest &m) { m.mutable_language_model()->set_entry("other"); }},
      {"tokens: the entry has no input 'x'", [](Manifest &m) { m.mutable_language_model()->set_tokens("x"); }},
      {"has two meanings", [](Manifest &m) { m.mutable_language_model()->set_tokens("positions"); }},
      {"block_table is not named", [](Manifest &m) { m.mutable_language_model()->set_block_table(""); }},
      {"nothing says what the input 'positions' means", [](Manifest &m) { m.mutable_language_model()->set_positions(""); }},
      {"is no i32 tensor of 1 dimensions", [](Manifest &m) { step(m).mutable_inputs(0)->set_type(moec::bundle::I64); }},
      {"is no f32 tensor of 2 dimensions", [](Manifest &m) { step(m).mutable_outputs(0)->set_type(moec::bundle::BF16); }},
  };
  EXPECT_TRUE(isOk(openChanged([](Manifest &) {})));
  for (const Case &each : cases)
    EXPECT_TRUE(fails(openChanged(each.change), ErrorCode::InvalidData, each.says));
}

// clang-format off
TEST(Bundle, VisionIsChecked) {
  using moec::bundle::Program;
  using moec::bundle::Vision;
  struct Case {
    const char *says;
    std::function<void(Manifest &, Vision &, Program &step, Program &encoder)> change;
  };
  using M = Manifest;
  using V = Vision;
  using P = Program;
  const Case cases[] = {
      {"patch: expected 1 to 1024, found 0", [](M &, V &v, P &, P &) { v.set_patch(0); }},
      {"merge: expected 1 to 16, found 17", [](M &, V &v, P &, P &) { v.set_merge(17); }},
      {"frames: expected 1 to 1024, found 4294967295", [](M &, V &v, P &, P &) { v.set_frames(UINT32_MAX); }},
      {"most_patches: expected 1 to 16777216, found 4294967295", [](M &, V &v, P &, P &) { v.set_most_patches(UINT32_MAX); }},
      {"most_patches_of_side: expected 1 to 65536, found 0", [](M &, V &v, P &, P &) { v.set_most_patches_of_side(0); }},
      {"placeholder 32 beyond the vocabulary", [](M &, V &v, P &, P &) { v.set_placeholder(32); }},
      {"the mean and the deviation of three colours", [](M &, V &v, P &, P &) { v.clear_mean(); }},
      {"a mean that is no number", [](M &, V &v, P &, P &) { v.set_mean(1, NAN); }},
      {"a deviation that is not above 0", [](M &, V &v, P &, P &) { v.set_deviation(1, 0); }},
      {"vision: no entry 'none'", [](M &, V &v, P &, P &) { v.set_entry("none"); }},
      {"image_rows is not named", [](M &, V &v, P &, P &) { v.set_image_rows(""); }},
      {"image_rows: the entry has no input 'x'", [](M &, V &v, P &, P &) { v.set_image_rows("x"); }},
      {"image_embeddings: the entry has no input 'x'", [](M &, V &v, P &, P &) { v.set_image_embeddings("x"); }},
      {"is no tensor of 2 dimensions", [](M &, V &v, P &, P &) { v.set_image_embeddings("positions"); }},
      {"is not what the input 'image_embeddings'", [](M &, V &, P &step, P &) { *step.mutable_inputs(step.inputs_size() - 1)->mutable_shape(1) = constant(9); }},
      {"is not what the input 'image_embeddings'", [](M &, V &, P &step, P &) { *step.mutable_inputs(step.inputs_size() - 1)->mutable_shape(1) = step.inputs(0).shape(0); }},
      {"is not what the input 'image_embeddings'", [](M &, V &, P &, P &encoder) { encoder.mutable_outputs(0)->set_type(moec::bundle::BF16); }},
      {"the input 'rows' is missing", [](M &, V &, P &, P &encoder) { encoder.mutable_inputs(1)->set_name("x"); }},
      {"the input 'patches' has another type or shape", [](M &, V &, P &, P &encoder) { *encoder.mutable_inputs(0)->mutable_shape(3) = constant(47); }},
      {"the input 'patches' has another type or shape", [](M &, V &v, P &, P &) { v.set_merge(3); }},
      {"the input 'times' has another type or shape", [](M &, V &, P &, P &encoder) { encoder.mutable_inputs(5)->set_type(moec::bundle::I64); }},
      {"the input 'block_table' has another type or shape", [](M &, V &, P &, P &encoder) { encoder.mutable_inputs(9)->mutable_shape()->RemoveLast(); }},
      {"10 inputs, 1 output and 1 state", [](M &, V &, P &, P &encoder) { encoder.clear_outputs(); }},
      {"its state is no cache", [](M &, V &, P &, P &encoder) { encoder.mutable_states(0)->set_kind(moec::bundle::State::SLOT); }},
  };
  auto open = [](const auto &change) {
    return openChanged([&](Manifest &m) {
      addVision(m);
      auto &entries = *m.mutable_variants(1)->mutable_entries();
      change(m, *m.mutable_language_model()->mutable_vision(), entries[0], entries[entries.size() - 1]);
    });
  };
  EXPECT_TRUE(isOk(open([](M &, V &, P &, P &) {})));
  for (const Case &each : cases)
    EXPECT_TRUE(fails(open(each.change), ErrorCode::InvalidData, each.says));
}

TEST(Bundle, CudaVariantsAreChecked) {
  using moec::bundle::TensorMap;
  struct Case {
    const char *says;
    std::function<void(moec::bundle::Variant &, moec::bundle::Launch &, TensorMap &)> change;
  };
  using V = moec::bundle::Variant;
  using L = moec::bundle::Launch;
  using T = TensorMap;
  const Case cases[] = {
      {"a compute capability of 0.0", [](V &v, L &, T &) { v.mutable_cuda()->clear_major(); }},
      {"a compute capability of 7.5000", [](V &v, L &, T &) { v.mutable_cuda()->set_minor(5000); }},
      {"its machine code 'code/x' is not among the files", [](V &v, L &, T &) { v.mutable_cuda()->set_cubin("code/x"); }},
      {"a driver version of 4000000000", [](V &v, L &, T &) { v.mutable_cuda()->set_driver_version_needed(4000000000u); }},
      {"belong to CUDA variants only", [](V &v, L &, T &) { v.clear_cuda(); }},
      {"blocks of 0 threads", [](V &, L &l, T &) { l.clear_threads(); }},
      {"blocks of 2000 threads", [](V &, L &l, T &) { l.set_threads(2000); }},
      {"4294967295 bytes of shared memory", [](V &, L &l, T &) { l.set_shared_bytes(UINT32_MAX); }},
      {"100 tensor maps", [](V &, L &l, T &) { while (l.tensor_maps_size() < 100) l.add_tensor_maps(); }},
      {"tensor_maps[0]: binding 9 of 3", [](V &, L &, T &t) { t.set_binding(9); }},
      {"unknown swizzle 7", [](V &, L &, T &t) { t.set_swizzle(static_cast<T::Swizzle>(7)); }},
      {"0 dimensions; 1 to 5", [](V &, L &, T &t) { t.clear_sizes(); }},
      {"6 dimensions; 1 to 5", [](V &, L &, T &t) { while (t.sizes_size() < 6) *t.add_sizes() = constant(1); }},
      {"2 sizes, 0 strides and 2 numbers of a box", [](V &, L &, T &t) { t.clear_strides_bytes(); }},
      {"2 sizes, 1 strides and 3 numbers of a box", [](V &, L &, T &t) { t.add_box(1); }},
      {"sizes[1]: the expression step 0 names symbol 77", [](V &, L &, T &t) { *t.mutable_sizes(1) = symbol(77); }},
      {"strides_bytes[0]: the expression is missing", [](V &, L &, T &t) { t.mutable_strides_bytes(0)->clear_steps(); }},
      {"a box of 0 elements", [](V &, L &, T &t) { t.set_box(1, 0); }},
      {"a box of 257 elements", [](V &, L &, T &t) { t.set_box(0, 257); }},
      {"elements of type 19 have no whole bytes", [](V &, L &, T &t) { t.set_type(moec::bundle::F4E2M1); }},
      {"elements of type 99 have no whole bytes", [](V &, L &, T &t) { t.set_type(static_cast<moec::bundle::ElementType>(99)); }},
      {"12 bytes in its innermost dimension, no multiple of 16", [](V &, L &, T &t) { t.set_box(0, 3); }},
      {"64 bytes in its innermost dimension; its swizzle allows 32", [](V &, L &, T &t) { t.set_swizzle(T::BYTES_32); }},
  };
  TemporaryFolder folder;
  const Manifest good = makeTestBundle(folder / "b", {.cuda = true});
  for (const Case &each : cases) {
    Manifest manifest = good;
    V &variant = *manifest.mutable_variants(0);
    // The last launch of the step: hidden, rows and logits.
    auto &commands = *variant.mutable_entries(0)->mutable_commands();
    L &launch = *commands[commands.size() - 1].mutable_launch();
    T &map = *launch.add_tensor_maps();
    map.set_binding(2);
    map.set_type(moec::bundle::F32);
    *map.add_sizes() = constant(testVocabulary);
    *map.add_sizes() = symbol(3);
    *map.add_strides_bytes() = constant(4 * testVocabulary);
    map.add_box(16);
    map.add_box(1);
    ASSERT_TRUE(isOk(validateManifest(manifest, "m")));
    each.change(variant, launch, map);
    EXPECT_TRUE(fails(validateManifest(manifest, "m"), ErrorCode::InvalidData, each.says)) << each.says;
  }
}
// clang-format on

TEST(Bundle, BuffersThatLiveTogetherShareNoByte) {
  // Replaces the buffers of the step's program by {offset, bytes, first, last}; the last command
  // uses none of them.
  auto open = [](std::vector<std::array<std::uint64_t, 4>> buffers) {
    return openChanged([&](Manifest &m) {
      moec::bundle::Program &program = step(m);
      program.mutable_arenas(0)->set_bytes(1024);
      for (auto [offset, bytes, first, last] : buffers) {
        moec::bundle::Buffer *buffer = program.add_buffers();
        buffer->set_offset(offset);
        buffer->set_bytes(bytes);
        buffer->set_first(static_cast<std::uint32_t>(first));
        buffer->set_last(static_cast<std::uint32_t>(last));
      }
    });
  };
  // The bundle's own buffer has [64, 128) in commands 1 and 2.
  EXPECT_TRUE(isOk(open({{0, 64, 0, 2}, {128, 64, 0, 2}, {64, 64, 0, 0}, {128, 0, 0, 2}})));
  EXPECT_TRUE(isOk(open({{128, 64, 0, 0}, {128, 128, 1, 1}, {192, 64, 2, 2}, {128, 64, 2, 2}})));
  const char *says = "share bytes of arena 0 while both are alive";
  EXPECT_TRUE(fails(open({{0, 65, 0, 2}}), ErrorCode::InvalidData, says));
  EXPECT_TRUE(fails(open({{64, 1, 2, 2}}), ErrorCode::InvalidData, says));
  EXPECT_TRUE(fails(open({{64, 64, 0, 1}}), ErrorCode::InvalidData, says));
  EXPECT_TRUE(fails(open({{128, 512, 0, 2}, {192, 64, 1, 1}}), ErrorCode::InvalidData, says));
  EXPECT_TRUE(fails(open({{192, 64, 1, 1}, {128, 512, 1, 2}}), ErrorCode::InvalidData, says));
}

TEST(Expression, EvaluatesWithOverflowChecks) {
  std::int64_t symbols[] = {7, -7, INT64_MAX, INT64_MIN};
  auto evaluate = [&](const Expression &expression) {
    EXPECT_EQ(expressionProblem(expression, 4), "");
    return SizeExpression(expression).evaluate(symbols);
  };
  auto binary = [&](Expression::Operator operation, std::int64_t a, std::int64_t b) {
    return evaluate(operate(operation, symbol(a), symbol(b)));
  };
  EXPECT_EQ(evaluate(constant(-3)), -3);
  EXPECT_EQ(binary(Expression::ADD, 0, 1), 0);
  EXPECT_EQ(binary(Expression::ADD, 0, 2), std::nullopt);
  EXPECT_EQ(binary(Expression::MULTIPLY, 0, 1), -49);
  EXPECT_EQ(binary(Expression::MULTIPLY, 2, 2), std::nullopt);
  EXPECT_EQ(binary(Expression::MINIMUM, 0, 1), -7);
  EXPECT_EQ(binary(Expression::MAXIMUM, 0, 1), 7);
  auto with = [&](Expression::Operator operation, std::int64_t a, std::int64_t b) {
    return evaluate(operate(operation, constant(a), constant(b)));
  };
  EXPECT_EQ(with(Expression::FLOOR_DIVIDE, 7, 2), 3);
  EXPECT_EQ(with(Expression::FLOOR_DIVIDE, -7, 2), -4);
  EXPECT_EQ(with(Expression::CEIL_DIVIDE, 7, 2), 4);
  EXPECT_EQ(with(Expression::CEIL_DIVIDE, -7, 2), -3);
  EXPECT_EQ(with(Expression::CEIL_DIVIDE, 8, 2), 4);
  EXPECT_EQ(with(Expression::MODULO, -7, 4), 1);
  EXPECT_EQ(with(Expression::MODULO, 7, -4), -1);
  for (auto operation : {Expression::FLOOR_DIVIDE, Expression::CEIL_DIVIDE, Expression::MODULO}) {
    EXPECT_EQ(with(operation, 1, 0), std::nullopt);
    EXPECT_EQ(with(operation, INT64_MIN, -1), std::nullopt);
  }
}

TEST(Expression, PrintsForPeople) {
  std::string names[] = {"tokens"};
  Expression expression =
      operate(Expression::MULTIPLY, operate(Expression::ADD, symbol(0), constant(1)),
              operate(Expression::CEIL_DIVIDE, symbol(0), constant(16)));
  EXPECT_EQ(expressionToString(expression, names), "(tokens + 1) * ceil(tokens / (16))");
  EXPECT_EQ(expressionToString(symbol(3), names), "?");
}
