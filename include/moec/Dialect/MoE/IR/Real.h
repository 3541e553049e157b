//===- Real.h - a number inside an attribute --------------------------------------------------===//
//
// A double that can be a parameter of an attribute: hashed and compared by its bits, printed so that reading it back gives
// the same value.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_IR_REAL_H
#define MOEC_DIALECT_MOE_IR_REAL_H

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/bit.h"

namespace mlir::moec::moe {

struct Real {
  double value = 0;

  Real() = default;
  Real(double value) : value(value) {}
  operator double() const { return value; }

  // By bits: NaN equals itself and the zeros differ, as an attribute key needs it.
  friend bool operator==(Real a, Real b) {
    return llvm::bit_cast<uint64_t>(a.value) == llvm::bit_cast<uint64_t>(b.value);
  }
  friend llvm::hash_code hash_value(Real real) {
    return llvm::hash_value(llvm::bit_cast<uint64_t>(real.value));
  }
};

/// The shortest decimal text that reads back as `value`.
std::string printReal(double value);
/// The same for a value that is stored in single precision.
std::string printReal(float value);

inline AsmPrinter &operator<<(AsmPrinter &printer, Real real) {
  printer << StringRef(printReal(real.value));
  return printer;
}

} // namespace mlir::moec::moe

namespace mlir {
template <>
struct FieldParser<moec::moe::Real> {
  static FailureOr<moec::moe::Real> parse(AsmParser &parser) {
    double value;
    if (parser.parseFloat(value))
      return failure();
    return moec::moe::Real(value);
  }
};
} // namespace mlir

#endif // MOEC_DIALECT_MOE_IR_REAL_H
