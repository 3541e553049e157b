// Tensor maps of a program's launches: views of bindings for the tensor copy engine of GPUs.
#include "runtime/base/CheckedMath.h"
#include "runtime/session/Program.h"

namespace moert {

namespace {

constexpr std::uint64_t granule = 16; // bytes that strides are multiples of

// The bytes from the first element to the end of the last; none when that overflows.
std::optional<std::uint64_t> extent(const TensorMapShape &shape) {
  std::uint64_t bytes, part;
  if (!checkedMultiply<std::uint64_t>(shape.sizes[0], storageBits(shape.type) / 8, bytes))
    return std::nullopt;
  for (std::uint32_t i = 1; i < shape.rank; ++i)
    if (!checkedMultiply(shape.sizes[i] - 1, shape.strideBytes[i - 1], part) ||
        !checkedAdd(bytes, part, bytes))
      return std::nullopt;
  return bytes;
}

} // namespace

Status ProgramRunner::encodeTensorMaps(const ReadyCommand &each) {
  const CompiledProgram::Command &command = program->commands[each.command];
  for (std::size_t i = 0; i < command.tensorMaps.size(); ++i) {
    const CompiledProgram::TensorMap &map = command.tensorMaps[i];
    TensorMapShape shape = map.shape;
    shape.address = static_cast<std::byte *>(each.arguments.buffers[map.operand]);
    if (!shape.address) // a weight that is not there yet; runStreaming comes back
      continue;
    auto complain = [&](const std::string &message) {
      return Status(ErrorCode::InvalidData, "tensor map " + std::to_string(i) + ": " + message);
    };
    for (std::size_t d = 0; d < map.sizes.size(); ++d) {
      auto size = map.sizes[d].evaluate(symbols);
      if (!size || *size < 1)
        return complain("a size is not positive or overflows");
      shape.sizes[d] = static_cast<std::uint64_t>(*size);
    }
    for (std::size_t d = 0; d < map.strides.size(); ++d) {
      auto stride = map.strides[d].evaluate(symbols);
      if (!stride || *stride < 0 || static_cast<std::uint64_t>(*stride) % granule != 0)
        return complain("a stride is negative, overflows or is no multiple of 16 bytes");
      shape.strideBytes[d] = static_cast<std::uint64_t>(*stride);
    }
    // The launch was checked to have these bytes.
    auto bound = command.operandBytes[map.operand].evaluate(symbols);
    auto needed = extent(shape);
    if (!needed || !bound || *needed > static_cast<std::uint64_t>(*bound))
      return complain("it reaches beyond its binding");
    EncodedTensorMap &result =
        tensorMaps[static_cast<std::size_t>(each.tensorMaps - tensorMaps.data()) + i];
    if (Status status = device->encode(shape, result); !status.isOk())
      return complain(status.message());
  }
  return {};
}

} // namespace moert
