//===- GenericKernel.h - text and data of generic kernels in tests ----------------------------===//

#ifndef MOEC_TEST_UNIT_KERNELS_GENERICKERNEL_H
#define MOEC_TEST_UNIT_KERNELS_GENERICKERNEL_H

#include "test/Unit/KernelHarness.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace moec_test {

/// A kernel called `kernel` whose inputs %i0, %i1, ... are tensors of the shapes and element types
/// named ("?x40xf32"), and whose `body` defines its results %o0, %o1, ....
inline std::string genericKernel(const std::vector<std::string> &inputs,
                                 const std::vector<std::string> &outputs, const std::string &body,
                                 const std::string &tileSizes = "") {
  std::string text = "func.func @kernel(", loads, stores;
  auto number = [](size_t i) { return std::to_string(i); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += "%in" + number(i) + ": memref<" + inputs[i] + ">, ";
    loads += "  %i" + number(i) + " = bufferization.to_tensor %in" + number(i) +
             " restrict : memref<" + inputs[i] + "> to tensor<" + inputs[i] + ">\n";
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    text += "%out" + number(i) + ": memref<" + outputs[i] + ">, ";
    stores += "  bufferization.materialize_in_destination %o" + number(i) +
              " in restrict writable %out" + number(i) + " : (tensor<" + outputs[i] + ">, memref<" +
              outputs[i] + ">) -> ()\n";
  }
  text += "%scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel";
  if (!tileSizes.empty())
    text += ", plan.tile_sizes = array<i64: " + tileSizes + ">";
  return text + "} {\n" + loads + body + "\n" + stores + "  return\n}\n";
}

/// A buffer with guards around it that must stay as they are.
template <typename T>
class Guarded {
public:
  explicit Guarded(size_t count, T fill = T()) : data(count + 2 * guard, sentinel()) {
    std::fill(data.begin() + guard, data.end() - guard, fill);
  }
  T &operator[](size_t i) { return data[guard + i]; }
  size_t size() const { return data.size() - 2 * guard; }
  Binding bind(std::vector<int64_t> dimensions = {}) {
    return {data.data() + guard, std::move(dimensions)};
  }
  bool isIntact() const {
    for (size_t i = 0; i < guard; ++i)
      if (data[i] != sentinel() || data[data.size() - 1 - i] != sentinel())
        return false;
    return true;
  }

private:
  static constexpr size_t guard = 64;
  static T sentinel() { return static_cast<T>(93); }
  std::vector<T> data;
};

inline float fromBF16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
/// Rounds to nearest even.
inline uint16_t toBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return 0x7fc0;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Random numbers of about unit size, the same on every run.
class Random {
public:
  explicit Random(unsigned seed = 1) : engine(seed) {}
  float next() { return float(int32_t(engine())) * 0x1p-30f; }
  uint32_t below(uint32_t limit) { return engine() % limit; }

private:
  std::mt19937 engine;
};

/// One tensor in f32 or bf16 whose elements tests read and write as float.
class FloatBuffer {
public:
  FloatBuffer(const std::string &type, size_t count)
      : isBF16(type == "bf16"), wide(isBF16 ? 0 : count), narrow(isBF16 ? count : 0), count(count) {
  }
  void set(size_t i, float value) {
    if (isBF16)
      narrow[i] = toBF16(value);
    else
      wide[i] = value;
  }
  float get(size_t i) { return isBF16 ? fromBF16(narrow[i]) : wide[i]; }
  void randomize(Random &random) {
    for (size_t i = 0; i < count; ++i)
      set(i, random.next());
  }
  size_t size() const { return count; }
  bool isIntact() const { return wide.isIntact() && narrow.isIntact(); }
  Binding bind(std::vector<int64_t> dimensions = {}) {
    return isBF16 ? narrow.bind(std::move(dimensions)) : wide.bind(std::move(dimensions));
  }

private:
  bool isBF16;
  Guarded<float> wide;
  Guarded<uint16_t> narrow;
  size_t count;
};

/// What a result may differ by: half a unit of bf16, or a few of f32.
inline double toleranceOf(const std::string &type) { return type == "bf16" ? 0x1.02p-8 : 0x1p-21; }

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_GENERICKERNEL_H
