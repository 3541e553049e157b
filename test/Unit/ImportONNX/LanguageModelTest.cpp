// A gpt-oss export becomes the program that its checkpoint becomes, and computes what transformers
// computed.
#include "TestModels.h"

#include "moec/Conversion/ImportCheckpoint.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/MoE/Reference/Interpreter.h"
#include "moec/Transforms/Raise/Passes.h"

#include "runtime/base/Safetensors.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::moec;
using moe::ReferenceTensor;
using moe::ReferenceValue;

namespace {

const std::string folder = MOEC_TEST_MODELS "/gptoss-micro";
constexpr int64_t vocabulary = 48, kvHeads = 2, headSize = 8;

struct Reference {
  std::vector<int64_t> tokens;
  std::vector<float> logits; // [tokens, vocabulary]
};

Reference readReference() {
  Reference reference;
  auto file = moert::SafetensorsFile::open(*moert::File::open(folder + "/reference.safetensors"));
  const auto *tokens = file->find("tokens"), *logits = file->find("logits");
  std::vector<int32_t> narrow(tokens->shape[0]);
  reference.logits.resize(narrow.size() * vocabulary);
  EXPECT_TRUE(file->read(*tokens, std::as_writable_bytes(std::span(narrow))).isOk());
  EXPECT_TRUE(file->read(*logits, std::as_writable_bytes(std::span(reference.logits))).isOk());
  reference.tokens.assign(narrow.begin(), narrow.end());
  return reference;
}

class LanguageModelTest : public testing::Test {
protected:
  LanguageModelTest() {
    DialectRegistry registry;
    moe::registerReferenceModels(registry);
    context.appendDialectRegistry(registry);
  }

  using Interface = ImportONNXOptions::Interface;
  using Precision = ImportONNXOptions::Precision;

  OwningOpRef<ModuleOp> import(Interface interface, Precision precision = Precision::Model,
                               const std::string &name = "model.onnx") {
    ImportONNXOptions options;
    options.interface = interface;
    options.precision = precision;
    auto module = importONNX(folder + "/" + name, options, &context);
    EXPECT_TRUE(succeeded(module));
    return failed(module) ? OwningOpRef<ModuleOp>() : std::move(*module);
  }
  void raise(ModuleOp module) {
    PassManager manager(&context);
    buildRaisePipeline(manager);
    EXPECT_TRUE(succeeded(manager.run(module)));
  }
  std::unique_ptr<moe::WeightSource> openWeights() {
    std::string problem;
    auto source = moe::openWeightFolder(folder, false, problem);
    EXPECT_TRUE(succeeded(source)) << problem;
    return std::move(*source);
  }
  ReferenceTensor tensor(Type type, ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
    return *ReferenceTensor::createFrom(type, shape, values);
  }
  ReferenceTensor vector(ArrayRef<int64_t> values) {
    return tensor(IntegerType::get(&context, 32), {int64_t(values.size())}, values);
  }

  /// Runs the graph on tensors as the file has them.
  void checkPlainTensors(ModuleOp module);
  std::vector<float> runStep(ModuleOp module, ArrayRef<int64_t> tokens, int64_t chunk);

  MLIRContext context;
};

double largestDifference(ArrayRef<float> actual, ArrayRef<float> expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (auto [a, b] : llvm::zip(actual, expected)) {
    // Written so that NaN counts.
    if (!(std::abs(double(a) - double(b)) <= largest))
      largest = std::abs(double(a) - double(b));
  }
  return largest;
}

void LanguageModelTest::checkPlainTensors(ModuleOp module) {
  auto weights = openWeights();
  moe::Interpreter interpreter(module, weights.get());
  Reference reference = readReference();
  Type i64 = IntegerType::get(&context, 64), f32 = Float32Type::get(&context);
  // Two sequences at once, in two steps: the second step reads what the first one returned.
  int64_t batch = 2, length = 24, split = 13;
  std::vector<ReferenceValue> past;
  for (int i = 0; i < 4; ++i)
    past.push_back(*ReferenceTensor::create(f32, {batch, kvHeads, 0, headSize}));
  int64_t begin = 0;
  for (int64_t end : {split, length}) {
    int64_t steps = end - begin;
    std::vector<int64_t> ids, positions;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t t = begin; t < end; ++t) {
        ids.push_back(b == 0 ? reference.tokens[t] : (5 * t) % vocabulary);
        positions.push_back(t);
      }
    }
    std::vector<ReferenceValue> arguments = {tensor(i64, {batch, steps}, ids),
                                             tensor(i64, {batch, steps}, positions)};
    arguments.insert(arguments.end(), past.begin(), past.end());
    auto results = interpreter.call("main", arguments);
    ASSERT_TRUE(succeeded(results));
    std::vector<float> logits = (*results)[0].getTensor().getFloats();
    logits.resize(steps * vocabulary); // the first sequence
    EXPECT_LT(largestDifference(
                  logits, ArrayRef(reference.logits).slice(begin * vocabulary, steps * vocabulary)),
              1e-5);
    past.assign(results->begin() + 1, results->end());
    EXPECT_EQ(past[0].getTensor().getDimSize(2), end);
    begin = end;
  }
}

TEST_F(LanguageModelTest, PlainTensorsComputeTheReferenceLogits) {
  OwningOpRef<ModuleOp> module = import(ImportONNXOptions::Interface::Tensors);
  ASSERT_TRUE(module);
  checkPlainTensors(*module);
  raise(*module);
  checkPlainTensors(*module);
}

/// The ops of a step in order, without those that only say where weights lie and how.
std::vector<std::string> listOps(ModuleOp module) {
  std::vector<std::string> names;
  module.lookupSymbol<func::FuncOp>("step").walk([&](Operation *op) {
    bool isWeight =
        isa<moe::WeightOp, tensor::EmptyOp, linalg::TransposeOp, linalg::YieldOp, tensor::DimOp>(
            op) ||
        op->hasTrait<OpTrait::ConstantLike>();
    if (!isWeight && !isa<func::FuncOp>(op))
      names.push_back(op->getName().getStringRef().str());
  });
  // Queries, keys and values are independent of each other: importers differ in their order.
  llvm::sort(names);
  return names;
}

std::vector<std::string> listArguments(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  std::vector<std::string> texts;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << step.getArgAttr(i, "moe.name") << " " << step.getArgAttr(i, "moe.dims") << " "
           << step.getArgument(i).getType();
    texts.push_back(text);
  }
  return texts;
}

/// Logits of a raised step that is fed `chunk` tokens at a time.
std::vector<float> LanguageModelTest::runStep(ModuleOp module, ArrayRef<int64_t> tokens,
                                              int64_t chunk) {
  auto weights = openWeights();
  moe::Interpreter interpreter(module, weights.get());
  int64_t length = tokens.size(), blocks = 4;
  std::vector<ReferenceValue> caches;
  for (Type type : module.lookupSymbol<func::FuncOp>("step").getArgumentTypes())
    if (auto cache = dyn_cast<moe::CacheType>(type))
      caches.push_back(*moe::ReferenceCache::create(cache, blocks));
  std::vector<float> logits;
  for (int64_t begin = 0; begin < length; begin += chunk) {
    int64_t count = std::min(chunk, length - begin);
    std::vector<int64_t> ids, positions, rows;
    for (int64_t t = 0; t < count; ++t) {
      ids.push_back(tokens[begin + t]);
      positions.push_back(begin + t);
      rows.push_back(t);
    }
    Type i32 = IntegerType::get(&context, 32);
    // One sequence, whose blocks lie in the pool in another order.
    std::vector<ReferenceValue> arguments = {vector(ids),
                                             vector(positions),
                                             vector(std::vector<int64_t>(count, 0)),
                                             vector({0, count}),
                                             tensor(i32, {1, blocks}, {2, 0, 3, 1}),
                                             vector(rows)};
    arguments.insert(arguments.end(), caches.begin(), caches.end());
    auto results = interpreter.call("step", arguments);
    EXPECT_TRUE(succeeded(results));
    if (failed(results))
      return logits;
    std::vector<float> part = results->front().getTensor().getFloats();
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

TEST_F(LanguageModelTest, RaisedStepComputesTheReferenceLogits) {
  OwningOpRef<ModuleOp> module = import(Interface::LanguageModel);
  ASSERT_TRUE(module);
  raise(*module);
  Reference reference = readReference();
  int64_t length = reference.tokens.size();
  for (int64_t chunk : {length, int64_t(7)})
    EXPECT_LT(largestDifference(runStep(*module, reference.tokens, chunk), reference.logits), 1e-5);
}

/// sqrt(sum (a - b)^2 / sum b^2).
double relativeRMS(ArrayRef<float> actual, ArrayRef<float> expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, size = 0;
  for (auto [a, b] : llvm::zip(actual, expected)) {
    error += (double(a) - b) * (double(a) - b);
    size += double(b) * b;
  }
  return std::sqrt(error / size);
}

TEST_F(LanguageModelTest, ComputesInAnotherPrecision) {
  OwningOpRef<ModuleOp> module = import(Interface::Automatic, Precision::BF16);
  ASSERT_TRUE(module);
  raise(*module);
  module->walk([&](Operation *op) {
    if (isa<moe::AttentionOp, moe::ExpertsOp, moe::RopeOp, moe::RMSNormOp, moe::EmbeddingOp>(op)) {
      EXPECT_TRUE(getElementTypeOrSelf(op->getResult(0).getType()).isBF16());
    }
    if (isa<moe::RouteOp>(op)) {
      EXPECT_TRUE(getElementTypeOrSelf(op->getOperand(0).getType()).isF32());
    }
  });
  Reference reference = readReference();
  double error = relativeRMS(runStep(*module, reference.tokens, 48), reference.logits);
  // A few roundings to 8 bits, of which each costs 1.66e-3.
  EXPECT_GT(error, 1e-4);
  EXPECT_LT(error, 2e-2);
}

TEST_F(LanguageModelTest, ExportInBF16IsTheSameProgram) {
  OwningOpRef<ModuleOp> plain = import(Interface::Tensors, Precision::Model, "model-bf16.onnx");
  OwningOpRef<ModuleOp> graph = import(Interface::Automatic, Precision::Model, "model-bf16.onnx");
  ASSERT_TRUE(plain && graph);
  raise(*graph);
  auto checkpoint = importCheckpoint(folder + "/checkpoint", {}, &context);
  ASSERT_TRUE(succeeded(checkpoint));
  raise(**checkpoint);
  EXPECT_EQ(listOps(*graph), listOps(**checkpoint));
  EXPECT_EQ(listArguments(*graph), listArguments(**checkpoint));

  // Its frequencies were rounded to bf16, so the reference logits are another model's.
  Reference reference = readReference();
  int64_t length = reference.tokens.size();
  Type i64 = IntegerType::get(&context, 64), bf16 = BFloat16Type::get(&context);
  std::vector<int64_t> positions(length);
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<ReferenceValue> arguments = {tensor(i64, {1, length}, reference.tokens),
                                           tensor(i64, {1, length}, positions)};
  for (int i = 0; i < 4; ++i)
    arguments.push_back(*ReferenceTensor::create(bf16, {1, kvHeads, 0, headSize}));
  auto weights = openWeights();
  moe::Interpreter interpreter(*plain, weights.get());
  auto results = interpreter.call("main", arguments);
  ASSERT_TRUE(succeeded(results));
  EXPECT_LT(
      relativeRMS(runStep(*graph, reference.tokens, 48), results->front().getTensor().getFloats()),
      2e-2);
}

template <typename Op>
std::vector<std::string> listAttributes(ModuleOp module, ArrayRef<StringRef> names) {
  std::vector<std::string> texts;
  module.walk([&](Op op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (StringRef name : names)
      stream << name << "=" << op->getAttr(name) << " ";
    texts.push_back(text);
  });
  return texts;
}

TEST_F(LanguageModelTest, BothDoorsGiveTheSameOps) {
  OwningOpRef<ModuleOp> graph = import(ImportONNXOptions::Interface::Automatic);
  ASSERT_TRUE(graph);
  raise(*graph);
  ImportCheckpointOptions options;
  options.precision = ImportCheckpointOptions::Precision::F32;
  auto checkpoint = importCheckpoint(folder + "/checkpoint", options, &context);
  ASSERT_TRUE(succeeded(checkpoint));
  raise(**checkpoint);

  EXPECT_EQ(listOps(*graph), listOps(**checkpoint));
  EXPECT_EQ(listArguments(*graph), listArguments(**checkpoint));
  auto compare = [&](auto list) { EXPECT_EQ(list(*graph), list(**checkpoint)); };
  compare([](ModuleOp m) { return listAttributes<moe::AttentionOp>(m, {"window", "softcap"}); });
  compare([](ModuleOp m) { return listAttributes<moe::ExpertsOp>(m, {"activation"}); });
  compare([](ModuleOp m) {
    return listAttributes<moe::RouteOp>(m, {"score", "top_k", "renormalize", "scale"});
  });
  compare([](ModuleOp m) { return listAttributes<moe::RMSNormOp>(m, {"epsilon"}); });

  // Frequencies and scales come from f32 numbers in the graph and from the config here.
  std::vector<moe::RotaryAttr> rotations[2];
  std::vector<double> scales[2];
  int door = 0;
  for (ModuleOp module : {*graph, **checkpoint}) {
    module.walk([&](moe::RopeOp op) { rotations[door].push_back(op.getRotary()); });
    module.walk(
        [&](moe::AttentionOp op) { scales[door].push_back(op.getScale().convertToDouble()); });
    ++door;
  }
  ASSERT_EQ(rotations[0].size(), rotations[1].size());
  for (auto [a, b] : llvm::zip(rotations[0], rotations[1])) {
    EXPECT_NEAR(a.getMagnitude(), b.getMagnitude(), 1e-6);
    EXPECT_EQ(a.getOffset(), b.getOffset());
    EXPECT_EQ(a.getInterleaved(), b.getInterleaved());
    ArrayRef<float> x = a.getFrequencies().asArrayRef(), y = b.getFrequencies().asArrayRef();
    ASSERT_EQ(x.size(), y.size());
    for (auto [f, g] : llvm::zip(x, y))
      EXPECT_NEAR(f, g, 1e-6 * g);
  }
  ASSERT_EQ(scales[0].size(), scales[1].size());
  for (auto [a, b] : llvm::zip(scales[0], scales[1]))
    EXPECT_NEAR(a, b, 1e-6 * b);
}

} // namespace
