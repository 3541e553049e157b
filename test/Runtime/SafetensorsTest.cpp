#include "runtime/base/Safetensors.h"

#include "test/Runtime/Support.h"

#include <unistd.h>

using namespace moert;
using namespace moert::test;

namespace {

std::string safetensors(std::string_view header, std::string_view data) {
  return littleEndian(header.size(), 8) + std::string(header) + std::string(data);
}

Result<SafetensorsFile> open(const TemporaryFolder &folder, std::string_view content) {
  writeFile(folder / "m.safetensors", content);
  auto file = moert::File::open(folder / "m.safetensors");
  EXPECT_TRUE(isOk(file));
  return SafetensorsFile::open(*std::move(file));
}

} // namespace

TEST(Safetensors, ReadsTensorsInAnyOrder) {
  TemporaryFolder folder;
  std::string header =
      R"({"b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]}, "__metadata__": {"format": "pt"},)"
      R"("a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "none": {"dtype": "I64", "shape": [0, 5], "data_offsets": [16, 16]},)"
      R"("f4": {"dtype": "F4", "shape": [3], "data_offsets": [16, 18]}}   )";
  std::string content = safetensors(header, "abcdEFGHIJKLMNOPxy");
  auto opened = open(folder, content);
  ASSERT_TRUE(isOk(opened));
  ASSERT_EQ(opened->tensors().size(), 4u);
  EXPECT_EQ(opened->metadata().at("format"), "pt");
  EXPECT_EQ(opened->headerBytes(), 8 + header.size());
  EXPECT_EQ(opened->headerDigest(), sha256(std::string_view(content).substr(0, 8 + header.size())));
  const SafetensorsTensor *b = opened->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, ElementType::BF16);
  EXPECT_EQ(b->shape, (std::vector<std::int64_t>{2, 3}));
  std::string bytes(12, '\0');
  ASSERT_TRUE(isOk(opened->read(*b, std::as_writable_bytes(std::span(bytes)))));
  EXPECT_EQ(bytes, "EFGHIJKLMNOP");
  EXPECT_EQ(opened->find("c"), nullptr);
  // Cut while open: an error that names the tensor, not a signal.
  ASSERT_EQ(truncate((folder / "m.safetensors").c_str(), static_cast<off_t>(8 + header.size() + 6)),
            0);
  EXPECT_TRUE(fails(opened->read(*b, std::as_writable_bytes(std::span(bytes))),
                    ErrorCode::InvalidData, "tensor 'b'"));
}

TEST(Safetensors, HostileHeadersAreErrors) {
  TemporaryFolder folder;
  struct Case {
    const char *header;
    const char *says;
  };
  // Each with 8 bytes of data.
  const Case cases[] = {
      {"[]", "does not begin with '{'"},
      {"{", "malformed"},
      {R"({"a": 1})", "a: expected an object"},
      {R"({"a": {"dtype": "F32", "shape": [2]}})", "a.data_offsets: is missing"},
      {R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})",
       "takes 12 bytes, but the offsets give 8"},
      {R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", "a.shape[0]"},
      {R"({"a": {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]}})",
       "a.shape: expected an array"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 8]}})", "expected 2 offsets"},
      {R"({"a": {"dtype": "F32", "shape": [4398046511105, 4398046511105], "data_offsets": [0, 8]}})",
       "more than 2^63"},
      {R"({"a": {"dtype": "F32", "shape": [4611686018427387906], "data_offsets": [0, 8]}})",
       "more than 2^63"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", "do not lie within"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})", "do not lie within"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [9223372036854775800, 9223372036854775807]}})",
       "do not lie within"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", "no tensor covers"},
      {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", "no tensor covers"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
       "'a' and 'b' overlap"},
      {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
       "'a' occurs twice"},
      {R"({"__metadata__": {"k": {"v": 1}}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
       "__metadata__.k: expected a string"},
  };
  for (const Case &each : cases)
    EXPECT_TRUE(fails(open(folder, safetensors(each.header, "12345678")), ErrorCode::InvalidData,
                      each.says))
        << each.header;
  EXPECT_TRUE(fails(open(folder, littleEndian(UINT64_MAX, 8) + "{}"), ErrorCode::InvalidData,
                    "the header claims"));
  EXPECT_TRUE(fails(open(folder, littleEndian(3, 8) + "{}"), ErrorCode::InvalidData,
                    "the header claims 3"));
  EXPECT_TRUE(fails(open(folder, littleEndian(0, 8)), ErrorCode::InvalidData, "does not begin"));
  EXPECT_TRUE(fails(open(folder, "1234567"), ErrorCode::InvalidData, "this file has 7 bytes"));
}

TEST(Safetensors, UnknownTypesAreKept) {
  TemporaryFolder folder;
  auto opened =
      open(folder, safetensors(R"({"a": {"dtype": "F31", "shape": [3], "data_offsets": [0, 8]}})",
                               "12345678"));
  ASSERT_TRUE(isOk(opened));
  EXPECT_EQ(opened->find("a")->type, ElementType::Unspecified);
  EXPECT_EQ(opened->find("a")->typeName, "F31");
  EXPECT_EQ(opened->find("a")->bytes, 8u);
}

TEST(Safetensors, EveryTruncationAndChangeIsSurvived) {
  TemporaryFolder folder;
  const std::string good = safetensors(
      R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "b": {"dtype": "U8", "shape": [1], "data_offsets": [8, 9]}})",
      "123456789");
  ASSERT_TRUE(isOk(open(folder, good)));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(open(folder, good.substr(0, length)).isOk()) << length;
  for (std::size_t i = 0; i < good.size() - 9; ++i)
    for (unsigned char flip : {0x01, 0x80, 0xff, 0x20}) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      if (auto opened = open(folder, changed); opened.isOk())
        for (const SafetensorsTensor &tensor : opened->tensors()) {
          std::vector<std::byte> bytes(tensor.bytes);
          EXPECT_TRUE(isOk(opened->read(tensor, bytes)));
        }
    }
}
