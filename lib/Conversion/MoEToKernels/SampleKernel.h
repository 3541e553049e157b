//===- SampleKernel.h - choosing one token from a row of logits -------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_SAMPLEKERNEL_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_SAMPLEKERNEL_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// The threads that choose a token together, in squads of lanes: one thread of a CPU, a block of a
/// GPU. All of them run the same code, and what they compare is equal in all of them.
class SampleTeam {
public:
  SampleTeam(int64_t squads, int64_t lanes) : squads(squads), lanes(lanes) {}
  virtual ~SampleTeam() = default;

  int64_t getSquads() const { return squads; }
  int64_t getLanes() const { return lanes; }
  int64_t getMembers() const { return squads * lanes; }

  /// Numbers of the thread's squad, of its lane in that, and of the thread.
  virtual Value squad() = 0;
  virtual Value lane() = 0;
  virtual Value member() = 0;

  /// Memory of all: a memref of `size` elements.
  virtual Value allocate(int64_t size, Type element) = 0;
  /// Waits for all; what they wrote before is visible afterwards.
  virtual void meet() = 0;

  using Combine = function_ref<Value(Value, Value)>;
  /// The i64 values of all lanes of a squad, or of all threads, combined; the same in each of them.
  virtual Value combineLanes(Value value, Combine combine) = 0;
  virtual Value combineAll(Value value, Combine combine) = 0;

private:
  int64_t squads, lanes;
};

class SampleKernel {
public:
  /// What build() allocates of the team's memory: numbers of 8 and of 4 bytes.
  static constexpr int64_t rangeParts = 32, listSize = 8192;

  /// `operands` and `tokens` are the memrefs of the op's operands and result.
  SampleKernel(CodeBuilder &code, SampleTeam &team, moe::SampleOp op, ValueRange operands,
               Value tokens);

  /// Chooses token number `token`.
  void build(Value token);

private:
  /// A column of the row: its number, its logit, and the logit's rank, an i32 whose unsigned order
  /// is that of logits.
  struct Column {
    Value number, logit, rank;
  };
  /// What stays: ranks above `rank`, and of that rank the columns up to `last`.
  struct Kept {
    Value rank, last;
  };
  /// The largest rank at which a sum over it and all higher ones reaches what is wanted, and the
  /// sum over the higher ones.
  struct Threshold {
    Value rank, above;
  };
  /// Columns from `begin` to `end`, shared by `threads` threads.
  struct Range {
    Value begin, end, thread;
    int64_t threads;
  };
  using Measure = function_ref<Value(const Column &)>;
  using ColumnBody = function_ref<SmallVector<Value>(const Column &, ValueRange carried)>;

  Column load(Value number);
  SmallVector<Value> forEachColumn(const Range &range, ValueRange initial, ColumnBody body);
  SmallVector<Value> forEachColumn(ValueRange initial, ColumnBody body);
  Value sumOverColumns(Measure measure);
  Value findBest();
  Value isGreedy(Value bestRank);
  Kept keepTopK();
  Kept keepTopP(const Kept &kept);
  Value draw(const Kept &kept);
  Threshold findThreshold(Value wanted, Measure measure);
  Value listColumns(Value rank, Value shift);
  Value getDigit(const Column &column, Value rank, Value shift);
  SmallVector<Value> addToDigit(const Column &column, Value digit, ValueRange sums,
                                Measure measure);
  Value findColumn(function_ref<Value(Value sum)> getPoint, Measure measure);
  Value findOfRank(Value rank, Value place);

  Value weigh(const Column &column);
  Value weighKept(const Column &column, const Kept &kept);
  Value isKept(const Column &column, const Kept &kept);
  Value rankOf(Value logit);
  Value logitOf(Value rank);

  Value int64(int64_t value);
  Value toReal(Value sum);
  Value toSum(Value real);
  Value real(double value);
  Value loadReal(Value memref);

  CodeBuilder &code;
  SampleTeam &team;
  int64_t vocabulary;
  Value logits, rows, temperatures, topKs, topPs, randoms, tokens;
  Value parts;        ///< sums of parts of a range of columns
  Value list, listed; ///< numbers of some columns, and how many
  // Of the token at hand.
  Value token, row, topK, largest;
  Value scale; ///< 2 / temperature
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_SAMPLEKERNEL_H
