// A tiny gpt-oss checkpoint in a temporary folder, to be damaged by tests.
#ifndef MOEC_TEST_UNIT_IMPORTCHECKPOINT_TESTCHECKPOINT_H
#define MOEC_TEST_UNIT_IMPORTCHECKPOINT_TESTCHECKPOINT_H

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

struct TestTensor {
  std::string dtype;
  std::vector<int64_t> shape;
};

class TestCheckpoint {
public:
  TestCheckpoint(); // fills `config` and `shards`; write() puts them on disk
  ~TestCheckpoint();

  nlohmann::json config;
  // Shard file -> tensor name -> tensor.
  std::map<std::string, std::map<std::string, TestTensor>> shards;
  // Tensor name -> shard file; write() fills it from `shards` unless `customIndex`.
  std::map<std::string, std::string> weightMap;
  bool withIndex = true, customIndex = false;

  void write();
  void writeFile(const std::string &name, const std::string &content) const;
  std::string readFile(const std::string &name) const;
  std::string path(const std::string &name = "") const;
  TestTensor &tensor(const std::string &name); // in whichever shard
  void erase(const std::string &name);

  static std::string safetensors(const std::map<std::string, TestTensor> &tensors);

private:
  std::string folder;
};

#endif
