// A bundle's shared object for the CPU, loaded from the very bytes whose digest was checked.
#ifndef MOERT_DEVICE_CPU_KERNELLIBRARY_H
#define MOERT_DEVICE_CPU_KERNELLIBRARY_H

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/Status.h"

#include <memory>
#include <string_view>

namespace moert {

class KernelLibrary {
public:
  // `code` is the content of the shared object, `name` its name in messages. It runs the object's
  // code: check first.
  static Result<std::unique_ptr<KernelLibrary>> load(std::string_view code, std::string_view name);
  ~KernelLibrary();

  moert_kernel_function find(std::string_view kernel) const; // null: no such kernel

private:
  KernelLibrary() = default;
  int descriptor = -1;
  void *handle = nullptr;
  const moert_kernel_table *table = nullptr;
};

} // namespace moert

#endif
