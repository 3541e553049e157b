//===- ReferenceSession.h - a language model in the interpreter -------------------------------===//
//
// Drives a module of phase `moe` whose entry is a ragged step, the way the runtime drives the
// compiled program. The entry's arguments are told apart by their attribute `moe.name`:
//
//   tokens, positions, token_sequences  i32 [T]      the step's tokens, sequence by sequence
//   sequence_offsets                    i32 [S + 1]  where each sequence's tokens start
//   block_table                         i32 [S, B]   the pool blocks of each sequence, else -1
//   state_slots                         i32 [S]      the slot of each sequence
//   logit_rows                          i32 [R]      whose logits are wanted
//   any name, type !moe.cache                        the paged cache of one layer
//   any name, type !moe.state                        a state of one layer, a slot for each sequence
//
// Its first result is the logits, [R, vocabulary].
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_REFERENCESESSION_H
#define MOEC_DIALECT_MOE_REFERENCE_REFERENCESESSION_H

#include "moec/Dialect/MoE/Reference/Interpreter.h"

namespace mlir::moec::moe {

class ReferenceSession {
public:
  /// `entry` may be empty: the only function with the attribute `moe.entry`. When the module has
  /// globals, the function `loadEntry` fills them first. `weights` must outlive the session. Emits
  /// a diagnostic when it fails.
  static FailureOr<std::unique_ptr<ReferenceSession>> create(ModuleOp module, WeightSource *weights,
                                                             StringRef entry = "",
                                                             StringRef loadEntry = "load");

  enum class LogitRows { None, Last, All };
  struct Part {
    int64_t sequence;
    ArrayRef<int32_t> tokens;
    LogitRows logits = LogitRows::Last;
  };

  int64_t createSequence();
  int64_t getLength(int64_t sequence) const { return sequences[sequence].length; }
  /// Forgets everything from position `length` on. Emits a diagnostic when there is a state, which
  /// cannot go back, and the sequence would be neither as long as before nor empty.
  LogicalResult truncate(int64_t sequence, int64_t length);

  /// Appends tokens to different sequences and gives the wanted logits [R, vocabulary], part by
  /// part. Emits a diagnostic when it fails; the sequences' lengths are then as they were.
  FailureOr<ReferenceTensor> step(ArrayRef<Part> parts);

  /// The two halves of a step for somebody who computes the program by pieces: the entry's arguments for these parts, and the
  /// sequences' new lengths.
  FailureOr<SmallVector<ReferenceValue>> makeArguments(ArrayRef<Part> parts);
  void advance(ArrayRef<Part> parts);
  func::FuncOp getEntry() const { return entry; }

  /// The logits of every token of a new sequence, [T, vocabulary], `chunk` tokens a step (0: all at
  /// once).
  FailureOr<ReferenceTensor> computeLogits(ArrayRef<int32_t> tokens, int64_t chunk = 0);

  /// Appends `prompt` to a new sequence and then `count` times the token with the largest logit
  /// (ties: the lowest id).
  FailureOr<std::vector<int32_t>> generateGreedily(ArrayRef<int32_t> prompt, int64_t count);

private:
  struct Sequence {
    int64_t length = 0;
    SmallVector<int32_t> blocks;
    int32_t slot = -1;
  };

  ReferenceSession(ModuleOp module, WeightSource *weights, func::FuncOp entry)
      : interpreter(module, weights), entry(entry) {}
  LogicalResult findArguments();
  LogicalResult loadGlobals(StringRef loadEntry);
  LogicalResult reserve(Sequence &sequence, int64_t length);
  LogicalResult reserveSlot(Sequence &sequence);
  FailureOr<ReferenceValue> makeArgument(StringRef name, ArrayRef<Part> parts);

  Interpreter interpreter;
  func::FuncOp entry;
  SmallVector<std::string> argumentNames; // empty: a cache or a state
  std::vector<std::shared_ptr<ReferenceCache>> caches;
  std::vector<std::shared_ptr<ReferenceState>> states;
  int64_t blockTokens = 1;
  int64_t poolBlocks = 0;
  SmallVector<int32_t> freeBlocks, freeSlots;
  std::vector<Sequence> sequences;
};

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_REFERENCE_REFERENCESESSION_H
