// Damaged checkpoints through the whole importer. One target damages config.json and its
// neighbours, one the headers of shards, one the index: MOEC_FUZZ_PART says which, "config",
// "header" or "index".
//
// An input is the name of a file, such as "mixtral/config.json", a newline, and the file's content
// as it shall be; the other files of that checkpoint are sound, and hold no data: shards are as
// large as they claim and have holes in place of weights. The empty input stands for all sound
// files, so that no corpus is needed to begin with.
//
// Whatever the input, the importer succeeds in silence, or there is exactly one error, which names
// the folder.
#include "JsonMutator.h"
#include "test/Unit/ImportCheckpoint/StandIn.h"

#include "moec/Conversion/ImportCheckpoint.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

using namespace mlir;
using namespace mlir::moec;
namespace fs = std::filesystem;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

const std::string part = MOEC_FUZZ_PART;

struct Checkpoints {
  fs::path root;                            // with one folder a checkpoint
  std::map<std::string, std::string> files; // "mixtral/config.json" -> JSON: those to be damaged
  std::vector<std::string> names;           // of `files`
};

bool isOfThisPart(const std::string &name) {
  if (part == "header")
    return isShard(name);
  if (part == "index")
    return name == "model.safetensors.index.json";
  return name == "config.json" || name == "generation_config.json";
}

/// "mixtral" of "models/families/mixtral/checkpoint".
std::string getName(const fs::path &folder) {
  std::string name = folder.filename();
  return name == "checkpoint" || name == "packed" ? folder.parent_path().filename().string() : name;
}

Checkpoints collectCheckpoints() {
  Checkpoints all;
  std::string pattern = (fs::temp_directory_path() / "moec-fuzz-XXXXXX").string();
  all.root = mkdtemp(pattern.data());
  static std::string removed = all.root;
  std::atexit([] { fs::remove_all(removed); });
  for (const char *root : {MOEC_TEST_MODELS, MOEC_FUZZ_CHECKPOINTS})
    for (const fs::path &folder : findCheckpoints(root))
      if (folder.filename() != "plain") // quantize.py's other half
        for (const std::string &file : copyStandIn(folder, all.root / getName(folder)))
          if (isOfThisPart(file))
            all.files[getName(folder) + "/" + file] =
                isShard(file) ? readHeader(folder / file) : readFile(folder / file);
  for (const auto &[name, content] : all.files)
    all.names.push_back(name);
  if (all.names.empty())
    std::abort();
  return all;
}

Checkpoints &getCheckpoints() {
  static Checkpoints all = collectCheckpoints();
  return all;
}

/// A context remembers every type that was ever made in it: a new one now and then.
MLIRContext &getContext() {
  static std::unique_ptr<MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 256 == 0)
    context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  return *context;
}

/// Whether the folder imports.
bool import(const fs::path &folder) {
  MLIRContext &context = getContext();
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors.push_back(diagnostic.str());
    return success();
  });
  bool imports = succeeded(importCheckpoint(folder.string(), {}, &context));
  bool isSound =
      imports ? errors.empty() : errors.size() == 1 && errors[0].starts_with(folder.string());
  if (!isSound) {
    std::fprintf(stderr, "%s\n",
                 imports ? "imports with errors:"
                         : "expected one error that "
                           "names the folder, found:");
    for (const std::string &error : errors)
      std::fprintf(stderr, "  %s\n", error.c_str());
    std::abort();
  }
  return imports;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Checkpoints &all = getCheckpoints();
  if (size == 0) { // what is sound imports
    for (const std::string &name : all.names)
      if (!import((all.root / name).parent_path()))
        std::abort();
    return 0;
  }
  std::string_view text(reinterpret_cast<const char *>(data), size);
  std::size_t end = std::min(text.find('\n'), size);
  auto sound = all.files.find(std::string(text.substr(0, end)));
  if (sound == all.files.end())
    return -1;
  fs::path path = all.root / sound->first;
  writeStandIn(path, std::string(text.substr(std::min(end + 1, size))));
  (void)import(path.parent_path());
  writeStandIn(path, sound->second);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Checkpoints &all = getCheckpoints();
  JsonMutator mutator(seed);
  std::string_view text(reinterpret_cast<const char *>(data), size);
  std::size_t end = std::min(text.find('\n'), size);
  std::string name(text.substr(0, end));
  std::string content(text.substr(std::min(end + 1, size)));
  if (!all.files.contains(name) || mutator.below(8) == 0) {
    name = all.names[mutator.below(all.names.size())];
    content = all.files[name];
  }
  nlohmann::json document = nlohmann::json::parse(content, nullptr, false);
  if (document.is_discarded() || mutator.below(12) == 0) {
    content.resize(content.size() + 64);
    content.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(content.data()),
                                    content.size() - 64, content.size()));
  } else {
    const std::string &otherName = all.names[mutator.below(all.names.size())];
    nlohmann::json other = nlohmann::json::parse(all.files[otherName]);
    if (part == "index" && document.contains("weight_map") && mutator.below(2) == 0)
      mutator.change(document["weight_map"], other["weight_map"]);
    else
      for (unsigned changes = 1 + mutator.below(3); changes > 0; --changes)
        mutator.change(document, other);
    if (part == "header" && mutator.below(4) != 0)
      repairOffsets(document);
    content = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string result = name + "\n" + content;
  if (result.size() > maxSize)
    return size;
  std::memcpy(data, result.data(), result.size());
  return result.size();
}
