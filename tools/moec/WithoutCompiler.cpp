// What the command that only runs bundles says about the rest.

#include "tools/moec/Reference.h"
#include "tools/moec/Report.h"

namespace moec {

ExitCode runCompile(const CompileCommand &) {
  return failUsage("this command runs bundles; 'moec compile' makes them");
}

ExitCode runVerify(const VerifyCommand &) {
  return failUsage("this command runs bundles; 'moec verify' compares them with the reference interpreter");
}

moert::Result<moert::GenerateResult> generateReference(const moert::Bundle &bundle,
                                                       std::span<const std::int32_t>,
                                                       const moert::GenerateOptions &) {
  return moert::Status(moert::ErrorCode::Unsupported,
                       "the reference interpreter belongs to the compiler", bundle.path(),
                       "use 'moec run --reference'");
}

} // namespace moec
