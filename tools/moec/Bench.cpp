#include "tools/moec/Report.h"
namespace moec {
ExitCode runBench(const BenchCommand &command) { return ExitCode::Internal; }
} // namespace moec
