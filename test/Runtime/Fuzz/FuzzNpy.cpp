#include "runtime/base/Npy.h"
#include "test/Runtime/Fuzz/FuzzTarget.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto array = moert::readNpy(fileOf(data, size), 1 << 20);
  if (!array.isOk())
    return 0;
  (void)array->integers(0, 1000);
  for (unsigned i = 1; i < moert::elementTypeCount; ++i)
    (void)array->elements(static_cast<moert::ElementType>(i));
  return 0;
}
