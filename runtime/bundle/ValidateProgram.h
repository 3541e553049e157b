// Checks of one program of a manifest; part of validateManifest.
#ifndef MOERT_BUNDLE_VALIDATEPROGRAM_H
#define MOERT_BUNDLE_VALIDATEPROGRAM_H

#include "runtime/abi/bundle.pb.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <string>

namespace moert {

// What a program's bindings may refer to.
struct ProgramContext {
  const std::vector<bool> &isJoined; // for each weight: whether it lies behind another one
  int globals = 0;
  bool isLoad = false; // the load program has no inputs, outputs and states
  bool isCuda = false; // its launches have blocks of threads
};

// Checks of what a launch has in CUDA variants only: threads, shared memory, tensor maps.
void validateCudaLaunch(const moec::bundle::Launch &launch, const ProgramContext &context,
                        int symbols, const std::string &where, Problems &problems);

void validateProgram(const moec::bundle::Program &program, const ProgramContext &context,
                     const std::string &where, Problems &problems);

// Whether `entry` can be driven as `model` says.
void validateLanguageModelEntry(const moec::bundle::Program &entry,
                                const moec::bundle::LanguageModel &model, const std::string &where,
                                Problems &problems);

// Whether `encoder` gives what `step` takes for images, as `vision` says.
void validateVisionEntry(const moec::bundle::Program &encoder, const moec::bundle::Program &step,
                         const moec::bundle::Vision &vision, const std::string &where,
                         Problems &problems);

// Whether `entry` chooses tokens from logits of `vocabulary` columns.
void validateSamplerEntry(const moec::bundle::Program &entry, std::uint32_t vocabulary,
                          const std::string &where, Problems &problems);

} // namespace moert

#endif
