#include "moec/Conversion/ImportCheckpoint.h"

#include "ModelFamilies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

ArrayRef<ModelFamily> mlir::moec::getModelFamilies() {
  static const ModelFamily families[] = {
      {"DeepseekV3ForCausalLM", "deepseek_v3", "model.embed_tokens.weight", buildDeepseekV3},
      {"DeepseekV32ForCausalLM", "deepseek_v32", "model.embed_tokens.weight", buildDeepseekV32},
      {"Glm4MoeForCausalLM", "glm4_moe", "model.embed_tokens.weight", buildGlm4Moe},
      {"GlmMoeDsaForCausalLM", "glm_moe_dsa", "model.embed_tokens.weight", buildGlmMoeDsa},
      {"DeepseekV4ForCausalLM", "deepseek_v4", "embed.weight", buildDeepseekV4},
      {"GptOssForCausalLM", "gpt_oss", "model.embed_tokens.weight", buildGptOss},
      {"KimiK3ForConditionalGeneration", "kimi_k3", "language_model.model.embed_tokens.weight",
       buildKimiK3},
      {"KimiK31ForConditionalGeneration", "kimi_k31", "language_model.model.embed_tokens.weight",
       buildKimiK31},
      {"KimiLinearForCausalLM", "kimi_linear", "model.embed_tokens.weight", buildKimiLinear},
      {"MixtralForCausalLM", "mixtral", "model.embed_tokens.weight", buildMixtral},
      {"Qwen3MoeForCausalLM", "qwen3_moe", "model.embed_tokens.weight", buildQwen3Moe},
      {"Qwen3NextForCausalLM", "qwen3_next", "model.embed_tokens.weight", buildQwen3Next},
      {"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", "model.embed_tokens.weight", buildQwen35Moe},
      {"Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe",
       "model.language_model.embed_tokens.weight", buildQwen35Moe},
  };
  return families;
}

// The family that config.json names by `architectures` or, in its absence, by `model_type`.
static const ModelFamily *findFamily(const JsonView &config) {
  std::string names;
  for (const ModelFamily &family : getModelFamilies())
    names += (names.empty() ? "'" : ", '") + family.architecture.str() + "'";
  if (JsonView architectures = config.optional("architectures")) {
    for (const JsonView &view : architectures.elements())
      if (auto name = view.string())
        for (const ModelFamily &family : getModelFamilies())
          if (family.architecture == *name)
            return &family;
    architectures.complain("expected one of the supported architectures, " + names + ", found " +
                           architectures.raw()->dump().substr(0, 200));
    return nullptr;
  }
  JsonView type = config["model_type"];
  auto name = type.string();
  if (!name)
    return nullptr;
  for (const ModelFamily &family : getModelFamilies())
    if (family.modelType == *name)
      return &family;
  type.complain("the model type " + moert::inQuotes(*name) + " is not supported; supported are " +
                names);
  return nullptr;
}

// The element type of activations.
static Type chooseActivationType(Checkpoint &checkpoint, const ModelFamily &family,
                                 ImportCheckpointOptions::Precision precision,
                                 MLIRContext *context) {
  Type f32 = Float32Type::get(context), bf16 = BFloat16Type::get(context);
  if (precision == ImportCheckpointOptions::Precision::F32)
    return f32;
  if (precision == ImportCheckpointOptions::Precision::BF16)
    return bf16;
  JsonView view = checkpoint.config().optional("dtype");
  if (!view)
    view = checkpoint.config().optional("torch_dtype");
  if (!view)
    view = checkpoint.config().optional("text_config").optional("dtype");
  if (auto name = view.string()) {
    if (*name == "bfloat16")
      return bf16;
    // Every float16 value is a float32 value, but not a bfloat16 value.
    if (*name == "float32" || *name == "float16")
      return f32;
    view.complain("expected 'bfloat16', 'float16' or 'float32', found " + moert::inQuotes(*name));
    return f32;
  }
  const CheckpointTensor *embedding = checkpoint.findTensor(family.embedding);
  return embedding && embedding->entry->type == moert::ElementType::BF16 ? bf16 : f32;
}

FailureOr<OwningOpRef<ModuleOp>>
mlir::moec::importCheckpoint(StringRef folder, const ImportCheckpointOptions &options,
                             MLIRContext *context) {
  context->loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                       math::MathDialect, moe::MoEDialect, tensor::TensorDialect>();
  Location unknown = UnknownLoc::get(context);
  auto fail = [&](const moert::Status &status) -> FailureOr<OwningOpRef<ModuleOp>> {
    std::string text = status.location() + ": " + status.message();
    if (!status.hint().empty())
      text += "\nhint: " + status.hint();
    return emitError(unknown, text);
  };
  if (options.blockTokens < 1 || options.blockTokens > 4096)
    return emitError(unknown, "the tokens of a cache block have to be 1 to 4096, not ")
           << options.blockTokens;

  SmallString<256> root(folder);
  if (std::error_code error = llvm::sys::fs::make_absolute(root))
    return emitError(unknown, "cannot make '") << folder << "' absolute: " << error.message();
  llvm::sys::path::remove_dots(root, /*remove_dot_dot=*/false);
  while (root.size() > 1 && root.back() == '/')
    root.pop_back();

  auto opened = Checkpoint::open(root.str().str());
  if (!opened.isOk())
    return fail(opened.status());
  Checkpoint &checkpoint = **opened;
  for (const std::string &setting : options.settings)
    checkpoint.set(setting);
  OwningOpRef<ModuleOp> module;
  if (JsonView config = checkpoint.config()) {
    LanguageModelConfig language = readLanguageModelConfig(checkpoint);
    if (const ModelFamily *family = findFamily(config)) {
      Type activationType = chooseActivationType(checkpoint, *family, options.precision, context);
      ModelBuilder builder(context, checkpoint, activationType, options.blockTokens,
                           options.layers);
      if (Value logits = family->build(checkpoint, builder)) {
        checkpoint.checkUnused(options.allowUnused, options.layers);
        module = builder.finish(logits, language, llvm::sys::path::filename(root), root);
      }
    }
  }
  if (moert::Status status = checkpoint.status(); !status.isOk())
    return fail(status);
  if (failed(verify(*module)))
    return failure();
  return std::move(module);
}
