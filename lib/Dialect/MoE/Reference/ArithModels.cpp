// arith: scalars, and tensors element by element. What the dialect leaves undefined (division by
// zero, shifts too far, conversions out of range) gives some value of the type, never a crash.
#include "Models.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/APSInt.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

static ScalarType getScalarType(Value value) {
  return *ScalarType::get(getElementTypeOrSelf(value.getType()));
}

//===------------------------------------------------------------------------------------------===//
// Integers: computed on 64 bits, wrapped by the rounding of the result
//===------------------------------------------------------------------------------------------===//

/// `compute` takes unsigned numbers, where overflow wraps.
template <typename Compute>
static ScalarFunction wrapping(Compute compute) {
  return [compute](const Scalar *x) {
    auto a = static_cast<uint64_t>(x[0].integer), b = static_cast<uint64_t>(x[1].integer);
    return Scalar::fromInteger(static_cast<int64_t>(compute(a, b)));
  };
}

template <typename Compute>
static ScalarFunction onSigned(Value operand, Compute compute) {
  return [type = getScalarType(operand), compute](const Scalar *x) {
    return Scalar::fromInteger(compute(type.getSigned(x[0]), type.getSigned(x[1])));
  };
}

template <typename Compute>
static ScalarFunction onUnsigned(Value operand, Compute compute) {
  return [type = getScalarType(operand), compute](const Scalar *x) {
    return Scalar::fromInteger(
        static_cast<int64_t>(compute(type.getUnsigned(x[0]), type.getUnsigned(x[1]))));
  };
}

/// Whether a signed division has no defined result on the machine.
static bool isUndefinedDivision(int64_t a, int64_t b) {
  return b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min());
}

static int64_t floorDivide(int64_t a, int64_t b) {
  return isUndefinedDivision(a, b) ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t ceilDivide(int64_t a, int64_t b) {
  return isUndefinedDivision(a, b) ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}

static void attachIntegerArithmetic(MLIRContext *context) {
  attachElementwise<arith::AddIOp>(
      context, [](Operation *) { return wrapping([](uint64_t a, uint64_t b) { return a + b; }); });
  attachElementwise<arith::SubIOp>(
      context, [](Operation *) { return wrapping([](uint64_t a, uint64_t b) { return a - b; }); });
  attachElementwise<arith::MulIOp>(
      context, [](Operation *) { return wrapping([](uint64_t a, uint64_t b) { return a * b; }); });
  attachElementwise<arith::AndIOp>(
      context, [](Operation *) { return wrapping([](uint64_t a, uint64_t b) { return a & b; }); });
  attachElementwise<arith::OrIOp>(
      context, [](Operation *) { return wrapping([](uint64_t a, uint64_t b) { return a | b; }); });
  attachElementwise<arith::XOrIOp>(
      context, [](Operation *) { return wrapping([](uint64_t a, uint64_t b) { return a ^ b; }); });
  attachElementwise<arith::DivSIOp>(context, [](arith::DivSIOp op) {
    return onSigned(op.getLhs(), [](int64_t a, int64_t b) -> int64_t {
      return isUndefinedDivision(a, b) ? 0 : a / b;
    });
  });
  attachElementwise<arith::RemSIOp>(context, [](arith::RemSIOp op) {
    return onSigned(op.getLhs(), [](int64_t a, int64_t b) -> int64_t {
      return isUndefinedDivision(a, b) ? 0 : a % b;
    });
  });
  attachElementwise<arith::FloorDivSIOp>(
      context, [](arith::FloorDivSIOp op) { return onSigned(op.getLhs(), floorDivide); });
  attachElementwise<arith::CeilDivSIOp>(
      context, [](arith::CeilDivSIOp op) { return onSigned(op.getLhs(), ceilDivide); });
  attachElementwise<arith::DivUIOp>(context, [](arith::DivUIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; });
  });
  attachElementwise<arith::RemUIOp>(context, [](arith::RemUIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; });
  });
  attachElementwise<arith::CeilDivUIOp>(context, [](arith::CeilDivUIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) -> uint64_t {
      return b == 0 ? 0 : a / b + (a % b != 0);
    });
  });
  attachElementwise<arith::MaxSIOp>(context, [](arith::MaxSIOp op) {
    return onSigned(op.getLhs(), [](int64_t a, int64_t b) { return std::max(a, b); });
  });
  attachElementwise<arith::MinSIOp>(context, [](arith::MinSIOp op) {
    return onSigned(op.getLhs(), [](int64_t a, int64_t b) { return std::min(a, b); });
  });
  attachElementwise<arith::MaxUIOp>(context, [](arith::MaxUIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) { return std::max(a, b); });
  });
  attachElementwise<arith::MinUIOp>(context, [](arith::MinUIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) { return std::min(a, b); });
  });
  attachElementwise<arith::ShLIOp>(context, [](arith::ShLIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) { return b > 63 ? 0 : a << b; });
  });
  attachElementwise<arith::ShRUIOp>(context, [](arith::ShRUIOp op) {
    return onUnsigned(op.getLhs(), [](uint64_t a, uint64_t b) { return b > 63 ? 0 : a >> b; });
  });
  attachElementwise<arith::ShRSIOp>(context, [](arith::ShRSIOp op) {
    return onSigned(op.getLhs(),
                    [](int64_t a, int64_t b) -> int64_t { return b < 0 || b > 63 ? 0 : a >> b; });
  });
}

//===------------------------------------------------------------------------------------------===//
// Floats
//===------------------------------------------------------------------------------------------===//

/// The larger one; NaN when one is; +0 is larger than -0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}

static void attachFloatArithmetic(MLIRContext *context) {
  attachElementwise<arith::AddFOp>(
      context, [](Operation *) { return binaryReal([](double a, double b) { return a + b; }); });
  attachElementwise<arith::SubFOp>(
      context, [](Operation *) { return binaryReal([](double a, double b) { return a - b; }); });
  attachElementwise<arith::MulFOp>(
      context, [](Operation *) { return binaryReal([](double a, double b) { return a * b; }); });
  attachElementwise<arith::DivFOp>(
      context, [](Operation *) { return binaryReal([](double a, double b) { return a / b; }); });
  attachElementwise<arith::RemFOp>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return std::fmod(a, b); });
  });
  attachElementwise<arith::NegFOp>(
      context, [](Operation *) { return unaryReal([](double a) { return -a; }); });
  attachElementwise<arith::MaximumFOp>(context, [](Operation *) { return binaryReal(maximum); });
  attachElementwise<arith::MinimumFOp>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return -maximum(-a, -b); });
  });
  attachElementwise<arith::MaxNumFOp>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return std::fmax(a, b); });
  });
  attachElementwise<arith::MinNumFOp>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return std::fmin(a, b); });
  });
}

//===------------------------------------------------------------------------------------------===//
// Comparisons and selection
//===------------------------------------------------------------------------------------------===//

static bool compareReals(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

static void attachChoices(MLIRContext *context) {
  attachElementwise<arith::CmpFOp>(context, [](arith::CmpFOp op) -> ScalarFunction {
    return [predicate = op.getPredicate()](const Scalar *x) {
      return Scalar::fromInteger(compareReals(predicate, x[0].real, x[1].real));
    };
  });
  attachElementwise<arith::CmpIOp>(context, [](arith::CmpIOp op) -> ScalarFunction {
    return [predicate = op.getPredicate(), type = getScalarType(op.getLhs())](const Scalar *x) {
      APInt a(type.getBits(), type.getUnsigned(x[0])), b(type.getBits(), type.getUnsigned(x[1]));
      return Scalar::fromInteger(arith::applyCmpPredicate(predicate, a, b));
    };
  });
  attachElementwise<arith::SelectOp>(context, [](arith::SelectOp) -> ScalarFunction {
    return [](const Scalar *x) { return x[0].integer ? x[1] : x[2]; };
  });
}

//===------------------------------------------------------------------------------------------===//
// Conversions
//===------------------------------------------------------------------------------------------===//

/// Towards zero; out of range: the nearest number, and 0 for NaN.
static int64_t truncateReal(double value, unsigned bits, bool isSigned) {
  llvm::APSInt result(bits, /*isUnsigned=*/!isSigned);
  bool isExact;
  // Saturates, which the conversion of APFloat does on its own.
  llvm::APFloat(value).convertToInteger(result, llvm::APFloat::rmTowardZero, &isExact);
  return result.getExtValue();
}

static void attachConversions(MLIRContext *context) {
  attachElementwise<arith::ExtFOp>(
      context, [](Operation *) { return unaryReal([](double a) { return a; }); });
  attachElementwise<arith::TruncFOp>(
      context, [](Operation *) { return unaryReal([](double a) { return a; }); });
  attachElementwise<arith::ExtSIOp>(context, [](arith::ExtSIOp op) -> ScalarFunction {
    return [type = getScalarType(op.getIn())](const Scalar *x) {
      return Scalar::fromInteger(type.getSigned(x[0]));
    };
  });
  attachElementwise<arith::ExtUIOp>(context, [](arith::ExtUIOp op) -> ScalarFunction {
    return [type = getScalarType(op.getIn())](const Scalar *x) {
      return Scalar::fromInteger(static_cast<int64_t>(type.getUnsigned(x[0])));
    };
  });
  attachElementwise<arith::TruncIOp>(context, [](arith::TruncIOp) -> ScalarFunction {
    return [](const Scalar *x) { return x[0]; };
  });
  attachElementwise<arith::IndexCastOp>(context, [](arith::IndexCastOp op) -> ScalarFunction {
    return [type = getScalarType(op.getIn())](const Scalar *x) {
      return Scalar::fromInteger(type.getSigned(x[0]));
    };
  });
  attachElementwise<arith::IndexCastUIOp>(context, [](arith::IndexCastUIOp op) -> ScalarFunction {
    return [type = getScalarType(op.getIn())](const Scalar *x) {
      return Scalar::fromInteger(static_cast<int64_t>(type.getUnsigned(x[0])));
    };
  });
  attachElementwise<arith::SIToFPOp>(context, [](arith::SIToFPOp op) -> ScalarFunction {
    return [type = getScalarType(op.getIn())](const Scalar *x) {
      return Scalar::fromReal(static_cast<double>(type.getSigned(x[0])));
    };
  });
  attachElementwise<arith::UIToFPOp>(context, [](arith::UIToFPOp op) -> ScalarFunction {
    return [type = getScalarType(op.getIn())](const Scalar *x) {
      return Scalar::fromReal(static_cast<double>(type.getUnsigned(x[0])));
    };
  });
  attachElementwise<arith::FPToSIOp>(context, [](arith::FPToSIOp op) -> ScalarFunction {
    return [bits = getScalarType(op.getResult()).getBits()](const Scalar *x) {
      return Scalar::fromInteger(truncateReal(x[0].real, bits, /*isSigned=*/true));
    };
  });
  attachElementwise<arith::FPToUIOp>(context, [](arith::FPToUIOp op) -> ScalarFunction {
    return [bits = getScalarType(op.getResult()).getBits()](const Scalar *x) {
      return Scalar::fromInteger(truncateReal(x[0].real, bits, /*isSigned=*/false));
    };
  });
  attachElementwise<arith::BitcastOp>(context, [](arith::BitcastOp op) -> ScalarFunction {
    return [from = getScalarType(op.getIn()), to = getScalarType(op.getResult())](const Scalar *x) {
      std::byte bytes[8] = {};
      from.store(bytes, x[0]);
      return to.load(bytes);
    };
  });
}

//===------------------------------------------------------------------------------------------===//
// Constants
//===------------------------------------------------------------------------------------------===//

namespace {
struct ConstantModel
    : ReferenceEvaluationOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  LogicalResult evaluate(Operation *op, ReferenceFrame &frame) const {
    auto constant = cast<arith::ConstantOp>(op);
    if (auto elements = dyn_cast<ElementsAttr>(constant.getValue())) {
      FailureOr<ReferenceTensor> tensor = readElementsAttr(elements);
      if (failed(tensor))
        return op->emitError() << "while interpreting: cannot read the elements of a constant of "
                               << constant.getType();
      return frame.set(constant, std::move(*tensor));
    }
    return frame.set(constant, getScalar(constant.getValue()));
  }

  ScalarFunction getScalarFunction(Operation *op) const {
    Attribute value = cast<arith::ConstantOp>(op).getValue();
    if (!isa<IntegerAttr, FloatAttr>(value))
      return {};
    return [scalar = getScalar(value)](const Scalar *) { return scalar; };
  }

private:
  static Scalar getScalar(Attribute attr) {
    if (auto real = dyn_cast<FloatAttr>(attr))
      return Scalar::fromReal(real.getValueAsDouble());
    auto integer = cast<IntegerAttr>(attr);
    Scalar value = Scalar::fromInteger(integer.getValue().getSExtValue());
    return ScalarType::get(integer.getType())->round(value);
  }
};
} // namespace

void mlir::moec::moe::registerArithModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attachIntegerArithmetic(context);
    attachFloatArithmetic(context);
    attachChoices(context);
    attachConversions(context);
    arith::ConstantOp::attachInterface<ConstantModel>(*context);
  });
}
