// The input up to the first NUL is a tokenizer.json, the rest a text for it.
#include "runtime/session/Tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::string_view all(reinterpret_cast<const char *>(data), size);
  std::size_t end = std::min(all.find('\0'), size);
  auto tokenizer = moert::Tokenizer::parse(all.substr(0, end), "input");
  if (!tokenizer.isOk())
    return 0;
  if (auto ids = tokenizer->encode(all.substr(end)); ids.isOk())
    (void)tokenizer->decode(*ids, true);
  return 0;
}
