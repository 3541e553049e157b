//===- CausalConv.cpp - a thread convolves one channel of one sequence ------------------------===//
//
// As on a CPU, with the last rows in registers: see ../CausalConv.cpp.
//
//===------------------------------------------------------------------------------------------===//

#include "../SequencePart.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 128;

class CUDACausalConvStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.causal_conv"; }
  StringRef getOpName() const override { return moe::CausalConvOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto conv = dyn_cast<moe::CausalConvOp>(op);
    return conv && target.isCUDA() && conv.getWeight().getType().getDimSize(1) <= mostTaps;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto conv = cast<moe::CausalConvOp>(op);
    return countTiles(builder, op->getLoc(), conv.getStateSlots(), 1, countPieces(conv));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    auto conv = cast<moe::CausalConvOp>(op);
    BlockCode code(op->getLoc(), builder, threads);
    Value input = operands[0], weight = operands[1], state = operands[2], result = results[0];
    int64_t channels = conv.getWeight().getType().getDimSize(0);
    int64_t size = conv.getWeight().getType().getDimSize(1), pieces = countPieces(conv);
    Value sequence = code.divide(workgroup, pieces);
    Value piece = code.remainder(workgroup, pieces);
    Value channel = code.add(code.mul(piece, threads), code.thread());
    SequenceOperands sequences = {state, operands[3], operands[4], operands[5]};
    withSequence(code, sequences, sequence, code.dim(input, 0), [&](const SequencePart &part) {
      code.when(code.isWithin(channel, code.index(channels)), [&] {
        SmallVector<Value> taps, before;
        for (int64_t j = 0; j < size; ++j)
          taps.push_back(code.loadFloat(weight, {channel, code.index(j)}));
        for (int64_t j = 0; j < size - 1; ++j)
          before.push_back(code.select(part.begins, code.float32(0),
                                       code.loadFloat(state, {part.slot, code.index(j), channel})));
        SmallVector<Value> last =
            code.loop(part.first, part.end, 1, before, [&](Value token, ValueRange window) {
              SmallVector<Value> rows(window);
              rows.push_back(code.loadFloat(input, {token, channel}));
              Value sum = code.mul(taps[0], rows[0]);
              for (int64_t j = 1; j < size; ++j)
                sum = code.fma(taps[j], rows[j], sum);
              if (conv.getSilu()) {
                Value exponential = code.exp(code.sub(code.float32(0), sum));
                sum = code.divide(sum, code.add(code.float32(1), exponential));
              }
              code.storeFloat(sum, result, {token, channel});
              rows.erase(rows.begin());
              return rows;
            });
        for (auto [j, row] : llvm::enumerate(last))
          code.storeFloat(row, state, {part.slot, code.index(j), channel});
      });
    });
  }

private:
  /// Taps and rows lie in registers.
  static constexpr int64_t mostTaps = 16;

  static int64_t countPieces(moe::CausalConvOp op) {
    return llvm::divideCeil(op.getWeight().getType().getDimSize(0), threads);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDACausalConvStrategy() {
  static const CUDACausalConvStrategy strategy;
  return strategy;
}
