#include "HopperCode.h"

#include "../../../KernelToX86/KernelFunction.h"

#include "moec/Dialect/Plan/IR/Plan.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr llvm::StringLiteral dynamicSharedName = "moec_dynamic_shared";

static LLVM::LLVMPointerType getSharedPointer(Builder &builder) {
  constexpr unsigned sharedSpace = 3;
  return LLVM::LLVMPointerType::get(builder.getContext(), sharedSpace);
}

/// All kernels of a module name the dynamic shared memory of their block alike.
static void declareDynamicShared(OpBuilder &builder, Location loc) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (module.lookupSymbol(dynamicSharedName))
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                         /*isConstant=*/false, LLVM::Linkage::External, dynamicSharedName,
                         Attribute(), /*alignment=*/1024, /*addrSpace=*/3);
}

bool mlir::moec::isWholeBuffer(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return !isa_and_nonnull<tensor::ExtractSliceOp>(op);
}

bool mlir::moec::hasAlignedRows(Value tensor) {
  auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>();
  auto type = cast<RankedTensorType>(tensor.getType());
  constexpr int64_t pieceBits = 16 * 8;
  int64_t bits = type.getElementTypeBitWidth();
  if (!slice)
    return isWholeBuffer(tensor) && (type.getDimSize(1) * bits) % pieceBits == 0;
  return slice.hasUnitStride() && slice.getSourceType().getRank() == type.getRank() &&
         slice.getStaticOffset(0) == 0 && !slice.isDynamicOffset(1) &&
         (slice.getStaticOffset(1) * bits) % pieceBits == 0 && hasAlignedRows(slice.getSource());
}

HopperCode::HopperCode(Location loc, OpBuilder &builder, int64_t threads)
    : BlockCode(loc, builder, threads) {
  number = NVVM::ThreadIdXOp::create(*this, loc, getI32Type());
  // A reduction over the warp tells ptxas that the value is the same in all lanes.
  Value warp = shiftedRight(number, 5);
  Value uniform = NVVM::ReduxOp::create(*this, loc, getI32Type(), warp, NVVM::ReduxKind::OR,
                                        int32(-1));
  warpgroup = shiftedRight(uniform, 2);
  warpOfGroup = andBits(uniform, 3);
  declareDynamicShared(*this, loc);
  shared = LLVM::AddressOfOp::create(*this, loc, getSharedPointer(*this), dynamicSharedName);
}

Value HopperCode::andBits(Value a, int64_t mask) {
  return arith::AndIOp::create(*this, getLoc(), a, int32(mask));
}

Value HopperCode::exclusiveOr(Value a, Value b) {
  return arith::XOrIOp::create(*this, getLoc(), a, b);
}

Value HopperCode::shiftedRight(Value a, int64_t bits) {
  return arith::ShRUIOp::create(*this, getLoc(), a, int32(bits));
}

Value HopperCode::dynamicShared(Value offset) {
  return LLVM::GEPOp::create(*this, getLoc(), getSharedPointer(*this), getI8Type(), shared,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value HopperCode::allocateBarriers(int64_t count) {
  Value memory = allocateShared({count}, getI64Type());
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(*this, getLoc(), memory);
  Value bits = arith::IndexCastOp::create(*this, getLoc(), getI64Type(), address);
  Value generic = LLVM::IntToPtrOp::create(*this, getLoc(),
                                           LLVM::LLVMPointerType::get(getContext()), bits);
  return LLVM::AddrSpaceCastOp::create(*this, getLoc(), getSharedPointer(*this), generic);
}

Value HopperCode::toAddress(Value pointer) {
  return LLVM::PtrToIntOp::create(*this, getLoc(), getI32Type(), pointer);
}

Value HopperCode::globalPointer(Value memref, Value byte) {
  constexpr unsigned globalSpace = 1;
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(*this, getLoc(), memref);
  Value address = arith::IndexCastOp::create(*this, getLoc(), getI64Type(), add(base, byte));
  return LLVM::IntToPtrOp::create(*this, getLoc(),
                                  LLVM::LLVMPointerType::get(getContext(), globalSpace), address);
}

Value HopperCode::offsetPointer(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(*this, getLoc(), pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

void HopperCode::storeWhenLess(Value a, Value b, Value pointer, ArrayRef<Value> values,
                               Type element) {
  // Rounded in pairs: one instruction for both.
  bool isWide = element.isF32();
  Value rounded = fromLanes(values);
  if (!isWide)
    rounded = arith::TruncFOp::create(
        *this, getLoc(), VectorType::get({int64_t(values.size())}, element), rounded);
  unsigned bits = isWide || values.size() == 2 ? 32 : 16;
  bool isVector = isWide && values.size() == 2;
  SmallVector<Value> operands = {a, b, pointer};
  if (isVector) {
    llvm::append_range(operands, values);
  } else {
    Value scalar = values.size() == 1 ? static_cast<CodeBuilder &>(*this).lane(rounded, 0) : rounded;
    operands.push_back(LLVM::BitcastOp::create(*this, getLoc(), getIntegerType(bits), scalar));
  }
  std::string type = (isVector ? ".v2.b" : ".b") + std::to_string(bits);
  std::string what = isVector ? "{$3, $4}" : "$3";
  std::string constraints = isVector ? "r,r,l,f,f" : bits == 32 ? "r,r,l,r" : "r,r,l,h";
  LLVM::InlineAsmOp::create(*this, getLoc(), Type(), operands,
                            "{ .reg .pred less; setp.lt.s32 less, $0, $1; @less st.global" + type +
                                " [$2], " + what + "; }",
                            constraints + ",~{memory}", /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

Value HopperCode::electOne() {
  return NVVM::ElectSyncOp::create(*this, getLoc(), getI1Type(), /*membermask=*/Value());
}

void HopperCode::decreaseRegisters(int64_t count) {
  NVVM::SetMaxRegisterOp::create(*this, getLoc(), count, NVVM::SetMaxRegisterAction::decrease);
}

void HopperCode::increaseRegisters(int64_t count) {
  NVVM::SetMaxRegisterOp::create(*this, getLoc(), count, NVVM::SetMaxRegisterAction::increase);
}

void HopperCode::namedBarrier(Value id, int64_t count) {
  NVVM::BarrierOp::create(*this, getLoc(), Type(), id, int32(count),
                          NVVM::BarrierReductionAttr(), /*reductionPredicate=*/Value());
}

void HopperCode::setClusterSize(int64_t blocks) {
  auto kernel = getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>();
  if (!kernel)
    kernel = cast<func::FuncOp>(getInsertionBlock()->getParentOp());
  kernel->setAttr(clusterAttribute, getI64IntegerAttr(blocks));
}

Value HopperCode::blockInCluster() {
  return NVVM::ClusterId::create(*this, getLoc(), getI32Type());
}

Value HopperCode::inBlock(Value pointer, Value block) {
  constexpr unsigned clusterSpace = 7;
  return NVVM::MapaOp::create(*this, getLoc(),
                              LLVM::LLVMPointerType::get(getContext(), clusterSpace), pointer,
                              block);
}

void HopperCode::arriveAtCluster() {
  NVVM::ClusterArriveOp::create(*this, getLoc(), /*aligned=*/UnitAttr());
}

void HopperCode::waitForCluster() {
  NVVM::ClusterWaitOp::create(*this, getLoc(), /*aligned=*/UnitAttr());
}

Value HopperCode::behind(Value pointer, int64_t bytes) {
  return LLVM::GEPOp::create(*this, getLoc(), pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

Value HopperCode::tensorMap(Value binding, ArrayRef<int64_t> box) {
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  return plan::TensorMapOp::create(*this, getLoc(), pointer, binding, box);
}

void HopperCode::loadBox(Value destination, Value map, Value barrier, ValueRange coordinates) {
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      *this, getLoc(), destination, map, coordinates, barrier, /*im2colOffsets=*/ValueRange(),
      /*multicastMask=*/Value(), /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
      /*isCTAOnly=*/true, /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
}

void HopperCode::loadBytes(Value destination, Value source, Value barrier, Value bytes) {
  NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(*this, getLoc(), destination, source, barrier,
                                                   bytes, /*multicastMask=*/Value(),
                                                   /*l2CacheHint=*/Value());
}

void HopperCode::copyPiece(Value destination, Value source, Value size) {
  NVVM::CpAsyncOp::create(
      *this, getLoc(), destination, source, getI32IntegerAttr(16),
      NVVM::LoadCacheModifierKindAttr::get(getContext(), NVVM::LoadCacheModifierKind::CG), size);
}

void HopperCode::loadBoxToPair(Value destination, Value map, Value barrier,
                               ValueRange coordinates) {
  Value both = arith::ConstantOp::create(*this, getLoc(), getI16IntegerAttr(3));
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      *this, getLoc(), inBlock(destination, blockInCluster()), map, coordinates, barrier,
      /*im2colOffsets=*/ValueRange(), both, /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
      /*isCTAOnly=*/false, /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
}

void HopperCode::storeBox(Value source, Value map, ValueRange coordinates) {
  NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
      *this, getLoc(), map, source, coordinates, /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE,
      /*predicate=*/Value());
}

void HopperCode::commitStores() { NVVM::CpAsyncBulkCommitGroupOp::create(*this, getLoc()); }

void HopperCode::waitForStores() {
  NVVM::CpAsyncBulkWaitGroupOp::create(*this, getLoc(), getI32IntegerAttr(0), getUnitAttr());
}

void HopperCode::fenceAsyncProxy() {
  NVVM::FenceProxyOp::create(
      *this, getLoc(), NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(getContext(), NVVM::SharedSpace::shared_cta));
}

void HopperCode::storeMatrices(Value address, ValueRange words) {
  NVVM::StMatrixOp::create(*this, getLoc(), address, words, NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
                           NVVM::LdStMatrixEltType::B16);
}

Value HopperCode::roundPair(Value pair, Type element) {
  Value rounded =
      arith::TruncFOp::create(*this, getLoc(), VectorType::get({2}, element), pair);
  return lane(vector::BitCastOp::create(*this, getLoc(), intVector(1), rounded), 0);
}

/// The bytes of a pair, which it is aligned to.
static llvm::MaybeAlign getPairAlignment(Type element) {
  return llvm::MaybeAlign(element.getIntOrFloatBitWidth() / 4);
}

Value HopperCode::loadPair(Value memref, ValueRange indices) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  Value pair = vector::LoadOp::create(*this, getLoc(), VectorType::get({2}, element), memref,
                                      indices, /*nontemporal=*/false, getPairAlignment(element));
  if (element.isF32())
    return pair;
  return arith::ExtFOp::create(*this, getLoc(), floatVector(2), pair);
}

void HopperCode::storePair(Value pair, Value memref, ValueRange indices) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (!element.isF32())
    pair = arith::TruncFOp::create(*this, getLoc(), VectorType::get({2}, element), pair);
  vector::StoreOp::create(*this, getLoc(), pair, memref, indices, /*nontemporal=*/false,
                          getPairAlignment(element));
}

SlotRing::SlotRing(HopperCode &code, int64_t slots, int64_t fillers, int64_t users)
    : code(code), slots(slots), fillers(fillers), users(users), firstEmpty(slots) {
  // Full barriers come first, then empty ones.
  barriers = code.allocateBarriers(2 * slots);
  used = code.int32(slots);
}

SlotRing::SlotRing(const SlotRing &ring, int64_t slots)
    : code(ring.code), slots(slots), fillers(ring.fillers), users(ring.users),
      firstEmpty(ring.firstEmpty), barriers(ring.barriers), used(ring.code.int32(slots)) {
  assert(slots <= ring.slots);
}

Value SlotRing::getBarrier(Value index) {
  return LLVM::GEPOp::create(code, code.getLoc(), getSharedPointer(code), code.getI64Type(),
                             barriers, ArrayRef<LLVM::GEPArg>{index});
}

void SlotRing::initialize(Value users) {
  for (int64_t slot = 0; slot < slots; ++slot) {
    NVVM::MBarrierInitOp::create(code, code.getLoc(), getBarrier(code.int32(slot)),
                                 code.int32(fillers), /*predicate=*/Value());
    NVVM::MBarrierInitOp::create(code, code.getLoc(), getBarrier(code.int32(firstEmpty + slot)),
                                 users, /*predicate=*/Value());
  }
  NVVM::FenceMbarrierInitOp::create(code, code.getLoc());
}

SlotRing::Position SlotRing::start() { return {code.int32(0), code.int32(0)}; }

SlotRing::Position SlotRing::next(Position position) {
  Value slot = code.plus(position.slot, 1);
  Value wraps = code.compare(arith::CmpIPredicate::eq, slot, used);
  Value flipped = code.exclusiveOr(position.parity, code.int32(1));
  return {code.select(wraps, code.int32(0), slot),
          code.select(wraps, flipped, position.parity)};
}

void SlotRing::wait(Value barrier, Value parity) {
  constexpr int64_t ticks = 10'000'000;
  NVVM::MBarrierTryWaitParityOp::create(code, code.getLoc(), barrier, parity, code.int32(ticks));
}

void SlotRing::waitFull(Position position) { wait(getBarrier(position.slot), position.parity); }

void SlotRing::waitEmpty(Position position) {
  // In the first round nobody has used the slots: the round before counts as complete.
  Value parity = code.exclusiveOr(position.parity, code.int32(1));
  wait(getBarrier(code.plus(position.slot, firstEmpty)), parity);
}

Value SlotRing::announce(Position position, Value bytes) {
  Value barrier = getBarrier(position.slot);
  NVVM::MBarrierArriveExpectTxOp::create(code, code.getLoc(), Type(), barrier, bytes,
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false,
                                         /*predicate=*/Value());
  return barrier;
}

void SlotRing::fill(Value slot) {
  NVVM::MBarrierArriveOp::create(code, code.getLoc(), code.getI64Type(), getBarrier(slot),
                                 /*count=*/Value());
}

void SlotRing::release(Value slot) {
  NVVM::MBarrierArriveOp::create(code, code.getLoc(), code.getI64Type(),
                                 getBarrier(code.plus(slot, firstEmpty)), /*count=*/Value());
}

void SlotRing::releaseOfPair(Value slot) {
  // As for the other release, what the block has read needs no more order than between its own threads:
  // a release for the whole cluster would wait for all of the thread's accesses to memory.
  Value other = code.exclusiveOr(code.blockInCluster(), code.int32(1));
  NVVM::MBarrierArriveOp::create(code, code.getLoc(), Type(),
                                 code.inBlock(getBarrier(code.plus(slot, firstEmpty)), other),
                                 /*count=*/Value(), NVVM::MemScopeKind::CTA, /*relaxed=*/false);
}

Value SlotRing::previous(Value slot) {
  return code.plus(code.select(code.isEqual(slot, 0), used, slot), -1);
}

Type WarpgroupProduct::getSumsType() {
  SmallVector<Type> types(getRegisters(), code.getF32Type());
  return LLVM::LLVMStructType::getLiteral(code.getContext(), types);
}

Value WarpgroupProduct::zeros() {
  return LLVM::ZeroOp::create(code, code.getLoc(), getSumsType());
}

/// A matrix of rows of 128 bytes, swizzled, eight rows (1024 bytes) apart.
Value WarpgroupProduct::describe(Value address) {
  constexpr int64_t swizzle128 = int64_t(1) << 62, rowGroups = int64_t(1024 >> 4) << 32,
                    leading = int64_t(1) << 16;
  Value low = code.shiftedRight(code.andBits(address, 0x3ffff), 4);
  Value wide = arith::ExtUIOp::create(code, code.getLoc(), code.getI64Type(), low);
  Value constant = arith::ConstantOp::create(
      code, code.getLoc(), code.getI64IntegerAttr(swizzle128 | rowGroups | leading));
  return arith::OrIOp::create(code, code.getLoc(), wide, constant);
}

Value WarpgroupProduct::multiply(Value sums, Value left, Value right) {
  constexpr int64_t depth = 64, step = 16;
  Location loc = code.getLoc();
  Value leftMatrix = describe(left), rightMatrix = describe(right);
  NVVM::WGMMATypes type =
      element.isBF16() ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::f16;
  auto shape = NVVM::MMAShapeAttr::get(code.getContext(), 64, columns, step);
  for (int64_t k = 0; k < depth; k += step) {
    auto advance = [&](Value matrix) -> Value {
      if (k == 0)
        return matrix;
      // Two bytes an element, in units of 16 bytes.
      Value offset =
          arith::ConstantOp::create(code, loc, code.getI64IntegerAttr(k * 2 / 16));
      return arith::AddIOp::create(code, loc, matrix, offset);
    };
    sums = NVVM::WgmmaMmaAsyncOp::create(
        code, loc, getSumsType(), sums, advance(leftMatrix), advance(rightMatrix), shape,
        NVVM::WGMMATypesAttr::get(code.getContext(), type),
        NVVM::WGMMATypesAttr::get(code.getContext(), type),
        NVVM::WGMMATypesAttr::get(code.getContext(), NVVM::WGMMATypes::f32),
        NVVM::WGMMAScaleOutAttr::get(code.getContext(), NVVM::WGMMAScaleOut::one),
        NVVM::WGMMAScaleInAttr::get(code.getContext(), NVVM::WGMMAScaleIn::one),
        NVVM::WGMMAScaleInAttr::get(code.getContext(), NVVM::WGMMAScaleIn::one),
        NVVM::MMALayoutAttr::get(code.getContext(), NVVM::MMALayout::row),
        NVVM::MMALayoutAttr::get(code.getContext(), NVVM::MMALayout::col),
        NVVM::MMAIntOverflowAttr());
  }
  return sums;
}

void WarpgroupProduct::fence() { NVVM::WgmmaFenceAlignedOp::create(code, code.getLoc()); }
void WarpgroupProduct::commit() { NVVM::WgmmaGroupSyncAlignedOp::create(code, code.getLoc()); }
void WarpgroupProduct::wait(int64_t pending) {
  NVVM::WgmmaWaitGroupSyncOp::create(code, code.getLoc(), pending);
}

Value WarpgroupProduct::getRegister(Value sums, int64_t i) {
  return LLVM::ExtractValueOp::create(code, code.getLoc(), sums, ArrayRef<int64_t>{i});
}

Value WarpgroupProduct::getPair(Value sums, int64_t i) {
  return code.fromLanes({getRegister(sums, 2 * i), getRegister(sums, 2 * i + 1)});
}

Value WarpgroupProduct::fromRegisters(ArrayRef<Value> registers) {
  Value sums = LLVM::UndefOp::create(code, code.getLoc(), getSumsType());
  for (auto [i, value] : llvm::enumerate(registers))
    sums = LLVM::InsertValueOp::create(code, code.getLoc(), sums, value,
                                       ArrayRef<int64_t>{int64_t(i)});
  return sums;
}

Value WarpgroupProduct::getRow(int64_t half) {
  Value ofWarp = code.times(code.warpInWarpgroup(), 16);
  return code.plus(code.add(ofWarp, code.shiftedRight(code.laneNumber(), 2)), 8 * half);
}

void WarpgroupProduct::forEachPair(
    Value sums, int64_t half, function_ref<void(Value column, Value first, Value second)> body) {
  Value firstColumn = code.times(code.andBits(code.laneNumber(), 3), 2);
  for (int64_t group = 0; group < columns / 8; ++group) {
    int64_t i = group * 4 + half * 2;
    body(code.plus(firstColumn, 8 * group), getRegister(sums, i), getRegister(sums, i + 1));
  }
}
