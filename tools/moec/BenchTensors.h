// moec bench of a program on plain tensors.
#ifndef MOEC_TOOLS_MOEC_BENCHTENSORS_H
#define MOEC_TOOLS_MOEC_BENCHTENSORS_H

#include "tools/moec/Commands.h"

#include "runtime/session/Model.h"

namespace moec {

// Runs the only entry, or the named one, on random inputs and reports the median time of each
// launch.
ExitCode benchTensors(const moert::Model &model, const BenchCommand &command);

} // namespace moec

#endif
