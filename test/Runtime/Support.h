// Helpers shared by the runtime's tests.
#ifndef MOERT_TEST_RUNTIME_SUPPORT_H
#define MOERT_TEST_RUNTIME_SUPPORT_H

#include "runtime/base/File.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace moert::test {

// A folder of its own for one test, deleted in the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string &path() const { return folder; }
  std::string operator/(std::string_view name) const { return joinPath(folder, name); }

private:
  std::string folder;
};

// Plain reading and writing, without the code under test.
void writeFile(const std::string &path, std::string_view content);
std::string readFile(const std::string &path);

// `value` as `count` little-endian bytes.
std::string littleEndian(std::uint64_t value, unsigned count);

inline testing::AssertionResult isOk(const Status &status) {
  return status.isOk() ? testing::AssertionSuccess()
                       : testing::AssertionFailure() << status.toString();
}
template <typename T>
testing::AssertionResult isOk(const Result<T> &result) {
  return isOk(result.status());
}

// Whether it failed with `code` and says `text` somewhere.
testing::AssertionResult fails(const Status &status, ErrorCode code, std::string_view text);
template <typename T>
testing::AssertionResult fails(const Result<T> &result, ErrorCode code, std::string_view text) {
  return fails(result.status(), code, text);
}

} // namespace moert::test

#endif
