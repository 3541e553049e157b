#include "TestCheckpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

static constexpr const char *first = "model-00001-of-00002.safetensors";
static constexpr const char *second = "model-00002-of-00002.safetensors";

TestCheckpoint::TestCheckpoint() {
  std::string pattern = testing::TempDir() + "/moec-checkpoint-XXXXXX";
  folder = mkdtemp(pattern.data());
  config = {{"architectures", {"GptOssForCausalLM"}},
            {"torch_dtype", "bfloat16"},
            {"vocab_size", 40},
            {"hidden_size", 64},
            {"intermediate_size", 32},
            {"num_hidden_layers", 1},
            {"num_attention_heads", 4},
            {"num_key_value_heads", 2},
            {"head_dim", 8},
            {"num_local_experts", 3},
            {"num_experts_per_tok", 2},
            {"sliding_window", 8},
            {"layer_types", {"sliding_attention"}},
            {"rope_theta", 10000.0},
            {"rms_norm_eps", 1e-5},
            {"max_position_embeddings", 128},
            {"bos_token_id", 0},
            {"eos_token_id", 1}};
  std::string layer = "model.layers.0.", experts = layer + "mlp.experts.";
  shards[first] = {{"model.embed_tokens.weight", {"BF16", {40, 64}}},
                   {layer + "self_attn.q_proj.weight", {"BF16", {32, 64}}},
                   {layer + "self_attn.q_proj.bias", {"BF16", {32}}},
                   {layer + "self_attn.sinks", {"BF16", {4}}},
                   {layer + "input_layernorm.weight", {"BF16", {64}}},
                   {experts + "gate_up_proj_blocks", {"U8", {3, 64, 2, 16}}},
                   {experts + "gate_up_proj_scales", {"U8", {3, 64, 2}}},
                   {experts + "down_proj_blocks", {"U8", {3, 64, 1, 16}}},
                   {experts + "down_proj_scales", {"U8", {3, 64, 1}}}};
  shards[second] = {{"model.norm.weight", {"BF16", {64}}},
                    {"lm_head.weight", {"BF16", {40, 64}}},
                    {layer + "self_attn.k_proj.weight", {"BF16", {16, 64}}},
                    {layer + "self_attn.k_proj.bias", {"BF16", {16}}},
                    {layer + "self_attn.v_proj.weight", {"BF16", {16, 64}}},
                    {layer + "self_attn.v_proj.bias", {"BF16", {16}}},
                    {layer + "self_attn.o_proj.weight", {"BF16", {64, 32}}},
                    {layer + "self_attn.o_proj.bias", {"BF16", {64}}},
                    {layer + "post_attention_layernorm.weight", {"BF16", {64}}},
                    {layer + "mlp.router.weight", {"BF16", {3, 64}}},
                    {layer + "mlp.router.bias", {"BF16", {3}}},
                    {experts + "gate_up_proj_bias", {"BF16", {3, 64}}},
                    {experts + "down_proj_bias", {"BF16", {3, 64}}}};
}

TestCheckpoint::~TestCheckpoint() { std::filesystem::remove_all(folder); }

std::string TestCheckpoint::path(const std::string &name) const {
  return name.empty() ? folder : folder + "/" + name;
}

void TestCheckpoint::writeFile(const std::string &name, const std::string &content) const {
  std::ofstream(path(name), std::ios::binary) << content;
}

std::string TestCheckpoint::readFile(const std::string &name) const {
  std::ostringstream text;
  text << std::ifstream(path(name), std::ios::binary).rdbuf();
  return text.str();
}

TestTensor &TestCheckpoint::tensor(const std::string &name) {
  for (auto &[file, tensors] : shards)
    if (auto place = tensors.find(name); place != tensors.end())
      return place->second;
  ADD_FAILURE() << "no tensor " << name;
  return shards.begin()->second[name];
}

void TestCheckpoint::erase(const std::string &name) {
  for (auto &[file, tensors] : shards)
    tensors.erase(name);
}

std::string TestCheckpoint::safetensors(const std::map<std::string, TestTensor> &tensors) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t offset = 0;
  for (auto &[name, tensor] : tensors) {
    uint64_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "U8" ? 1 : 2;
    for (int64_t size : tensor.shape)
      bytes *= size;
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  std::string result;
  for (int i = 0; i < 8; ++i)
    result += char(text.size() >> 8 * i);
  return result + text + std::string(offset, '\0');
}

void TestCheckpoint::write() {
  if (!customIndex) {
    weightMap.clear();
    for (auto &[file, tensors] : shards)
      for (auto &[name, tensor] : tensors)
        weightMap[name] = file;
  }
  writeFile("config.json", config.dump());
  for (auto &[file, tensors] : shards)
    writeFile(file, safetensors(tensors));
  if (withIndex)
    writeFile(
        "model.safetensors.index.json",
        nlohmann::json({{"metadata", {{"total_size", 1}}}, {"weight_map", weightMap}}).dump());
}
