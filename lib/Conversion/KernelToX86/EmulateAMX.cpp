//===- EmulateAMX.cpp - AMX and AVX-512 intrinsics as plain code
//----------------------------------===//
//
// For tests on machines without these instructions: the same results, slowly. Tiles become vectors,
// products loops over them.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::moec {
#define GEN_PASS_DEF_EMULATEAMXPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {

Value buildIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value addIndex(OpBuilder &builder, Location loc, Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

/// Stack at the function's entry: loops must not take more of it.
Value buildStack(OpBuilder &builder, Operation *user, MemRefType type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&user->getParentOfType<func::FuncOp>().getBody().front());
  return memref::AllocaOp::create(builder, user->getLoc(), type, builder.getI64IntegerAttr(64));
}

Value storeToStack(OpBuilder &builder, Operation *user, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Value stack = buildStack(builder, user, MemRefType::get(type.getShape(), type.getElementType()));
  SmallVector<Value> zeros(type.getRank(), buildIndex(builder, user->getLoc(), 0));
  SmallVector<bool> inBounds(type.getRank(), true);
  vector::TransferWriteOp::create(builder, user->getLoc(), vector, stack, zeros,
                                  builder.getMultiDimIdentityMap(type.getRank()),
                                  ArrayRef<bool>(inBounds));
  return stack;
}

/// bf16, or its bits, to f32 as AMX reads it: subnormal numbers count as zero.
Value widenFlushed(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  auto like = [&](Type element) -> Type {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(element);
    return element;
  };
  auto constant = [&](int64_t bits) -> Value {
    TypedAttr attribute = builder.getI16IntegerAttr(int16_t(bits));
    if (auto vector = dyn_cast<VectorType>(like(builder.getI16Type())))
      attribute = DenseElementsAttr::get(vector, attribute);
    return arith::ConstantOp::create(builder, loc, attribute);
  };
  Value bits = getElementTypeOrSelf(type).isInteger()
                   ? value
                   : arith::BitcastOp::create(builder, loc, like(builder.getI16Type()), value);
  Value exponent = arith::AndIOp::create(builder, loc, bits, constant(0x7f80));
  Value isSmall =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, exponent, constant(0));
  Value sign = arith::AndIOp::create(builder, loc, bits, constant(0x8000));
  bits = arith::SelectOp::create(builder, loc, isSmall, sign, bits);
  // On integers, because a scalar bf16 may cost a call of the C library.
  Type i32 = like(builder.getI32Type());
  Value wide = arith::ExtUIOp::create(builder, loc, i32, bits);
  TypedAttr distance = builder.getI32IntegerAttr(16);
  if (auto vector = dyn_cast<VectorType>(i32))
    distance = DenseElementsAttr::get(vector, distance);
  Value high =
      arith::ShLIOp::create(builder, loc, wide, arith::ConstantOp::create(builder, loc, distance));
  return arith::BitcastOp::create(builder, loc, like(builder.getF32Type()), high);
}

Value buildZeros(OpBuilder &builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

/// The position of row `row` of a tile that starts at `indices`.
SmallVector<Value> indexRow(OpBuilder &builder, Location loc, ValueRange indices, Value stride,
                            int64_t row) {
  SmallVector<Value> result(indices);
  if (stride) {
    Value offset = arith::MulIOp::create(builder, loc, stride, buildIndex(builder, loc, row));
    result.back() = addIndex(builder, loc, result.back(), offset);
  } else {
    Value &rowIndex = result[result.size() - 2];
    rowIndex = addIndex(builder, loc, rowIndex, buildIndex(builder, loc, row));
  }
  return result;
}

struct EmulateZero : OpConversionPattern<amx::TileZeroOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileZeroOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op,
                       buildZeros(rewriter, op.getLoc(), typeConverter->convertType(op.getType())));
    return success();
  }
};

struct EmulateLoad : OpConversionPattern<amx::TileLoadOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileLoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<VectorType>(typeConverter->convertType(op.getType()));
    auto rowType = VectorType::get(type.getShape().back(), type.getElementType());
    Value tile = buildZeros(rewriter, op.getLoc(), type);
    for (int64_t row = 0; row < type.getShape()[0]; ++row) {
      SmallVector<Value> indices =
          indexRow(rewriter, op.getLoc(), adaptor.getIndices(), adaptor.getStride(), row);
      Value values =
          vector::LoadOp::create(rewriter, op.getLoc(), rowType, adaptor.getBase(), indices);
      tile = vector::InsertOp::create(rewriter, op.getLoc(), values, tile, row);
    }
    rewriter.replaceOp(op, tile);
    return success();
  }
};

struct EmulateStore : OpConversionPattern<amx::TileStoreOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileStoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    int64_t rows = cast<VectorType>(adaptor.getVal().getType()).getShape()[0];
    for (int64_t row = 0; row < rows; ++row) {
      SmallVector<Value> indices =
          indexRow(rewriter, op.getLoc(), adaptor.getIndices(), adaptor.getStride(), row);
      Value values = vector::ExtractOp::create(rewriter, op.getLoc(), adaptor.getVal(), row);
      vector::StoreOp::create(rewriter, op.getLoc(), values, adaptor.getBase(), indices);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// c[m, n] += sum over k of a[m, 2 k] b[k, 2 n] and, apart, of a[m, 2 k + 1] b[k, 2 n + 1].
struct EmulateProduct : OpConversionPattern<amx::TileMulFOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(amx::TileMulFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getLhsTileType().getElementType().isBF16())
      return rewriter.notifyMatchFailure(op, "only bf16 products are emulated");
    Location loc = op.getLoc();
    auto type = cast<VectorType>(adaptor.getAcc().getType());
    auto rowType = VectorType::get(type.getShape().back(), type.getElementType());
    auto pairType = VectorType::get(2 * type.getShape().back(), rewriter.getI16Type());
    auto bitsOf = [&](Value tile) {
      auto bits = cast<VectorType>(tile.getType()).clone(rewriter.getI16Type());
      return vector::BitCastOp::create(rewriter, loc, bits, tile);
    };
    Value a = storeToStack(rewriter, op, bitsOf(adaptor.getLhs()));
    Value b = storeToStack(rewriter, op, bitsOf(adaptor.getRhs()));
    Value c = storeToStack(rewriter, op, adaptor.getAcc());
    Value zero = buildIndex(rewriter, loc, 0), one = buildIndex(rewriter, loc, 1);

    auto rows =
        scf::ForOp::create(rewriter, loc, zero, buildIndex(rewriter, loc, type.getShape()[0]), one);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(rows.getBody());
      Value m = rows.getInductionVar(), none = buildZeros(rewriter, loc, rowType);
      auto pairs = scf::ForOp::create(rewriter, loc, zero,
                                      buildIndex(rewriter, loc, op.getRhsTileType().getShape()[0]),
                                      one, ValueRange{none, none});
      {
        OpBuilder::InsertionGuard inner(rewriter);
        rewriter.setInsertionPointToStart(pairs.getBody());
        Value k = pairs.getInductionVar();
        Value row = vector::LoadOp::create(rewriter, loc, pairType, b, ValueRange{k, zero});
        auto halves = vector::DeinterleaveOp::create(rewriter, loc, row);
        Value column = addIndex(rewriter, loc, k, k);
        SmallVector<Value> sums;
        for (int half = 0; half < 2; ++half) {
          Value element = memref::LoadOp::create(rewriter, loc, a, ValueRange{m, column});
          Value factor = vector::BroadcastOp::create(rewriter, loc, rowType,
                                                     widenFlushed(rewriter, loc, element));
          Value other = widenFlushed(rewriter, loc, halves.getResult(half));
          sums.push_back(
              math::FmaOp::create(rewriter, loc, factor, other, pairs.getRegionIterArg(half)));
          column = addIndex(rewriter, loc, column, one);
        }
        scf::YieldOp::create(rewriter, loc, sums);
      }
      Value sum = arith::AddFOp::create(rewriter, loc, pairs.getResult(0), pairs.getResult(1));
      Value old = vector::LoadOp::create(rewriter, loc, rowType, c, ValueRange{m, zero});
      sum = arith::AddFOp::create(rewriter, loc, old, sum);
      vector::StoreOp::create(rewriter, loc, sum, c, ValueRange{m, zero});
    }
    rewriter.replaceOpWithNewOp<vector::TransferReadOp>(
        op, type, c, ValueRange{zero, zero}, buildZeros(rewriter, loc, rewriter.getF32Type()),
        rewriter.getMultiDimIdentityMap(2), ArrayRef<bool>{true, true});
    return success();
  }
};

/// Elements of `table` at `indices`, of which only the low bits count.
Value buildLookup(PatternRewriter &rewriter, Operation *user, Value table, Value indices) {
  Location loc = user->getLoc();
  auto type = cast<VectorType>(table.getType());
  int64_t size = type.getNumElements();
  auto indexType = VectorType::get(size, rewriter.getI32Type());
  if (cast<VectorType>(indices.getType()).getElementTypeBitWidth() < 32)
    indices = arith::ExtUIOp::create(rewriter, loc, indexType, indices);
  else if (cast<VectorType>(indices.getType()).getElementTypeBitWidth() > 32)
    indices = arith::TruncIOp::create(rewriter, loc, indexType, indices);
  Value mask = arith::ConstantOp::create(
      rewriter, loc, DenseElementsAttr::get(indexType, rewriter.getI32IntegerAttr(size - 1)));
  indices = arith::AndIOp::create(rewriter, loc, indices, mask);
  Value stack = storeToStack(rewriter, user, table);
  auto maskType = VectorType::get(size, rewriter.getI1Type());
  Value all = arith::ConstantOp::create(rewriter, loc, DenseElementsAttr::get(maskType, true));
  return vector::GatherOp::create(rewriter, loc, type, stack,
                                  ValueRange{buildIndex(rewriter, loc, 0)}, indices, all,
                                  buildZeros(rewriter, loc, type));
}

/// acc[n] + a[2 n + 1] b[2 n + 1] + a[2 n] b[2 n], subnormal inputs flushed.
Value buildPairProducts(PatternRewriter &rewriter, Operation *user, Value accumulator, Value a,
                        Value b) {
  Location loc = user->getLoc();
  auto type = cast<VectorType>(accumulator.getType());
  auto pairs = VectorType::get(2 * type.getNumElements(), rewriter.getBF16Type());
  auto split = [&](Value value) {
    if (value.getType() != pairs)
      value = vector::BitCastOp::create(rewriter, loc, pairs, value);
    return vector::DeinterleaveOp::create(rewriter, loc, value);
  };
  auto first = split(a), second = split(b);
  for (int half : {1, 0})
    accumulator =
        math::FmaOp::create(rewriter, loc, widenFlushed(rewriter, loc, first.getResult(half)),
                            widenFlushed(rewriter, loc, second.getResult(half)), accumulator);
  return accumulator;
}

struct EmulateIntrinsic : OpRewritePattern<LLVM::CallIntrinsicOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LLVM::CallIntrinsicOp op,
                                PatternRewriter &rewriter) const override {
    StringRef name = op.getIntrin();
    OperandRange operands = op.getArgs();
    Value result;
    if (name.starts_with("llvm.x86.avx512.permvar."))
      result = buildLookup(rewriter, op, operands[0], operands[1]);
    else if (name.starts_with("llvm.x86.avx512bf16.dpbf16ps."))
      result = buildPairProducts(rewriter, op, operands[0], operands[1], operands[2]);
    else if (name.starts_with("llvm.x86.avx512bf16.cvtneps2bf16."))
      result =
          arith::TruncFOp::create(rewriter, op.getLoc(), op.getResult(0).getType(), operands[0]);
    if (!result)
      return failure();
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct EmulateAMX : moec::impl::EmulateAMXPassBase<EmulateAMX> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion([](amx::TileType type) -> Type {
      return VectorType::get(type.getShape(), type.getElementType());
    });
    RewritePatternSet patterns(context);
    patterns.add<EmulateZero, EmulateLoad, EmulateStore, EmulateProduct>(converter, context);
    ConversionTarget target(*context);
    target.addIllegalDialect<amx::AMXDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    FrozenRewritePatternSet frozen(std::move(patterns));
    RewritePatternSet intrinsics(context);
    intrinsics.add<EmulateIntrinsic>(context);
    FrozenRewritePatternSet frozenIntrinsics(std::move(intrinsics));
    for (func::FuncOp kernel : getKernels(getOperation()))
      if (failed(applyPartialConversion(kernel, target, frozen)) ||
          failed(applyPatternsGreedily(kernel, frozenIntrinsics)))
        return signalPassFailure();
  }
};

} // namespace
