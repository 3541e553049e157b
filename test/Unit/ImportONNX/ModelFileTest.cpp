#include "lib/Conversion/ImportONNX/ModelFile.h"
#include "lib/Conversion/ImportONNX/TensorData.h"
#include "lib/Conversion/ImportONNX/WireOffsets.h"

#include "onnx-ml.pb.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace mlir::moec::onnx_import;

namespace {

namespace fs = std::filesystem;

/// A folder of its own, deleted at the end.
class ModelFileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "moec-onnx-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string &name, std::string_view content) {
    std::ofstream(folder / name, std::ios::binary) << content;
  }

  /// A model with one initialiser, which the caller completes.
  onnx::TensorProto *addTensor(onnx::ModelProto &model, const std::string &name,
                               std::initializer_list<int64_t> shape) {
    model.set_ir_version(10);
    onnx::TensorProto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t size : shape)
      tensor->add_dims(size);
    return tensor;
  }

  void setExternal(onnx::TensorProto *tensor, const std::string &location,
                   const std::string &offset = "", const std::string &length = "") {
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto [key, value] :
         {std::pair("location", location), {"offset", offset}, {"length", length}}) {
      if (value.empty() && std::string(key) != "location")
        continue;
      auto *entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  }

  /// What reading the first initialiser says; empty when it succeeds.
  std::string problemOf(const onnx::ModelProto &model) {
    write("model.onnx", model.SerializeAsString());
    auto file = ModelFile::open((folder / "model.onnx").string());
    if (!file.isOk())
      return file.status().message();
    auto data = readTensor(file->model->graph().initializer(0), *file, file->rawDataOffsets[0]);
    return data.isOk() ? "" : data.status().message();
  }

  fs::path folder;
};

std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

TEST_F(ModelFileTest, FindsRawDataInTheFile) {
  std::string path = MOEC_TEST_MODELS "/gptoss-micro/model.onnx";
  auto file = ModelFile::open(path);
  ASSERT_TRUE(file.isOk());
  std::string bytes = readFile(path);
  const auto &initializers = file->model->graph().initializer();
  ASSERT_EQ(file->rawDataOffsets.size(), static_cast<size_t>(initializers.size()));
  for (int i = 0; i < initializers.size(); ++i) {
    ASSERT_TRUE(file->rawDataOffsets[i]);
    EXPECT_EQ(bytes.substr(*file->rawDataOffsets[i], initializers[i].raw_data().size()),
              initializers[i].raw_data());
  }
}

TEST_F(ModelFileTest, FindsRawDataOfGraphsInPieces) {
  // Protobuf merges a message that comes in pieces; so does the search.
  onnx::ModelProto first, second;
  addTensor(first, "a", {1})->set_raw_data("aaaa");
  second.mutable_graph()->add_initializer()->set_raw_data("bbbb");
  std::string bytes = first.SerializeAsString() + second.SerializeAsString();
  auto offsets = findRawDataOffsets(bytes);
  ASSERT_TRUE(offsets);
  ASSERT_EQ(offsets->size(), 2u);
  EXPECT_EQ(bytes.substr(*(*offsets)[0], 4), "aaaa");
  EXPECT_EQ(bytes.substr(*(*offsets)[1], 4), "bbbb");
}

TEST_F(ModelFileTest, ReadsExternalDataAtAnyOffset) {
  write("data.bin", "abcdefgh");
  onnx::ModelProto model;
  setExternal(addTensor(model, "w", {1}), "data.bin", "3", "4");
  write("model.onnx", model.SerializeAsString());
  auto file = ModelFile::open((folder / "model.onnx").string());
  ASSERT_TRUE(file.isOk());
  auto data = readTensor(file->model->graph().initializer(0), *file, std::nullopt);
  ASSERT_TRUE(data.isOk());
  auto bytes = readBytes(*data, *file);
  ASSERT_TRUE(bytes.isOk());
  EXPECT_EQ(std::string(bytes->begin(), bytes->end()), "defg");
}

TEST_F(ModelFileTest, RefusesExternalDataOutsideTheFolder) {
  fs::create_directory(folder / "sub");
  write("data.bin", "abcd");
  fs::create_symlink("data.bin", folder / "link.bin");
  fs::create_directory_symlink("/", folder / "root");
  // CVE-2022-25882, CVE-2024-27318, CVE-2026-27489 and others like them.
  for (const char *location :
       {"../../etc/passwd", "sub/../../x", "/etc/passwd", "sub/../data.bin", "./data.bin", "",
        "link.bin", "root/etc/passwd", "missing.bin", "sub", "data.bin\n", "sub//data.bin"}) {
    onnx::ModelProto model;
    setExternal(addTensor(model, "w", {1}), location);
    EXPECT_NE(problemOf(model), "") << location;
  }
  onnx::ModelProto good;
  setExternal(addTensor(good, "w", {1}), "data.bin");
  EXPECT_EQ(problemOf(good), "");
}

TEST_F(ModelFileTest, RefusesExternalDataOfTheWrongSize) {
  write("data.bin", "abcdefgh");
  for (auto [offset, length] : {std::pair("5", "4"),
                                {"0", "8"},
                                {"9", ""},
                                {"-1", ""},
                                {"1e3", ""},
                                {"18446744073709551615", "4"},
                                {"99999999999999999999", ""}}) {
    onnx::ModelProto model;
    setExternal(addTensor(model, "w", {1}), "data.bin", offset, length);
    EXPECT_NE(problemOf(model), "") << offset << " " << length;
  }
  // CVE-2026-34445: keys that nobody knows change nothing.
  onnx::ModelProto model;
  onnx::TensorProto *tensor = addTensor(model, "w", {1});
  setExternal(tensor, "data.bin");
  auto *entry = tensor->add_external_data();
  entry->set_key("size");
  entry->set_value("9223372036854775807");
  EXPECT_EQ(problemOf(model), "");
}

TEST_F(ModelFileTest, RefusesShapesThatLie) {
  auto tensorOf = [&](std::initializer_list<int64_t> shape, size_t bytes) {
    onnx::ModelProto model;
    addTensor(model, "w", shape)->set_raw_data(std::string(bytes, 'x'));
    return problemOf(model);
  };
  EXPECT_EQ(tensorOf({2, 3}, 24), "");
  EXPECT_EQ(tensorOf({0, INT64_MAX, 3}, 0), "");
  EXPECT_NE(tensorOf({2, 3}, 23), "");
  EXPECT_NE(tensorOf({2, -3}, 24), "");
  // CVE-2026-7482, CVE-2024-23496 and llama.cpp 18674: sizes that overflow or exceed the data.
  EXPECT_NE(tensorOf({(int64_t(1) << 42) + 1}, 4), "");
  EXPECT_NE(tensorOf({int64_t(1) << 32, int64_t(1) << 32}, 0), "");
  EXPECT_NE(tensorOf({INT64_MAX, INT64_MAX, INT64_MAX}, 4), "");
  EXPECT_NE(tensorOf({INT64_MAX}, 4), "");
}

TEST_F(ModelFileTest, RefusesTypedDataOfTheWrongLength) {
  onnx::ModelProto model;
  onnx::TensorProto *tensor = addTensor(model, "w", {3});
  tensor->add_float_data(1);
  EXPECT_NE(problemOf(model), "");
  tensor->add_float_data(2);
  tensor->add_float_data(3);
  EXPECT_EQ(problemOf(model), "");
  tensor->set_data_type(onnx::TensorProto::STRING);
  EXPECT_NE(problemOf(model), "");
  tensor->set_data_type(12345);
  EXPECT_NE(problemOf(model), "");
}

TEST_F(ModelFileTest, RefusesWhatIsNoModel) {
  for (std::string content : {std::string(), std::string("\x08\x0a"), std::string("garbage"),
                              std::string(1000, '\xff'), std::string(1000, '\0')}) {
    write("model.onnx", content);
    EXPECT_FALSE(ModelFile::open((folder / "model.onnx").string()).isOk());
  }
  EXPECT_FALSE(ModelFile::open((folder / "missing.onnx").string()).isOk());
  EXPECT_FALSE(ModelFile::open(folder.string()).isOk());
}

TEST_F(ModelFileTest, RefusesDeepNesting) {
  // A graph in an attribute of a node of a graph, and so on.
  std::string inner;
  for (int depth = 0; depth < 5000; ++depth) {
    onnx::AttributeProto attribute;
    auto field = [](int number, const std::string &content) {
      std::string bytes(1, static_cast<char>(number << 3 | 2));
      uint64_t length = content.size();
      for (; length >= 128; length >>= 7)
        bytes += static_cast<char>((length & 127) | 128);
      return bytes + static_cast<char>(length) + content;
    };
    // GraphProto.node = 1, NodeProto.attribute = 5, AttributeProto.g = 6
    inner = field(1, field(5, field(6, inner)));
    if (inner.size() > 100000)
      break;
  }
  onnx::ModelProto model;
  model.set_ir_version(10);
  std::string bytes = model.SerializeAsString();
  bytes += static_cast<char>(7 << 3 | 2);
  for (uint64_t length = inner.size();; length >>= 7) {
    bytes += static_cast<char>((length & 127) | (length >= 128 ? 128 : 0));
    if (length < 128)
      break;
  }
  bytes += inner;
  write("model.onnx", bytes);
  EXPECT_FALSE(ModelFile::open((folder / "model.onnx").string()).isOk());
}

/// Every truncation and every change of one byte is read or refused, and nothing worse.
TEST_F(ModelFileTest, SurvivesEveryMutation) {
  write("data.bin", "abcdefgh");
  onnx::ModelProto model;
  addTensor(model, "raw", {2})->set_raw_data("12345678");
  setExternal(addTensor(model, "external", {1}), "data.bin", "4", "4");
  onnx::TensorProto *typed = addTensor(model, "typed", {2});
  typed->add_float_data(1);
  typed->add_float_data(2);
  onnx::NodeProto *node = model.mutable_graph()->add_node();
  node->set_op_type("Add");
  node->add_input("raw");
  node->add_input("typed");
  node->add_output("sum");
  std::string good = model.SerializeAsString();

  auto readAll = [&](const std::string &bytes) {
    auto file = ModelFile::fromBytes(bytes, (folder / "model.onnx").string());
    if (!file.isOk())
      return false;
    EXPECT_EQ(file->rawDataOffsets.size(),
              static_cast<size_t>(file->model->graph().initializer_size()));
    bool all = true;
    for (int i = 0; i < file->model->graph().initializer_size(); ++i) {
      auto data = readTensor(file->model->graph().initializer(i), *file, file->rawDataOffsets[i]);
      all &= data.isOk() && readBytes(*data, *file).isOk();
    }
    return all;
  };
  ASSERT_TRUE(readAll(good));
  size_t refused = 0;
  for (size_t length = 0; length < good.size(); ++length)
    refused += !readAll(good.substr(0, length));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = good;
      changed[i] = static_cast<char>(byte);
      refused += !readAll(changed);
    }
  }
  EXPECT_GT(refused, good.size());
}

} // namespace
