#include "tools/moec/verify/Verifier.h"

#include "mlir/Transforms/RegionUtils.h"

namespace moec::verify {

using namespace mlir;
using mlir::moec::Segment;
using mlir::moec::SegmentProgram;
using mlir::moec::moe::Interpreter;
using mlir::moec::moe::ReferenceCache;
using mlir::moec::moe::ReferenceSession;
using mlir::moec::moe::ReferenceState;
using moert::ErrorCode;
using moert::Result;
using moert::Status;

// New caches and states for a run over all steps, as large as the whole schedule needs them.
struct Verifier::Pools {
  DenseMap<unsigned, ReferenceValue> byArgument;
};

Verifier::Verifier(const Program &compiled, const Program &reference, const Schedule &schedule,
                   const std::vector<AgainstSequence> &file, const Tolerances &tolerances,
                   SegmentCompiler &compiler, SegmentCompiler *otherCompiler, bool allLogits,
                   DiagnosticStatus &diagnostics)
    : compiled(compiled), reference(reference), schedule(schedule), file(file),
      tolerances(tolerances), compiler(compiler), otherCompiler(otherCompiler),
      allLogits(allLogits), diagnostics(diagnostics) {}

Status Verifier::prepare() {
  auto created = ReferenceSession::create(*reference.module, reference.weights.get(),
                                          func::FuncOp(reference.step).getName());
  if (failed(created))
    return fail("the bundle's program");
  session = std::move(*created);
  for (std::size_t i = 0; i < schedule.sequences.size(); ++i)
    session->createSequence();
  for (const Step &step : schedule.steps) {
    std::vector<ReferenceSession::Part> parts;
    for (const Part &part : step)
      parts.push_back(
          {static_cast<int64_t>(part.sequence),
           ArrayRef(schedule.sequences[part.sequence]).slice(part.begin, part.count),
           allLogits ? ReferenceSession::LogitRows::All : ReferenceSession::LogitRows::Last});
    auto made = session->makeArguments(parts);
    if (failed(made))
      return fail("the bundle's program");
    arguments.push_back(std::move(*made));
    session->advance(parts);
  }
  for (const Program *program : {&compiled, &reference})
    for (auto [s, segment] : llvm::enumerate(program->segments()))
      for (auto [r, value] : llvm::enumerate(segment.results))
        keys[value] = {s, r};
  return {};
}

SmallVector<Verifier::ReferenceValue>
Verifier::collect(const SegmentProgram &program, std::size_t step, const Pools &pools) const {
  SmallVector<ReferenceValue> collected;
  for (Value value : program.arguments) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      collected.push_back(values.at(keys.lookup(value))[step]);
    else if (auto pool = pools.byArgument.find(argument.getArgNumber());
             pool != pools.byArgument.end())
      collected.push_back(pool->second);
    else
      collected.push_back(arguments[step][argument.getArgNumber()]);
  }
  return collected;
}

Result<std::vector<Verifier::ReferenceTensor>> Verifier::interpret(Interpreter &interpreter,
                                                                   ArrayRef<ReferenceValue> given) {
  auto results = interpreter.call("segment", given);
  if (failed(results))
    return fail("the interpreter");
  std::vector<ReferenceTensor> tensors;
  for (const ReferenceValue &result : *results)
    tensors.push_back(result.getTensor());
  return tensors;
}

Comparison Verifier::makeComparison(const Segment &segment, Value value) const {
  Comparison comparison;
  if (Operation *op = value.getDefiningOp()) {
    comparison.op = op->getName().getStringRef().str();
    comparison.name = mlir::moec::getLocationName(op->getLoc());
    // Without a name of its own it is told by a weight that it reads.
    for (Value operand : op->getOperands())
      if (auto weight = operand.getDefiningOp<mlir::moec::moe::WeightOp>();
          weight && comparison.name.empty())
        comparison.name = weight.getName().str();
  }
  comparison.shape = toText(value.getType());
  comparison.tolerance = allowedError(segment, value, tolerances);
  if (otherCompiler) // both sides round
    comparison.tolerance *= std::sqrt(2.0);
  comparison.wantsIntegers = cast<RankedTensorType>(value.getType()).getElementType().isInteger();
  return comparison;
}

//===------------------------------------------------------------------------------------------===//
// Running both sides
//===------------------------------------------------------------------------------------------===//

namespace {

// A router of the piece: which rows chose otherwise, and whether that is right for the logits that
// they got.
struct Choice {
  Operation *compiled = nullptr, *reference = nullptr;
  SegmentProgram program; // of the reference
  std::unique_ptr<Interpreter> interpreter;
  SmallVector<std::size_t> results; // places in the piece's results
};

// Rows in which one of two integer tensors differs from the other.
void markDifferentRows(const Verifier::ReferenceTensor &a, const Verifier::ReferenceTensor &b,
                       std::vector<char> &marks) {
  if (a.getShape() != b.getShape() || a.getRank() == 0)
    return;
  int64_t rows = a.getDimSize(0), width = rows == 0 ? 0 : a.getSize() / rows;
  marks.resize(static_cast<std::size_t>(rows), false);
  for (int64_t i = 0; i < rows * width; ++i)
    if (a.getInteger(i) != b.getInteger(i))
      marks[static_cast<std::size_t>(i / width)] = true;
}

} // namespace

Result<std::vector<Comparison>> Verifier::compareValues(const Pair &pair,
                                                        ArrayRef<Value> compiledValues,
                                                        ArrayRef<Value> referenceValues,
                                                        const OnStep &onStep) {
  // What routers get and choose is compared, too: a token that chooses other experts within
  // rounding has other numbers from there on.
  SmallVector<Value> wanted(compiledValues), expected(referenceValues);
  DenseMap<Value, std::size_t> places; // of the reference's values
  for (auto [place, value] : llvm::enumerate(expected))
    places[value] = place;
  DenseSet<Operation *> inside(pair.reference.ops.begin(), pair.reference.ops.end());
  auto want = [&](Value left, Value right) {
    if (inside.contains(right.getDefiningOp()) && isa<RankedTensorType>(right.getType()) &&
        places.try_emplace(right, expected.size()).second) {
      wanted.push_back(left);
      expected.push_back(right);
    }
  };
  std::vector<Choice> choices;
  for (auto [left, right] : llvm::zip_equal(pair.compiled.choices, pair.reference.choices)) {
    Choice choice;
    choice.compiled = left;
    choice.reference = right;
    for (auto [a, b] : llvm::zip_equal(left->getOperands(), right->getOperands()))
      want(a, b);
    for (auto [a, b] : llvm::zip_equal(left->getResults(), right->getResults())) {
      want(a, b);
      choice.results.push_back(places.lookup(b));
    }
    auto program = reference.cut->extract(right);
    if (failed(program))
      return fail(pair.reference.name);
    choice.program = std::move(*program);
    choice.interpreter =
        std::make_unique<Interpreter>(*choice.program.module, reference.weights.get());
    choices.push_back(std::move(choice));
  }
  auto compiledProgram = compiled.cut->extract(pair.compiled, wanted);
  auto referenceProgram = reference.cut->extract(pair.reference, expected);
  if (failed(compiledProgram) || failed(referenceProgram))
    return fail(pair.compiled.name);
  MOERT_ASSIGN_OR_RETURN(auto code, CompiledSegment::create(*compiledProgram->module, compiler));
  Interpreter interpreter(*referenceProgram->module, reference.weights.get());
  std::unique_ptr<CompiledSegment> other;
  if (otherCompiler) {
    MOERT_ASSIGN_OR_RETURN(other,
                           CompiledSegment::create(*referenceProgram->module, *otherCompiler));
  }
  auto runReference = [&](ArrayRef<ReferenceValue> given) {
    return other ? other->run(given) : interpret(interpreter, given);
  };

  Pools pools;
  for (auto [i, argument] : llvm::enumerate(session->getEntry().getArguments())) {
    const ReferenceValue &sized = arguments.front()[i];
    if (auto cache = dyn_cast<mlir::moec::moe::CacheType>(argument.getType()))
      pools.byArgument[i] = *ReferenceCache::create(cache, sized.getCache().getBlocks());
    if (auto state = dyn_cast<mlir::moec::moe::StateType>(argument.getType()))
      pools.byArgument[i] = *ReferenceState::create(state, sized.getState().slots.getDimSize(0));
  }
  std::vector<Comparison> comparisons;
  for (Value value : wanted)
    comparisons.push_back(makeComparison(pair.compiled, value));
  std::vector<SmallVector<bool>> depends; // by value, by choice
  for (Value value : expected) {
    depends.emplace_back();
    for (const Choice &choice : choices)
      depends.back().push_back(reference.cut->dependsOn(pair.reference, value, choice.reference));
  }

  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    MOERT_ASSIGN_OR_RETURN(auto interpreted,
                           runReference(collect(*referenceProgram, step, pools)));
    MOERT_ASSIGN_OR_RETURN(auto computed, code->run(collect(*compiledProgram, step, pools)));
    std::vector<std::vector<char>> otherwise; // by choice
    for (Choice &choice : choices) {
      std::vector<char> rows, wrong;
      for (std::size_t place : choice.results)
        if (!interpreted[place].getScalarType().isReal())
          markDifferentRows(computed[place], interpreted[place], rows);
      if (llvm::is_contained(rows, true)) {
        SmallVector<ReferenceValue> given = collect(choice.program, step, pools);
        for (auto [value, argument] : llvm::zip_equal(choice.program.arguments, given))
          if (auto place = places.find(value); place != places.end())
            argument = computed[place->second];
        MOERT_ASSIGN_OR_RETURN(auto chosen, interpret(*choice.interpreter, given));
        for (auto [place, result] : llvm::zip_equal(choice.results, chosen))
          if (!result.getScalarType().isReal())
            markDifferentRows(computed[place], result, wrong);
      }
      for (std::size_t row = 0; row < std::min(rows.size(), wrong.size()); ++row)
        rows[row] = rows[row] && !wrong[row];
      otherwise.push_back(std::move(rows));
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SmallVector<bool> skipped;
      for (std::size_t c = 0; c < choices.size(); ++c)
        if (depends[i][c] && interpreted[i].getRank() > 0 &&
            interpreted[i].getDimSize(0) == static_cast<int64_t>(otherwise[c].size())) {
          skipped.resize(otherwise[c].size(), false);
          for (std::size_t row = 0; row < skipped.size(); ++row)
            skipped[row] = skipped[row] || otherwise[c][row];
        }
      comparisons[i].add(computed[i], interpreted[i], skipped);
    }
    if (onStep)
      onStep(step, computed, interpreted);
  }
  return comparisons;
}

// The numbers as a tensor like `like`.
static Verifier::ReferenceTensor makeTensor(const Verifier::ReferenceTensor &like,
                                            ArrayRef<double> numbers) {
  if (like.getScalarType().isReal())
    return *Verifier::ReferenceTensor::createFrom(like.getElementType(), like.getShape(), numbers);
  auto integers = llvm::map_to_vector(numbers, [](double x) { return static_cast<int64_t>(x); });
  return *Verifier::ReferenceTensor::createFrom(like.getElementType(), like.getShape(),
                                                ArrayRef<int64_t>(integers));
}

//===------------------------------------------------------------------------------------------===//
// Segments
//===------------------------------------------------------------------------------------------===//

SmallVector<std::optional<std::int64_t>> numberResults(const Segment &segment) {
  SmallVector<std::optional<std::int64_t>> numbers(segment.results.size());
  auto hasRows = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank() >= 2; };
  std::optional<std::size_t> stream;
  for (auto [i, value] : llvm::enumerate(segment.results))
    if (hasRows(value) && isa<FloatType>(getElementTypeOrSelf(value)))
      stream = i;
  std::int64_t others = 0;
  for (auto [i, value] : llvm::enumerate(segment.results))
    if (i == stream)
      numbers[i] = 0;
    else if (hasRows(value))
      numbers[i] = ++others;
  return numbers;
}

std::optional<std::vector<double>> Verifier::takeFromFile(std::int64_t layer, std::int64_t number,
                                                          std::size_t step,
                                                          std::size_t width) const {
  std::vector<double> taken;
  for (const Part &part : schedule.steps[step]) {
    if (file.empty())
      return std::nullopt;
    auto found = file[part.sequence].layers.find({layer, number});
    if (found == file[part.sequence].layers.end() || found->second.width != width)
      return std::nullopt;
    for (std::size_t token = part.begin; token < part.begin + part.count; ++token) {
      const double *row = found->second.row(token);
      taken.insert(taken.end(), row, row + width);
    }
  }
  return taken;
}

namespace {

// A result of a segment and what a file says of it.
struct FromFile {
  std::size_t result;
  std::int64_t number;
  Comparison compiled, interpreter; // with the file
  bool isCompared = true, isInFile = false;
};

} // namespace

Result<SegmentOutcome> Verifier::verifySegment(std::size_t index) {
  Pair pair{compiled.segments()[index], reference.segments()[index]};
  SegmentOutcome outcome;
  outcome.name = pair.compiled.name;
  outcome.layer = pair.compiled.layer;
  std::int64_t layer = pair.compiled.layer.value_or(-1);
  bool isLayer = pair.compiled.layer || pair.compiled.name == "embedding";
  std::vector<FromFile> fromFile;
  double unit = 0; // of the residual stream's type
  for (auto [r, number] : llvm::enumerate(numberResults(pair.compiled))) {
    if (!number || !isLayer)
      continue;
    FromFile each{r, *number, makeComparison(pair.compiled, pair.compiled.results[r]), {}};
    if (Type type = getElementTypeOrSelf(pair.compiled.results[r]); *number == 0)
      unit = type.isBF16() ? tolerances.bf16 : type.isF16() ? tolerances.f16 : 0;
    fromFile.push_back(std::move(each));
  }
  for (FromFile &each : fromFile) {
    // The inputs from the file are rounded, and so is the result.
    double tolerance = each.compiled.tolerance;
    each.compiled.tolerance = std::sqrt(tolerance * tolerance + 2 * unit * unit);
    // The file does not say which experts were chosen.
    each.compiled.share = unit > 0 && !pair.compiled.choices.empty() ? 0.9 : 1;
    // What is chosen of what is rounded to 16 bits may be something else.
    each.isCompared = unit == 0 || !each.compiled.wantsIntegers;
    each.interpreter = each.compiled;
  }
  for (std::size_t r = 0; r < pair.reference.results.size(); ++r)
    values[{index, r}].resize(schedule.steps.size());
  auto onStep = [&](std::size_t step, ArrayRef<ReferenceTensor> computed,
                    ArrayRef<ReferenceTensor> interpreted) {
    for (std::size_t r = 0; r < pair.reference.results.size(); ++r)
      values[{index, r}][step] = interpreted[r];
    for (FromFile &each : fromFile) {
      const ReferenceTensor &given = interpreted[each.result];
      if (given.getDimSize(0) == 0)
        continue;
      auto rows = static_cast<std::size_t>(given.getDimSize(0)),
           width = static_cast<std::size_t>(given.getSize()) / rows;
      std::optional<std::vector<double>> theirs = takeFromFile(layer, each.number, step, width);
      if (!theirs || theirs->size() != rows * width)
        continue;
      each.isInFile = true;
      std::vector<double> a = toNumbers(computed[each.result]), b = toNumbers(given);
      for (std::size_t row = 0; row < rows; ++row) {
        ArrayRef<double> wanted = ArrayRef(*theirs).slice(row * width, width);
        each.compiled.addRow(ArrayRef(a).slice(row * width, width), wanted);
        each.interpreter.addRow(ArrayRef(b).slice(row * width, width), wanted);
      }
      values[{index, each.result}][step] = makeTensor(given, *theirs);
    }
  };
  MOERT_ASSIGN_OR_RETURN(outcome.withInterpreter, compareValues(pair, pair.compiled.results,
                                                                pair.reference.results, onStep));
  for (FromFile &each : fromFile)
    if (each.isInFile && each.isCompared) {
      outcome.withFile.push_back(std::move(each.compiled));
      outcome.interpreterWithFile.push_back(std::move(each.interpreter));
    }
  auto agrees = [](const Comparison &each) { return each.agrees(); };
  if (!llvm::all_of(outcome.withInterpreter, agrees))
    MOERT_RETURN_IF_ERROR(findFirstOp(pair, outcome));
  else if (!outcome.agrees() && !llvm::all_of(outcome.interpreterWithFile, agrees))
    outcome.note = "Interpreter and compiled code agree, the file does not: the program is another "
                   "one than the file's (its import, its "
                   "configuration, its weights), or the file is wrong.";
  return outcome;
}

Status Verifier::findFirstOp(const Pair &pair, SegmentOutcome &outcome) {
  SmallVector<Value> left = compiled.cut->getComputedValues(pair.compiled),
                     right = reference.cut->getComputedValues(pair.reference);
  auto isSame = [](Value a, Value b) {
    return a.getType() == b.getType() &&
           a.getDefiningOp()->getName() == b.getDefiningOp()->getName();
  };
  bool areAlike = left.size() == right.size();
  for (std::size_t i = 0; areAlike && i < left.size(); ++i)
    areAlike = isSame(left[i], right[i]);
  if (!areAlike) {
    outcome.note = "The two programs have other ops in it, so that no op can be named.";
    return {};
  }
  MOERT_ASSIGN_OR_RETURN(auto all, compareValues(pair, left, right, {}));
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!all[i].agrees()) {
      outcome.firstOp = all[i];
      return {};
    }
  // Ops whose every value is wanted are compiled by themselves: the fault is in how they are
  // compiled together.
  for (std::size_t i = 0; i < left.size(); ++i) {
    Pair prefix{compiled.cut->getPrefix(pair.compiled, left[i].getDefiningOp()),
                reference.cut->getPrefix(pair.reference, right[i].getDefiningOp())};
    MOERT_ASSIGN_OR_RETURN(auto one, compareValues(prefix, left[i], right[i], {}));
    if (one.front().agrees())
      continue;
    outcome.firstOp = one.front();
    outcome.note = "Compiled with every value between its ops as a result the layer agrees; it "
                   "differs when this op is compiled "
                   "together with those before it: a fault of a pass that fuses or merges ops (try "
                   "moec compile --disable-pass).";
    return {};
  }
  outcome.note = "Each op agrees when the layer is compiled up to it.";
  return {};
}

const Verifier::ReferenceTensor &Verifier::logits(std::size_t step) const {
  Value value = func::FuncOp(reference.step).getBody().front().getTerminator()->getOperand(0);
  return values.at(keys.lookup(value))[step];
}

Result<std::vector<std::vector<double>>> Verifier::runFreshProgram() {
  Segment whole = compiled.cut->getWhole();
  auto program = compiled.cut->extract(whole, whole.results.front());
  if (failed(program))
    return fail("the bundle's program");
  MOERT_ASSIGN_OR_RETURN(auto code, CompiledSegment::create(*program->module, compiler));
  std::vector<std::vector<double>> results;
  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    MOERT_ASSIGN_OR_RETURN(auto computed, code->run(collect(*program, step, Pools())));
    results.push_back(toNumbers(computed.front()));
  }
  return results;
}

} // namespace moec::verify
