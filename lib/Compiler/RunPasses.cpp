#include "moec/Compiler/RunPasses.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using namespace mlir::moec;

namespace {
/// Remembers the first pass that fails; the pipelines around it fail after it.
class FirstFailure : public PassInstrumentation {
public:
  explicit FirstFailure(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getArgument().empty() ? pass->getName().str() : pass->getArgument().str();
  }

private:
  std::string &name;
};
} // namespace

LogicalResult mlir::moec::runPasses(PassManager &passes, ModuleOp module) {
  MLIRContext *context = module.getContext();
  std::string failedPass;
  passes.addInstrumentation(std::make_unique<FirstFailure>(failedPass));
  bool isReported = false;
  {
    ScopedDiagnosticHandler watch(context, [&](Diagnostic &diagnostic) {
      isReported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return failure(); // for the next handler to print
    });
    if (succeeded(passes.run(module)))
      return success();
  }
  bool isValid;
  {
    ScopedDiagnosticHandler silence(context, [](Diagnostic &) { return success(); });
    isValid = succeeded(verify(module));
  }
  bool checksOurOwn = failedPass == "moec-verify-opt" || failedPass == "moec-verify-plan";
  if (isReported && isValid && !checksOurOwn)
    return failure();
  return emitError(UnknownLoc::get(context))
         << "internal error: " << failedPass
         << (isValid ? " failed" : " has left a program that is not valid")
         << "; this is a mistake of moec, not of the input";
}
