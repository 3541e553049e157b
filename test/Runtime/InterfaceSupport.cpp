#include "test/Runtime/InterfaceSupport.h"

#include "test/Runtime/TestBundle.h"

namespace moert::test {

BundleOnDisk::BundleOnDisk() : folder(std::make_unique<TemporaryFolder>()) {
  writeTestBundle(path());
}
BundleOnDisk::~BundleOnDisk() = default;
std::string BundleOnDisk::path() const { return *folder / "b"; }

std::vector<float> expectedLogitsOf(std::span<const std::int32_t> tokens) {
  return expectedLogits(tokens);
}
std::uint64_t longestTestSequence() { return testMaximumTokens; }

} // namespace moert::test
