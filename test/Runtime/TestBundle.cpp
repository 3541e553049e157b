#include "test/Runtime/TestBundle.h"

#include "test/Runtime/CudaTestKernels.h"

#include <algorithm>

#include <unistd.h>

namespace moert::test {

using namespace moec::bundle;

Expression constant(std::int64_t value) {
  Expression expression;
  auto *step = expression.add_steps();
  step->set_operator_(Expression::CONSTANT);
  step->set_value(value);
  return expression;
}

Expression symbol(std::int64_t index) {
  Expression expression;
  auto *step = expression.add_steps();
  step->set_operator_(Expression::SYMBOL);
  step->set_value(index);
  return expression;
}

Expression operate(Expression::Operator operation, const Expression &a, const Expression &b) {
  Expression expression = a;
  expression.MergeFrom(b);
  expression.add_steps()->set_operator_(operation);
  return expression;
}

std::string testKernelsPath() {
  char program[4096];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  EXPECT_GT(length, 0);
  std::string_view bin = parentPath(std::string_view(program, static_cast<std::size_t>(length)));
  return joinPath(parentPath(bin), "lib/moert_test_kernels.so");
}

float testWeight(std::int32_t token) { return static_cast<float>(token * 5 % 11 + 1); }

std::vector<float> expectedLogits(std::span<const std::int32_t> tokens, bool recurrent) {
  std::int64_t hidden = 0, memory = 0;
  for (std::size_t p = 0; p < tokens.size(); ++p) {
    auto embedding = static_cast<std::int64_t>(2 * testWeight(tokens[p]));
    hidden += static_cast<std::int64_t>(1 + p % 3) * embedding;
    memory = memory / 2 + embedding;
  }
  if (recurrent)
    hidden += memory;
  std::vector<float> logits;
  for (std::int64_t v = 0; v < testVocabulary; ++v)
    logits.push_back(-static_cast<float>((hidden - 7 * v) * (hidden - 7 * v) % 1009));
  return logits;
}

std::int32_t greedyToken(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

namespace {

void addFile(Manifest &manifest, const std::string &path, const std::string &content) {
  moec::bundle::File *file = manifest.add_files();
  file->set_path(path);
  file->set_bytes(content.size());
  Sha256Digest digest = sha256(content);
  file->set_sha256(digest.data(), digest.size());
}

// Puts a launch together binding by binding.
class LaunchBuilder {
public:
  LaunchBuilder(Program &program, const char *kernel, const Expression &workgroups)
      : launch(*program.add_commands()->mutable_launch()) {
    launch.set_kernel(kernel);
    launch.set_source(std::string("test.") + kernel);
    *launch.mutable_workgroups() = workgroups;
  }
  enum Kind { Buffer, Weight, Global, Input, Output, State };
  LaunchBuilder &bind(Kind kind, std::uint32_t index, const Expression &elements) {
    Binding &binding = *launch.add_bindings();
    switch (kind) {
    case Buffer:
      binding.set_buffer(index);
      break;
    case Weight:
      binding.set_weight(index);
      break;
    case Global:
      binding.set_global(index);
      break;
    case Input:
      binding.set_input(index);
      break;
    case Output:
      binding.set_output(index);
      break;
    case State:
      binding.set_state(index);
      break;
    }
    *launch.add_binding_bytes() = operate(Expression::MULTIPLY, elements, constant(4));
    return *this;
  }
  LaunchBuilder &dimensions(std::initializer_list<Expression> list) {
    for (const Expression &each : list)
      *launch.add_dimensions() = each;
    return *this;
  }
  Launch &get() { return launch; }

private:
  Launch &launch;
};

void addTensor(Tensor &tensor, const char *name, moec::bundle::ElementType type,
               std::initializer_list<Expression> shape) {
  tensor.set_name(name);
  tensor.set_type(type);
  for (const Expression &each : shape)
    *tensor.add_shape() = each;
}

void makeLoad(Program &load) {
  load.set_name("load");
  LaunchBuilder(load, "double_weight", constant(testVocabulary / 8))
      .bind(LaunchBuilder::Weight, 0, constant(testVocabulary))
      .bind(LaunchBuilder::Global, 0, constant(testVocabulary))
      .dimensions({constant(testVocabulary)});
}

void makeStep(Program &step, bool recurrent) {
  step.set_name("step");
  const Expression tokens = symbol(0), sequences = symbol(1), blocks = symbol(2), rows = symbol(3);
  const Expression pool = symbol(4), slots = symbol(5), vocabulary = constant(testVocabulary);
  const Expression offsets = operate(Expression::ADD, sequences, constant(1));
  for (const char *name : {"tokens", "sequences", "blocks", "rows", "pool"})
    step.add_symbols(name);
  addTensor(*step.add_inputs(), "tokens", I32, {tokens});
  addTensor(*step.add_inputs(), "positions", I32, {tokens});
  addTensor(*step.add_inputs(), "token_sequences", I32, {tokens});
  addTensor(*step.add_inputs(), "sequence_offsets", I32, {offsets});
  addTensor(*step.add_inputs(), "block_table", I32, {sequences, blocks});
  addTensor(*step.add_inputs(), "logit_rows", I32, {rows});
  addTensor(*step.add_outputs(), "logits", F32, {rows, vocabulary});
  moec::bundle::State *cache = step.add_states();
  cache->set_name("cache");
  cache->set_kind(State::PAGED);
  cache->set_bytes(4 * testBlockTokens);
  cache->set_block_tokens(testBlockTokens);
  cache->set_pool_symbol(4);
  // hidden f32[tokens], in an arena of 64 bytes a token so that offsets stay aligned.
  Arena *arena = step.add_arenas();
  *arena->mutable_scale() = tokens;
  arena->set_bytes(128);
  moec::bundle::Buffer *hidden = step.add_buffers();
  hidden->set_name("hidden");
  hidden->set_offset(64);
  hidden->set_bytes(64);
  hidden->set_first(1);
  hidden->set_last(recurrent ? 3 : 2);

  const Expression table = operate(Expression::MULTIPLY, sequences, blocks);
  const Expression cached = operate(Expression::MULTIPLY, pool, constant(testBlockTokens));
  using Launch = LaunchBuilder;
  Launch(step, "append", tokens)
      .bind(Launch::Input, 0, tokens)
      .bind(Launch::Input, 1, tokens)
      .bind(Launch::Input, 2, tokens)
      .bind(Launch::Input, 4, table)
      .bind(Launch::Global, 0, vocabulary)
      .bind(Launch::State, 0, cached)
      .dimensions({tokens, tokens, tokens, sequences, blocks, pool});
  LaunchBuilder attend(step, "attend", tokens);
  attend.bind(Launch::Input, 1, tokens)
      .bind(Launch::Input, 2, tokens)
      .bind(Launch::Input, 4, table)
      .bind(Launch::State, 0, cached)
      .bind(Launch::Buffer, 0, tokens)
      .dimensions({tokens, tokens, sequences, blocks, pool, tokens});
  *attend.get().mutable_flops() = operate(Expression::MULTIPLY, tokens, constant(10));
  *attend.get().mutable_bytes_moved() = operate(Expression::MULTIPLY, tokens, constant(100));
  if (recurrent) {
    step.add_symbols("slots");
    addTensor(*step.add_inputs(), "state_slots", I32, {sequences});
    moec::bundle::State *memory = step.add_states();
    memory->set_name("memory");
    memory->set_kind(State::SLOT);
    memory->set_bytes(4);
    memory->set_pool_symbol(5);
    Launch(step, "recur", sequences)
        .bind(Launch::Input, 0, tokens)
        .bind(Launch::Input, 3, offsets)
        .bind(Launch::Input, 6, sequences)
        .bind(Launch::Global, 0, vocabulary)
        .bind(Launch::State, 1, slots)
        .bind(Launch::Buffer, 0, tokens)
        .dimensions({tokens, sequences, slots, tokens});
  }
  LaunchBuilder last(step, "logits", rows);
  last.bind(Launch::Buffer, 0, tokens)
      .bind(Launch::Input, 5, rows)
      .bind(Launch::Output, 0, operate(Expression::MULTIPLY, rows, vocabulary))
      .dimensions({tokens, rows, rows, vocabulary});
  *last.get().mutable_scratch_bytes() = constant(4 * testVocabulary);
}

void makeSampler(Program &sampler) {
  sampler.set_name("choose");
  const Expression rows = symbol(0), samples = symbol(1), vocabulary = constant(testVocabulary);
  const Expression twice = operate(Expression::MULTIPLY, samples, constant(2));
  sampler.add_symbols("rows");
  sampler.add_symbols("samples");
  addTensor(*sampler.add_inputs(), "logits", F32, {rows, vocabulary});
  addTensor(*sampler.add_inputs(), "rows", I32, {samples});
  addTensor(*sampler.add_inputs(), "temperature", F32, {samples});
  addTensor(*sampler.add_inputs(), "top_k", I32, {samples});
  addTensor(*sampler.add_inputs(), "top_p", F64, {samples});
  addTensor(*sampler.add_inputs(), "random", F64, {samples});
  addTensor(*sampler.add_outputs(), "tokens", I32, {samples});
  LaunchBuilder(sampler, "choose", samples)
      .bind(LaunchBuilder::Input, 0, operate(Expression::MULTIPLY, rows, vocabulary))
      .bind(LaunchBuilder::Input, 1, samples)
      .bind(LaunchBuilder::Input, 2, samples)
      .bind(LaunchBuilder::Input, 3, samples)
      .bind(LaunchBuilder::Input, 4, twice)
      .bind(LaunchBuilder::Input, 5, twice)
      .bind(LaunchBuilder::Output, 0, samples)
      .dimensions({samples, vocabulary});
}

// z = y = x + 1 through a buffer and a copy; w = weight.
void makePlain(Program &plain) {
  plain.set_name("plain");
  plain.add_symbols("n");
  plain.add_symbols("m");
  const Expression n = symbol(0), m = symbol(1), all = operate(Expression::MULTIPLY, n, m);
  const Expression bytes = operate(Expression::MULTIPLY, all, constant(4));
  addTensor(*plain.add_inputs(), "x", F32, {n, m});
  addTensor(*plain.add_inputs(), "pairs", I4, {operate(Expression::MULTIPLY, n, constant(2))});
  addTensor(*plain.add_outputs(), "z", F32, {n, m});
  addTensor(*plain.add_outputs(), "w", F32, {constant(testVocabulary)});
  addTensor(*plain.add_outputs(), "pairs_out", I4, {operate(Expression::MULTIPLY, n, constant(2))});
  Arena *arena = plain.add_arenas();
  *arena->mutable_scale() = all;
  arena->set_bytes(64);
  moec::bundle::Buffer *y = plain.add_buffers();
  y->set_name("y");
  y->set_bytes(64);
  y->set_last(1);
  LaunchBuilder(plain, "increment", n)
      .bind(LaunchBuilder::Input, 0, all)
      .bind(LaunchBuilder::Buffer, 0, all)
      .dimensions({n, m, n, m});
  moec::bundle::Copy *copy = plain.add_commands()->mutable_copy();
  copy->mutable_from()->set_buffer(0);
  copy->mutable_to()->set_output(0);
  *copy->mutable_bytes() = bytes;
  copy = plain.add_commands()->mutable_copy();
  copy->mutable_from()->set_weight(0);
  copy->mutable_to()->set_output(1);
  *copy->mutable_bytes() = constant(4 * testVocabulary);
  copy = plain.add_commands()->mutable_copy();
  copy->mutable_from()->set_input(1);
  copy->mutable_to()->set_output(2);
  *copy->mutable_bytes() = n;
}

// Blocks of threads, and scratch space for all workgroups together instead of for each thread.
void forCuda(Program &program) {
  for (Command &command : *program.mutable_commands()) {
    if (!command.has_launch())
      continue;
    moec::bundle::Launch &launch = *command.mutable_launch();
    launch.set_threads(64);
    if (launch.has_scratch_bytes())
      *launch.mutable_scratch_bytes() =
          operate(Expression::MULTIPLY, launch.scratch_bytes(), launch.workgroups());
  }
}

void addWeights(Manifest &manifest, const std::string &folder, bool inside) {
  std::string header =
      R"({"embedding": {"dtype": "F32", "shape": [32], "data_offsets": [0, 128]}})";
  std::string prefix = littleEndian(header.size(), 8) + header, data;
  for (std::int32_t v = 0; v < testVocabulary; ++v) {
    float value = testWeight(v);
    data.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  std::string name = inside ? "weights/weights.safetensors" : "weights.safetensors";
  if (inside)
    EXPECT_TRUE(isOk(makeFolder(folder + "/weights")));
  writeFile(folder + (inside ? "/" : "/../") + name, prefix + data);
  WeightFile *file = manifest.add_weight_files();
  file->set_path(inside ? name : "../" + name);
  file->set_inside(inside);
  file->set_bytes(prefix.size() + data.size());
  file->set_header_bytes(prefix.size());
  Sha256Digest digest = sha256(prefix);
  file->set_header_sha256(digest.data(), digest.size());
  moec::bundle::Weight *weight = manifest.add_weights();
  weight->set_name("embedding");
  weight->set_offset(prefix.size());
  weight->set_bytes(data.size());
  weight->set_type(F32);
  weight->add_shape(testVocabulary);
  digest = sha256(data);
  weight->set_sha256(digest.data(), digest.size());
}

} // namespace

Manifest makeTestBundle(const std::string &folder, const TestBundleOptions &options) {
  EXPECT_TRUE(isOk(makeFolder(folder)));
  EXPECT_TRUE(isOk(makeFolder(folder + "/code")));
  Manifest manifest;
  manifest.set_compiler_version("test");
  manifest.set_model("a test");
  manifest.add_required_features("paged-states");
  std::string code = readFile(testKernelsPath());
  writeFile(folder + "/code/kernels.so", code);
  addFile(manifest, "code/kernels.so", code);
  addWeights(manifest, folder, options.weightsInside);

  // A variant for a machine that does not exist comes first; it is never taken.
  Variant unusable;
  unusable.set_target("cpu:imaginary");
  unusable.add_cpu_features("imaginary-feature");
  unusable.set_code("code/kernels.so");
  Global *global = unusable.add_globals();
  global->set_name("doubled");
  global->set_bytes(4 * testVocabulary);
  makeLoad(*unusable.mutable_load());
  makeStep(*unusable.add_entries(), options.recurrent);
  makePlain(*unusable.add_entries());
  makeSampler(*unusable.add_entries());
  Variant usable = unusable;
  usable.set_target("cpu:x86-64");
  usable.clear_cpu_features();
  usable.add_cpu_features("sse2");
  if (options.cuda) {
    Variant &cuda = *manifest.add_variants();
    cuda = usable;
    cuda.set_target("cuda:sm_70");
    cuda.clear_cpu_features();
    cuda.set_code("code/kernels.ptx");
    cuda.mutable_cuda()->set_major(7);
    writeFile(folder + "/code/kernels.ptx", cudaTestKernels);
    addFile(manifest, "code/kernels.ptx", cudaTestKernels);
    forCuda(*cuda.mutable_load());
    for (Program &entry : *cuda.mutable_entries())
      forCuda(entry);
  }
  *manifest.add_variants() = unusable;
  *manifest.add_variants() = usable;

  LanguageModel *model = manifest.mutable_language_model();
  model->set_entry("step");
  model->set_tokens("tokens");
  model->set_positions("positions");
  model->set_token_sequences("token_sequences");
  model->set_sequence_offsets("sequence_offsets");
  model->set_block_table("block_table");
  if (options.recurrent)
    model->set_state_slots("state_slots");
  model->set_logit_rows("logit_rows");
  model->set_logits("logits");
  model->set_sampler("choose");
  model->set_vocabulary(testVocabulary);
  model->set_block_tokens(testBlockTokens);
  model->set_maximum_tokens(testMaximumTokens);
  model->set_bos_token(0);
  model->add_eos_tokens(31);
  return manifest;
}

void writeTestBundle(const std::string &folder, const TestBundleOptions &options) {
  EXPECT_TRUE(isOk(writeManifest(folder, makeTestBundle(folder, options))));
}

std::string frameManifest(std::string_view payload) {
  Sha256Digest digest = sha256(payload);
  return "MOEB" + littleEndian(1, 4) + littleEndian(payload.size(), 8) +
         std::string(reinterpret_cast<const char *>(digest.data()), digest.size()) +
         std::string(payload);
}

} // namespace moert::test
