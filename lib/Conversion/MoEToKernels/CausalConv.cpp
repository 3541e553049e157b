//===- CausalConv.cpp - strategy for a depthwise causal convolution ---------------------------===//
//
// A workgroup takes some channels of one sequence. It walks along the sequence with the last rows
// in registers: the slot's at first, and what they are in the end goes back to the slot. So the sum
// of a token is made in one order wherever a prompt was cut.
//
//===------------------------------------------------------------------------------------------===//

#include "CodeBuilder.h"
#include "GatedActivation.h"
#include "SequencePart.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// A multiple of every number of lanes.
constexpr int64_t channelsPerWorkgroup = 256;

class CausalConvKernel {
public:
  CausalConvKernel(CodeBuilder &code, moe::CausalConvOp op, ValueRange operands, Value result,
                   const TargetDescription &target)
      : code(code), channels(op.getWeight().getType().getDimSize(0)),
        size(op.getWeight().getType().getDimSize(1)), lanes(target.getVectorBytes() / 4),
        silu(op.getSilu()), input(operands[0]), weight(operands[1]),
        state(operands[2]), sequences{operands[2], operands[3], operands[4], operands[5]},
        result(result) {}

  void build(Value workgroup) {
    int64_t pieces = llvm::divideCeil(channels, channelsPerWorkgroup);
    Value sequence = code.divide(workgroup, pieces);
    Value first = code.mul(code.remainder(workgroup, pieces), channelsPerWorkgroup);
    Value end = code.add(first, channelsPerWorkgroup);
    withSequence(code, sequences, sequence, code.dim(input, 0), [&](const SequencePart &part) {
      int64_t whole = channels / lanes * lanes;
      code.loop(first, code.minimum(end, code.index(whole)), lanes,
                [&](Value channel) { buildChannels(part, channel, lanes); });
      if (whole < channels) // in the last piece
        code.when(code.compare(arith::CmpIPredicate::sge, end, code.index(channels)),
                  [&] { buildChannels(part, code.index(whole), channels - whole); });
    });
  }

private:
  void buildChannels(const SequencePart &part, Value channel, int64_t width) {
    SmallVector<Value> taps = loadTaps(channel, width);
    SmallVector<Value> window =
        code.loop(part.first, part.end, 1, loadWindow(part, channel, width),
                  [&](Value token, ValueRange before) {
                    SmallVector<Value> rows(before);
                    rows.push_back(code.loadFloats(input, {token, channel}, width));
                    Value sum = code.mul(taps[0], rows[0]);
                    for (int64_t j = 1; j < size; ++j)
                      sum = code.fma(taps[j], rows[j], sum);
                    if (silu)
                      sum = code.mul(sum, ActivationMath().sigmoid(code, sum));
                    code.storeFloats(sum, result, {token, channel});
                    rows.erase(rows.begin());
                    return rows;
                  });
    for (auto [row, values] : llvm::enumerate(window))
      code.storeFloats(values, state, {part.slot, code.index(row), channel});
  }

  /// For each tap its weights of `width` channels, which lie channel by channel in memory.
  SmallVector<Value> loadTaps(Value channel, int64_t width) {
    SmallVector<Value> rows, taps;
    for (int64_t i = 0; i < width; ++i)
      rows.push_back(code.loadFloats(weight, {code.add(channel, i), code.index(0)}, size));
    for (int64_t j = 0; j < size; ++j)
      taps.push_back(
          code.fromLanes(llvm::map_to_vector(rows, [&](Value row) { return code.lane(row, j); })));
    return taps;
  }

  /// The rows before the step's first one.
  SmallVector<Value> loadWindow(const SequencePart &part, Value channel, int64_t width) {
    SmallVector<Type> types(size - 1, code.floatVector(width));
    return code.choose(
        part.begins, types, [&] { return SmallVector<Value>(size - 1, code.floatSplat(0, width)); },
        [&] {
          SmallVector<Value> rows;
          for (int64_t row = 0; row < size - 1; ++row)
            rows.push_back(code.loadFloats(state, {part.slot, code.index(row), channel}, width));
          return rows;
        });
  }

  CodeBuilder &code;
  int64_t channels, size, lanes;
  bool silu;
  Value input, weight, state;
  SequenceOperands sequences;
  Value result;
};

class CausalConvStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.causal_conv"; }
  StringRef getOpName() const override { return moe::CausalConvOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::CausalConvOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto conv = cast<moe::CausalConvOp>(op);
    int64_t channels = conv.getWeight().getType().getDimSize(0);
    return countTiles(builder, op->getLoc(), conv.getStateSlots(), 1,
                      llvm::divideCeil(channels, channelsPerWorkgroup));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    CausalConvKernel(code, cast<moe::CausalConvOp>(op), operands, results[0], target)
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCausalConvStrategy() {
  static const CausalConvStrategy strategy;
  return strategy;
}
