#include "test/Runtime/Support.h"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

// Read by AddressSanitizer: an allocation that is too large fails, as it does without it.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }

namespace moert::test {

TemporaryFolder::TemporaryFolder() {
  // In memory where possible: some tests rewrite a file thousands of times.
  const char *base = std::getenv("TMPDIR");
  if (!base)
    base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  folder = std::string(base) + "/moert-test-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
}

TemporaryFolder::~TemporaryFolder() { EXPECT_TRUE(isOk(removeAll(folder))); }

void writeFile(const std::string &path, std::string_view content) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr) << path;
  EXPECT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
  std::fclose(file);
}

std::string readFile(const std::string &path) {
  std::string content;
  std::FILE *file = std::fopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (!file)
    return content;
  char buffer[4096];
  while (std::size_t got = std::fread(buffer, 1, sizeof buffer, file))
    content.append(buffer, got);
  std::fclose(file);
  return content;
}

std::string littleEndian(std::uint64_t value, unsigned count) {
  std::string bytes;
  for (unsigned i = 0; i < count; ++i)
    bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

testing::AssertionResult fails(const Status &status, ErrorCode code, std::string_view text) {
  if (status.isOk())
    return testing::AssertionFailure() << "it succeeded";
  if (status.code() != code || status.toString().find(text) == std::string::npos)
    return testing::AssertionFailure()
           << "expected code " << static_cast<int>(code) << " and '" << std::string(text)
           << "', found code " << static_cast<int>(status.code()) << ": " << status.toString();
  return testing::AssertionSuccess();
}

} // namespace moert::test
