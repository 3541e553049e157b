// moec run, for programs on plain tensors.
#ifndef MOEC_TOOLS_MOEC_RUNTENSORS_H
#define MOEC_TOOLS_MOEC_RUNTENSORS_H

#include "tools/moec/Commands.h"

namespace moec {

ExitCode runTensors(const RunCommand &command);

} // namespace moec

#endif
