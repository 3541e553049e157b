// What must hold in a manifest before anything in it is used.
#include "runtime/base/CheckedMath.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/ValidateProgram.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace moert {

using namespace moec::bundle;

namespace {

// Features that a bundle may require of its runtime; a new one comes with what implements it.
constexpr std::string_view knownFeatures[] = {"paged-states", "slot-states", "batch-invariant",
                                                "joined-weights", "images"};

class ManifestValidator {
public:
  ManifestValidator(const Manifest &manifest, std::string_view place)
      : manifest(manifest), problems(std::string(place)) {}

  Status validate() {
    features();
    files();
    weightFiles();
    weights();
    if (manifest.variants_size() == 0)
      problems.add("variants: the bundle has none");
    std::unordered_set<std::string_view> targets;
    for (const Variant &each : manifest.variants()) {
      if (!targets.insert(each.target()).second)
        problems.add("variants: the target " + inQuotes(each.target()) + " occurs twice");
      variant(each);
    }
    if (manifest.has_language_model())
      languageModel(manifest.language_model());
    return problems.toStatus(ErrorCode::InvalidData, "the bundle is damaged or was not written "
                                                     "by this compiler; compile it again");
  }

private:
  void features() {
    for (const std::string &feature : manifest.required_features())
      if (std::find(std::begin(knownFeatures), std::end(knownFeatures), feature) ==
          std::end(knownFeatures))
        problems.add("required_features: this runtime does not know " + inQuotes(feature) +
                     "; a newer one is needed");
  }

  void digest(const std::string &where, const std::string &bytes, bool mayBeEmpty) {
    if (bytes.size() != 32 && !(mayBeEmpty && bytes.empty()))
      problems.add(where + ": a SHA-256 digest has 32 bytes, found " +
                   std::to_string(bytes.size()));
  }

  void files() {
    for (int i = 0; i < manifest.files_size(); ++i) {
      const moec::bundle::File &file = manifest.files(i);
      std::string where = "files[" + std::to_string(i) + "] " + inQuotes(file.path());
      if (std::string problem = relativePathProblem(file.path()); !problem.empty())
        problems.add(where + ": the path " + problem);
      if (file.path() == manifestName)
        problems.add(where + ": the manifest cannot list itself");
      if (!filePaths.insert(file.path()).second)
        problems.add(where + ": occurs twice");
      digest(where, file.sha256(), false);
    }
  }

  void weightFiles() {
    std::unordered_set<std::string_view> paths;
    for (int i = 0; i < manifest.weight_files_size(); ++i) {
      const WeightFile &file = manifest.weight_files(i);
      std::string where = "weight_files[" + std::to_string(i) + "] " + inQuotes(file.path());
      if (file.inside()) {
        if (std::string problem = relativePathProblem(file.path()); !problem.empty())
          problems.add(where + ": the path " + problem);
      } else if (file.path().empty() || file.path().size() > 4096 ||
                 file.path().find('\0') != std::string::npos) {
        problems.add(where + ": a path has 1 to 4096 bytes and no NUL");
      }
      if (!paths.insert(file.path()).second)
        problems.add(where + ": occurs twice");
      if (file.bytes() > INT64_MAX || file.header_bytes() > file.bytes())
        problems.add(where + ": a header of " + std::to_string(file.header_bytes()) +
                     " bytes in a file of " + std::to_string(file.bytes()));
      digest(where + ": header_sha256", file.header_sha256(), file.header_bytes() == 0);
    }
  }

  void weights() {
    std::unordered_set<std::string_view> names;
    for (int i = 0; i < manifest.weights_size(); ++i) {
      const Weight &weight = manifest.weights(i);
      std::string where = "weights[" + std::to_string(i) + "] " + inQuotes(weight.name());
      if (weight.name().empty() || !names.insert(weight.name()).second)
        problems.add(where + ": the name is " + (weight.name().empty() ? "empty" : "taken twice"));
      if (weight.file() >= static_cast<std::uint32_t>(manifest.weight_files_size()))
        problems.add(where + ": file " + std::to_string(weight.file()) + " of " +
                     std::to_string(manifest.weight_files_size()));
      else if (std::uint64_t size = manifest.weight_files(static_cast<int>(weight.file())).bytes();
               !rangeFits(weight.offset(), weight.bytes(), size))
        problems.add(where + ": " + std::to_string(weight.bytes()) + " bytes at offset " +
                     std::to_string(weight.offset()) + " of a file of " + std::to_string(size));
      auto bytes = weight.shape_size() > 32
                       ? std::nullopt
                       : tensorBytes(elementType(weight.type()),
                                     std::span(weight.shape().data(),
                                               static_cast<std::size_t>(weight.shape_size())));
      if (!bytes || *bytes != weight.bytes())
        problems.add(where + ": its type and shape do not take " + std::to_string(weight.bytes()) +
                     " bytes");
      digest(where + ": sha256", weight.sha256(), true);
    }
    joinedWeights();
  }

  // Weights behind another one in memory are not named by bindings and join nothing themselves.
  void joinedWeights() {
    isJoined.assign(static_cast<std::size_t>(manifest.weights_size()), false);
    for (std::size_t i = 0; i < isJoined.size(); ++i) {
      const Weight &weight = manifest.weights(static_cast<int>(i));
      std::string where = "weights[" + std::to_string(i) + "] " + inQuotes(weight.name());
      std::size_t count = weight.joined();
      if (count > isJoined.size() - 1 - i) {
        problems.add(where + ": " + std::to_string(count) + " weights behind it of " +
                     std::to_string(isJoined.size() - 1 - i));
        continue;
      }
      std::uint64_t bytes = weight.bytes();
      for (std::size_t j = i + 1; j <= i + count; ++j) {
        const Weight &next = manifest.weights(static_cast<int>(j));
        isJoined[j] = true;
        if (next.joined() != 0)
          problems.add(where + ": a weight behind it has weights behind it, too");
        if (!checkedAdd(bytes, next.bytes(), bytes))
          problems.add(where + ": the size of it and the weights behind it overflows");
      }
    }
  }

  void variant(const Variant &variant) {
    std::string where = "variant " + inQuotes(variant.target());
    if (variant.target().empty())
      problems.add("variants: an empty target");
    if (!filePaths.count(variant.code()))
      problems.add(where + ": its code " + inQuotes(variant.code()) + " is not among the files");
    std::unordered_set<std::string_view> names;
    for (const Global &global : variant.globals()) {
      if (global.name().empty() || !names.insert(global.name()).second)
        problems.add(where + ": global " + inQuotes(global.name()) +
                     (global.name().empty() ? ": the name is empty" : ": occurs twice"));
      if (global.bytes() > INT64_MAX / 2)
        problems.add(where + ": global " + inQuotes(global.name()) + ": " +
                     std::to_string(global.bytes()) + " bytes");
    }
    if (variant.has_cuda())
      cuda(variant.cuda(), where);
    ProgramContext context{isJoined, variant.globals_size(), true,
                           variant.has_cuda()};
    if (variant.has_load())
      validateProgram(variant.load(), context, where + ": load", problems);
    context.isLoad = false;
    names.clear();
    if (variant.entries_size() == 0)
      problems.add(where + ": no entries");
    for (const Program &entry : variant.entries()) {
      if (entry.name().empty() || !names.insert(entry.name()).second)
        problems.add(where + ": entry " + inQuotes(entry.name()) +
                     (entry.name().empty() ? ": the name is empty" : ": occurs twice"));
      validateProgram(entry, context, where + ": entry " + inQuotes(entry.name()), problems);
    }
  }

  void cuda(const Cuda &cuda, const std::string &where) {
    if (cuda.major() < 1 || cuda.major() > 1000 || cuda.minor() > 1000)
      problems.add(where + ": a compute capability of " + std::to_string(cuda.major()) + "." +
                   std::to_string(cuda.minor()));
    if (!cuda.cubin().empty() && !filePaths.count(cuda.cubin()))
      problems.add(where + ": its machine code " + inQuotes(cuda.cubin()) +
                   " is not among the files");
    if (cuda.driver_version_needed() > INT32_MAX)
      problems.add(where + ": a driver version of " + std::to_string(cuda.driver_version_needed()));
  }

  void languageModel(const LanguageModel &model) {
    auto complain = [&](const std::string &message) { problems.add("language_model: " + message); };
    if (model.vocabulary() == 0 || model.vocabulary() > INT32_MAX)
      complain("a vocabulary of " + std::to_string(model.vocabulary()));
    if (model.bos_token() < -1 ||
        model.bos_token() >= static_cast<std::int64_t>(model.vocabulary()))
      complain("bos_token " + std::to_string(model.bos_token()));
    if (model.add_bos() && model.bos_token() < 0)
      complain("add_bos without a bos_token");
    for (std::uint32_t token : model.eos_tokens())
      if (token >= model.vocabulary())
        complain("eos token " + std::to_string(token) + " beyond the vocabulary");
    for (const std::string *path : {&model.tokenizer(), &model.reference()})
      if (!path->empty() && !filePaths.count(*path))
        complain("the file " + inQuotes(*path) + " is not among the files");
    if (model.maximum_tokens() > INT32_MAX)
      complain("maximum_tokens " + std::to_string(model.maximum_tokens()) +
               " exceeds what 32-bit positions can count");
    if (model.has_vision())
      vision(model.vision(), model.vocabulary());
    for (const Variant &variant : manifest.variants()) {
      auto find = [&](const std::string &name) {
        return std::find_if(variant.entries().begin(), variant.entries().end(),
                            [&](const Program &each) { return each.name() == name; });
      };
      auto entry = find(model.entry());
      std::string where = "language_model, variant " + inQuotes(variant.target());
      if (entry == variant.entries().end())
        problems.add(where + ": no entry " + inQuotes(model.entry()));
      else
        validateLanguageModelEntry(*entry, model, where, problems);
      if (model.has_vision() && entry != variant.entries().end()) {
        auto encoder = find(model.vision().entry());
        if (encoder == variant.entries().end())
          problems.add(where + ": vision: no entry " + inQuotes(model.vision().entry()));
        else
          validateVisionEntry(*encoder, *entry, model.vision(), where + ": vision", problems);
      }
      if (model.sampler().empty())
        continue;
      auto sampler = find(model.sampler());
      where += ": sampler";
      if (sampler == variant.entries().end())
        problems.add(where + ": no entry " + inQuotes(model.sampler()));
      else
        validateSamplerEntry(*sampler, model.vocabulary(), where, problems);
    }
  }

  // Sizes small enough for products of all of them to fit 64 bits.
  void vision(const Vision &vision, std::uint32_t vocabulary) {
    auto complain = [&](const std::string &message) {
      problems.add("language_model: vision: " + message);
    };
    struct Size {
      const char *name;
      std::uint32_t value, most;
    };
    for (const Size &size : {Size{"patch", vision.patch(), 1024}, Size{"merge", vision.merge(), 16},
                             Size{"frames", vision.frames(), 1024},
                             Size{"most_patches", vision.most_patches(), 1 << 24},
                             Size{"most_patches_of_side", vision.most_patches_of_side(), 1 << 16}})
      if (size.value < 1 || size.value > size.most)
        complain(std::string(size.name) + ": expected 1 to " + std::to_string(size.most) +
                 ", found " + std::to_string(size.value));
    if (vision.placeholder() >= vocabulary)
      complain("placeholder " + std::to_string(vision.placeholder()) + " beyond the vocabulary");
    if (vision.mean_size() != 3 || vision.deviation_size() != 3)
      complain("expected the mean and the deviation of three colours");
    for (double mean : vision.mean())
      if (!std::isfinite(mean))
        complain("a mean that is no number");
    for (double deviation : vision.deviation())
      if (!std::isfinite(deviation) || deviation <= 0)
        complain("a deviation that is not above 0");
  }

  const Manifest &manifest;
  Problems problems;
  std::unordered_set<std::string_view> filePaths;
  std::vector<bool> isJoined;
};

} // namespace

Status validateManifest(const Manifest &manifest, std::string_view place) {
  return ManifestValidator(manifest, place).validate();
}

} // namespace moert
