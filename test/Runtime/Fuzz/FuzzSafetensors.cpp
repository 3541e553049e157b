#include "runtime/base/Safetensors.h"
#include "test/Runtime/Fuzz/FuzzTarget.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto opened = moert::SafetensorsFile::open(fileOf(data, size));
  if (!opened.isOk())
    return 0;
  // What was accepted can be read to the last byte.
  for (const moert::SafetensorsTensor &tensor : opened->tensors()) {
    std::vector<std::byte> bytes(tensor.bytes);
    if (!opened->read(tensor, bytes).isOk())
      std::abort();
  }
  return 0;
}
