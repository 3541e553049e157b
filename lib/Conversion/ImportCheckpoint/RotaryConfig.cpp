#include "RotaryConfig.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mlir::moec {

using moert::JsonView;

std::vector<double> plainFrequencies(double theta, int64_t dimensions) {
  std::vector<double> result;
  for (int64_t i = 0; i < dimensions / 2; ++i)
    result.push_back(std::pow(theta, -2.0 * double(i) / double(dimensions)));
  return result;
}

std::vector<double> yarnFrequencies(const YarnParameters &yarn, int64_t dimensions) {
  // The dimension whose wave makes `turns` turns over the original length.
  auto correction = [&](double turns) {
    return double(dimensions) * std::log(yarn.originalLength / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(yarn.theta));
  };
  double low = correction(yarn.betaFast), high = correction(yarn.betaSlow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, double(dimensions - 1));
  if (low == high)
    high += 0.001;
  std::vector<double> result = plainFrequencies(yarn.theta, dimensions);
  for (size_t i = 0; i < result.size(); ++i) {
    double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    result[i] = result[i] / yarn.factor * ramp + result[i] * (1 - ramp);
  }
  return result;
}

double yarnMagnitude(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

// A number above zero (or at least `least`); 1 after a complaint.
static double positive(const JsonView &view, double otherwise, double least = 0) {
  auto value = view.number();
  if (!value)
    return otherwise;
  if (*value > 0 && *value >= least)
    return *value;
  view.complain("expected a number " +
                (least > 0 ? "of at least " + moert::Json(least).dump() : std::string("above 0")) +
                ", found " + view.raw()->dump());
  return otherwise;
}

static RotaryConfig readYarn(const JsonView &config, const JsonView &rope, double theta,
                             int64_t dimensions) {
  YarnParameters yarn;
  yarn.theta = theta;
  JsonView length = rope.optional("original_max_position_embeddings");
  if (!length)
    length = config["max_position_embeddings"];
  yarn.originalLength = positive(length, 1, 1);
  // DeepSeek's files may leave the factor to the ratio of the two lengths.
  if (JsonView factor = rope.optional("factor"))
    yarn.factor = positive(factor, 1, 1);
  else if (auto longest = config["max_position_embeddings"].number())
    yarn.factor = std::max(1.0, *longest / yarn.originalLength);
  yarn.betaFast = positive(rope.optional("beta_fast"), yarn.betaFast);
  yarn.betaSlow = positive(rope.optional("beta_slow"), yarn.betaSlow);
  yarn.truncate = rope.optional("truncate").boolean().value_or(true);

  RotaryConfig result;
  result.frequencies = yarnFrequencies(yarn, dimensions);
  JsonView scale = rope.optional("mscale"), scaleAll = rope.optional("mscale_all_dim");
  double scaleValue = scale ? scale.number().value_or(0) : 0;
  double scaleAllValue = scaleAll ? scaleAll.number().value_or(0) : 0;
  if (JsonView factor = rope.optional("attention_factor"))
    result.magnitude = positive(factor, 1);
  else if (scaleValue != 0 && scaleAllValue != 0)
    result.magnitude =
        yarnMagnitude(yarn.factor, scaleValue) / yarnMagnitude(yarn.factor, scaleAllValue);
  else
    result.magnitude = yarnMagnitude(yarn.factor);
  return result;
}

RotaryConfig readRotaryScheme(const JsonView &config, const JsonView &rope, double theta,
                              int64_t dimensions) {
  JsonView typeView = rope.optional("rope_type");
  if (!typeView)
    typeView = rope.optional("type");
  std::string type = typeView.string().value_or("default");
  if (type == "yarn")
    return readYarn(config, rope, theta, dimensions);
  RotaryConfig result;
  result.frequencies = plainFrequencies(theta, dimensions);
  if (type == "linear") {
    double factor = positive(rope["factor"], 1);
    for (double &frequency : result.frequencies)
      frequency /= factor;
  } else if (type != "default") {
    typeView.complain("expected 'default', 'linear' or 'yarn', found " + moert::inQuotes(type));
  }
  return result;
}

RotaryConfig readRotaryConfig(const JsonView &config, int64_t headDimension, double defaultTheta,
                              double defaultShare) {
  JsonView rope = config.optional("rope_parameters");
  if (!rope)
    rope = config.optional("rope_scaling");
  for (auto &[name, member] : rope.members())
    if (member.raw()->is_object()) {
      member.complain("rotary parameters that differ between layers are not supported");
      return {};
    }

  JsonView thetaView = rope.optional("rope_theta");
  if (!thetaView)
    thetaView = config.optional("rope_theta");
  if (!thetaView && defaultTheta == 0)
    thetaView = config["rope_theta"]; // complains
  double theta = positive(thetaView, defaultTheta == 0 ? 2 : defaultTheta);
  if (theta <= 1) {
    thetaView.complain("expected a number above 1, found " + thetaView.raw()->dump());
    return {};
  }

  JsonView partial = rope.optional("partial_rotary_factor");
  if (!partial)
    partial = config.optional("partial_rotary_factor");
  double share = positive(partial, defaultShare);
  auto dimensions = share > 1 ? int64_t(0) : int64_t(double(headDimension) * share);
  if (dimensions < 2 || dimensions % 2 != 0) {
    (partial ? partial : config)
        .complain("an even number of at least 2 of the " + std::to_string(headDimension) +
                  " dimensions of a head has to be rotated, not " + std::to_string(dimensions));
    return {};
  }

  return readRotaryScheme(config, rope, theta, dimensions);
}

} // namespace mlir::moec
