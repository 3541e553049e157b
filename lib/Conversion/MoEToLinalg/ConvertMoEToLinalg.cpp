//===- ConvertMoEToLinalg.cpp - moe ops as linalg ---------------------------------------------===//

#include "moec/Conversion/MoEToLinalg.h"
#include "moec/Conversion/Passes.h"

#include "Patterns.h"

namespace mlir::moec {
#define GEN_PASS_DEF_CONVERTMOETOLINALGPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

void mlir::moec::populateMoEToLinalgPatterns(RewritePatternSet &patterns) {
  populateDecayGateToLinalgPatterns(patterns);
  populateGateToLinalgPatterns(patterns);
  populateHeadLinearToLinalgPatterns(patterns);
  populateMixResidualsToLinalgPatterns(patterns);
  populateHashRouteToLinalgPatterns(patterns);
  populateHyperConnectionToLinalgPatterns(patterns);
  populateNormToLinalgPatterns(patterns);
  populateRopeToLinalgPatterns(patterns);
  populateLinearToLinalgPatterns(patterns);
  populateVisionToLinalgPatterns(patterns);
  populateDequantizeToLinalgPatterns(patterns);
  populateDequantizeCodesToLinalgPatterns(patterns);
}

namespace {
struct ConvertMoEToLinalg : moec::impl::ConvertMoEToLinalgPassBase<ConvertMoEToLinalg> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMoEToLinalgPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
