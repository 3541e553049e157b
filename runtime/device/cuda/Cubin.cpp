#include "runtime/device/cuda/Cubin.h"

#include "runtime/base/CheckedMath.h"

#include <cstring>

#include <elf.h>

namespace moert::cuda {

namespace {

constexpr unsigned machineCuda = 190; // EM_CUDA

// Reads entry `index` of a table whose bounds were checked.
template <typename Entry>
Entry entryOf(std::string_view code, std::uint64_t table, std::uint64_t index) {
  Entry entry;
  std::memcpy(&entry, code.data() + table + index * sizeof entry, sizeof entry);
  return entry;
}

} // namespace

std::string cubinProblem(std::string_view code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof header || code.substr(0, SELFMAG) != ELFMAG)
    return "it is no ELF file";
  std::memcpy(&header, code.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machineCuda)
    return "it is no machine code for GPUs of NVIDIA";
  if ((header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) ||
      !rangeFits(header.e_phoff, std::uint64_t(header.e_phnum) * sizeof(Elf64_Phdr), code.size()))
    return "its program headers lie beyond its end";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    auto segment = entryOf<Elf64_Phdr>(code, header.e_phoff, i);
    if (!rangeFits(segment.p_offset, segment.p_filesz, code.size()))
      return "its segment " + std::to_string(i) + " lies beyond its end";
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum ||
      !rangeFits(header.e_shoff, std::uint64_t(header.e_shnum) * sizeof(Elf64_Shdr), code.size()))
    return "its section headers lie beyond its end";
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    auto section = entryOf<Elf64_Shdr>(code, header.e_shoff, i);
    if (section.sh_type != SHT_NOBITS &&
        !rangeFits(section.sh_offset, section.sh_size, code.size()))
      return "its section " + std::to_string(i) + " lies beyond its end";
  }
  return {};
}

} // namespace moert::cuda
