#include "FragmentLayout.h"

#include "IterationSpace.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

constexpr int64_t tileSize = 64, codeBytes = 2048, tileBytes = 2176;
constexpr unsigned noNumber = 255;
constexpr int64_t rotations[8] = {4, 10, 14, 0, 6, 12, 2, 8};

/// Where bit `bit` of a code lies in a word when it is half `half` of pair `pair`.
int64_t placeOfBit(int64_t pair, int64_t half, int64_t bit) {
  int64_t unrotated = 16 * half + (bit == 3 ? 15 : 6 + bit);
  return (unrotated - rotations[pair] + 32) % 32;
}

bool isOfFirstPairs(int64_t place) {
  for (int64_t pair = 0; pair < 3; ++pair)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t bit = 0; bit < 4; ++bit)
        if (placeOfBit(pair, half, bit) == place)
          return true;
  return false;
}

/// Which of a block's two words holds that bit.
int64_t wordOfBit(int64_t pair, int64_t place) {
  if (pair < 6)
    return pair / 3;
  return isOfFirstPairs(place) ? 1 : 0;
}

class Packer {
public:
  Packer(const ReferenceBlockTensor &blocks, BlockTensorType type, MutableArrayRef<std::byte> bytes)
      : blocks(blocks), n(type.getShape()[type.getShape().size() - 2]), k(type.getShape().back()),
        rowTiles(llvm::divideCeil(n, tileSize)), columnTiles(llvm::divideCeil(k, tileSize)),
        ofHalves(type.getLayout().getSwizzle() == Swizzle::fragments_of_halves), bytes(bytes) {}

  /// Row `r` in the order of the layout; rows of the padding have a factor alone.
  void packRow(int64_t matrix, int64_t r) {
    int64_t run = (matrix * rowTiles + r / tileSize) * (columnTiles * tileBytes + tileSize * 4);
    int64_t inTile = r % tileSize;
    float factor = 1;
    if (r < n) {
      int64_t row = matrix * n + (ofHalves ? r / 2 + r % 2 * (n / 2) : r);
      auto [shift, isNaN] = getShift(row);
      factor = isNaN ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, int(shift));
      for (int64_t block = 0; block < k / 32; ++block)
        packScale(run, inTile, block, scaleOf(row, block), shift);
      for (int64_t column = 0; column < k; ++column)
        packCode(run, inTile, column, codeOf(row, column));
    }
    std::memcpy(&bytes[run + columnTiles * tileBytes + inTile * 4], &factor, 4);
  }

  int64_t countRows() const { return rowTiles * tileSize; }

private:
  unsigned scaleOf(int64_t row, int64_t block) const {
    return static_cast<unsigned>((*blocks.scales)[row * (k / 32) + block]);
  }
  unsigned codeOf(int64_t row, int64_t column) const {
    int64_t element = row * k + column;
    auto pair = static_cast<unsigned>((*blocks.codes)[element / 2]);
    return element % 2 ? pair >> 4 : pair & 15;
  }

  std::pair<int64_t, bool> getShift(int64_t row) const {
    int64_t largest = 0;
    bool isNaN = false;
    for (int64_t block = 0; block < k / 32; ++block) {
      unsigned scale = scaleOf(row, block);
      if (scale == noNumber)
        isNaN = true;
      else
        largest = std::max<int64_t>(largest, scale);
    }
    return {std::max<int64_t>(largest - 128, 0), isNaN};
  }

  void packScale(int64_t run, int64_t row, int64_t block, unsigned scale, int64_t shift) {
    int64_t at = run + block / 2 * tileBytes + codeBytes + row / 2 * 4 + row % 2 * 2 + block % 2;
    bytes[at] = static_cast<std::byte>(scale == noNumber ? 0 : scale + 126 - shift);
  }

  void packCode(int64_t run, int64_t row, int64_t column, unsigned code) {
    int64_t inTile = column % tileSize, block = inTile / 32, inBlock = inTile % 32;
    int64_t pair = inBlock / 16 * 4 + inBlock / 8 % 2 * 2 + row % 2;
    int64_t thread = row / 2 * 4 + inBlock % 8 / 2, half = inBlock % 2;
    for (int64_t bit = 0; bit < 4; ++bit) {
      if ((code >> bit & 1) == 0)
        continue;
      int64_t place = placeOfBit(pair, half, bit);
      int64_t word = 2 * block + wordOfBit(pair, place);
      int64_t at = run + column / tileSize * tileBytes + thread * 16 + word * 4 + place / 8;
      bytes[at] |= static_cast<std::byte>(1u << place % 8);
    }
  }

  const ReferenceBlockTensor &blocks;
  int64_t n, k, rowTiles, columnTiles;
  bool ofHalves;
  MutableArrayRef<std::byte> bytes;
};

} // namespace

ReferenceTensor mlir::moec::moe::packFragments(const ReferenceBlockTensor &blocks,
                                               BlockTensorType type) {
  ReferenceTensor buffer =
      *ReferenceTensor::create(IntegerType::get(type.getContext(), 8),
                               type.getLayout().getStorageShape(type.getShape()));
  Packer packer(blocks, type, buffer.getMutableBytes());
  int64_t matrices = *countElements(type.getShape().drop_back(2));
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    for (int64_t row = 0; row < packer.countRows(); ++row)
      packer.packRow(matrix, row);
  return buffer;
}
