#include "runtime/session/ChooseVariant.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/session/Model.h"

#include <charconv>

namespace moert {

using moec::bundle::Manifest;
using moec::bundle::Variant;

namespace {

// Where a variant runs, or what it lacks.
struct VariantPlace {
  int cudaDevice = -1;
  std::string missing;   // "" when it runs
  bool isWelcome = true; // whether it is for a kind of device that was asked for
};

std::string missingFeatures(const Variant &variant) {
  std::string missing;
  if (variant.target() != "cpu" && variant.target().rfind("cpu:", 0) != 0)
    return "a device other than the CPU";
  for (const std::string &feature : variant.cpu_features())
    if (!hasCpuFeature(feature))
      missing += (missing.empty() ? "" : ", ") + feature;
  return missing;
}

VariantPlace placeOf(const Variant &variant, const DeviceChoice &device) {
  if (!variant.has_cuda())
    return {-1, device.cpu ? missingFeatures(variant) : "the CPU", device.cpu};
  if (!device.cuda)
    return {-1, "a GPU of NVIDIA", false};
  const moec::bundle::Cuda &cuda = variant.cuda();
  cuda::Fit fit = cuda::findDevice(
      {cuda.major(), cuda.minor(), cuda.exact(), static_cast<int>(cuda.driver_version_needed())},
      device.index);
  return {fit.index, fit.missing, true};
}

} // namespace

Result<DeviceChoice> parseDevice(std::string_view text) {
  if (text.empty() || text == "auto")
    return DeviceChoice();
  if (text == "cpu")
    return DeviceChoice{"cpu", true, false, -1};
  if (text == "cuda")
    return DeviceChoice{"cuda", false, true, -1};
  constexpr std::string_view prefix = "cuda:";
  int index = -1;
  if (text.starts_with(prefix)) {
    std::string_view number = text.substr(prefix.size());
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc() && end == number.data() + number.size() && index >= 0)
      return DeviceChoice{std::string(text), false, true, index};
  }
  return Status(ErrorCode::InvalidArgument, "there is no device " + inQuotes(text), {},
                "devices are cpu, cuda, cuda:N for GPU number N, and auto");
}

std::vector<VariantFit> fitVariants(const Manifest &manifest) {
  std::vector<VariantFit> result;
  for (const Variant &variant : manifest.variants())
    result.push_back({variant.target(), placeOf(variant, DeviceChoice()).missing});
  return result;
}

Result<VariantChoice> chooseVariant(const Manifest &manifest, std::string_view target,
                                    const DeviceChoice &device, std::string_view place) {
  std::string reasons;
  for (const Variant &variant : manifest.variants()) {
    if (!target.empty() && variant.target() != target) {
      reasons += (reasons.empty() ? "" : ", ") + variant.target();
      continue;
    }
    VariantPlace found = placeOf(variant, device);
    if (found.missing.empty())
      return VariantChoice{&variant, found.cudaDevice};
    if (!target.empty() && !found.isWelcome)
      return Status(ErrorCode::InvalidArgument,
                    "the variant " + inQuotes(target) + " is for " + found.missing +
                        ", not for the device " + inQuotes(device.name),
                    std::string(place));
    if (!target.empty())
      return Status(ErrorCode::Unsupported,
                    "this machine cannot run the variant " + inQuotes(target) + ": it lacks " +
                        found.missing,
                    std::string(place));
    reasons +=
        "\n  " + variant.target() + (found.isWelcome ? " needs " : " is for ") + found.missing;
  }
  if (!target.empty())
    return Status(ErrorCode::NotFound,
                  "the bundle has no variant " + inQuotes(target) + "; it has " + reasons,
                  std::string(place));
  bool isAnywhere = device.cpu && device.cuda;
  return Status(
      ErrorCode::Unsupported,
      "no variant of the bundle runs on " +
          (isAnywhere ? "this machine" : "the device " + inQuotes(device.name)) + ":" + reasons,
      std::string(place),
      isAnywhere ? "compile the model for this machine (--target=cpu)"
                 : "allow other devices (--device=auto), or compile the model for this one");
}

Result<std::shared_ptr<Device>> openDevice(const VariantChoice &choice, unsigned threads) {
  return choice.cudaDevice < 0 ? CpuDevice::create(threads)
                               : cuda::CudaDevice::create(choice.cudaDevice, threads);
}

} // namespace moert
