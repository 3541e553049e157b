#include "runtime/session/StateStore.h"

#include "runtime/base/CheckedMath.h"

#include <algorithm>

namespace moert {

StateStore::StateStore(const moec::bundle::Program &program, std::uint64_t limit,
                       std::shared_ptr<Device> device)
    : device(std::move(device)), limit(limit) {
  for (const moec::bundle::State &state : program.states()) {
    Kind kind = state.kind() == moec::bundle::State::SLOT ? Slots : Blocks;
    states.push_back({kind, state.bytes(), {}});
    pools.push_back({nullptr, 0});
    // An overflow saturates: then the first reserve fails.
    if (!checkedAdd<std::uint64_t>(bytesEach[kind], state.bytes(), bytesEach[kind]))
      bytesEach[kind] = UINT64_MAX;
  }
}

std::uint64_t StateStore::bytes() const {
  std::uint64_t sum = 0;
  for (const MemorySpan &pool : pools)
    sum += pool.bytes;
  return sum;
}

Status StateStore::reserve(Kind kind, std::uint64_t count) {
  if (count <= free[kind].available())
    return {};
  std::uint64_t needed;
  if (!checkedAdd<std::uint64_t>(free[kind].capacity(), count - free[kind].available(), needed) ||
      needed > INT32_MAX)
    return {ErrorCode::OutOfMemory, "a state pool has at most 2^31 - 1 blocks"};
  // Half as much again, so that growing costs little in the long run; what the limit leaves, if
  // that is less.
  Kind other = kind == Blocks ? Slots : Blocks;
  std::uint64_t most = INT32_MAX;
  if (limit != 0) {
    std::uint64_t taken = free[other].capacity() * bytesEach[other];
    most = std::min(most, (limit - std::min(limit, taken)) / bytesEach[kind]);
  }
  if (needed > most)
    return {ErrorCode::OutOfMemory,
            "the sequences need " + std::to_string(needed) +
                (kind == Blocks ? " cache blocks of " : " state slots of ") +
                std::to_string(bytesEach[kind]) + " bytes; the session's limit allows " +
                std::to_string(most),
            {},
            "raise the limit, or release or truncate sequences"};
  std::uint64_t wanted = std::max<std::uint64_t>(needed, kind == Blocks ? 16 : 4);
  wanted = std::min(std::max(wanted, std::uint64_t(free[kind].capacity()) * 3 / 2), most);
  Status status = resize(kind, static_cast<std::uint32_t>(wanted));
  // With memory short, take just what is needed.
  if (!status.isOk() && wanted > needed)
    status = resize(kind, static_cast<std::uint32_t>(needed));
  return status;
}

Status StateStore::resize(Kind kind, std::uint32_t capacity) {
  for (const State &state : states) {
    std::uint64_t bytes;
    if (state.kind == kind &&
        (!checkedMultiply<std::uint64_t>(state.bytes, capacity, bytes) || bytes > INT64_MAX))
      return {ErrorCode::OutOfMemory,
              "a state pool of " + std::to_string(capacity) + " blocks exceeds all memory"};
  }
  // A failure halfway leaves some memory larger than its span says: harmless.
  for (std::size_t i = 0; i < states.size(); ++i) {
    State &state = states[i];
    if (state.kind != kind)
      continue;
    MOERT_RETURN_IF_ERROR(
        device->grow(state.memory, state.bytes * capacity, "the state of sequences"));
    pools[i].data = state.memory.data();
  }
  for (std::size_t i = 0; i < states.size(); ++i)
    if (states[i].kind == kind)
      pools[i].bytes = states[i].bytes * capacity;
  free[kind].grow(capacity);
  return {};
}

Result<std::uint32_t> StateStore::allocate(Kind kind) {
  std::uint32_t index = free[kind].allocate();
  // Kernels may read a block beyond the tokens in it and multiply by zero; what another sequence
  // left there, an infinity perhaps, must not get through.
  bool isUsed = index < touched[kind];
  touched[kind] = std::max(touched[kind], index + 1);
  for (State &state : states)
    if (isUsed && state.kind == kind)
      if (Status status = device->set(state.part(index), std::byte(0)); !status.isOk()) {
        free[kind].release(index);
        return status;
      }
  return index;
}

Result<std::uint32_t> StateStore::makePrivate(Kind kind, std::uint32_t index) {
  std::uint32_t copy = free[kind].allocate();
  touched[kind] = std::max(touched[kind], copy + 1);
  for (State &state : states)
    if (state.kind == kind)
      if (Status status = device->copy(state.part(copy), state.part(index)); !status.isOk()) {
        free[kind].release(copy);
        return status;
      }
  free[kind].release(index);
  return copy;
}

} // namespace moert
