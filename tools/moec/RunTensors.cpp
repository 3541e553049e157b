#include "tools/moec/RunTensors.h"

#include "tools/moec/Loading.h"
#include "tools/moec/Report.h"

#include "runtime/base/Npy.h"
#include "runtime/device/Device.h"
#include "runtime/session/Timeline.h"

#include <map>
#include <set>

namespace moec {

using moert::ErrorCode;
using moert::Result;
using moert::Status;
using moert::Tensor;

namespace {

template <typename Range>
std::string listNames(const Range &range) {
  std::string text;
  for (const auto &each : range)
    text += (text.empty() ? "" : ", ") + moert::inQuotes(each.name());
  return text.empty() ? "none" : text;
}

Result<const moec::bundle::Program *> findEntry(const moert::Model &model,
                                                const std::string &name) {
  for (const moec::bundle::Variant &variant : model.bundle().manifest().variants()) {
    if (variant.target() != model.variant())
      continue;
    if (name.empty() && variant.entries_size() == 1)
      return &variant.entries(0);
    for (const moec::bundle::Program &entry : variant.entries())
      if (entry.name() == name)
        return &entry;
    return Status(ErrorCode::NotFound,
                  name.empty()
                      ? "the bundle holds several programs: " + listNames(variant.entries())
                      : "no program is called " + moert::inQuotes(name) +
                            "; there are: " + listNames(variant.entries()),
                  model.bundle().path(), "name one with --entry");
  }
  return Status(ErrorCode::Internal, "the loaded variant is not in the manifest");
}

// One --input: NAME=FILE.npy. Names may hold '=' themselves, so every cut that gives a known name
// counts.
Result<std::pair<std::string, Tensor>> readInput(const std::string &text,
                                                 const moec::bundle::Program &entry) {
  for (const moec::bundle::Tensor &input : entry.inputs()) {
    if (!text.starts_with(input.name() + "="))
      continue;
    std::string path = text.substr(input.name().size() + 1);
    MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
    MOERT_ASSIGN_OR_RETURN(moert::NpyArray array, moert::readNpy(file));
    Tensor tensor;
    tensor.type = moert::elementType(input.type());
    tensor.shape = array.shape;
    auto data = array.elements(tensor.type);
    if (!data.isOk())
      return std::move(data).status().in("input " + moert::inQuotes(input.name()) + ", " + path);
    tensor.data = *std::move(data);
    return std::pair(input.name(), std::move(tensor));
  }
  return Status(ErrorCode::InvalidArgument,
                "program " + moert::inQuotes(entry.name()) +
                    " has no such input; it has: " + listNames(entry.inputs()),
                "--input " + text);
}

// A file name for an output; outputs of imported graphs may be called "/model/head/Add_output_0".
std::string fileName(const std::string &name, std::set<std::string> &taken) {
  std::string safe = name;
  for (char &c : safe)
    if (c == '/' || c == '\0')
      c = '_';
  if (safe.empty() || safe.front() == '.')
    safe.insert(0, "_");
  std::string result = safe;
  for (int i = 2; !taken.insert(result).second; ++i)
    result = safe + "_" + std::to_string(i);
  return result + ".npy";
}

} // namespace

ExitCode runTensors(const RunCommand &command) {
  if (command.reference)
    return failUsage("--reference works with --prompt and --ids only");
  MOEC_ASSIGN_OR_FAIL(auto bundle, openBundle(command.bundle, command.weights));
  MOEC_ASSIGN_OR_FAIL(auto model,
                      loadModel(bundle, command.threads, command.variant, command.device));
  MOEC_ASSIGN_OR_FAIL(const moec::bundle::Program *entry, findEntry(*model, command.entry));

  std::map<std::string, Tensor> inputs;
  for (const std::string &text : command.inputs) {
    MOEC_ASSIGN_OR_FAIL(auto input, readInput(text, *entry));
    if (!inputs.insert(std::move(input)).second)
      return failUsage("--input " + text + ": this input is given twice");
  }
  moert::Timeline timeline;
  bool profiled = !command.profile.empty();
  MOEC_ASSIGN_OR_FAIL(auto outputs,
                      model->run(entry->name(), inputs, nullptr, profiled ? &timeline : nullptr));
  if (profiled)
    MOEC_FAIL_IF_ERROR(
        moert::writeFileAtomic(command.profile, timeline.toJson(model->device()->name())));

  MOEC_FAIL_IF_ERROR(moert::makeFolder(command.outputs));
  std::set<std::string> taken;
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (const auto &[name, tensor] : outputs) {
    std::string path = moert::joinPath(command.outputs, fileName(name, taken));
    MOEC_FAIL_IF_ERROR(moert::writeNpy(path, tensor.type, tensor.shape, tensor.data));
    std::string type(moert::elementTypeName(tensor.type));
    report.push_back({{"name", name}, {"type", type}, {"shape", tensor.shape}, {"file", path}});
    if (!command.json)
      printNow(path + ": " + type + " " + moert::shapeToString(tensor.shape) + "\n");
  }
  if (command.json)
    printJson({{"outputs", std::move(report)}});
  return ExitCode::Success;
}

} // namespace moec
