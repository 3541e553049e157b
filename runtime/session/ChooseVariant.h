// Which variant of a bundle runs, and on which device.
#ifndef MOERT_SESSION_CHOOSEVARIANT_H
#define MOERT_SESSION_CHOOSEVARIANT_H

#include "runtime/abi/bundle.pb.h"
#include "runtime/base/Status.h"
#include "runtime/device/Device.h"

#include <memory>
#include <string>
#include <string_view>

namespace moert {

// What LoadOptions::device says.
struct DeviceChoice {
  std::string name = "auto";
  bool cpu = true, cuda = true; // kinds that are welcome
  int index = -1;               // of a GPU; -1: any
};
Result<DeviceChoice> parseDevice(std::string_view text);

struct VariantChoice {
  const moec::bundle::Variant *variant = nullptr;
  int cudaDevice = -1; // -1: the CPU
};

// The first variant that fits a welcome device; with a `target` only the one of that name. An error
// says for every variant what is missing. Opens NVIDIA's driver only when a variant asks for it.
Result<VariantChoice> chooseVariant(const moec::bundle::Manifest &manifest, std::string_view target,
                                    const DeviceChoice &device, std::string_view place);

// `threads` as in LoadOptions.
Result<std::shared_ptr<Device>> openDevice(const VariantChoice &choice, unsigned threads);

} // namespace moert

#endif
