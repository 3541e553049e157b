//===- Patterns.h - the pattern sets of this folder -------------------------------------------===//

#ifndef MOEC_CONVERSION_MOETOLINALG_PATTERNS_H
#define MOEC_CONVERSION_MOETOLINALG_PATTERNS_H

namespace mlir {
class RewritePatternSet;
}

namespace mlir::moec {

void populateDecayGateToLinalgPatterns(RewritePatternSet &patterns);
void populateGateToLinalgPatterns(RewritePatternSet &patterns);
void populateHeadLinearToLinalgPatterns(RewritePatternSet &patterns);
void populateMixResidualsToLinalgPatterns(RewritePatternSet &patterns);
void populateHashRouteToLinalgPatterns(RewritePatternSet &patterns);
void populateHyperConnectionToLinalgPatterns(RewritePatternSet &patterns);
void populateNormToLinalgPatterns(RewritePatternSet &patterns);
void populateRopeToLinalgPatterns(RewritePatternSet &patterns);
void populateLinearToLinalgPatterns(RewritePatternSet &patterns);
void populateVisionToLinalgPatterns(RewritePatternSet &patterns);
void populateDequantizeToLinalgPatterns(RewritePatternSet &patterns);
void populateDequantizeCodesToLinalgPatterns(RewritePatternSet &patterns);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_MOETOLINALG_PATTERNS_H
