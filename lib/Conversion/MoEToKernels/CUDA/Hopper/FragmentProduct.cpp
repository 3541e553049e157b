#include "FragmentProduct.h"

using namespace mlir;
using namespace mlir::moec;

Value FragmentProduct::describe(Value right) {
  constexpr int64_t leading = 1 << 16;
  Value low = code.shiftedRight(right, 4);
  return arith::OrIOp::create(code, code.getLoc(), low, code.int32(leading));
}

/// The nvvm op takes both operands from shared memory only.
SmallVector<Value> FragmentProduct::multiply(ArrayRef<Value> sums, ArrayRef<Value> left,
                                             Value right) {
  int64_t registers = getRegisters();
  // The upper half of the description: rows in groups of eight, 1024 bytes apart; 128-byte swizzle.
  constexpr uint32_t upper = 1u << 30 | 1024 >> 4;
  std::string text, constraints;
  llvm::raw_string_ostream out(text), tied(constraints);
  auto list = [&](int64_t first, int64_t count) {
    out << "{";
    for (int64_t i = 0; i < count; ++i)
      out << (i ? "," : "") << "$" << first + i;
    out << "}";
  };
  // Results come first, then the same registers as operands.
  int64_t firstLeft = 2 * registers;
  out << "{ .reg .pred add; .reg .b64 columns; mov.b64 columns, {$" << firstLeft + 4 << ", " << upper
      << "}; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n" << getColumns()
      << "k16.f32.bf16.bf16 ";
  list(0, registers);
  out << ", ";
  list(firstLeft, 4);
  out << ", columns, add, 1, 1, 0; }";
  for (int64_t i = 0; i < registers; ++i)
    tied << "=f,";
  for (int64_t i = 0; i < registers; ++i)
    tied << i << ",";
  tied << "r,r,r,r,r";

  SmallVector<Value> operands(sums);
  llvm::append_range(operands, left);
  operands.push_back(right);
  Value result = LLVM::InlineAsmOp::create(code, code.getLoc(), getSumsType(), operands, text,
                                           constraints, /*has_side_effects=*/true,
                                           /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                           LLVM::AsmDialectAttr(), ArrayAttr())
                     .getRes();
  SmallVector<Value> results;
  for (int64_t i = 0; i < registers; ++i)
    results.push_back(getRegister(result, i));
  return results;
}
