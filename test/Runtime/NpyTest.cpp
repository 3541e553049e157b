#include "runtime/base/Npy.h"

#include "test/Runtime/Support.h"

#include <cstring>

using namespace moert;
using namespace moert::test;

namespace {

std::string npy(std::string header, std::string_view data, char version = 1) {
  std::string text = std::string("\x93NUMPY") + version + '\0';
  text += littleEndian(header.size(), version == 1 ? 2 : 4);
  return text + header + std::string(data);
}

Result<NpyArray> read(const TemporaryFolder &folder, std::string_view content) {
  writeFile(folder / "a.npy", content);
  auto file = moert::File::open(folder / "a.npy");
  EXPECT_TRUE(isOk(file));
  return readNpy(*file);
}

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

} // namespace

TEST(Npy, WritesWhatNumpyWrites) {
  TemporaryFolder folder;
  const float values[] = {1, 2, 3, 4, 5, 6};
  std::int64_t shape[] = {2, 3};
  ASSERT_TRUE(
      isOk(writeNpy(folder / "x.npy", ElementType::F32, shape, std::as_bytes(std::span(values)))));
  std::string content = readFile(folder / "x.npy");
  // numpy.save's own bytes.
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expected.resize(127, ' ');
  expected += '\n';
  expected.append(reinterpret_cast<const char *>(values), sizeof values);
  EXPECT_EQ(content, expected);
}

TEST(Npy, RoundTripsEveryType) {
  TemporaryFolder folder;
  for (unsigned i = 1; i < elementTypeCount; ++i) {
    auto type = static_cast<ElementType>(i);
    std::int64_t shape[] = {8};
    std::vector<std::byte> data(*tensorBytes(type, shape));
    for (std::size_t k = 0; k < data.size(); ++k)
      data[k] = static_cast<std::byte>(type == ElementType::I1 ? k % 2 : k * 37 + 200);
    ASSERT_TRUE(isOk(writeNpy(folder / "x.npy", type, shape, data)));
    auto file = moert::File::open(folder / "x.npy");
    ASSERT_TRUE(isOk(file));
    auto array = readNpy(*file);
    ASSERT_TRUE(isOk(array));
    auto back = array->elements(type);
    ASSERT_TRUE(isOk(back)) << elementTypeName(type);
    EXPECT_EQ(*back, data) << elementTypeName(type);
  }
}

TEST(Npy, SubByteTypesTakeAByteEach) {
  TemporaryFolder folder;
  std::int64_t shape[] = {3};
  ASSERT_TRUE(isOk(writeNpy(folder / "x.npy", ElementType::I4, shape, bytesOf("\x8f\x07"))));
  std::string content = readFile(folder / "x.npy");
  EXPECT_NE(content.find("'|V1'"), std::string::npos);
  EXPECT_EQ(content.substr(content.size() - 3), "\xff\xf8\x07");
}

TEST(Npy, RawBf16AndForeignOrders) {
  TemporaryFolder folder;
  auto raw = read(folder, npy("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }",
                              std::string_view("\x80\x3f\x00\x40", 4)));
  ASSERT_TRUE(isOk(raw));
  EXPECT_EQ(raw->type(), ElementType::Unspecified);
  EXPECT_TRUE(isOk(raw->elements(ElementType::BF16)));
  EXPECT_TRUE(isOk(raw->elements(ElementType::F16)));
  EXPECT_TRUE(fails(raw->elements(ElementType::F32), ErrorCode::InvalidArgument,
                    "expected elements of f32, found <V2"));
  auto bits =
      read(folder, npy("{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", "\x80\x3f"));
  ASSERT_TRUE(isOk(bits));
  EXPECT_TRUE(isOk(bits->elements(ElementType::BF16)));
  EXPECT_FALSE(bits->elements(ElementType::F16).isOk());
  auto turned =
      read(folder, npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}", "adbecf", 2));
  ASSERT_TRUE(isOk(turned));
  EXPECT_EQ(std::memcmp(turned->data.data(), "abcdef", 6), 0);
  auto scalar = read(
      folder, npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", littleEndian(7, 8)));
  ASSERT_TRUE(isOk(scalar));
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_EQ(*scalar->integers(0, 10), std::vector<std::int64_t>{7});
}

TEST(Npy, Integers) {
  TemporaryFolder folder;
  auto u2 = read(folder, npy("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }",
                             littleEndian(65535, 2) + littleEndian(3, 2)));
  ASSERT_TRUE(isOk(u2));
  EXPECT_EQ(*u2->integers(0, 65535), (std::vector<std::int64_t>{65535, 3}));
  EXPECT_TRUE(fails(u2->integers(0, 9), ErrorCode::InvalidArgument, "element 0 is 65535"));
  auto i4 = read(folder, npy("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }",
                             littleEndian(UINT32_MAX, 4)));
  ASSERT_TRUE(isOk(i4));
  EXPECT_EQ(*i4->integers(-5, 5), std::vector<std::int64_t>{-1});
  auto u8 = read(folder, npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }",
                             littleEndian(UINT64_MAX, 8)));
  ASSERT_TRUE(isOk(u8));
  EXPECT_TRUE(fails(u8->integers(-5, 5), ErrorCode::InvalidArgument, "18446744073709551615"));
  auto f4 = read(
      folder, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", littleEndian(0, 4)));
  ASSERT_TRUE(isOk(f4));
  EXPECT_FALSE(f4->integers(0, 1).isOk());
}

TEST(Npy, HostileFilesAreErrors) {
  TemporaryFolder folder;
  const std::string good =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "12345678");
  ASSERT_TRUE(isOk(read(folder, good)));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(read(folder, good.substr(0, length)).isOk()) << length;
  struct Case {
    const char *header;
    const char *says;
  };
  const Case cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4398046511105, 4398046511105), }",
       "too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
       "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }",
       "takes 4000 bytes, the file holds 8"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "not supported"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "not supported"},
      {"{'descr': '<f0', 'fortran_order': False, 'shape': (2,), }", "not supported"},
      {"{'descr': '<V0', 'fortran_order': False, 'shape': (2,), }", "not supported"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "not supported"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "not understood"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
       "not understood"},
      {"{'descr': '<f4', 'shape': (2,), }", "not understood"},
      {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,), }", "not understood"},
      {"{descr: '<f4', 'fortran_order': False, 'shape': (2,), }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False 'shape': (2,), }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }",
       "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", "not understood"},
      {"{'fortran_order': False, 'shape': (2,), }", "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, }", "not understood"},
      {"{'descr': '<f4", "not understood"},
      {"{'descr': '<f128', 'fortran_order': False, 'shape': (1,), }", "not supported"},
      {"{'descr': '<fx', 'fortran_order': False, 'shape': (1,), }", "not understood"},
      {"{'descr': '<f/', 'fortran_order': False, 'shape': (1,), }", "not understood"},
      {"{'descr': '<V9', 'fortran_order': False, 'shape': (1,), }", "not supported"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846977,), }", "too large"},
      {"__import__('os')", "not understood"},
      {"", "not understood"},
  };
  for (const Case &each : cases) {
    auto array = read(folder, npy(each.header, "12345678"));
    ASSERT_FALSE(array.isOk()) << each.header;
    EXPECT_NE(array.status().message().find(each.says), std::string::npos)
        << array.status().toString();
  }
  EXPECT_TRUE(
      fails(read(folder, "PK\x03\x04 an .npz file"), ErrorCode::InvalidData, "no .npy file"));
  std::string version("\x93NUMPY\x00\x00\x04\x00{}  ", 14);
  EXPECT_TRUE(fails(read(folder, version), ErrorCode::Unsupported, ".npy format 0"));
  version[6] = 4;
  EXPECT_TRUE(fails(read(folder, version), ErrorCode::Unsupported, ".npy format 4"));
  std::string longHeader = npy(std::string(70000, ' '), "", 2);
  EXPECT_TRUE(fails(read(folder, longHeader), ErrorCode::InvalidData, "65536 are accepted"));
  std::string manySizes = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i)
    manySizes += "1, ";
  EXPECT_TRUE(fails(read(folder, npy(manySizes + "), }", "1234")), ErrorCode::InvalidData,
                    "not understood"));
  writeFile(folder / "b.npy", good);
  auto file = moert::File::open(folder / "b.npy");
  ASSERT_TRUE(isOk(file));
  EXPECT_TRUE(fails(readNpy(*file, 7), ErrorCode::InvalidData, "at most 7"));
}

TEST(Npy, SignedBytesServeAsSignedSubBytes) {
  TemporaryFolder folder;
  auto array =
      read(folder, npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2,), }", "\xff\x03"));
  ASSERT_TRUE(isOk(array));
  auto packed = array->elements(ElementType::I4);
  ASSERT_TRUE(isOk(packed));
  EXPECT_EQ(*packed, std::vector<std::byte>{std::byte(0x3f)});
  EXPECT_TRUE(isOk(array->elements(ElementType::I2)));
  EXPECT_FALSE(array->elements(ElementType::U4).isOk());
  EXPECT_FALSE(array->elements(ElementType::F8E4M3).isOk());
}

TEST(Npy, WritingChecksTheSize) {
  TemporaryFolder folder;
  std::int64_t shape[] = {3}, negative[] = {-3};
  EXPECT_TRUE(fails(writeNpy(folder / "x.npy", ElementType::F32, shape, bytesOf("12345678")),
                    ErrorCode::InvalidArgument, "does not take 8 bytes"));
  EXPECT_FALSE(writeNpy(folder / "x.npy", ElementType::F32, negative, bytesOf("")).isOk());
  EXPECT_TRUE(isOk(writeNpy(folder / "x.npy", ElementType::U8, {}, bytesOf("1"))));
}
