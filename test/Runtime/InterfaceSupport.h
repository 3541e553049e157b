// What InterfaceTest needs from the runtime's internals, without their headers: its own names are
// those of the public ones.
#ifndef MOERT_TEST_RUNTIME_INTERFACESUPPORT_H
#define MOERT_TEST_RUNTIME_INTERFACESUPPORT_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace moert::test {

class TemporaryFolder;

// The test bundle in a folder that goes away with this object.
class BundleOnDisk {
public:
  BundleOnDisk();
  ~BundleOnDisk();
  std::string path() const;

private:
  std::unique_ptr<TemporaryFolder> folder;
};

std::vector<float> expectedLogitsOf(std::span<const std::int32_t> tokens);
std::uint64_t longestTestSequence();

} // namespace moert::test

#endif
