#include "runtime/device/cpu/KernelLibrary.h"

#include "runtime/base/CheckedMath.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace moert {

namespace {

// From Linux 6.3 on a system may demand that an executable memory file says so; older kernels do
// not know the flag.
int createMemoryFile() {
  int fd = memfd_create("moert-kernels", MFD_CLOEXEC | MFD_EXEC);
  if (fd < 0 && errno == EINVAL)
    fd = memfd_create("moert-kernels", MFD_CLOEXEC);
  return fd;
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

// The loader maps what an object's headers say and dies when the file is shorter. Why `code` is no
// whole shared object for this machine; empty when it is one. What its code does is a matter of
// trust.
std::string elfProblem(std::string_view code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof header || code.substr(0, SELFMAG) != ELFMAG)
    return "it is no ELF file";
  std::memcpy(&header, code.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
      header.e_type != ET_DYN)
    return "it is no shared object for x86-64";
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !rangeFits(header.e_phoff, std::uint64_t(header.e_phnum) * sizeof(Elf64_Phdr), code.size()))
    return "its program headers lie beyond its end";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, code.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!rangeFits(segment.p_offset, segment.p_filesz, code.size()) ||
        segment.p_filesz > segment.p_memsz)
      return "its segment " + std::to_string(i) + " lies beyond its end";
  }
  return {};
}

} // namespace

Result<std::unique_ptr<KernelLibrary>> KernelLibrary::load(std::string_view code,
                                                           std::string_view name) {
  if (std::string problem = elfProblem(code); !problem.empty())
    return Status(ErrorCode::InvalidData, "the code cannot be loaded: " + problem,
                  std::string(name));
  std::unique_ptr<KernelLibrary> library(new KernelLibrary);
  // The file stays open as long as the library: the loader tells objects apart by path, and a
  // number that another library reused would give it the wrong one.
  library->descriptor = createMemoryFile();
  if (library->descriptor < 0 || !writeAll(library->descriptor, code))
    return Status(ErrorCode::InputOutput,
                  std::string("cannot create a memory file for the code: ") + std::strerror(errno),
                  std::string(name));
  std::string path = "/proc/self/fd/" + std::to_string(library->descriptor);
  library->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) {
    const char *reason = dlerror();
    return Status(ErrorCode::InvalidData,
                  std::string("the code cannot be loaded: ") + (reason ? reason : "unknown reason"),
                  std::string(name));
  }
  auto query = reinterpret_cast<moert_kernel_query_function>(
      dlsym(library->handle, MOERT_KERNEL_QUERY_NAME));
  const moert_kernel_table *table = query ? query() : nullptr;
  if (!table)
    return Status(ErrorCode::InvalidData,
                  "the code has no kernel table (" MOERT_KERNEL_QUERY_NAME ")", std::string(name));
  if (table->abi_version != MOERT_KERNEL_ABI_VERSION)
    return Status(ErrorCode::Unsupported,
                  "the code has kernel interface " + std::to_string(table->abi_version) +
                      ", this runtime " + std::to_string(MOERT_KERNEL_ABI_VERSION),
                  std::string(name), "compile the model again with this version");
  std::span<const moert_kernel_entry> entries(table->entries, table->count);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].name || !entries[i].function ||
        (i > 0 && std::string_view(entries[i - 1].name) >= entries[i].name))
      return Status(ErrorCode::InvalidData,
                    "entry " + std::to_string(i) +
                        " of the kernel table is empty or not sorted by name",
                    std::string(name));
  library->table = table;
  return library;
}

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
  if (descriptor >= 0)
    close(descriptor);
}

moert_kernel_function KernelLibrary::find(std::string_view kernel) const {
  std::span<const moert_kernel_entry> entries(table->entries, table->count);
  auto place = std::lower_bound(
      entries.begin(), entries.end(), kernel,
      [](const moert_kernel_entry &entry, std::string_view key) { return entry.name < key; });
  return place != entries.end() && place->name == kernel ? place->function : nullptr;
}

} // namespace moert
