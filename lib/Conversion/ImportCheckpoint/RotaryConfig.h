//===- RotaryConfig.h - rotary frequencies from config.json
//------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_ROTARYCONFIG_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_ROTARYCONFIG_H

#include "runtime/base/Json.h"

#include <cstdint>
#include <vector>

namespace mlir::moec {

struct YarnParameters {
  double theta = 0, factor = 1, originalLength = 0, betaFast = 32, betaSlow = 1;
  // Whether the range of the ramp is rounded to whole dimensions (DeepSeek) or not (gpt-oss).
  bool truncate = true;
};

/// theta^(-2 i / dimensions), i < dimensions / 2.
std::vector<double> plainFrequencies(double theta, int64_t dimensions);
/// Blends frequencies and frequencies / factor along a ramp; see the YaRN paper.
std::vector<double> yarnFrequencies(const YarnParameters &yarn, int64_t dimensions);
/// YaRN's attention factor: 0.1 scale ln(factor) + 1.
double yarnMagnitude(double factor, double scale = 1);

struct RotaryConfig {
  std::vector<double> frequencies;
  double magnitude = 1;     // of both cosine and sine
  std::int64_t offset = 0;  // of the first element of a head that is rotated
  bool interleaved = false; // pairs are neighbours, not halves
};

/// Reads a scaling scheme, and its name in `rope_type` or `type`, for `dimensions` rotated elements.
/// `config` is the whole, where schemes may leave some of their numbers.
RotaryConfig readRotaryScheme(const moert::JsonView &config, const moert::JsonView &rope,
                              double theta, int64_t dimensions);

/// Reads `rope_parameters` or its older spelling `rope_scaling`, and `rope_theta` in either place.
/// Complains about what it does not know. `defaultTheta` counts where the config names none (0:
/// then it is a problem), `defaultShare` where it does not say which part of a head is rotated.
RotaryConfig readRotaryConfig(const moert::JsonView &config, int64_t headDimension,
                              double defaultTheta, double defaultShare = 1);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_ROTARYCONFIG_H
