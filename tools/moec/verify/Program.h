// The program that a bundle keeps, cut into layers, with its weights.
#ifndef MOEC_TOOLS_MOEC_VERIFY_PROGRAM_H
#define MOEC_TOOLS_MOEC_VERIFY_PROGRAM_H

#include "tools/moec/DiagnosticStatus.h"

#include "moec/Compiler/Segments.h"
#include "moec/Dialect/MoE/Reference/Interpreter.h"

#include "runtime/bundle/Bundle.h"

namespace moec::verify {

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp step;
  std::optional<mlir::moec::Segmentation> cut;
  std::unique_ptr<mlir::moec::moe::WeightSource> weights; // of the interpreter

  const std::vector<mlir::moec::Segment> &segments() const { return cut->getSegments(); }
};

// Parses the text. Weights are those of the bundle: its references become those of the files where
// the bundle finds them, so that the compiler and the interpreter read the same bytes as the bundle
// does. With `weightFolder` they are the files of this folder.
moert::Result<Program> openProgram(const std::string &text, const std::string &place,
                                   const moert::Bundle &bundle, const std::string &weightFolder,
                                   mlir::MLIRContext &context, DiagnosticStatus &diagnostics);

// The two have the same layers, with the same values between them.
moert::Status checkAlike(const Program &compiled, const Program &reference,
                         const std::string &place);

std::string toText(mlir::Type type);

} // namespace moec::verify

#endif
