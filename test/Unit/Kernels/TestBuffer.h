//===- TestBuffer.h - buffers of any float type for kernel tests ------------------------------===//

#ifndef MOEC_TEST_UNIT_KERNELS_TESTBUFFER_H
#define MOEC_TEST_UNIT_KERNELS_TESTBUFFER_H

#include "gtest/gtest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace moec_test {

/// Elements of type f32, bf16 or f16, read and written as double. A fresh buffer is all NaN, so
/// that what a kernel does not write, and what it should not have read, shows.
class TestBuffer {
public:
  TestBuffer(std::string type, int64_t count)
      : type(std::move(type)), bytes(count * getWidth(), std::byte(0xff)) {}

  double get(int64_t i) const {
    if (type == "f32")
      return load<float>(i);
    if (type == "bf16")
      return std::bit_cast<float>(uint32_t(load<uint16_t>(i)) << 16);
    return static_cast<float>(load<_Float16>(i));
  }

  void set(int64_t i, double value) {
    float rounded = static_cast<float>(value);
    if (type == "f32")
      return store(i, rounded);
    if (type == "f16")
      return store(i, static_cast<_Float16>(rounded));
    uint32_t bits = std::bit_cast<uint32_t>(rounded);
    store(i, static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16));
  }

  void fillRandom(std::mt19937 &generator, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    for (int64_t i = 0; i < size(); ++i)
      set(i, normal(generator));
  }

  int64_t size() const { return bytes.size() / getWidth(); }
  int64_t getWidth() const { return type == "f32" ? 4 : 2; }
  const std::string &getType() const { return type; }
  void *data() { return bytes.data(); }
  const std::vector<std::byte> &getBytes() const { return bytes; }
  /// The relative error of rounding to the element type.
  double getEpsilon() const { return type == "f32" ? 0x1p-24 : type == "bf16" ? 0x1p-8 : 0x1p-11; }
  /// The error of rounding `value` to the element type: not relative below its normal numbers.
  double getRoundingError(double value) const {
    return getEpsilon() * std::max(std::abs(value), type == "f16" ? 0x1p-14 : 0x1p-126);
  }

private:
  template <typename T>
  T load(int64_t i) const {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void store(int64_t i, T value) {
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }

  std::string type;
  std::vector<std::byte> bytes;
};

/// Expects that buffers hold at its end what they held at its beginning: kernels do not change what
/// they only read.
class Unchanged {
public:
  Unchanged(std::initializer_list<const TestBuffer *> buffers) {
    for (const TestBuffer *buffer : buffers)
      add(*buffer);
  }
  ~Unchanged() {
    for (size_t i = 0; i < buffers.size(); ++i)
      EXPECT_TRUE(buffers[i]->getBytes() == before[i]) << "input " << i << " was changed";
  }
  void add(const TestBuffer &buffer) {
    buffers.push_back(&buffer);
    before.push_back(buffer.getBytes());
  }

private:
  std::vector<const TestBuffer *> buffers;
  std::vector<std::vector<std::byte>> before;
};

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_TESTBUFFER_H
