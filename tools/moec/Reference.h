// moec run --reference: the same tokens from the reference interpreter.
#ifndef MOEC_TOOLS_MOEC_REFERENCE_H
#define MOEC_TOOLS_MOEC_REFERENCE_H

#include "runtime/bundle/Bundle.h"
#include "runtime/session/Generate.h"

#include <span>

namespace moec {

// Interprets the program that the bundle keeps at phase moe. `weights`, if not empty, is where its
// weight files are.
moert::Result<moert::GenerateResult> generateReference(const moert::Bundle &bundle,
                                                       std::span<const std::int32_t> prompt,
                                                       const moert::GenerateOptions &options);

} // namespace moec

#endif
