//===- RowChunks.h - which rows of a weight a workgroup takes ---------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ROWCHUNKS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ROWCHUNKS_H

#include "WeightPanels.h"

namespace mlir::moec {

/// The outputs of a product (rows of the weight, or pairs of a gate and an up row) are cut into chunks of whole vectors of
/// 16. A chunk needs one range of panels, or two when all gate rows come before all up rows.
class RowChunks {
public:
  RowChunks(const WeightPanels &weight, moe::ActivationAttr activation, int64_t mostChunks);

  int64_t getCount() const { return llvm::divideCeil(outputs, chunkOutputs); }
  int64_t getOutputs() const { return outputs; }
  int64_t getChunkOutputs() const { return chunkOutputs; }
  /// Panels whose sums a workgroup holds, over all ranges.
  int64_t getSumPanels() const { return ranges * panelsPerRange; }

  /// The vector of gates and that of ups of 16 outputs, or the sums themselves in `gate` without an activation. `load`
  /// gives the sums of panel q of the workgroup; `vector` counts the chunk's vectors of 16 outputs.
  struct GateAndUp {
    Value gate, up;
  };
  GateAndUp loadOutputs(CodeBuilder &code, Value vector, function_ref<Value(Value q)> load) const;

  /// Runs `body` for each range: the first panel of the weight, the first panel of the sums, and the number of panels.
  void forEachRange(CodeBuilder &code, Value chunk,
                    function_ref<void(Value panel, Value sum, Value count)> body) const;

private:
  bool isInterleaved() const { return activation && activation.getInterleaved(); }
  bool isConcatenated() const { return activation && !activation.getInterleaved(); }

  moe::ActivationAttr activation;
  int64_t outputs, panels, ranges;
  int64_t chunkOutputs, panelsPerRange;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ROWCHUNKS_H
