// Any payload under a right digest; what is accepted must be printable without harm.
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  // Seeds are whole manifest files.
  constexpr std::size_t frame = 48;
  if (size > frame && std::string_view(reinterpret_cast<const char *>(data), 4) == "MOEB") {
    data += frame;
    size -= frame;
  }
  moec::bundle::Manifest manifest;
  if (!manifest.ParseFromArray(data, static_cast<int>(size)) ||
      !moert::validateManifest(manifest, "input").isOk())
    return 0;
  for (const moec::bundle::Variant &variant : manifest.variants())
    for (const moec::bundle::Program &entry : variant.entries()) {
      std::vector<std::string> symbols(entry.symbols().begin(), entry.symbols().end());
      std::vector<std::int64_t> values(symbols.size(), 3);
      for (const moec::bundle::Arena &arena : entry.arenas()) {
        (void)moert::expressionToString(arena.scale(), symbols);
        (void)moert::SizeExpression(arena.scale()).evaluate(values);
      }
    }
  return 0;
}
