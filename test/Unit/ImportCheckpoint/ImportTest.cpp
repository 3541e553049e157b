// Whole imports of gpt-oss folders, sound and damaged.

#include "TestCheckpoint.h"

#include "moec/Conversion/ImportCheckpoint.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::moec;

namespace {
struct Import {
  MLIRContext context;
  FailureOr<OwningOpRef<ModuleOp>> module = failure();
  std::vector<std::string> errors;

  explicit Import(const TestCheckpoint &files, const ImportCheckpointOptions &options = {}) {
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      errors.push_back(diagnostic.str());
      return success();
    });
    module = importCheckpoint(files.path(), options, &context);
  }
  template <typename Op>
  SmallVector<Op> ops() {
    SmallVector<Op> result;
    (*module)->walk([&](Op op) { result.push_back(op); });
    return result;
  }
};
} // namespace

// Expects one diagnostic that has every part.
static void expectError(TestCheckpoint &files, const std::vector<std::string> &parts) {
  files.write();
  Import import(files);
  EXPECT_TRUE(failed(import.module));
  ASSERT_EQ(import.errors.size(), 1u);
  for (const std::string &part : parts)
    EXPECT_NE(import.errors[0].find(part), std::string::npos) << "no '" << part << "' in:\n"
                                                              << import.errors[0];
}

TEST(ImportGptOss, Mxfp4) {
  TestCheckpoint files;
  files.write();
  Import import(files);
  ASSERT_TRUE(succeeded(import.module)) << (import.errors.empty() ? "" : import.errors[0]);
  EXPECT_EQ(import.ops<moe::AssembleBlocksOp>().size(), 2u);
  EXPECT_EQ(import.ops<moe::ExpertsOp>().size(), 1u);
  EXPECT_EQ(import.ops<moe::LinearOp>().size(), 6u);
  auto attention = import.ops<moe::AttentionOp>().front();
  EXPECT_EQ(attention.getWindow(), 8u);
  EXPECT_TRUE(attention.getSinks());
  EXPECT_TRUE(cast<RankedTensorType>(attention.getResult().getType()).getElementType().isBF16());
  auto step = import.ops<func::FuncOp>().front();
  EXPECT_TRUE(cast<RankedTensorType>(step.getResultTypes().front()).getElementType().isF32());
  for (moe::WeightOp weight : import.ops<moe::WeightOp>())
    EXPECT_GT(weight.getRef().getBytes(), 0u);
}

TEST(ImportGptOss, PrecisionOfActivationsAndCaches) {
  TestCheckpoint files;
  files.write();
  ImportCheckpointOptions options;
  options.precision = ImportCheckpointOptions::Precision::F32;
  options.blockTokens = 32;
  Import import(files, options);
  ASSERT_TRUE(succeeded(import.module));
  auto cache = cast<moe::CacheType>(import.ops<moe::AttentionOp>().front().getCache().getType());
  EXPECT_TRUE(cache.getElement().isF32());
  EXPECT_EQ(cache.getBlock(), 32);
}

TEST(ImportGptOss, WithoutDtypeTheEmbeddingDecides) {
  for (bool isFloat : {false, true}) {
    TestCheckpoint files;
    files.config.erase("torch_dtype");
    if (isFloat)
      files.tensor("model.embed_tokens.weight").dtype = "F32";
    files.write();
    Import import(files);
    ASSERT_TRUE(succeeded(import.module));
    auto result = import.ops<moe::EmbeddingOp>().front().getResult().getType();
    EXPECT_EQ(result.getElementType().isF32(), isFloat);
  }
}

TEST(ImportGptOss, PlainExpertsAreTransposed) {
  TestCheckpoint files;
  std::string experts = "model.layers.0.mlp.experts.";
  for (const char *part : {"gate_up_proj", "down_proj"}) {
    files.erase(experts + part + "_blocks");
    files.erase(experts + part + "_scales");
  }
  auto &shard = files.shards.begin()->second;
  shard[experts + "gate_up_proj"] = {"BF16", {3, 64, 64}};
  shard[experts + "down_proj"] = {"BF16", {3, 32, 64}};
  files.write();
  Import import(files);
  ASSERT_TRUE(succeeded(import.module)) << (import.errors.empty() ? "" : import.errors[0]);
  auto op = import.ops<moe::ExpertsOp>().front();
  EXPECT_EQ(cast<RankedTensorType>(op.getDown().getType()).getShape(),
            ArrayRef<int64_t>({3, 64, 32}));
}

TEST(ImportGptOss, TiedEmbeddings) {
  TestCheckpoint files;
  files.config["tie_word_embeddings"] = true;
  files.erase("lm_head.weight");
  files.write();
  Import import(files);
  ASSERT_TRUE(succeeded(import.module)) << (import.errors.empty() ? "" : import.errors[0]);
  EXPECT_EQ(import.ops<moe::LinearOp>().back().getWeight(),
            import.ops<moe::EmbeddingOp>().front().getTable());
}

TEST(ImportGptOss, AllTensorProblemsAtOnce) {
  TestCheckpoint files;
  files.erase("model.norm.weight");
  files.tensor("lm_head.weight").shape = {41, 64};
  files.tensor("model.layers.0.self_attn.sinks").dtype = "U8";
  files.tensor("model.layers.0.self_attn.o_proj.bias").dtype = "F31";
  files.shards.begin()->second["model.layers.0.extra"] = {"BF16", {2}};
  expectError(files, {"5 problems", "tensor 'model.norm.weight' is missing; expected shape [64]",
                      "expected shape [40, 64], found [41, 64]",
                      "expected element type f32 or bf16 or f16, found u8",
                      "expected element type f32 or bf16 or f16, found 'F31', which is unknown",
                      "tensor 'model.layers.0.extra' of 'model-00001-of-00002.safetensors' is not "
                      "part of this model",
                      "--allow-unused"});
}

TEST(ImportGptOss, AllowedUnusedTensors) {
  TestCheckpoint files;
  files.shards.begin()->second["mtp.layers.0"] = {"BF16", {2}};
  files.write();
  ImportCheckpointOptions options;
  options.allowUnused = {"mtp.*"};
  EXPECT_TRUE(succeeded(Import(files, options).module));
}

TEST(ImportGptOss, AllConfigProblemsAtOnce) {
  TestCheckpoint files;
  files.config["hidden_size"] = "64";
  files.config["num_attention_heads"] = 4.5;
  files.config["num_experts_per_tok"] = 9;
  files.config["layer_types"] = {"sliding_attention", "diagonal_attention"};
  files.config["sliding_window"] = nullptr;
  files.config["rms_norm_eps"] = -1;
  files.config.erase("vocab_size");
  files.config["quantization_config"] = {{"quant_method", "gptq"}};
  expectError(files,
              {"hidden_size: expected an integer from 1 to", "found \"64\"",
               "num_attention_heads: expected an integer", "found 4.5",
               "num_experts_per_tok: expected at most the number of experts, 3, found 9",
               "layer_types: expected one entry for each of the 1 layers, found 2",
               "layer_types[1]: expected 'sliding_attention' or 'full_attention', found "
               "'diagonal_attention'",
               "sliding_window", "rms_norm_eps: expected a number of at least 0, found -1",
               "vocab_size: is missing", "quantization_config.quant_method: expected 'mxfp4'"});
}

TEST(ImportGptOss, ConfigSizesBeyondAnyModel) {
  for (const char *key : {"hidden_size", "num_hidden_layers", "num_local_experts", "head_dim",
                          "num_attention_heads", "intermediate_size", "vocab_size"})
    for (int64_t value : {int64_t(0), int64_t(-1), (int64_t(1) << 42) + 1, INT64_MAX}) {
      TestCheckpoint files;
      files.config[key] = value;
      expectError(files, {std::string(key) + ": expected an integer"});
    }
}

TEST(ImportGptOss, ManyMissingLayersStayOneShortError) {
  TestCheckpoint files;
  files.config["num_hidden_layers"] = 4096;
  files.config.erase("layer_types");
  files.write();
  Import import(files);
  EXPECT_TRUE(failed(import.module));
  ASSERT_EQ(import.errors.size(), 1u);
  EXPECT_LT(import.errors[0].size(), 20000u);
  EXPECT_NE(import.errors[0].find("more"), std::string::npos);
}

TEST(ImportGptOss, UnknownArchitecture) {
  TestCheckpoint files;
  files.config["architectures"] = {"LlamaForCausalLM"};
  expectError(files, {"architectures: expected one of the supported architectures, '",
                      "'GptOssForCausalLM', ",
                      "found [\"LlamaForCausalLM\"]"});
  files.config.erase("architectures");
  files.config["model_type"] = "llama";
  expectError(files, {"model_type: the model type 'llama' is not supported"});
}

TEST(ImportGptOss, HiddenSizeThatBlocksDoNotDivide) {
  TestCheckpoint files;
  files.config["hidden_size"] = 70;
  expectError(files, {"hidden_size: expected a multiple of 32, the block size of the MXFP4 "
                      "experts, found 70"});
}

TEST(ImportGptOss, TokensOutsideTheVocabulary) {
  TestCheckpoint files;
  files.config["eos_token_id"] = {1, 40};
  files.config["bos_token_id"] = -1;
  expectError(files, {"eos_token_id[1]: expected an integer from 0 to 39, found 40",
                      "bos_token_id: expected an integer from 0 to 39, found -1"});
}

TEST(ImportGptOss, BrokenShardIsNotAlsoManyMissingTensors) {
  TestCheckpoint files;
  files.write();
  std::string name = "model-00001-of-00002.safetensors";
  files.writeFile(name, files.readFile(name).substr(0, 100));
  Import import(files);
  EXPECT_TRUE(failed(import.module));
  ASSERT_EQ(import.errors.size(), 1u);
  EXPECT_EQ(import.errors[0].find("is missing"), std::string::npos) << import.errors[0];
  EXPECT_NE(import.errors[0].find(name), std::string::npos);
}

TEST(ImportGptOss, SettingsChangeTheConfig) {
  TestCheckpoint files;
  files.write();
  ImportCheckpointOptions options;
  options.settings = {"sliding_window=3", "+swiglu_alpha=1.5",
                      "+rope_parameters.rope_type=default"};
  files.config["rope_parameters"] = {{"rope_theta", 10000}};
  files.config.erase("rope_scaling");
  files.write();
  Import import(files, options);
  ASSERT_TRUE(succeeded(import.module)) << (import.errors.empty() ? "" : import.errors[0]);
  EXPECT_EQ(import.ops<moe::AttentionOp>().front().getWindow(), 3u);
  EXPECT_EQ(import.ops<moe::ExpertsOp>().front().getActivation().getAlpha().value, 1.5);
  auto rotary = import.ops<moe::RopeOp>().front().getRotary();
  EXPECT_EQ(rotary.getFrequencies()[0], 1.0f);

  options.settings = {"sliding_windows=3", "hidden_size", "+sliding_window=3", "vocab_size.a=3"};
  Import wrong(files, options);
  EXPECT_TRUE(failed(wrong.module));
  ASSERT_EQ(wrong.errors.size(), 1u);
  for (const char *part :
       {"--set sliding_windows=3: config.json has no field 'sliding_windows'; write '+'",
        "--set hidden_size: expected FIELD=VALUE", "has the field 'sliding_window' already",
        "--set vocab_size.a=3: config.json has no field 'a'"})
    EXPECT_NE(wrong.errors[0].find(part), std::string::npos) << part << " in\n" << wrong.errors[0];
}

TEST(ImportGptOss, SettingsThatAreNoText) {
  TestCheckpoint files;
  files.write();
  for (const char *field : {"architectures", "rms_norm_eps", "hidden_size", "torch_dtype"}) {
    ImportCheckpointOptions options;
    options.settings = {std::string(field) + "=\xff\xfe"};
    Import import(files, options);
    EXPECT_TRUE(failed(import.module));
    ASSERT_EQ(import.errors.size(), 1u);
    EXPECT_NE(import.errors[0].find(field), std::string::npos) << import.errors[0];
  }
}

TEST(ImportGptOss, SomeLayers) {
  TestCheckpoint files;
  files.write();
  ImportCheckpointOptions options;
  options.layers = {0, 0};
  Import import(files, options);
  ASSERT_TRUE(succeeded(import.module)) << (import.errors.empty() ? "" : import.errors[0]);
  EXPECT_EQ(import.ops<moe::AttentionOp>().size(), 1u);
  options.layers = {0, 1};
  Import tooMany(files, options);
  EXPECT_TRUE(failed(tooMany.module));
  ASSERT_EQ(tooMany.errors.size(), 1u);
  EXPECT_NE(tooMany.errors[0].find("--layers asks for layer 1 of 1, counted from 0"),
            std::string::npos)
      << tooMany.errors[0];
}
