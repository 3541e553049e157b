#include "tools/moec/Report.h"
namespace moec {
ExitCode runEval(const EvalCommand &command) { return ExitCode::Internal; }
} // namespace moec
