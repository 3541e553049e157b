// Shared by the libFuzzer targets: bytes as a file, without a disk.
#ifndef MOERT_TEST_RUNTIME_FUZZTARGET_H
#define MOERT_TEST_RUNTIME_FUZZTARGET_H

#include "runtime/base/File.h"

#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

inline moert::File fileOf(const std::uint8_t *data, std::size_t size) {
  int fd = memfd_create("input", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size))
    std::abort();
  auto file = moert::File::fromDescriptor(fd, "input");
  if (!file.isOk())
    std::abort();
  return *std::move(file);
}

#endif
