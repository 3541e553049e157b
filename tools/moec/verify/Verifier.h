// Runs a program's segments, compiled and interpreted (or compiled for another device), with the
// same inputs.
#ifndef MOEC_TOOLS_MOEC_VERIFY_VERIFIER_H
#define MOEC_TOOLS_MOEC_VERIFY_VERIFIER_H

#include "tools/moec/verify/AgainstFile.h"
#include "tools/moec/verify/CompiledSegment.h"
#include "tools/moec/verify/Outcome.h"
#include "tools/moec/verify/Program.h"
#include "tools/moec/verify/Schedule.h"

#include "moec/Dialect/MoE/Reference/ReferenceSession.h"

#include <functional>
#include <map>

namespace moec::verify {

// How a file of somebody else's results numbers what a layer gives to later ones: 0 is its residual
// stream, the last numbers that it gives; other rows for each token follow from 1 in the program's
// order. Values without rows, such as those that follow from positions alone, have no number.
llvm::SmallVector<std::optional<std::int64_t>> numberResults(const mlir::moec::Segment &segment);

class Verifier {
public:
  using ReferenceTensor = mlir::moec::moe::ReferenceTensor;
  using ReferenceValue = mlir::moec::moe::ReferenceValue;

  // Everything outlives the verifier; `file` has a sequence for each of the schedule's, or nothing.
  // With `otherCompiler` the reference program's pieces are compiled with it, not interpreted.
  Verifier(const Program &compiled, const Program &reference, const Schedule &schedule,
           const std::vector<AgainstSequence> &file, const Tolerances &tolerances,
           SegmentCompiler &compiler, SegmentCompiler *otherCompiler, bool allLogits,
           DiagnosticStatus &diagnostics);

  // The arguments of all steps. To be called first.
  moert::Status prepare();
  // One after the other: each keeps what it gives, or what the file says it gives, for the next
  // ones.
  moert::Result<SegmentOutcome> verifySegment(std::size_t index);
  // What the last segment gave: the reference's logits of a step.
  const ReferenceTensor &logits(std::size_t step) const;
  // The model as a whole, compiled afresh from its program: its logits by step.
  moert::Result<std::vector<std::vector<double>>> runFreshProgram();
  Comparison makeComparison(const mlir::moec::Segment &segment, mlir::Value value) const;

private:
  using Key = std::pair<std::size_t, std::size_t>; // segment, result
  using OnStep = std::function<void(std::size_t step, llvm::ArrayRef<ReferenceTensor> compiled,
                                    llvm::ArrayRef<ReferenceTensor> interpreted)>;
  // The same piece of both programs.
  struct Pair {
    mlir::moec::Segment compiled, reference;
  };
  struct Pools;

  moert::Result<std::vector<Comparison>> compareValues(const Pair &pair,
                                                       llvm::ArrayRef<mlir::Value> compiled,
                                                       llvm::ArrayRef<mlir::Value> reference,
                                                       const OnStep &onStep);
  moert::Status findFirstOp(const Pair &pair, SegmentOutcome &outcome);
  llvm::SmallVector<ReferenceValue> collect(const mlir::moec::SegmentProgram &program,
                                            std::size_t step, const Pools &pools) const;
  moert::Result<std::vector<ReferenceTensor>> interpret(mlir::moec::moe::Interpreter &interpreter,
                                                        llvm::ArrayRef<ReferenceValue> arguments);
  // What the file says of a layer's value of a number, for all tokens of a step; none where it does
  // not say it for each.
  std::optional<std::vector<double>> takeFromFile(std::int64_t layer, std::int64_t number,
                                                  std::size_t step, std::size_t width) const;
  moert::Status fail(const std::string &what) {
    return diagnostics.take(what, "internal error: the interpreter failed");
  }

  const Program &compiled, &reference;
  const Schedule &schedule;
  const std::vector<AgainstSequence> &file;
  const Tolerances &tolerances;
  SegmentCompiler &compiler;
  SegmentCompiler *otherCompiler; // none: the interpreter is the reference
  bool allLogits;
  DiagnosticStatus &diagnostics;
  std::unique_ptr<mlir::moec::moe::ReferenceSession> session;
  std::vector<llvm::SmallVector<ReferenceValue>> arguments; // of the step function, by step
  llvm::DenseMap<mlir::Value, Key> keys;              // of both programs' values between segments
  std::map<Key, std::vector<ReferenceTensor>> values; // by step
};

} // namespace moec::verify

#endif
