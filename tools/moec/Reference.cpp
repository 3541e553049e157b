#include "tools/moec/Reference.h"

#include "tools/moec/DiagnosticStatus.h"

#include "moec/Dialect/MoE/Reference/ReferenceSession.h"
#include "moec/Dialect/MoE/Reference/Sampling.h"
#include "moec/InitDialects.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <chrono>

using namespace mlir;
using mlir::moec::moe::ReferenceSession;
using mlir::moec::moe::WeightSource;
using moert::ErrorCode;
using moert::GenerateOptions;
using moert::GenerateResult;
using moert::Result;
using moert::Status;

namespace moec {

namespace {

// Weights as the bundle knows them: re-rooted by --weights, or copied into it. redirect() rewrites
// references to "#INDEX".
class BundleWeights : public WeightSource {
public:
  explicit BundleWeights(const moert::Bundle &bundle) : bundle(bundle) {
    const auto &weights = bundle.manifest().weights();
    for (int i = 0; i < weights.size(); ++i)
      indices[weights[i].name()].push_back(i);
  }

  void redirect(ModuleOp module) {
    module.walk([&](mlir::moec::moe::WeightOp op) {
      llvm::SmallVector<mlir::Attribute> refs;
      for (auto [name, ref] : op.getParts())
        refs.push_back(redirect(name, ref));
      op.setRefAttr(llvm::cast<mlir::moec::moe::WeightRefAttr>(refs.front()));
      if (op.getMoreRefs())
        op.setMoreRefsAttr(
            mlir::ArrayAttr::get(op.getContext(), llvm::ArrayRef(refs).drop_front()));
    });
  }

  // Weights that no kernel reads are not in the manifest: they stay where the model was.
  void setFolder(std::unique_ptr<WeightSource> source) { folder = std::move(source); }

  LogicalResult read(StringRef file, uint64_t offset, MutableArrayRef<std::byte> bytes,
                     std::string &problem) override {
    StringRef name = file;
    unsigned index;
    if (!name.consume_front("#") || name.getAsInteger(10, index)) {
      if (folder)
        return folder->read(file, offset, bytes, problem);
      problem = "the bundle does not hold this weight, and its model's folder cannot be opened";
      return failure();
    }
    Status status = bundle.readWeight(index, {bytes.data(), bytes.size()});
    if (status.isOk())
      return success();
    problem = status.toString();
    return failure();
  }

private:
  mlir::moec::moe::WeightRefAttr redirect(StringRef name, mlir::moec::moe::WeightRefAttr ref) {
    for (int index : indices.lookup(name))
      if (bundle.manifest().weights(index).bytes() == ref.getBytes())
        return mlir::moec::moe::WeightRefAttr::get(ref.getContext(), "#" + std::to_string(index), 0,
                                                   ref.getBytes());
    return ref;
  }

  const moert::Bundle &bundle;
  llvm::StringMap<SmallVector<int>> indices;
  std::unique_ptr<WeightSource> folder;
};

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace

Result<GenerateResult> generateReference(const moert::Bundle &bundle,
                                         std::span<const std::int32_t> prompt,
                                         const GenerateOptions &options) {
  const ::moec::bundle::LanguageModel &language = bundle.manifest().language_model();
  if (language.reference().empty())
    return Status(ErrorCode::Unsupported, "the bundle holds no program for the interpreter",
                  bundle.path(), "compile the model again from its checkpoint or ONNX file");
  MOERT_ASSIGN_OR_RETURN(std::string text, bundle.readFile(language.reference()));
  MOERT_ASSIGN_OR_RETURN(moert::Sampler sampler, moert::Sampler::create(options.sampling));

  DialectRegistry registry;
  mlir::moec::registerAllDialects(registry);
  mlir::moec::moe::registerReferenceModels(registry);
  MLIRContext context(registry);
  DiagnosticStatus diagnostics(context);
  auto fail = [&] { return diagnostics.take(bundle.path() + "/" + language.reference(), "the interpreter failed"); };
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return fail();
  BundleWeights weights(bundle);
  weights.redirect(*module);
  if (auto root = (*module)->getAttrOfType<StringAttr>("moe.weight_root")) {
    std::string problem;
    auto folder = mlir::moec::moe::openWeightFolder(root.getValue(), /*followLinks=*/true, problem);
    if (succeeded(folder))
      weights.setFolder(std::move(*folder));
  }
  auto session = ReferenceSession::create(*module, &weights);
  if (failed(session))
    return fail();
  int64_t sequence = (*session)->createSequence();

  GenerateResult result;
  result.promptTokens = prompt.size();
  std::vector<float> last; // the newest row of logits
  auto step = [&](std::span<const std::int32_t> tokens, bool all) -> Status {
    ReferenceSession::Part part{sequence, ArrayRef(tokens.data(), tokens.size()),
                                all ? ReferenceSession::LogitRows::All
                                    : ReferenceSession::LogitRows::Last};
    auto logits = (*session)->step(part);
    if (failed(logits))
      return fail();
    std::vector<float> values = logits->getFloats();
    if (all)
      result.promptLogits.insert(result.promptLogits.end(), values.begin(), values.end());
    last.assign(values.end() - language.vocabulary(), values.end());
    return {};
  };

  Clock::time_point begin = Clock::now();
  std::size_t chunk = options.chunk == 0 ? prompt.size() : options.chunk;
  for (std::size_t done = 0; done < prompt.size();) {
    std::size_t count = std::min(chunk, prompt.size() - done);
    MOERT_RETURN_IF_ERROR(step(prompt.subspan(done, count), options.promptLogits));
    done += count;
    if (options.onPrompt)
      options.onPrompt(done, prompt.size());
  }
  result.timeToFirstToken = secondsSince(begin);
  Clock::time_point first = Clock::now();
  const auto &ends = language.eos_tokens();
  while (result.ids.size() < options.maximumTokens) {
    moert::TokenChoice choice = sampler.next(0);
    std::int32_t token = mlir::moec::moe::sampleToken(
        last, {choice.temperature, choice.topK, choice.topP, choice.random});
    if (!options.ignoreEos && llvm::is_contained(ends, static_cast<std::uint32_t>(token))) {
      result.reason = moert::StopReason::EndOfText;
      break;
    }
    result.ids.push_back(token);
    if (options.onToken && !options.onToken(token)) {
      result.reason = moert::StopReason::Caller;
      break;
    }
    if (result.ids.size() < options.maximumTokens)
      MOERT_RETURN_IF_ERROR(step({&token, 1}, false));
  }
  if (result.ids.size() > 1)
    result.timePerToken = secondsSince(first) / double(result.ids.size() - 1);
  return result;
}

} // namespace moec
