//===- LinalgCode.h - short ways to build linalg.generic --------------------------------------===//

#ifndef MOEC_CONVERSION_MOETOLINALG_LINALGCODE_H
#define MOEC_CONVERSION_MOETOLINALG_LINALGCODE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::moec {

class LinalgCode {
public:
  /// What a generic op computes for one point: from the elements of its inputs, and the accumulator
  /// of a reduction.
  using Body = function_ref<Value(ArrayRef<Value> inputs, Value accumulator)>;

  LinalgCode(PatternRewriter &rewriter, Location loc) : rewriter(rewriter), loc(loc) {}

  PatternRewriter &rewriter;
  Location loc;

  Type f32() { return rewriter.getF32Type(); }
  Value real(double value) {
    return arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(value));
  }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }
  /// A float element in f32.
  Value widen(Value element) {
    return element.getType().isF32() ? element
                                     : Value(arith::ExtFOp::create(rewriter, loc, f32(), element));
  }
  /// An f32 rounded to `type`.
  Value narrow(Value element, Type type) {
    return type.isF32() ? element : Value(arith::TruncFOp::create(rewriter, loc, type, element));
  }

  /// 1 / (1 + exp(-x)) of an f32.
  Value sigmoid(Value x) {
    Value exponential =
        math::ExpOp::create(rewriter, loc, arith::NegFOp::create(rewriter, loc, x));
    return arith::DivFOp::create(rewriter, loc, real(1.0),
                                 arith::AddFOp::create(rewriter, loc, real(1.0), exponential));
  }

  /// log(1 + exp(x)) of an f32 without an overflow: max(x, 0) + log1p(exp(-|x|)).
  Value softplus(Value x) {
    Value negative = arith::NegFOp::create(rewriter, loc, math::AbsFOp::create(rewriter, loc, x));
    Value rest =
        math::Log1pOp::create(rewriter, loc, math::ExpOp::create(rewriter, loc, negative));
    Value positive = arith::MaximumFOp::create(rewriter, loc, x, real(0.0));
    return arith::AddFOp::create(rewriter, loc, positive, rest);
  }

  /// Identity, or the projection of a space of `rank` dimensions to `dims`.
  AffineMap project(unsigned rank, ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(rank, dims, rewriter.getContext());
  }
  AffineMap identity(unsigned rank) {
    return AffineMap::getMultiDimIdentityMap(rank, rewriter.getContext());
  }

  Value empty(ArrayRef<OpFoldResult> sizes, Type element) {
    return tensor::EmptyOp::create(rewriter, loc, sizes, element);
  }
  Value filled(ArrayRef<OpFoldResult> sizes, double value) {
    Value init = empty(sizes, f32());
    return linalg::FillOp::create(rewriter, loc, real(value), init).getResult(0);
  }
  SmallVector<OpFoldResult> sizesOf(Value tensor) {
    return tensor::getMixedSizes(rewriter, loc, tensor);
  }

  /// One result over the space of `rank` dimensions; dimensions from `parallel` on are reduced into
  /// `init`.
  Value generic(unsigned rank, unsigned parallel, ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                Value init, AffineMap initMap, Body body) {
    SmallVector<AffineMap> maps(inputMaps);
    maps.push_back(initMap);
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    std::fill(iterators.begin() + parallel, iterators.end(), utils::IteratorType::reduction);
    return linalg::GenericOp::create(rewriter, loc, init.getType(), inputs, init, maps, iterators,
                                     [&](OpBuilder &, Location, ValueRange arguments) {
                                       SmallVector<Value> elements(arguments.drop_back());
                                       linalg::YieldOp::create(rewriter, loc,
                                                               body(elements, arguments.back()));
                                     })
        .getResult(0);
  }
  /// Elementwise: identity maps to a new tensor of the space's sizes.
  Value map(ArrayRef<OpFoldResult> sizes, Type element, ValueRange inputs,
            ArrayRef<AffineMap> inputMaps, Body body) {
    unsigned rank = sizes.size();
    return generic(rank, rank, inputs, inputMaps, empty(sizes, element), identity(rank), body);
  }
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_MOETOLINALG_LINALGCODE_H
