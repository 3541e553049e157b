#include "CodeFragments.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {
constexpr int64_t rotations[CodeFragments::pairs] = {4, 10, 14, 0, 6, 12, 2, 8};
/// Sign, exponent and mantissa of the two codes of a pair.
constexpr int64_t pairMask = 0x81c081c0;
/// Pairs 0 to 2 are in the first word, 3 to 5 in the second, the others in both.
constexpr int64_t pairsOfWord = 3;

uint32_t rotateRight(uint32_t word, int64_t bits) {
  return bits == 0 ? word : word >> bits | word << (32 - bits);
}

/// The bits of the first word that its own pairs leave free.
int64_t getFreeMask() {
  uint32_t used = 0;
  for (int64_t pair = 0; pair < pairsOfWord; ++pair)
    used |= rotateRight(static_cast<uint32_t>(pairMask), rotations[pair]);
  return static_cast<int64_t>(~used);
}

Value shiftLeft(HopperCode &code, Value word, int64_t bits) {
  return bits == 0 ? word
                   : Value(arith::ShLIOp::create(code, code.getLoc(), word, code.int32(bits)));
}
Value orBits(HopperCode &code, Value a, Value b) {
  return arith::OrIOp::create(code, code.getLoc(), a, b);
}

/// Rotates left. Where nothing that counts wraps around, a shift, which more units of a
/// multiprocessor can do.
Value rotateLeft(HopperCode &code, Value word, int64_t bits) {
  if (bits <= 6)
    return shiftLeft(code, word, bits);
  return LLVM::FshlOp::create(code, code.getLoc(), word, word, code.int32(bits));
}

Value toPair(HopperCode &code, Value word) {
  return LLVM::BitcastOp::create(code, code.getLoc(), VectorType::get({2}, code.getBF16Type()),
                                 word);
}
} // namespace

moe::LayoutAttr CodeFragments::getLayout(moe::GroupedLinearOp op) {
  moe::ActivationAttr activation = op.getActivationAttr();
  bool ofHalves = activation && !activation.getInterleaved();
  return moe::LayoutAttr::get(op.getContext(), {tileRows, tileColumns}, {0, 1},
                              ofHalves ? moe::Swizzle::fragments_of_halves
                                       : moe::Swizzle::fragments);
}

std::pair<Value, Value> CodeFragments::pack(HopperCode &code, ArrayRef<Value> bytes) {
  Location loc = code.getLoc();
  Value first = code.int32(0), second = code.int32(0);
  for (auto [pair, byte] : llvm::enumerate(bytes)) {
    // The codes' bits 0 to 2 go to bits 6 to 8 of either half, the signs to bit 15.
    Value low = orBits(code, shiftLeft(code, code.andBits(byte, 0x07), 6),
                       shiftLeft(code, code.andBits(byte, 0x08), 12));
    Value high = orBits(code, shiftLeft(code, code.andBits(byte, 0x70), 18),
                        shiftLeft(code, code.andBits(byte, 0x80), 24));
    Value word = orBits(code, low, high);
    if (int64_t bits = rotations[pair])
      word = LLVM::FshlOp::create(code, loc, word, word, code.int32(32 - bits));
    bool isShared = pair >= 2 * pairsOfWord;
    if (pair < pairsOfWord || isShared)
      first = orBits(code, first, isShared ? code.andBits(word, getFreeMask()) : word);
    if (pair >= pairsOfWord)
      second = orBits(code, second, isShared ? code.andBits(word, ~getFreeMask()) : word);
  }
  return {first, second};
}

SmallVector<Value> CodeFragments::unpack(HopperCode &code, Value first, Value second,
                                         ArrayRef<Value> factorOfRow) {
  Location loc = code.getLoc();
  // Bits of the first word where the mask has ones, else of the second: one operation, which has to
  // be asked for.
  Value both = LLVM::InlineAsmOp::create(
                   code, loc, code.getI32Type(),
                   ValueRange{first, second, code.int32(getFreeMask())},
                   "lop3.b32 $0, $1, $2, $3, 0xe4;", "=r,r,r,r", /*has_side_effects=*/false,
                   /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                   ArrayAttr())
                   .getRes();
  SmallVector<Value> result;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    Value word = pair < pairsOfWord ? first : pair < 2 * pairsOfWord ? second : both;
    Value bits = code.andBits(rotateLeft(code, word, rotations[pair]), pairMask);
    Value product =
        LLVM::FMulOp::create(code, loc, toPair(code, bits), factorOfRow[pair % 2]);
    result.push_back(LLVM::BitcastOp::create(code, loc, code.getI32Type(), product));
  }
  return result;
}

SmallVector<Value> CodeFragments::getFactors(HopperCode &code, Value scales, int64_t block) {
  Location loc = code.getLoc();
  // A byte is the exponent of a bf16: bytes 0 and 2 are the rows of block 0.
  Value exponents = block == 0 ? shiftLeft(code, code.andBits(scales, 0x00ff00ff), 7)
                               : code.andBits(code.shiftedRight(scales, 1), 0x7f807f80);
  Value pair = toPair(code, exponents);
  SmallVector<Value> factors;
  for (int32_t row : {0, 1})
    factors.push_back(
        LLVM::ShuffleVectorOp::create(code, loc, pair, pair, ArrayRef<int32_t>{row, row}));
  return factors;
}
