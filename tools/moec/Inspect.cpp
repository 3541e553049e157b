// moec inspect: what a bundle holds. Loads no code.

#include "tools/moec/Report.h"

#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Expression.h"
#include "runtime/session/Model.h"

#include <cstdio>
#include <set>

namespace moec {

using Json = nlohmann::ordered_json;
using moec::bundle::Binding;
using moec::bundle::Command;
using moec::bundle::Expression;
using moec::bundle::Manifest;
using moec::bundle::Program;
using moec::bundle::Variant;

namespace {

// Prints expressions of one program with its symbols' names.
class ProgramText {
public:
  explicit ProgramText(const Program &program)
      : program(program), symbols(program.symbols().begin(), program.symbols().end()) {}

  std::string expression(const Expression &value) const {
    std::string text = moert::expressionToString(value, symbols);
    // Brackets around all of it are for the inside of larger expressions.
    if (text.size() > 2 && text.front() == '(' && text.find(')') == text.size() - 1)
      return text.substr(1, text.size() - 2);
    return text;
  }

  std::string tensor(const moec::bundle::Tensor &tensor) const {
    std::string text =
        std::string(moert::elementTypeName(moert::elementType(tensor.type()))) + " [";
    for (int i = 0; i < tensor.shape_size(); ++i)
      text += (i == 0 ? "" : ", ") + expression(tensor.shape(i));
    return text + "]";
  }

  std::string binding(const Binding &binding) const {
    switch (binding.what_case()) {
    case Binding::kBuffer:
      return program.buffers(static_cast<int>(binding.buffer())).name();
    case Binding::kWeight:
      return "weight " + std::to_string(binding.weight());
    case Binding::kGlobal:
      return "global " + std::to_string(binding.global());
    case Binding::kInput:
      return program.inputs(static_cast<int>(binding.input())).name();
    case Binding::kOutput:
      return program.outputs(static_cast<int>(binding.output())).name();
    case Binding::kState:
      return program.states(static_cast<int>(binding.state())).name();
    case Binding::WHAT_NOT_SET:
      break;
    }
    return "nothing";
  }

  std::string command(const Command &command) const {
    if (command.has_copy())
      return "copy " + binding(command.copy().from()) + " -> " + binding(command.copy().to()) +
             ", " + expression(command.copy().bytes()) + " bytes";
    const moec::bundle::Launch &launch = command.launch();
    std::string text = launch.kernel() + "(";
    for (int i = 0; i < launch.bindings_size(); ++i)
      text += (i == 0 ? "" : ", ") + binding(launch.bindings(i));
    text += ") x " + expression(launch.workgroups());
    if (launch.threads() != 0)
      text += " of " + std::to_string(launch.threads()) + " threads";
    if (launch.shared_bytes() != 0)
      text += ", " + std::to_string(launch.shared_bytes()) + " bytes shared";
    if (launch.has_scratch_bytes())
      text += ", " + expression(launch.scratch_bytes()) + " bytes scratch";
    if (launch.tensor_maps_size() != 0)
      text += ", " + std::to_string(launch.tensor_maps_size()) + " tensor maps";
    if (!launch.source().empty())
      text += "  # " + launch.source();
    return text;
  }

  /// Each size of scratch space that a launch asks for, once.
  std::set<std::string> scratch() const {
    std::set<std::string> sizes;
    for (const Command &command : program.commands())
      if (command.launch().has_scratch_bytes())
        sizes.insert(expression(command.launch().scratch_bytes()));
    return sizes;
  }

private:
  const Program &program;
  std::vector<std::string> symbols;
};

Json programToJson(const Program &program, bool commands) {
  ProgramText text(program);
  auto tensors = [&](const auto &list) {
    Json result = Json::array();
    for (const moec::bundle::Tensor &tensor : list) {
      Json shape = Json::array();
      for (const Expression &size : tensor.shape())
        shape.push_back(text.expression(size));
      result.push_back({{"name", tensor.name()},
                        {"type", moert::elementTypeName(moert::elementType(tensor.type()))},
                        {"shape", shape}});
    }
    return result;
  };
  Json states = Json::array(), arenas = Json::array();
  for (const moec::bundle::State &state : program.states())
    states.push_back({{"name", state.name()},
                      {"kind", state.kind() == moec::bundle::State::PAGED ? "paged" : "slot"},
                      {"bytes", state.bytes()},
                      {"block_tokens", state.block_tokens()}});
  for (const moec::bundle::Arena &arena : program.arenas())
    arenas.push_back({{"scale", text.expression(arena.scale())}, {"bytes", arena.bytes()}});
  Json result = {{"name", program.name()},
                 {"symbols", Json(std::vector<std::string>(program.symbols().begin(),
                                                           program.symbols().end()))},
                 {"inputs", tensors(program.inputs())},
                 {"outputs", tensors(program.outputs())},
                 {"states", states},
                 {"arenas", arenas},
                 {"scratch", text.scratch()}, // of each thread of a CPU, of a whole launch on a GPU
                 {"buffers", program.buffers_size()},
                 {"commands", program.commands_size()}};
  if (commands) {
    Json list = Json::array();
    for (const Command &command : program.commands())
      list.push_back(text.command(command));
    result["command_list"] = list;
  }
  return result;
}

std::string capabilityToString(const moec::bundle::Cuda &cuda) {
  return std::to_string(cuda.major()) + "." + std::to_string(cuda.minor());
}

// "compute capability 9.0 only, machine code and PTX, driver for CUDA 12.4".
std::string cudaToString(const moec::bundle::Cuda &cuda) {
  std::string text = "compute capability " + capabilityToString(cuda) +
                     (cuda.exact() ? " only" : " or later") +
                     (cuda.cubin().empty() ? ", PTX" : ", machine code and PTX");
  if (std::uint32_t version = cuda.driver_version_needed())
    text += ", driver for CUDA " + std::to_string(version / 1000) + "." +
            std::to_string(version % 1000 / 10);
  return text;
}

Json variantToJson(const Variant &variant, const std::string &missing, bool commands) {
  Json globals = Json::array(), entries = Json::array();
  for (const moec::bundle::Global &global : variant.globals())
    globals.push_back({{"name", global.name()}, {"bytes", global.bytes()}});
  for (const Program &entry : variant.entries())
    entries.push_back(programToJson(entry, commands));
  Json result = {{"target", variant.target()},
                 {"cpu_features", Json(std::vector<std::string>(variant.cpu_features().begin(),
                                                                variant.cpu_features().end()))},
                 {"runs_here", missing.empty()},
                 {"code", variant.code()},
                 {"globals", globals}};
  if (variant.has_cuda())
    result["cuda"] = {{"capability", capabilityToString(variant.cuda())},
                      {"exact", variant.cuda().exact()},
                      {"cubin", variant.cuda().cubin()},
                      {"driver_version_needed", variant.cuda().driver_version_needed()}};
  if (!missing.empty())
    result["missing"] = missing;
  if (variant.has_load())
    result["load"] = programToJson(variant.load(), commands);
  result["entries"] = entries;
  return result;
}

// Of a block of the caches, and of a sequence's slots.
struct StateBytes {
  std::uint64_t paged = 0, slots = 0;

  explicit StateBytes(const Program &program) {
    for (const moec::bundle::State &state : program.states())
      (state.kind() == moec::bundle::State::PAGED ? paged : slots) += state.bytes();
  }
};

// Of the language model's step, as the first variant has it.
StateBytes statesOfStep(const Manifest &manifest) {
  for (const Variant &variant : manifest.variants())
    for (const Program &entry : variant.entries())
      if (entry.name() == manifest.language_model().entry())
        return StateBytes(entry);
  return StateBytes(Program());
}

Json manifestToJson(const moert::Bundle &bundle, bool commands) {
  const Manifest &manifest = bundle.manifest();
  Json files = Json::array(), weightFiles = Json::array(), weights = Json::array(),
       variants = Json::array();
  for (const moec::bundle::File &file : manifest.files())
    files.push_back({{"path", file.path()}, {"bytes", file.bytes()}});
  for (const moec::bundle::WeightFile &file : manifest.weight_files())
    weightFiles.push_back(
        {{"path", file.path()}, {"inside", file.inside()}, {"bytes", file.bytes()}});
  for (const moec::bundle::Weight &weight : manifest.weights())
    weights.push_back(
        {{"name", weight.name()},
         {"type", moert::elementTypeName(moert::elementType(weight.type()))},
         {"shape", Json(std::vector<std::int64_t>(weight.shape().begin(), weight.shape().end()))},
         {"bytes", weight.bytes()},
         {"file", weight.file()},
         {"offset", weight.offset()},
         {"has_digest", !weight.sha256().empty()}});
  std::vector<moert::VariantFit> fits = moert::fitVariants(manifest);
  for (int i = 0; i < manifest.variants_size(); ++i)
    variants.push_back(
        variantToJson(manifest.variants(i), fits[static_cast<std::size_t>(i)].missing, commands));
  Json result = {
      {"model", manifest.model()},
      {"format", moert::bundleFormatVersion},
      {"compiler_version", manifest.compiler_version()},
      {"digest", moert::toHex(bundle.digest())},
      {"required_features", Json(std::vector<std::string>(manifest.required_features().begin(),
                                                          manifest.required_features().end()))}};
  if (manifest.has_language_model()) {
    const moec::bundle::LanguageModel &language = manifest.language_model();
    const StateBytes states = statesOfStep(manifest);
    result["language_model"] = {
        {"entry", language.entry()},
        {"vocabulary", language.vocabulary()},
        {"layers", language.layers()},
        {"expert_layers", language.expert_layers()},
        {"experts", language.experts()},
        {"experts_per_token", language.experts_per_token()},
        {"bytes_per_token", states.paged / std::max<std::uint32_t>(language.block_tokens(), 1)},
        {"bytes_per_sequence", states.slots},
        {"block_tokens", language.block_tokens()},
        {"maximum_tokens", language.maximum_tokens()},
        {"tokenizer", language.tokenizer()},
        {"add_bos", language.add_bos()},
        {"bos_token", language.bos_token()},
        {"eos_tokens", Json(std::vector<std::uint32_t>(language.eos_tokens().begin(),
                                                       language.eos_tokens().end()))},
        {"batch_invariant", language.batch_invariant()}};
  }
  if (manifest.language_model().has_vision()) {
    const moec::bundle::Vision &vision = manifest.language_model().vision();
    result["language_model"]["vision"] = {
        {"entry", vision.entry()},
        {"placeholder", vision.placeholder()},
        {"patch", vision.patch()},
        {"merge", vision.merge()},
        {"frames", vision.frames()},
        {"most_patches", vision.most_patches()},
        {"most_patches_of_side", vision.most_patches_of_side()},
        {"mean", Json(std::vector<double>(vision.mean().begin(), vision.mean().end()))},
        {"deviation",
         Json(std::vector<double>(vision.deviation().begin(), vision.deviation().end()))}};
  }
  result["files"] = files;
  result["weight_files"] = weightFiles;
  result["weights"] = weights;
  result["variants"] = variants;
  return result;
}

void printProgram(const Program &program, const char *kind, bool commands) {
  ProgramText text(program);
  std::printf("  %s %s: %d commands, %d buffers\n", kind, program.name().c_str(),
              program.commands_size(), program.buffers_size());
  for (const moec::bundle::Tensor &tensor : program.inputs())
    std::printf("    in   %s: %s\n", tensor.name().c_str(), text.tensor(tensor).c_str());
  for (const moec::bundle::Tensor &tensor : program.outputs())
    std::printf("    out  %s: %s\n", tensor.name().c_str(), text.tensor(tensor).c_str());
  const StateBytes states(program);
  if (program.states_size() > 0)
    std::printf("    states: %d; all blocks of the same tokens %s, all slots of a sequence %s\n",
                program.states_size(), bytesToString(static_cast<double>(states.paged)).c_str(),
                bytesToString(static_cast<double>(states.slots)).c_str());
  for (const moec::bundle::Arena &arena : program.arenas())
    std::printf("    temporaries: %s x %s\n",
                bytesToString(static_cast<double>(arena.bytes())).c_str(),
                text.expression(arena.scale()).c_str());
  if (!commands)
    return;
  for (const moec::bundle::Buffer &buffer : program.buffers())
    std::printf("    buffer %s: arena %u at %llu, %llu bytes, alive from %u to %u\n",
                buffer.name().c_str(), buffer.arena(),
                static_cast<unsigned long long>(buffer.offset()),
                static_cast<unsigned long long>(buffer.bytes()), buffer.first(), buffer.last());
  for (int i = 0; i < program.commands_size(); ++i)
    std::printf("    %4d %s\n", i, text.command(program.commands(i)).c_str());
}

void printLanguageModel(const Manifest &manifest) {
  const moec::bundle::LanguageModel &language = manifest.language_model();
  std::string context = language.maximum_tokens() == 0
                            ? "any number of"
                            : "up to " + std::to_string(language.maximum_tokens());
  std::string ends;
  for (std::uint32_t token : language.eos_tokens())
    ends += (ends.empty() ? "" : ", ") + std::to_string(token);
  std::printf("language model: vocabulary %u, %s tokens, cache blocks of %u tokens%s\n",
              language.vocabulary(), context.c_str(), language.block_tokens(),
              language.batch_invariant() ? ", batch-invariant" : "");
  if (language.layers() != 0)
    std::printf("  layers: %u; %u of them with experts, %u each, %u for a token\n",
                language.layers(), language.expert_layers(), language.experts(),
                language.experts_per_token());
  const StateBytes states = statesOfStep(manifest);
  std::printf("  states: %s a token, %s a sequence\n",
              bytesToString(static_cast<double>(states.paged) /
                            std::max<std::uint32_t>(language.block_tokens(), 1))
                  .c_str(),
              bytesToString(static_cast<double>(states.slots)).c_str());
  std::printf("  tokenizer: %s; begin-of-text %lld%s; end-of-text %s\n",
              language.tokenizer().empty() ? "none" : language.tokenizer().c_str(),
              static_cast<long long>(language.bos_token()),
              language.add_bos() ? " before every prompt" : "",
              ends.empty() ? "none" : ends.c_str());
}

void printVision(const moec::bundle::Vision &vision) {
  std::uint32_t side = vision.patch() * vision.merge();
  std::printf(
      "  images: token %u stands for one; an embedding for %u x %u pixels; up to %u patches "
      "of %u pixels, %u a side\n",
      vision.placeholder(), side, side, vision.most_patches(), vision.patch(),
      vision.most_patches_of_side());
}

void printManifest(const moert::Bundle &bundle, bool commands) {
  const Manifest &manifest = bundle.manifest();
  std::printf("%s\nmodel %s, compiled by moec %s, bundle format %u\n", bundle.path().c_str(),
              manifest.model().c_str(), manifest.compiler_version().c_str(),
              moert::bundleFormatVersion);
  if (manifest.has_language_model())
    printLanguageModel(manifest);
  if (manifest.language_model().has_vision())
    printVision(manifest.language_model().vision());
  std::uint64_t bytes = 0;
  int digests = 0;
  for (const moec::bundle::Weight &weight : manifest.weights()) {
    bytes += weight.bytes();
    digests += !weight.sha256().empty();
  }
  std::printf("weights: %d, %s, %d with digests\n", manifest.weights_size(),
              bytesToString(static_cast<double>(bytes)).c_str(), digests);
  for (const moec::bundle::WeightFile &file : manifest.weight_files())
    std::printf("  %s%s, %s\n", file.path().c_str(), file.inside() ? " (inside)" : "",
                bytesToString(static_cast<double>(file.bytes())).c_str());
  std::vector<moert::VariantFit> fits = moert::fitVariants(manifest);
  for (int i = 0; i < manifest.variants_size(); ++i) {
    const Variant &variant = manifest.variants(i);
    const std::string &missing = fits[static_cast<std::size_t>(i)].missing;
    std::uint64_t packed = 0;
    for (const moec::bundle::Global &global : variant.globals())
      packed += global.bytes();
    std::printf("variant %s: %s; packed weights %s\n", variant.target().c_str(),
                missing.empty() ? "runs here" : ("does not run here, lacking " + missing).c_str(),
                bytesToString(static_cast<double>(packed)).c_str());
    if (variant.has_cuda())
      std::printf("  GPU of NVIDIA: %s\n", cudaToString(variant.cuda()).c_str());
    if (variant.has_load())
      printProgram(variant.load(), "load program", commands);
    for (const Program &entry : variant.entries())
      printProgram(entry, "entry", commands);
  }
}

} // namespace

ExitCode runInspect(const InspectCommand &command) {
  moert::OpenOptions options;
  options.weightsFolder = command.weights;
  // A manifest can be shown where the weights are not.
  options.openWeightFiles = command.verify || !command.weights.empty();
  MOEC_ASSIGN_OR_FAIL(auto bundle, moert::Bundle::open(command.bundle, options));
  std::uint64_t unchecked = 0;
  if (command.verify) {
    Progress progress("checking digests");
    MOEC_FAIL_IF_ERROR(bundle->verify(
        [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); },
        &unchecked));
  }
  if (command.json) {
    Json result = manifestToJson(*bundle, command.commands);
    if (command.verify)
      result["verified"] = {{"intact", true}, {"weights_without_digest", unchecked}};
    printJson(result);
    return ExitCode::Success;
  }
  printManifest(*bundle, command.commands);
  if (command.verify && unchecked == 0)
    std::printf("verified: every byte of the bundle and of its weights is as compiled\n");
  else if (command.verify)
    std::printf(
        "verified: the bundle is as compiled; %llu weights carry no digest and were not compared\n",
        static_cast<unsigned long long>(unchecked));
  return ExitCode::Success;
}

} // namespace moec
