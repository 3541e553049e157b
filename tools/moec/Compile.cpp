// moec compile.

#include "tools/moec/Report.h"

#include "moec/Conversion/ImportCheckpoint.h"
#include "moec/InitDialects.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

using namespace mlir;

namespace moec {

// Diagnostics as this tool prints errors: the place first, where there is one, then the message and
// its notes.
static void printDiagnostic(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto print = [&](Diagnostic &each, const char *kind) {
    stream << "moec: ";
    if (!isa<UnknownLoc>(each.getLocation()))
      stream << each.getLocation() << ": ";
    stream << kind << each << "\n";
  };
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    print(diagnostic, "error: ");
    break;
  case DiagnosticSeverity::Warning:
    print(diagnostic, "warning: ");
    break;
  default:
    print(diagnostic, "note: ");
  }
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, "note: ");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

ExitCode runCompile(const CompileCommand &command) {
  DialectRegistry registry;
  mlir::moec::registerAllDialects(registry);
  MLIRContext context(registry);
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    printDiagnostic(diagnostic);
    return success();
  });

  mlir::moec::ImportCheckpointOptions options;
  using Precision = mlir::moec::ImportCheckpointOptions::Precision;
  if (!command.precision.empty())
    options.precision = command.precision == "f32" ? Precision::F32 : Precision::BF16;
  options.blockTokens = command.blockTokens;
  options.allowUnused = command.allowUnused;
  auto module = mlir::moec::importCheckpoint(command.input, options, &context);
  if (failed(module))
    return ExitCode::Input;
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  printNow(text);
  return ExitCode::Success;
}

} // namespace moec
