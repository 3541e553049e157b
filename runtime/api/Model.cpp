// The C interface: errors, bundles, models, plain tensors.
#include "runtime/api/Handles.h"
#include "runtime/device/Device.h"

#include <algorithm>

using namespace moert;
using namespace moert::api;

uint32_t moert_interface_version(void) { return MOERT_INTERFACE_VERSION; }
const char *moert_version(void) { return MOERT_VERSION; }
void moert_free(void *memory) { std::free(memory); }

int moert_error_code(const moert_error *error) {
  return error ? static_cast<int>(error->content.code) : 0;
}
const char *moert_error_message(const moert_error *error) {
  return error ? error->content.message.c_str() : "";
}
const char *moert_error_location(const moert_error *error) {
  return error ? error->content.location.c_str() : "";
}
const char *moert_error_hint(const moert_error *error) {
  return error ? error->content.hint.c_str() : "";
}
void moert_error_free(moert_error *error) { delete error; }

moert_error *moert_bundle_open(const char *path, const moert_open_options *options,
                               moert_bundle **bundle) {
  if (!path || !bundle)
    return badArgument("moert_bundle_open: path or bundle is NULL");
  moert_open_options given = readOptions(options);
  OpenOptions wanted;
  if (given.weights_folder)
    wanted.weightsFolder = given.weights_folder;
  auto result = Bundle::open(path, wanted);
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *bundle = new moert_bundle{*std::move(result)};
  return nullptr;
}

void moert_bundle_close(moert_bundle *bundle) { delete bundle; }

moert_error *moert_bundle_verify(const moert_bundle *bundle, moert_progress progress,
                                 void *context) {
  if (!bundle)
    return badArgument("moert_bundle_verify: bundle is NULL");
  return toError(bundle->content->verify(toProgress(progress, context)));
}

moert_error *moert_model_load(const moert_bundle *bundle, const moert_load_options *options,
                              moert_model **model) {
  if (!bundle || !model)
    return badArgument("moert_model_load: bundle or model is NULL");
  moert_load_options given = readOptions(options);
  LoadOptions wanted;
  wanted.threads = given.threads;
  if (given.variant)
    wanted.variant = given.variant;
  wanted.progress = toProgress(given.progress, given.context);
  if (given.device)
    wanted.device = given.device;
  wanted.captureGraphs = given.no_graphs == 0;
  auto result = Model::load(bundle->content, wanted);
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *model = new moert_model{*std::move(result)};
  return nullptr;
}

void moert_model_free(moert_model *model) { delete model; }

void moert_model_get_info(const moert_model *model, moert_model_info *info) {
  if (!info)
    return;
  moert_model_info full;
  std::memset(&full, 0, sizeof full);
  std::size_t size = std::min(info->size, sizeof full);
  if (model) {
    MemoryUse memory = model->content->memory();
    full.threads = model->content->threads();
    full.weight_bytes = memory.weights + memory.globals;
    if (model->content->isLanguageModel()) {
      const auto &language = model->content->bundle().manifest().language_model();
      full.is_language_model = 1;
      full.vocabulary = language.vocabulary();
      full.add_bos = language.add_bos();
      full.bos_token = language.bos_token();
      full.maximum_tokens = language.maximum_tokens();
      full.image_token =
          language.has_vision() ? static_cast<int64_t>(language.vision().placeholder()) : -1;
    }
  }
  full.size = info->size;
  std::memcpy(info, &full, size);
}

const char *moert_model_device(const moert_model *model) {
  return model ? model->content->device()->name().c_str() : "";
}

int moert_model_is_end(const moert_model *model, int32_t token) {
  if (!model)
    return 0;
  const auto &ends = model->content->bundle().manifest().language_model().eos_tokens();
  return std::find(ends.begin(), ends.end(), static_cast<uint32_t>(token)) != ends.end();
}

struct moert_tensors {
  std::map<std::string, Tensor> content;
  std::vector<moert_tensor> views;
};

moert_error *moert_model_run(const moert_model *model, const char *entry,
                             const moert_tensor *inputs, size_t count, moert_tensors **outputs) {
  if (!model || !outputs || (count && !inputs))
    return badArgument("moert_model_run: model, inputs or outputs is NULL");
  std::map<std::string, Tensor> values;
  for (std::size_t i = 0; i < count; ++i) {
    const moert_tensor &input = inputs[i];
    if (!input.name || (input.rank && !input.shape) || (input.bytes && !input.data))
      return badArgument("moert_model_run: an input's name, shape or data is NULL");
    if (input.rank > 32 || input.type >= elementTypeCount)
      return badArgument("moert_model_run: an input's rank or type is out of range");
    auto *data = static_cast<const std::byte *>(input.data);
    Tensor tensor{static_cast<ElementType>(input.type),
                  {input.shape, input.shape + input.rank},
                  {data, data + input.bytes}};
    if (!values.emplace(input.name, std::move(tensor)).second)
      return badArgument("moert_model_run: an input is given twice");
  }
  auto result = model->content->run(entry ? entry : "", values);
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  auto tensors = std::make_unique<moert_tensors>();
  tensors->content = *std::move(result);
  for (auto &[name, tensor] : tensors->content)
    tensors->views.push_back({name.c_str(), static_cast<uint32_t>(tensor.type),
                              static_cast<uint32_t>(tensor.shape.size()), tensor.shape.data(),
                              tensor.data.data(), tensor.data.size()});
  *outputs = tensors.release();
  return nullptr;
}

size_t moert_tensors_count(const moert_tensors *tensors) {
  return tensors ? tensors->views.size() : 0;
}
const moert_tensor *moert_tensors_get(const moert_tensors *tensors, size_t index) {
  return index < moert_tensors_count(tensors) ? &tensors->views[index] : nullptr;
}
void moert_tensors_free(moert_tensors *tensors) { delete tensors; }
