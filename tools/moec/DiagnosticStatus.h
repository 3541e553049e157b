// The diagnostics of an MLIR context as one Status.
#ifndef MOEC_TOOLS_MOEC_DIAGNOSTICSTATUS_H
#define MOEC_TOOLS_MOEC_DIAGNOSTICSTATUS_H

#include "runtime/base/Status.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>

namespace moec {

class DiagnosticStatus {
public:
  explicit DiagnosticStatus(mlir::MLIRContext &context) {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        text += (text.empty() ? "" : "\n") + diagnostic.str();
      return mlir::success();
    });
  }

  // What was reported since the last time.
  moert::Status take(const std::string &place, const std::string &otherwise) {
    std::string message = text.empty() ? otherwise : std::move(text);
    text.clear();
    return moert::Status(moert::ErrorCode::InvalidData, std::move(message), place);
  }

private:
  std::string text;
};

} // namespace moec

#endif
