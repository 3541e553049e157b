//===- LegalizeFloats.cpp - bf16 and f16 through f32 ------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::moec {
#define GEN_PASS_DEF_LEGALIZEFLOATSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {
struct LegalizeFloats : moec::impl::LegalizeFloatsPassBase<LegalizeFloats> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    Type bf16 = BFloat16Type::get(context), f16 = Float16Type::get(context);
    TypeConverter converter;
    arith::populateEmulateUnsupportedFloatsConversions(converter, {bf16, f16},
                                                       Float32Type::get(context));
    RewritePatternSet throughF32(context);
    arith::populateEmulateUnsupportedFloatsPatterns(throughF32, converter);
    FrozenRewritePatternSet frozenThroughF32(std::move(throughF32));
    ConversionTarget target(*context);
    arith::populateEmulateUnsupportedFloatsLegality(target, converter);

    // Without instructions for it LLVM would call a library to round to bf16.
    RewritePatternSet asIntegers(context);
    arith::populateExpandBFloat16Patterns(asIntegers);
    arith::populateCeilFloorDivExpandOpsPatterns(asIntegers);
    FrozenRewritePatternSet frozenAsIntegers(std::move(asIntegers));

    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(applyPartialConversion(kernel, target, frozenThroughF32)))
        return signalPassFailure();
      if (failed(applyPatternsGreedily(kernel, frozenAsIntegers)))
        return signalPassFailure();
    }
  }
};
} // namespace
