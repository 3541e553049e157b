// Checks of what a launch has in CUDA variants only.
#include "runtime/base/ElementType.h"
#include "runtime/bundle/Expression.h"
#include "runtime/bundle/ValidateProgram.h"

#include <cstdint>

namespace moert {

using namespace moec::bundle;

namespace {

// Limits of every GPU that has the thing at all; a device may have lower ones of its own.
constexpr std::uint32_t mostThreads = 1024;
constexpr std::uint32_t mostSharedBytes = 1 << 20;
constexpr int mostTensorMaps = 64;
constexpr int mostDimensions = 5;
constexpr std::uint32_t largestBox = 256;
constexpr std::uint32_t copyGranule = 16; // bytes

// Bytes of the innermost dimension of a box that a swizzle covers; 0: any number.
std::uint32_t swizzleSpan(TensorMap::Swizzle swizzle) {
  switch (swizzle) {
  case TensorMap::BYTES_32:
    return 32;
  case TensorMap::BYTES_64:
    return 64;
  case TensorMap::BYTES_128:
    return 128;
  default:
    return 0;
  }
}

class TensorMapValidator {
public:
  TensorMapValidator(const TensorMap &map, const std::string &where, Problems &problems)
      : map(map), where(where), problems(problems) {}

  void validate(int bindings, int symbols) {
    if (map.binding() >= static_cast<std::uint32_t>(bindings))
      complain("binding " + std::to_string(map.binding()) + " of " + std::to_string(bindings));
    if (!TensorMap::Swizzle_IsValid(map.swizzle()))
      complain("unknown swizzle " + std::to_string(map.swizzle()));
    if (map.sizes_size() < 1 || map.sizes_size() > mostDimensions) {
      complain(std::to_string(map.sizes_size()) + " dimensions; 1 to " +
               std::to_string(mostDimensions) + " are possible");
      return;
    }
    if (map.strides_bytes_size() != map.sizes_size() - 1 || map.box_size() != map.sizes_size())
      complain(std::to_string(map.sizes_size()) + " sizes, " +
               std::to_string(map.strides_bytes_size()) + " strides and " +
               std::to_string(map.box_size()) + " numbers of a box do not belong together");
    for (int i = 0; i < map.sizes_size(); ++i)
      expression(map.sizes(i), symbols, "sizes[" + std::to_string(i) + "]");
    for (int i = 0; i < map.strides_bytes_size(); ++i)
      expression(map.strides_bytes(i), symbols, "strides_bytes[" + std::to_string(i) + "]");
    box();
  }

private:
  void complain(const std::string &message) { problems.add(where + ": " + message); }

  void expression(const Expression &expression, int symbols, const std::string &what) {
    std::string problem = expressionProblem(expression, static_cast<std::uint64_t>(symbols));
    if (!problem.empty())
      complain(what + ": the expression " + problem);
  }

  void box() {
    for (std::uint32_t size : map.box())
      if (size < 1 || size > largestBox)
        complain("a box of " + std::to_string(size) + " elements in a dimension; 1 to " +
                 std::to_string(largestBox) + " are possible");
    unsigned bits = ElementType_IsValid(map.type())
                        ? storageBits(static_cast<moert::ElementType>(map.type()))
                        : 0;
    if (bits < 8 || map.type() == I1) {
      complain("elements of type " + std::to_string(map.type()) + " have no whole bytes");
      return;
    }
    if (map.box_size() == 0 || map.box(0) > largestBox)
      return;
    std::uint32_t inner = map.box(0) * (bits / 8), span = swizzleSpan(map.swizzle());
    if (inner % copyGranule != 0)
      complain("the box has " + std::to_string(inner) +
               " bytes in its innermost dimension, no multiple of " + std::to_string(copyGranule));
    if (span != 0 && inner > span)
      complain("the box has " + std::to_string(inner) +
               " bytes in its innermost dimension; its swizzle allows " + std::to_string(span));
  }

  const TensorMap &map;
  const std::string &where;
  Problems &problems;
};

} // namespace

void validateCudaLaunch(const Launch &launch, const ProgramContext &context, int symbols,
                        const std::string &where, Problems &problems) {
  auto complain = [&](const std::string &message) { problems.add(where + ": " + message); };
  if (!context.isCuda) {
    if (launch.threads() != 0 || launch.shared_bytes() != 0 || launch.tensor_maps_size() != 0 ||
        launch.overlap())
      complain("threads, shared_bytes, tensor_maps and overlap belong to CUDA variants only");
    return;
  }
  if (launch.threads() < 1 || launch.threads() > mostThreads)
    complain("blocks of " + std::to_string(launch.threads()) + " threads; 1 to " +
             std::to_string(mostThreads) + " are possible");
  if (launch.shared_bytes() > mostSharedBytes)
    complain(std::to_string(launch.shared_bytes()) + " bytes of shared memory; at most " +
             std::to_string(mostSharedBytes) + " are possible");
  if (launch.tensor_maps_size() > mostTensorMaps) {
    complain(std::to_string(launch.tensor_maps_size()) + " tensor maps; at most " +
             std::to_string(mostTensorMaps) + " are possible");
    return;
  }
  for (int i = 0; i < launch.tensor_maps_size(); ++i) {
    std::string place = where + ": tensor_maps[" + std::to_string(i) + "]";
    TensorMapValidator(launch.tensor_maps(i), place, problems)
        .validate(launch.bindings_size(), symbols);
  }
}

} // namespace moert
