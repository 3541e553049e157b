#include "ProductCase.h"

using namespace moec_test;

static const double e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0., -0.5, -1, -1.5, -2, -3, -4, -6};

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

TestWeight::TestWeight(std::string weightType, int64_t experts, int64_t n, int64_t k,
                       std::mt19937 &generator)
    : dense(weightType == "mxfp4" ? "f32" : weightType,
            weightType == "mxfp4" ? 0 : std::max<int64_t>(experts, 1) * n * k),
      type(weightType), experts(experts), n(n), k(k) {
  if (!isMXFP4()) {
    dense.fillRandom(generator, 0.1);
    return;
  }
  codes.resize(countMatrices() * n * k / 2);
  scales.resize(countMatrices() * n * k / 32);
  for (uint8_t &code : codes)
    code = generator();
  for (uint8_t &scale : scales)
    scale = 118 + generator() % 10;
}

double TestWeight::get(int64_t expert, int64_t row, int64_t column) const {
  int64_t at = rowIndex(expert, row) * k + column;
  if (!isMXFP4())
    return dense.get(at);
  uint8_t scale = scales[at / 32];
  if (scale == 255)
    return NAN;
  uint8_t code = at % 2 ? codes[at / 2] >> 4 : codes[at / 2] & 15;
  return std::ldexp(e2m1[code], scale - 127);
}

double TestWeight::getIntegerTolerance(int64_t expert, int64_t n,
                                       const std::vector<double> &row) const {
  double tolerance = 0;
  for (int64_t first = 0; first < k; first += 32) {
    double most = 0, weights = 0;
    for (int64_t column = first; column < first + 32; ++column) {
      most = std::max(most, std::abs(row[column]));
      weights += std::abs(get(expert, n, column));
    }
    // Half a step of integers up to 10943.
    tolerance += 1.001 * weights * most / (2 * 10943);
  }
  return tolerance;
}

void TestWeight::setScale(int64_t expert, int64_t row, int64_t block, uint8_t scale) {
  scales[rowIndex(expert, row) * (k / 32) + block] = scale;
}

void TestWeight::setCode(int64_t expert, int64_t row, int64_t column, uint8_t code) {
  int64_t at = rowIndex(expert, row) * k + column;
  uint8_t &byte = codes[at / 2];
  byte = at % 2 ? (byte & 15) | code << 4 : (byte & 0xf0) | code;
}

std::string TestWeight::getDimensions() const {
  std::string leading = experts ? std::to_string(experts) + "x" : "";
  return leading + std::to_string(n) + "x" + std::to_string(k);
}

std::string TestWeight::getLayout() const {
  if (isMXFP4())
    return "<tile = [16, 32], order = [0, 1], swizzle = nibble_words>";
  if (type == "bf16")
    return "<tile = [16, 2], order = [1, 0], swizzle = pairs>";
  return "<tile = [16, 1], order = [1, 0], swizzle = none>";
}

std::string TestWeight::getLogicalType() const {
  if (!isMXFP4())
    return "tensor<" + getDimensions() + "x" + type + ">";
  std::string leading = experts ? std::to_string(experts) + ", " : "";
  return "!moe.block_tensor<[" + leading + std::to_string(n) + ", " + std::to_string(k) +
         "], mxfp4>";
}

std::string TestWeight::getPackedType() const {
  std::string logical = getLogicalType();
  logical.pop_back();
  return logical + ", " + (isMXFP4() ? "" : "#moe.layout") + getLayout() + ">";
}

std::string TestWeight::getStorageType() const {
  std::string leading =
      (experts ? std::to_string(experts) + "x" : "") + std::to_string(ceilDivide(n, 16)) + "x";
  if (isMXFP4())
    return "memref<" + leading + std::to_string(k / 32) + "x272xi8>";
  if (type == "bf16")
    return "memref<" + leading + std::to_string(ceilDivide(k, 2)) + "x1x16x2xbf16>";
  return "memref<" + leading + std::to_string(k) + "x1x16x" + type + ">";
}

std::vector<std::byte> TestWeight::pack() const { return isMXFP4() ? packBlocks() : packDense(); }

std::vector<std::byte> TestWeight::packBlocks() const {
  int64_t panels = ceilDivide(n, 16), blocks = k / 32;
  std::vector<std::byte> packed(countMatrices() * panels * blocks * 272);
  for (int64_t e = 0; e < countMatrices(); ++e)
    for (int64_t row = 0; row < panels * 16; ++row)
      for (int64_t b = 0; b < blocks; ++b) {
        std::byte *panel = packed.data() + ((e * panels + row / 16) * blocks + b) * 272;
        bool anyCode = false;
        for (int64_t c = 0; c < 32 && row < n; ++c) {
          int64_t at = rowIndex(e, row) * k + 32 * b + c;
          int code = at % 2 ? codes[at / 2] >> 4 : codes[at / 2] & 15;
          anyCode |= (code & 7) != 0;
          int64_t word = 2 * (row % 16) + c % 2, bit = 4 * (c % 8 / 2);
          panel[64 * (c / 8) + 2 * word + bit / 8] |= std::byte(code << bit % 8);
        }
        int scale = row < n ? scales[rowIndex(e, row) * blocks + b] : 127;
        // Zeros carry the neutral scale, unless they are not numbers.
        panel[256 + row % 16] = std::byte(anyCode || scale == 255 ? scale : 127);
      }
  return packed;
}

std::vector<std::byte> TestWeight::packDense() const {
  int64_t panels = ceilDivide(n, 16), step = type == "bf16" ? 2 : 1;
  int64_t steps = ceilDivide(k, step), width = dense.getWidth();
  std::vector<std::byte> packed(countMatrices() * panels * steps * step * 16 * width);
  for (int64_t e = 0; e < countMatrices(); ++e)
    for (int64_t row = 0; row < n; ++row)
      for (int64_t c = 0; c < k; ++c) {
        int64_t to =
            (((e * panels + row / 16) * steps + c / step) * 16 + row % 16) * step + c % step;
        std::memcpy(packed.data() + to * width,
                    dense.getBytes().data() + (rowIndex(e, row) * k + c) * width, width);
      }
  return packed;
}

bool GuardedResult::isGuardIntact() const {
  const std::vector<std::byte> &bytes = buffer.getBytes();
  for (size_t i = count * buffer.getWidth(); i < bytes.size(); ++i)
    if (bytes[i] != std::byte(0xff))
      return false;
  return true;
}
