#include "tools/moec/Report.h"
namespace moec {
ExitCode runRun(const RunCommand &command) { return ExitCode::Internal; }
} // namespace moec
