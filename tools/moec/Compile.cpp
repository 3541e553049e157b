// moec compile.

#include "tools/moec/Report.h"

#include "moec/Compiler/Compiler.h"
#include "moec/InitDialects.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace mlir;
using mlir::moec::CompileOptions;
using mlir::moec::ImportCheckpointOptions;
using mlir::moec::ImportONNXOptions;

namespace moec {

namespace {

// Prints diagnostics the way this tool prints errors: the place first, where there is one, then the
// message and its notes.
class DiagnosticPrinter {
public:
  explicit DiagnosticPrinter(MLIRContext &context) {
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      print(diagnostic);
      return success();
    });
  }
  bool sawInternalError() const { return internal; }

private:
  void print(Diagnostic &diagnostic);

  bool internal = false;
};

// The name of an op of the model, or a line of a file.
std::string describe(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
        .str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string text = describe(part); !text.empty())
        return text;
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return describe(call.getCallee());
  return "";
}

void DiagnosticPrinter::print(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto line = [&](Diagnostic &each, const char *kind) {
    stream << "moec: ";
    std::string place = describe(each.getLocation());
    if (!place.empty())
      stream << place << ": ";
    stream << kind << each << "\n";
  };
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    line(diagnostic, "error: ");
    internal |= StringRef(diagnostic.str()).starts_with("internal error");
    break;
  case DiagnosticSeverity::Warning:
    line(diagnostic, "warning: ");
    break;
  case DiagnosticSeverity::Note:
  case DiagnosticSeverity::Remark:
    line(diagnostic, "note: ");
    break;
  }
  for (Diagnostic &note : diagnostic.getNotes())
    line(note, "note: ");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// "cpu:sapphirerapids,-amx-bf16,cpu:x86-64-v3" names two targets: features belong to the target
// before them.
std::vector<std::string> splitTargets(StringRef text) {
  std::vector<std::string> targets;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    bool isFeature = part.starts_with("+") || part.starts_with("-");
    if (isFeature && !targets.empty())
      targets.back() += "," + part.str();
    else
      targets.push_back(part.str());
  }
  return targets;
}

ImportONNXOptions::Interface parseInterface(StringRef name) {
  if (name == "language-model")
    return ImportONNXOptions::Interface::LanguageModel;
  if (name == "tensors")
    return ImportONNXOptions::Interface::Tensors;
  return ImportONNXOptions::Interface::Automatic;
}

} // namespace

ExitCode runCompile(const CompileCommand &command) {
  CompileOptions options;
  options.input = command.input;
  options.output = command.output;
  options.targets = splitTargets(command.targets);
  options.batchInvariant = command.batchInvariant;
  options.ptxOnly = command.ptxOnly;
  // The command line accepts names of phases only.
  options.from = *mlir::moec::parsePhase(command.from.empty() ? "moe" : command.from);
  options.to = *mlir::moec::parsePhase(command.to);
  if (options.from > options.to)
    return failUsage("--from=" + command.from + " is later than --to=" + command.to);
  options.dumpFolder = command.dumpPhases;
  options.copyWeights = command.copyWeights;
  options.tokenizerFolder = command.tokenizer;
  options.timing = command.timing;
  options.pipeline.disabledPasses = command.disabledPasses;
  std::vector<std::string> optimising = mlir::moec::getOptimisingPasses();
  for (const std::string &name : command.disabledPasses)
    if (!llvm::is_contained(optimising, name))
      return failUsage("--disable-pass: '" + name +
                       "' cannot be left out; these can: " + llvm::join(optimising, ", "));

  using Precision = ImportCheckpointOptions::Precision;
  if (!command.precision.empty())
    options.checkpoint.precision = command.precision == "f32" ? Precision::F32 : Precision::BF16;
  options.checkpoint.blockTokens = command.blockTokens;
  options.checkpoint.allowUnused = command.allowUnused;
  options.checkpoint.settings = command.settings;
  if (!command.layers.empty()) {
    llvm::StringRef rest = command.layers;
    std::pair<std::int64_t, std::int64_t> layers;
    bool isBad = rest.consumeInteger(10, layers.first);
    layers.second = layers.first;
    if (!isBad && rest.consume_front("-"))
      isBad = rest.consumeInteger(10, layers.second);
    if (isBad || !rest.empty() || layers.first < 0 || layers.second < layers.first)
      return failUsage("--layers: expected N or N-M with N at most M, found '" + command.layers +
                       "'");
    options.checkpoint.layers = layers;
  }

  options.onnx.interface = parseInterface(command.interface);
  options.onnx.tokenizerFolder = command.tokenizer;
  options.onnx.blockTokens = command.blockTokens;
  if (!command.precision.empty())
    options.onnx.precision = command.precision == "f32" ? ImportONNXOptions::Precision::F32
                                                        : ImportONNXOptions::Precision::BF16;
  options.onnx.names = {command.tokensInput, command.positionsInput, command.logitsOutput,
                        command.past, command.present};
  for (const std::string &dimension : command.dimensions) {
    auto [name, value] = StringRef(dimension).rsplit('=');
    int64_t size;
    if (value.getAsInteger(10, size) || size < 0)
      return failUsage("--dimension " + dimension + ": expected NAME=N with a whole number N");
    options.onnx.dimensions[name] = size;
  }

  DialectRegistry registry;
  mlir::moec::registerAllDialects(registry);
  MLIRContext context(registry);
  // The whole op, with all its types, drowns the message.
  context.printOpOnDiagnostic(false);
  DiagnosticPrinter printer(context);
  Activity activity("compiling " + command.input);
  if (succeeded(mlir::moec::compile(options, context)))
    return ExitCode::Success;
  return printer.sawInternalError() ? ExitCode::Internal : ExitCode::Input;
}

} // namespace moec
