#include "moec/Conversion/ExportBundle.h"

#include "ManifestProgram.h"
#include "WeightTable.h"

#include "moec/Conversion/CompileKernels.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Version.h"

#include "runtime/base/Sha256.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/session/TiktokenFiles.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::moec;
namespace bundle = ::moec::bundle;

/// Weights of models up to this size are read once while compiling, so that every byte can be
/// verified later. Larger models are compiled from their headers alone.
static constexpr uint64_t digestLimit = uint64_t(8) << 30;

/// Whether generated code may use the instructions of an LLVM feature. The others are of the
/// system, of tuning, or of every x86-64 machine: a bundle does not ask for them.
static bool mattersToCode(StringRef feature) {
  static constexpr llvm::StringLiteral families[] = {
      "sse3",  "ssse3", "sse4", "avx",  "fma", "f16c",   "bmi",     "lzcnt", "popcnt",
      "movbe", "amx",   "gfni", "vaes", "aes", "pclmul", "vpclmul", "adx",   "sha"};
  return llvm::any_of(families, [&](StringRef family) { return feature.starts_with(family); });
}

namespace {

class Exporter {
public:
  Exporter(ArrayRef<BundleVariant> variants, const ExportBundleOptions &options)
      : variants(variants), options(options), first(variants.front().module), loc(first.getLoc()) {}

  LogicalResult run();

private:
  LogicalResult check(const moert::Status &status) {
    if (status.isOk())
      return success();
    return emitError(loc) << status.toString();
  }
  LogicalResult addVariant(const BundleVariant &variant, WeightTable &weights);
  LogicalResult addLanguageModel();
  void addVision(DictionaryAttr attributes, bundle::LanguageModel &model);
  LogicalResult addFile(StringRef path, StringRef content);
  LogicalResult makeFolders(StringRef path);

  ArrayRef<BundleVariant> variants;
  const ExportBundleOptions &options;
  ModuleOp first;
  Location loc;
  bundle::Manifest manifest;
  std::string folder; ///< where the bundle is being written
};

LogicalResult Exporter::makeFolders(StringRef path) {
  SmallString<256> full(folder);
  llvm::sys::path::append(full, llvm::sys::path::parent_path(path));
  if (std::error_code error = llvm::sys::fs::create_directories(full))
    return emitError(loc) << full << ": " << error.message();
  return success();
}

LogicalResult Exporter::addFile(StringRef path, StringRef content) {
  if (failed(makeFolders(path)) ||
      failed(check(moert::writeFileAtomic(moert::joinPath(folder, path.str()), content))))
    return failure();
  bundle::File &file = *manifest.add_files();
  file.set_path(path.str());
  file.set_bytes(content.size());
  moert::Sha256Digest digest = moert::sha256(std::string_view(content));
  file.set_sha256(std::string(reinterpret_cast<const char *>(digest.data()), digest.size()));
  return success();
}

LogicalResult Exporter::addVariant(const BundleVariant &variant, WeightTable &weights) {
  bundle::Variant &result = *manifest.add_variants();
  result.set_target(variant.target.name);
  for (const std::string &feature : variant.target.features)
    if (mattersToCode(feature))
      result.add_cpu_features(feature);
  std::string directory = variant.target.name;
  std::replace_if(
      directory.begin(), directory.end(),
      [](char c) { return !llvm::isAlnum(c) && c != '-' && c != '.'; }, '_');
  result.set_code("code/" + directory + (variant.target.isCUDA() ? "/kernels.ptx" : "/kernels.so"));
  if (variant.target.isCUDA()) {
    bundle::Cuda &cuda = *result.mutable_cuda();
    cuda.set_major(variant.target.computeCapability / 10);
    cuda.set_minor(variant.target.computeCapability % 10);
    cuda.set_exact(variant.target.isArchitectureSpecific());
    cuda.set_driver_version_needed(getDriverVersion(variant.target));
    if (!variant.machineCode.empty()) {
      cuda.set_cubin("code/" + directory + "/kernels.cubin");
      if (failed(addFile(cuda.cubin(), variant.machineCode)))
        return failure();
    }
  }
  if (failed(addFile(result.code(), variant.code)))
    return failure();
  llvm::StringMap<unsigned> globals;
  ModuleOp module = variant.module;
  for (auto op : module.getOps<moe::GlobalOp>()) {
    MemRefType storage = moe::getStorageType(op.getType());
    int64_t bytes = (storage.getElementTypeBitWidth() + 7) / 8;
    for (int64_t size : storage.getShape())
      if (__builtin_mul_overflow(bytes, size, &bytes))
        return op.emitOpError() << "needs more bytes than 64 bits can count";
    globals[op.getSymName()] = result.globals_size();
    bundle::Global &global = *result.add_globals();
    global.set_name(op.getSymName().str());
    global.set_bytes(bytes);
  }
  result.mutable_load()->set_name("load");
  for (auto program : module.getOps<plan::ProgramOp>()) {
    bundle::Program &target = program.getLoad() ? *result.mutable_load() : *result.add_entries();
    if (failed(convertProgram(program, globals, weights, target)))
      return failure();
  }
  return success();
}

/// `name` if the model's entry has such an input: a model has those that its layers need.
static std::string findInput(const bundle::Manifest &manifest, StringRef name) {
  for (const bundle::Program &entry : manifest.variants(0).entries())
    for (const bundle::Tensor &input : entry.inputs())
      if (entry.name() == manifest.language_model().entry() && input.name() == name)
        return name.str();
  return "";
}

void Exporter::addVision(DictionaryAttr attributes, bundle::LanguageModel &model) {
  auto integer = [&](StringRef name) -> uint32_t {
    auto value = attributes.getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  auto numbers = [&](StringRef name) -> ArrayRef<double> {
    auto values = attributes.getAs<DenseF64ArrayAttr>(name);
    return values ? values.asArrayRef() : ArrayRef<double>();
  };
  bundle::Vision &vision = *model.mutable_vision();
  if (auto entry = attributes.getAs<StringAttr>("entry"))
    vision.set_entry(entry.str());
  vision.set_image_rows(findInput(manifest, "image_rows"));
  vision.set_image_embeddings(findInput(manifest, "image_embeddings"));
  vision.set_placeholder(integer("placeholder"));
  vision.set_patch(integer("patch"));
  vision.set_merge(integer("merge"));
  vision.set_frames(integer("frames"));
  vision.set_most_patches(integer("most_patches"));
  vision.set_most_patches_of_side(integer("most_patches_of_side"));
  for (double mean : numbers("mean"))
    vision.add_mean(mean);
  for (double deviation : numbers("deviation"))
    vision.add_deviation(deviation);
  manifest.add_required_features("images");
}

LogicalResult Exporter::addLanguageModel() {
  if (auto reference = first->getAttrOfType<DenseResourceElementsAttr>(referenceTextAttr)) {
    ArrayRef<char> text = reference.getRawHandle().getBlob()->getData();
    if (failed(addFile("program/moe.mlir", StringRef(text.data(), text.size()))))
      return failure();
  }
  auto attributes = first->getAttrOfType<DictionaryAttr>("moe.language_model");
  if (!attributes)
    return success();
  auto integer = [&](StringRef name, int64_t missing) {
    auto value = attributes.getAs<IntegerAttr>(name);
    return value ? value.getInt() : missing;
  };
  bundle::LanguageModel &model = *manifest.mutable_language_model();
  model.set_entry("step");
  if (auto entry = attributes.getAs<StringAttr>("entry"))
    model.set_entry(entry.str());
  model.set_tokens(findInput(manifest, "tokens"));
  model.set_positions(findInput(manifest, "positions"));
  model.set_token_sequences(findInput(manifest, "token_sequences"));
  model.set_sequence_offsets(findInput(manifest, "sequence_offsets"));
  model.set_block_table(findInput(manifest, "block_table"));
  model.set_state_slots(findInput(manifest, "state_slots"));
  model.set_logit_rows(findInput(manifest, "logit_rows"));
  model.set_logits("logits");
  if (auto sampler = attributes.getAs<StringAttr>("sampler"))
    model.set_sampler(sampler.str());
  if (auto vision = attributes.getAs<DictionaryAttr>("vision"))
    addVision(vision, model);
  model.set_vocabulary(integer("vocabulary", 0));
  model.set_layers(integer("layers", 0));
  model.set_expert_layers(integer("expert_layers", 0));
  model.set_experts(integer("experts", 0));
  model.set_experts_per_token(integer("experts_per_token", 0));
  model.set_block_tokens(integer("block_tokens", 16));
  model.set_maximum_tokens(integer("maximum_tokens", 0));
  model.set_bos_token(integer("bos", -1));
  if (auto addBos = attributes.getAs<BoolAttr>("add_bos"))
    model.set_add_bos(addBos.getValue());
  if (auto eos = attributes.getAs<DenseI64ArrayAttr>("eos"))
    for (int64_t token : eos.asArrayRef())
      model.add_eos_tokens(token);
  model.set_batch_invariant(variants.front().target.batchInvariant);
  if (first->hasAttr(referenceTextAttr))
    model.set_reference("program/moe.mlir");
  auto tokenizer = attributes.getAs<StringAttr>("tokenizer");
  if (!tokenizer)
    return success();
  auto root = first->getAttrOfType<StringAttr>("moe.weight_root");
  std::string path = moert::joinPath(root ? root.str() : ".", tokenizer.str());
  auto content = moert::readTokenizerFiles(std::string(moert::parentPath(path)));
  if (!content.isOk())
    return check(content.status());
  model.set_tokenizer("tokenizer/tokenizer.json");
  return addFile(model.tokenizer(), *content);
}

LogicalResult Exporter::run() {
  auto temporary = moert::AtomicFolder::create(options.path);
  if (!temporary.isOk())
    return check(temporary.status());
  folder = temporary->path();
  manifest.set_compiler_version(MOEC_VERSION);
  if (auto name = first->getAttrOfType<StringAttr>("moe.model"))
    manifest.set_model(name.str());
  auto root = first->getAttrOfType<StringAttr>("moe.weight_root");
  WeightTable weights(root ? root.str() : ".");
  for (const BundleVariant &variant : variants)
    if (failed(addVariant(variant, weights)))
      return failure();
  if (failed(addLanguageModel()))
    return failure();
  std::string copyTo;
  if (options.copyWeights) {
    if (failed(makeFolders("weights/weights.bin")))
      return failure();
    copyTo = moert::joinPath(folder, "weights");
  }
  if (failed(weights.write(loc, options.path, copyTo, digestLimit, manifest)) ||
      failed(check(moert::writeManifest(folder, manifest))))
    return failure();
  // Only a bundle is replaced, never somebody's folder.
  return check(temporary->commit([](const std::string &existing) {
    return moert::fileExists(moert::joinPath(existing, std::string(moert::manifestName)));
  }));
}

} // namespace

LogicalResult mlir::moec::exportBundle(ArrayRef<BundleVariant> variants,
                                       const ExportBundleOptions &options) {
  return Exporter(variants, options).run();
}
