#include "WeightPanels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

static Type getDenseElement(Type weight) {
  auto tensor = dyn_cast<RankedTensorType>(weight);
  return tensor ? tensor.getElementType() : Type();
}

bool mlir::moec::isPanelWeight(Type weight) {
  ArrayRef<int64_t> shape = moe::getLogicalShape(weight);
  if (shape.size() != 2 && shape.size() != 3)
    return false;
  // Kernels divide by sizes of the shape and unroll over them.
  for (int64_t size : shape)
    if (ShapedType::isDynamic(size) || size < 1)
      return false;
  if (auto block = dyn_cast<moe::BlockTensorType>(weight))
    return block.getFormat() == moe::BlockFormat::mxfp4;
  Type element = getDenseElement(weight);
  return element.isF32() || element.isBF16() || element.isF16();
}

moe::LayoutAttr mlir::moec::getPanelLayout(Type weight) {
  MLIRContext *context = weight.getContext();
  if (isa<moe::BlockTensorType>(weight))
    return moe::LayoutAttr::get(context, {panelRows, blockColumns}, {0, 1},
                                moe::Swizzle::nibble_words);
  if (getDenseElement(weight).isBF16())
    return moe::LayoutAttr::get(context, {panelRows, 2}, {1, 0}, moe::Swizzle::pairs);
  return moe::LayoutAttr::get(context, {panelRows, 1}, {1, 0}, moe::Swizzle::none);
}

WeightPanels::WeightPanels(Type type) {
  ArrayRef<int64_t> shape = moe::getLogicalShape(type);
  rows = shape[shape.size() - 2];
  columns = shape.back();
  if (isa<moe::BlockTensorType>(type)) {
    format = Format::mxfp4;
    return;
  }
  Type element = getDenseElement(type);
  format = element.isBF16() ? Format::pairs : Format::plain;
  elementBytes = element.getIntOrFloatBitWidth() / 8;
}

int64_t WeightPanels::getTailSlots() const {
  int64_t tail = columns % blockColumns;
  // The second half of an odd last pair is zero in memory.
  return format == Format::pairs ? llvm::alignTo(tail, 2) : tail;
}

int64_t WeightPanels::getPanelBytes() const {
  if (isMXFP4())
    return getBlocks() * mxfp4PanelBytes;
  int64_t stored = isPairs() ? llvm::alignTo(columns, 2) : columns;
  return stored * panelRows * elementBytes;
}

int64_t WeightPanels::getColumnOfSlot(int64_t slot) const {
  if (!isMXFP4())
    return slot;
  // Slot p is nibble p of a double word: the low word holds the even columns, the high word the odd
  // ones.
  return slot < 4 ? 2 * slot : 2 * (slot - 4) + 1;
}

void WeightPanels::attach(CodeBuilder &code, Value storage, Value expert,
                          const TargetDescription &target) {
  hasPermute512 = target.getVectorBytes() == 64;
  hasPermute256 = target.has("avx2");
  flat = flatten(code, storage);
  int64_t elementsOfPanel = getPanelBytes() / (isMXFP4() ? 1 : elementBytes);
  expertBase = expert ? code.mul(expert, getPanels() * elementsOfPanel) : code.index(0);
}

Value WeightPanels::getBlockBase(CodeBuilder &code, Value panel, Value block) const {
  int64_t elementsOfPanel = getPanelBytes() / (isMXFP4() ? 1 : elementBytes);
  int64_t elementsOfBlock = isMXFP4() ? mxfp4PanelBytes : blockColumns * panelRows;
  Value base = code.add(expertBase, code.mul(panel, elementsOfPanel));
  return code.add(base, code.mul(block, elementsOfBlock));
}

static Value loadBits(CodeBuilder &code, Value flat, Value at, int64_t elements) {
  Type element = cast<MemRefType>(flat.getType()).getElementType();
  Value loaded =
      vector::LoadOp::create(code, code.getLoc(), VectorType::get({elements}, element), flat, at);
  return bitcastTo(code, loaded, code.getI32Type());
}

SmallVector<Value> WeightPanels::loadGroup(CodeBuilder &code, Value blockBase, Value group,
                                           int64_t slots) const {
  if (isMXFP4()) {
    Value at = code.add(blockBase, code.mul(group, 64));
    return decodeCodes(code, loadBits(code, flat, at, 64), slots);
  }
  Value at = code.add(blockBase, code.mul(group, groupSlots * panelRows));
  SmallVector<Value> values;
  if (isPairs()) {
    for (int64_t pair = 0; pair < slots; pair += 2) {
      Value both = loadBits(code, flat, code.add(at, pair * panelRows), 2 * panelRows);
      values.push_back(bitcastTo(code, shiftLeft(code, both, 16), code.getF32Type()));
      values.push_back(bitcastTo(code, bitAnd(code, both, 0xffff0000), code.getF32Type()));
    }
    return values;
  }
  for (int64_t slot = 0; slot < slots; ++slot)
    values.push_back(loadWidened(code, flat, code.add(at, slot * panelRows), panelRows));
  return values;
}

/// The numbers behind the sixteen E2M1 codes.
static SmallVector<float> getE2M1Table() {
  return {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
}

static Value splitHalf(CodeBuilder &code, Value vector, int64_t half) {
  SmallVector<int64_t> lanes = llvm::to_vector(llvm::seq<int64_t>(8 * half, 8 * half + 8));
  return vector::ShuffleOp::create(code, code.getLoc(), vector, vector, lanes);
}

static Value callIntrinsic(CodeBuilder &code, StringRef name, Type result, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(code, code.getLoc(), result, code.getStringAttr(name),
                                       arguments)
      .getResult(0);
}

/// Nibble `p` of each double word through a table of 16 numbers: the instruction looks at four bits
/// of an index.
static Value lookUp512(CodeBuilder &code, Value words, int64_t p) {
  Value table = arith::ConstantOp::create(
      code, code.getLoc(),
      DenseElementsAttr::get(code.floatVector(16), ArrayRef<float>(getE2M1Table())));
  return callIntrinsic(code, "llvm.x86.avx512.permvar.sf.512", code.floatVector(16),
                       {table, shiftRight(code, words, 4 * p)});
}

/// The same through a table of the 8 magnitudes (the instruction looks at three bits) and the sign
/// bit, moved into place.
static Value lookUp256(CodeBuilder &code, Value words, int64_t p) {
  Value table = arith::ConstantOp::create(
      code, code.getLoc(),
      DenseElementsAttr::get(code.floatVector(8), ArrayRef<float>(getE2M1Table()).take_front(8)));
  Value index = shiftRight(code, words, 4 * p);
  SmallVector<Value> halves;
  for (int64_t half : {0, 1})
    halves.push_back(callIntrinsic(code, "llvm.x86.avx2.permps", code.floatVector(8),
                                   {table, splitHalf(code, index, half)}));
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, 16));
  Value magnitude = vector::ShuffleOp::create(code, code.getLoc(), halves[0], halves[1], all);
  Value sign = bitAnd(code, shiftLeft(code, words, 28 - 4 * p), 0x80000000);
  Value bits = arith::OrIOp::create(code, code.getLoc(),
                                    bitcastTo(code, magnitude, code.getI32Type()), sign);
  return bitcastTo(code, bits, code.getF32Type());
}

/// The same with arithmetic alone: the three magnitude bits, put at the boundary of an f32's
/// exponent and mantissa, are the number times 2^-126, subnormal or not.
static Value lookUpPortable(CodeBuilder &code, Value words, int64_t p) {
  Value placed = p <= 5 ? shiftLeft(code, words, 22 - 4 * p) : shiftRight(code, words, 4 * p - 22);
  Value magnitude = bitAnd(code, placed, 0x01c00000);
  Value sign = bitAnd(code, shiftLeft(code, words, 28 - 4 * p), 0x80000000);
  Value bits = arith::OrIOp::create(code, code.getLoc(), magnitude, sign);
  return code.mul(bitcastTo(code, bits, code.getF32Type()), code.floatSplat(0x1p126, panelRows));
}

SmallVector<Value> WeightPanels::decodeCodes(CodeBuilder &code, Value words, int64_t slots) const {
  SmallVector<Value> values;
  for (int64_t p = 0; p < slots; ++p) {
    if (hasPermute512)
      values.push_back(lookUp512(code, words, p));
    else if (hasPermute256)
      values.push_back(lookUp256(code, words, p));
    else
      values.push_back(lookUpPortable(code, words, p));
  }
  return values;
}

Value WeightPanels::loadScaleBytes(CodeBuilder &code, Value blockBase) const {
  auto type = VectorType::get({panelRows}, code.getI8Type());
  return vector::LoadOp::create(code, code.getLoc(), type, flat, code.add(blockBase, 256));
}

Value WeightPanels::loadWords(CodeBuilder &code, Value blockBase, int64_t vector) const {
  Value loaded = loadBits(code, flat, code.add(blockBase, 64 * vector), 64);
  return bitcastTo(code, loaded, code.getI16Type());
}

Value WeightPanels::loadScales(CodeBuilder &code, Value blockBase) const {
  if (!isMXFP4())
    return {};
  Value bytes = loadScaleBytes(code, blockBase);
  Value wide = arith::ExtUIOp::create(code, code.getLoc(), code.intVector(panelRows), bytes);
  // Byte 0 is 2^-127, a subnormal number with the mantissa bit below the exponent set; byte 255 is
  // NaN.
  Value exponent = shiftLeft(code, wide, 23);
  Value finite =
      arith::MaxUIOp::create(code, code.getLoc(), exponent, code.intSplat(0x00400000, panelRows));
  Value isNaN = code.compare(arith::CmpIPredicate::eq, wide, code.intSplat(255, panelRows));
  Value bits = code.select(isNaN, code.intSplat(0x7fc00000, panelRows), finite);
  return bitcastTo(code, bits, code.getF32Type());
}
