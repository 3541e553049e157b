//===- KVAppend.cpp - a block writes one token's keys and values into the paged cache ---------===//

#include "../Strategies.h"
#include "PagedCache.h"
#include "RotaryElement.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class CUDAKVAppendStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.kv_append"; }
  StringRef getOpName() const override { return moe::KVAppendOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::KVAppendOp>(op) && target.isCUDA();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return 128; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::KVAppendOp>(op).getKey(), 1, 1);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange, Value, Value token,
             const TargetDescription &target) const override {
    auto append = cast<moe::KVAppendOp>(op);
    moe::CacheType type = append.getCache().getType();
    BlockCode code(op->getLoc(), builder, getThreads(op, target));
    Value keys = operands[0], values = append.getValue() ? operands[1] : Value();
    ValueRange others = operands.drop_front(values ? 2 : 1);
    PagedCache cache(type, others[0], others[3]);
    RotaryElement rotary(code, append.getRotaryAttr());
    Value position = code.loadInt(others[1], token);
    Value sequence = code.loadIndex(others[2], token);
    PagedCache::Place place = cache.find(code, sequence, code.toIndex(position));
    code.when(place.known, [&] {
      code.forEachOfThread(code.index(type.getKvHeads() * type.getKeyDim()), [&](Value element) {
        Value head = code.divide(element, type.getKeyDim());
        Value i = code.remainder(element, type.getKeyDim());
        Value key = rotary.build(code, position, i, [&](Value other) {
          return code.loadFloat(keys, {token, head, other});
        });
        code.storeFloat(key, cache.getMemory(),
                        {place.block, cache.getKeyIndex(code, head, place.slot, i)});
      });
      if (!values)
        return;
      code.forEachOfThread(code.index(type.getKvHeads() * type.getValueDim()), [&](Value element) {
        Value head = code.divide(element, type.getValueDim());
        Value i = code.remainder(element, type.getValueDim());
        code.storeFloat(code.loadFloat(values, {token, head, i}), cache.getMemory(),
                        {place.block, cache.getValueIndex(code, head, place.slot, i)});
      });
    });
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAKVAppendStrategy() {
  static const CUDAKVAppendStrategy strategy;
  return strategy;
}
