#include "tools/moec/Report.h"
namespace moec {
ExitCode runInspect(const InspectCommand &command) { return ExitCode::Internal; }
} // namespace moec
