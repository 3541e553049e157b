// moec-interpret: computes functions of an .mlir file with the reference interpreter, for tests and
// for looking inside.

#include "tools/moec-interpret/Printing.h"

#include "moec/Dialect/MoE/Reference/Compare.h"
#include "moec/Dialect/MoE/Reference/ReferenceSession.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::moec::moe;
namespace cl = llvm::cl;

static cl::OptionCategory category("moec-interpret options");
static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<file.mlir>"), cl::init("-"),
                                      cl::cat(category));
static cl::opt<std::string> entry("entry", cl::desc("function to run"), cl::init("main"),
                                  cl::cat(category));
static cl::opt<std::string> weightFolder("weights",
                                         cl::desc("folder of the weight files (default: the "
                                                  "module's moe.weight_root)"),
                                         cl::cat(category));
static cl::list<std::string> inputs("input", cl::desc("N=x.npy: argument N of the function"),
                                    cl::cat(category));
static cl::list<std::string> outputs("output",
                                     cl::desc("N=x.npy: where result N goes, instead of being "
                                              "printed"),
                                     cl::cat(category));
static cl::opt<int64_t> cacheBlocks("cache-blocks", cl::desc("blocks of each cache argument"),
                                    cl::init(16), cl::cat(category));
static cl::opt<int64_t> stateSlots("state-slots", cl::desc("slots of each state argument"),
                                   cl::init(4), cl::cat(category));
static cl::opt<bool> check("check",
                           cl::desc("run every function X without arguments but caches and "
                                    "states for which there is a function X_expected, and compare their results"),
                           cl::cat(category));
static cl::opt<double> absoluteTolerance("absolute-tolerance", cl::init(0), cl::cat(category),
                                         cl::desc("allowed difference"));
static cl::opt<double> relativeTolerance("relative-tolerance", cl::init(0), cl::cat(category),
                                         cl::desc("allowed difference as a part of what is "
                                                  "expected"));
static cl::opt<bool> verifyDiagnostics("verify-diagnostics",
                                       cl::desc("run every function without arguments but caches "
                                                "and states and check that it fails as the file's "
                                                "expected-error comments say"),
                                       cl::cat(category));
static cl::opt<std::string> ids("ids",
                                cl::desc("token ids, separated by commas: run the module as a "
                                         "language model"),
                                cl::cat(category));
static cl::opt<int64_t> chunk("chunk", cl::desc("tokens a step (0: all at once)"), cl::init(0),
                              cl::cat(category));
static cl::opt<int64_t> generate("generate", cl::desc("print that many greedily chosen tokens"),
                                 cl::init(0), cl::cat(category));
static cl::opt<std::string> logitsFile("logits", cl::desc("where the prompt's logits go (.npy)"),
                                       cl::cat(category));

static int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

static int fail(const moert::Status &status) {
  llvm::errs() << status.toString() << "\n";
  return 1;
}

/// Splits "3=x.npy".
static FailureOr<std::pair<unsigned, std::string>> parseAssignment(StringRef text) {
  auto [number, path] = text.split('=');
  unsigned index;
  if (path.empty() || number.getAsInteger(10, index)) {
    fail("expected NUMBER=FILE, got '" + text + "'");
    return failure();
  }
  return std::pair(index, path.str());
}

/// New caches and states for the arguments that are such, files for those that are named.
static FailureOr<SmallVector<ReferenceValue>>
makeArguments(func::FuncOp function, const std::map<unsigned, std::string> &files) {
  SmallVector<ReferenceValue> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (auto cacheType = dyn_cast<CacheType>(type)) {
      FailureOr<std::shared_ptr<ReferenceCache>> cache =
          ReferenceCache::create(cacheType, cacheBlocks);
      if (failed(cache))
        return function.emitError() << "a cache of " << cacheBlocks << " blocks is too large";
      arguments.push_back(std::move(*cache));
      continue;
    }
    if (auto stateType = dyn_cast<StateType>(type)) {
      FailureOr<std::shared_ptr<ReferenceState>> state =
          ReferenceState::create(stateType, stateSlots);
      if (failed(state))
        return function.emitError() << "a state of " << stateSlots << " slots is too large";
      arguments.push_back(std::move(*state));
      continue;
    }
    auto tensorType = dyn_cast<RankedTensorType>(type);
    auto file = files.find(i);
    if (!tensorType || file == files.end())
      return function.emitError() << "argument " << i << " of '" << function.getName()
                                  << "' needs --input=" << i << "=FILE.npy";
    moert::Result<ReferenceTensor> tensor = ::moec::readTensor(file->second, tensorType);
    if (!tensor.isOk()) {
      fail(tensor.status());
      return failure();
    }
    arguments.push_back(*tensor);
  }
  return arguments;
}

static FailureOr<SmallVector<ReferenceValue>> runFunction(Interpreter &interpreter,
                                                          func::FuncOp function) {
  FailureOr<SmallVector<ReferenceValue>> arguments = makeArguments(function, {});
  if (failed(arguments))
    return failure();
  return interpreter.call(function.getName(), *arguments);
}

static int runEntry(Interpreter &interpreter, func::FuncOp function) {
  std::map<unsigned, std::string> inputFiles, outputFiles;
  for (auto [texts, files] : {std::pair(&inputs, &inputFiles), {&outputs, &outputFiles}})
    for (const std::string &text : *texts) {
      FailureOr<std::pair<unsigned, std::string>> assignment = parseAssignment(text);
      if (failed(assignment))
        return 2;
      files->insert(*assignment);
    }
  FailureOr<SmallVector<ReferenceValue>> arguments = makeArguments(function, inputFiles);
  if (failed(arguments))
    return 1;
  FailureOr<SmallVector<ReferenceValue>> results = interpreter.call(function.getName(), *arguments);
  if (failed(results))
    return 1;
  for (auto [i, result] : llvm::enumerate(*results)) {
    auto file = outputFiles.find(i);
    if (file == outputFiles.end()) {
      ::moec::printValue(llvm::outs(), "result " + std::to_string(i), result,
                         function.getResultTypes()[i]);
      continue;
    }
    if (!result.isTensor())
      return fail("result " + llvm::Twine(i) + " is no tensor");
    moert::Status status = ::moec::writeTensor(file->second, result.getTensor());
    if (!status.isOk())
      return fail(status);
  }
  return 0;
}

static int runChecks(ModuleOp module, Interpreter &interpreter) {
  Tolerance tolerance{absoluteTolerance, relativeTolerance, false};
  int64_t checks = 0, failures = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    std::string expectedName = function.getName().str() + "_expected";
    auto expectedFunction = SymbolTable(module).lookup<func::FuncOp>(expectedName);
    if (!expectedFunction)
      continue;
    ++checks;
    FailureOr<SmallVector<ReferenceValue>> actual = runFunction(interpreter, function);
    FailureOr<SmallVector<ReferenceValue>> expected = runFunction(interpreter, expectedFunction);
    bool agree = succeeded(actual) && succeeded(expected) && actual->size() == expected->size();
    llvm::outs() << function.getName() << ":";
    for (size_t i = 0; agree && i < actual->size(); ++i) {
      std::string report;
      agree = (*actual)[i].isTensor() && (*expected)[i].isTensor() &&
              succeeded(compareTensors((*actual)[i].getTensor(), (*expected)[i].getTensor(),
                                       tolerance, report));
      llvm::outs() << " " << report;
    }
    llvm::outs() << (agree ? "" : " FAILED") << "\n";
    failures += !agree;
  }
  llvm::outs() << checks << " checks, " << failures << " failures\n";
  return checks == 0 || failures != 0;
}

static int runDiagnostics(ModuleOp module, Interpreter &interpreter,
                          SourceMgrDiagnosticVerifierHandler &handler) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && succeeded(runFunction(interpreter, function)))
      function.emitError() << "'" << function.getName() << "' ran without an error";
  return failed(handler.verify());
}

static int runLanguageModel(ModuleOp module, WeightSource *weights) {
  std::vector<int32_t> prompt;
  for (StringRef text : llvm::split(StringRef(ids), ',')) {
    int32_t id;
    if (text.trim().getAsInteger(10, id))
      return fail("expected token ids separated by commas, got '" + text + "'");
    prompt.push_back(id);
  }
  FailureOr<std::unique_ptr<ReferenceSession>> session = ReferenceSession::create(
      module, weights, entry.getNumOccurrences() ? StringRef(entry) : StringRef());
  if (failed(session))
    return 1;
  if (!logitsFile.empty()) {
    FailureOr<ReferenceTensor> logits = (*session)->computeLogits(prompt, chunk);
    if (failed(logits))
      return 1;
    moert::Status status = ::moec::writeTensor(logitsFile, *logits);
    if (!status.isOk())
      return fail(status);
  }
  if (generate > 0) {
    FailureOr<std::vector<int32_t>> tokens = (*session)->generateGreedily(prompt, generate);
    if (failed(tokens))
      return 1;
    llvm::interleave(*tokens, llvm::outs(), ",");
    llvm::outs() << "\n";
  }
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "computes functions of an .mlir file with the reference "
                              "interpreter\n");
  DialectRegistry registry;
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
              math::MathDialect, MoEDialect, scf::SCFDialect, tensor::TensorDialect>();
  registerReferenceModels(registry);
  MLIRContext context(registry);
  // As mlir-opt does: the notes would have to be expected, too.
  context.printOpOnDiagnostic(!verifyDiagnostics);

  std::string problem;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(inputFile, &problem);
  if (!buffer)
    return fail(problem);
  auto sourceMgr = std::make_shared<llvm::SourceMgr>();
  sourceMgr->AddNewSourceBuffer(std::move(buffer), {});
  std::unique_ptr<SourceMgrDiagnosticHandler> handler;
  if (verifyDiagnostics)
    handler = std::make_unique<SourceMgrDiagnosticVerifierHandler>(*sourceMgr, &context);
  else
    handler = std::make_unique<SourceMgrDiagnosticHandler>(*sourceMgr, &context);

  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sourceMgr, ParserConfig(&context));
  if (!module)
    return 1;
  std::string folder = weightFolder;
  if (auto root = (*module)->getAttrOfType<StringAttr>("moe.weight_root"); root && folder.empty())
    folder = root.str();
  std::unique_ptr<WeightSource> weights;
  if (!folder.empty()) {
    FailureOr<std::unique_ptr<WeightSource>> opened =
        openWeightFolder(folder, /*followLinks=*/true, problem);
    if (failed(opened))
      return fail(problem);
    weights = std::move(*opened);
  }

  Interpreter interpreter(*module, weights.get());
  if (verifyDiagnostics)
    return runDiagnostics(*module, interpreter,
                          static_cast<SourceMgrDiagnosticVerifierHandler &>(*handler));
  if (!ids.empty())
    return runLanguageModel(*module, weights.get());
  if (check)
    return runChecks(*module, interpreter);
  auto function = SymbolTable(*module).lookup<func::FuncOp>(entry);
  if (!function)
    return fail("the file has no function '" + llvm::Twine(entry) + "'");
  return runEntry(interpreter, function);
}
