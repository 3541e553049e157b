// moec verify: a second opinion on compiled code.

#include "tools/moec/Loading.h"
#include "tools/moec/Report.h"
#include "tools/moec/verify/Verifier.h"

#include "moec/InitDialects.h"

#include "runtime/session/Session.h"

#include <cstdlib>
#include <filesystem>

namespace moec {

using namespace verify;
using moert::ErrorCode;
using moert::Result;
using moert::Status;

namespace {

// Removed with everything in it.
class TemporaryFolder {
public:
  TemporaryFolder() {
    const char *base = std::getenv("TMPDIR");
    std::string pattern = moert::joinPath(base && *base ? base : "/tmp", "moec-verify-XXXXXX");
    if (::mkdtemp(pattern.data()))
      folder = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!folder.empty())
      std::filesystem::remove_all(folder, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  const std::string &path() const { return folder; } // empty: it could not be made

private:
  std::string folder;
};

class VerifyRun {
public:
  explicit VerifyRun(const VerifyCommand &command)
      : command(command), context(makeRegistry()), diagnostics(context),
        level(command.level == "full"      ? Level::Full
              : command.level == "samples" ? Level::Samples
                                           : Level::Smoke) {
    context.printOpOnDiagnostic(false);
  }

  Result<Outcome> run();

private:
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    mlir::moec::registerAllDialects(registry);
    mlir::moec::moe::registerReferenceModels(registry);
    return registry;
  }
  Status openPrograms();
  Status readFile();
  Status makeTokens();
  Status runBundle();
  // What `--with` compiles for.
  Result<Target> otherTarget() const;
  // Logits by step with the file's, or else the reference's.
  Comparison compareLogits(const Verifier &verifier,
                           const std::vector<std::vector<double>> &actual);

  const VerifyCommand &command;
  mlir::MLIRContext context;
  DiagnosticStatus diagnostics;
  Level level;
  std::shared_ptr<const moert::Bundle> bundle;
  Program compiled, reference;
  Target target;
  std::vector<AgainstSequence> file;
  Schedule schedule;
  bool allLogits = true;
  std::vector<std::vector<double>> bundleLogits; // of the bundle's own code, by step
  Outcome outcome;
};

Status VerifyRun::openPrograms() {
  const moec::bundle::LanguageModel &language = bundle->manifest().language_model();
  if (language.reference().empty())
    return {ErrorCode::Unsupported,
            "the bundle holds no program for the interpreter, which verifying needs",
            bundle->path(), "compile the model again from its checkpoint or ONNX file"};
  MOERT_ASSIGN_OR_RETURN(std::string text, bundle->readFile(language.reference()));
  std::string place = bundle->path() + "/" + language.reference();
  MOERT_ASSIGN_OR_RETURN(compiled, openProgram(text, place, *bundle, "", context, diagnostics));
  if (!command.referenceProgram.empty()) {
    place = command.referenceProgram;
    MOERT_ASSIGN_OR_RETURN(moert::File source, moert::File::open(place));
    MOERT_ASSIGN_OR_RETURN(text, source.readAll(std::uint64_t(1) << 30));
  }
  MOERT_ASSIGN_OR_RETURN(
      reference, openProgram(text, place, *bundle, command.referenceWeights, context, diagnostics));
  return checkAlike(compiled, reference, place);
}

Status VerifyRun::readFile() {
  if (command.against.empty())
    return {};
  std::int64_t layers = 0;
  for (const mlir::moec::Segment &segment : compiled.segments())
    layers = std::max(layers, segment.layer.value_or(-1) + 1);
  MOERT_ASSIGN_OR_RETURN(
      file,
      readAgainstFile(command.against, bundle->manifest().language_model().vocabulary(), layers));
  // What the program has to offer for the file's tensors.
  moert::Problems problems(command.against);
  for (const AgainstSequence &sequence : file)
    for (const auto &[place, rows] : sequence.layers) {
      auto [layer, number] = place;
      const mlir::moec::Segment *found = nullptr;
      for (const mlir::moec::Segment &segment : compiled.segments())
        if (layer < 0 ? segment.name == "embedding" : segment.layer == layer)
          found = &segment;
      if (!found) {
        problems.add(rows.name + ": the bundle's program has no such layer; it has " +
                     std::to_string(layers));
        continue;
      }
      auto numbers = numberResults(*found);
      auto *value = llvm::find(numbers, number);
      if (value == numbers.end()) {
        problems.add(rows.name + ": " + found->name + " of the bundle's program gives " +
                     std::to_string(
                         llvm::count_if(numbers, [](auto each) { return each.value_or(0) > 0; })) +
                     " values to later layers beside its residual stream");
        continue;
      }
      auto type =
          llvm::cast<mlir::RankedTensorType>(found->results[value - numbers.begin()].getType());
      if (type.getElementType().isInteger() != rows.isInteger)
        problems.add(rows.name + ": expected " +
                     (rows.isInteger ? "floating-point numbers" : "i32 or i64"));
      auto sizes = type.getShape().drop_front();
      std::int64_t width =
          mlir::ShapedType::isDynamicShape(sizes) ? 0 : mlir::ShapedType::getNumElements(sizes);
      if (width != static_cast<std::int64_t>(rows.width))
        problems.add(rows.name + ": rows of " + std::to_string(rows.width) +
                     " numbers, but the program's value after " + found->name + " has rows of " +
                     std::to_string(width));
    }
  return problems.toStatus(ErrorCode::InvalidData,
                           "the file must be of the model that the bundle was compiled from");
}

Status VerifyRun::makeTokens() {
  const moec::bundle::LanguageModel &language = bundle->manifest().language_model();
  std::vector<std::vector<std::int32_t>> sequences;
  if (file.empty()) {
    std::size_t longest = command.tokens            ? command.tokens
                          : level == Level::Smoke   ? 12
                          : level == Level::Samples ? 48
                                                    : 80;
    if (language.maximum_tokens() != 0)
      longest = std::min<std::size_t>(longest, language.maximum_tokens());
    sequences = makeSequences(level, language.vocabulary(), longest, command.seed);
  } else {
    if (level == Level::Smoke) { // the shortest one
      std::size_t shortest = 0;
      for (std::size_t i = 0; i < file.size(); ++i)
        if (file[i].tokens.size() < file[shortest].tokens.size())
          shortest = i;
      file = {file[shortest]};
    }
    for (AgainstSequence &sequence : file) {
      // Causal models: what the file says of the first tokens holds without the others.
      if (command.tokens && sequence.tokens.size() > command.tokens)
        sequence.tokens.resize(command.tokens);
      sequences.push_back(sequence.tokens);
    }
  }
  schedule = makeSchedule(level, std::move(sequences), command.seed);
  // Above this many numbers only each part's last row.
  allLogits = schedule.tokens() * language.vocabulary() <= (std::uint64_t(1) << 26);
  return {};
}

// The bundle's own code, from end to end.
Status VerifyRun::runBundle() {
  MOERT_ASSIGN_OR_RETURN(auto model,
                         loadModel(bundle, command.threads, command.variant, command.device));
  target.name = model->variant();
  target.batchInvariant = bundle->manifest().language_model().batch_invariant();
  target.threads = command.threads;
  target.device = command.device;
  for (const moec::bundle::Variant &variant : bundle->manifest().variants())
    if (variant.target() == model->variant())
      target.ptxOnly = variant.has_cuda() && variant.cuda().cubin().empty();
  MOERT_ASSIGN_OR_RETURN(moert::Session session, moert::Session::create(model));
  std::vector<moert::Sequence> sequences;
  for (std::size_t i = 0; i < schedule.sequences.size(); ++i) {
    MOERT_ASSIGN_OR_RETURN(moert::Sequence sequence, session.createSequence());
    sequences.push_back(sequence);
  }
  for (const Step &step : schedule.steps) {
    std::vector<moert::StepPart> parts;
    for (const Part &part : step)
      parts.push_back({sequences[part.sequence],
                       std::span(schedule.sequences[part.sequence]).subspan(part.begin, part.count),
                       allLogits ? moert::LogitRows::All : moert::LogitRows::Last});
    MOERT_ASSIGN_OR_RETURN(moert::Logits logits, session.step(parts));
    bundleLogits.emplace_back(logits.data, logits.data + logits.rows * logits.vocabulary);
  }
  return {};
}

Result<Target> VerifyRun::otherTarget() const {
  Target other = target;
  other.device = command.with;
  if (command.with == "cpu") {
    other.name = "cpu";
    return other;
  }
  if (!command.with.starts_with("cuda"))
    return Status(ErrorCode::InvalidArgument,
                  "expected cpu, cuda or cuda:N, found " + moert::inQuotes(command.with), "--with");
  for (const moec::bundle::Variant &variant : bundle->manifest().variants())
    if (variant.has_cuda()) {
      other.name = variant.target();
      other.ptxOnly = variant.cuda().cubin().empty();
      return other;
    }
  return Status(ErrorCode::Unsupported,
                "the bundle has no code for GPUs, and so nothing says which kind --with " +
                    command.with + " is",
                bundle->path(), "compile it for the GPU, too: --target cuda:sm_90a,cpu");
}

Comparison VerifyRun::compareLogits(const Verifier &verifier,
                                    const std::vector<std::vector<double>> &actual) {
  mlir::moec::Segment whole = compiled.cut->getWhole();
  Comparison logits = verifier.makeComparison(whole, whole.results.front());
  bool isNarrow = logits.tolerance > 2 * outcome.tolerances.f32;
  logits.tolerance = std::sqrt(logits.tolerance * logits.tolerance +
                               outcome.tolerances.logits * outcome.tolerances.logits);
  // A token that chooses another expert within rounding goes its own way from there on, and later
  // tokens look at it.
  logits.share = isNarrow && !whole.choices.empty() ? 0.5 : 1;
  std::size_t width = bundle->manifest().language_model().vocabulary();
  for (std::size_t step = 0; step < schedule.steps.size(); ++step) {
    std::vector<double> expected = toNumbers(verifier.logits(step));
    if (expected.size() != actual[step].size()) {
      logits.wrongShape = "expected " + std::to_string(expected.size()) + " logits, found " +
                          std::to_string(actual[step].size());
      return logits;
    }
    std::size_t row = 0;
    for (const Part &part : schedule.steps[step])
      for (std::size_t token = allLogits ? part.begin : part.begin + part.count - 1;
           token < part.begin + part.count; ++token, ++row) {
        llvm::ArrayRef<double> theirs = llvm::ArrayRef(expected).slice(row * width, width);
        if (!file.empty() && file[part.sequence].logits) {
          const double *given = file[part.sequence].logits->row(token);
          if (!given)
            continue;
          theirs = llvm::ArrayRef(given, width);
        }
        logits.addRow(llvm::ArrayRef(actual[step]).slice(row * width, width), theirs);
      }
  }
  return logits;
}

Result<Outcome> VerifyRun::run() {
  MOERT_ASSIGN_OR_RETURN(bundle, openBundle(command.bundle, command.weights));
  MOERT_RETURN_IF_ERROR(requireLanguageModel(*bundle));
  MOERT_RETURN_IF_ERROR(openPrograms());
  MOERT_RETURN_IF_ERROR(readFile());
  MOERT_RETURN_IF_ERROR(makeTokens());
  MOERT_RETURN_IF_ERROR(runBundle());
  outcome.bundle = command.bundle;
  outcome.model = bundle->manifest().model();
  outcome.variant = target.name;
  outcome.reference = !command.against.empty() ? command.against
                      : !command.with.empty()  ? "code compiled for " + command.with
                                               : "the reference interpreter";
  outcome.level = command.level;
  outcome.seed = command.seed;
  outcome.sequences = schedule.sequences.size();
  outcome.tokens = schedule.tokens();
  outcome.steps = schedule.steps.size();
  outcome.tolerances = {command.toleranceF32, command.toleranceLogits, command.toleranceBF16,
                        command.toleranceF16};

  TemporaryFolder folder;
  if (folder.path().empty())
    return Status(ErrorCode::InputOutput, "no temporary folder can be made", "TMPDIR",
                  "name a folder that can be written to");
  SegmentCompiler compiler(target, folder.path(), diagnostics);
  Target other;
  std::optional<SegmentCompiler> otherCompiler;
  if (!command.with.empty()) {
    MOERT_ASSIGN_OR_RETURN(other, otherTarget());
    std::string place = moert::joinPath(folder.path(), "other");
    std::error_code error;
    if (!std::filesystem::create_directory(place, error))
      return Status(ErrorCode::InputOutput, error.message(), place);
    otherCompiler.emplace(other, place, diagnostics);
    outcome.second = "code for " + command.with;
  }
  Verifier verifier(compiled, reference, schedule, file, outcome.tolerances, compiler,
                    otherCompiler ? &*otherCompiler : nullptr, allLogits, diagnostics);
  MOERT_RETURN_IF_ERROR(verifier.prepare());
  Progress progress("verifying");
  std::size_t count = compiled.segments().size();
  for (std::size_t i = 0; i < count; ++i) {
    progress.update(i, count);
    MOERT_ASSIGN_OR_RETURN(SegmentOutcome segment, verifier.verifySegment(i));
    outcome.segments.push_back(std::move(segment));
  }
  progress.finish();
  outcome.logits = compareLogits(verifier, bundleLogits);
  if (!outcome.firstDifferent() && !outcome.logits.agrees()) {
    MOERT_ASSIGN_OR_RETURN(auto fresh, verifier.runFreshProgram());
    outcome.logitsNote = compareLogits(verifier, fresh).agrees()
                             ? "The program compiled afresh agrees: the bundle's code was made "
                               "from another program or by another version of the "
                               "compiler. Compile the model again."
                             : "The program compiled afresh differs, too: the fault is in what is "
                               "compiled across layers, or rounding piles up "
                               "over the layers.";
  }
  return std::move(outcome);
}

} // namespace

ExitCode runVerify(const VerifyCommand &command) {
  VerifyRun run(command);
  MOEC_ASSIGN_OR_FAIL(Outcome outcome, run.run());
  if (!command.report.empty())
    MOEC_FAIL_IF_ERROR(moert::writeFileAtomic(command.report, outcome.toJson().dump(2) + "\n"));
  if (command.json)
    printJson(outcome.toJson());
  else
    printNow(outcome.toTable());
  return outcome.agrees() ? ExitCode::Success : ExitCode::Input;
}

} // namespace moec
