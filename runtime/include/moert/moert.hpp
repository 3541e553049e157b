// moert for C++: values and owners over the C interface of moert.h, which tells ownership, threads
// and units. Header only; a function that can fail returns Result<T>, nothing throws.
//
//   auto bundle = moert::Bundle::open("model.moeb");
//   if (!bundle)
//     return complain(bundle.error());
//   auto model = moert::Model::load(*bundle);
#ifndef MOERT_MOERT_HPP
#define MOERT_MOERT_HPP

#include "moert/moert.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moert {
// A name of its own for the linker: the library's internals live in the same namespace.
inline namespace v1 {

struct Error {
  int code = 0; // MOERT_INVALID_ARGUMENT ...
  std::string message, location, hint;
  std::string toString() const {
    return (location.empty() ? "" : location + ": ") + message +
           (hint.empty() ? "" : "\nhint: " + hint);
  }
};

// A value or an Error. Test it before use.
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return value_.has_value(); }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  const Error &error() const { return error_; }

private:
  std::optional<T> value_;
  Error error_;
};

// For calls without a value.
struct Done {};

namespace detail {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T *object) const {
    Free(object);
  }
};
template <typename T, auto Free>
using Owner = std::unique_ptr<T, Deleter<Free>>;

inline Error take(moert_error *error) {
  Error result{moert_error_code(error), moert_error_message(error), moert_error_location(error),
               moert_error_hint(error)};
  moert_error_free(error);
  return result;
}

inline Result<Done> done(moert_error *error) {
  if (error)
    return take(error);
  return Done();
}

inline std::vector<std::int32_t> takeIds(std::int32_t *ids, std::size_t count) {
  std::vector<std::int32_t> result(ids, ids + count);
  moert_free(ids);
  return result;
}

inline void report(void *context, std::uint64_t done, std::uint64_t total) {
  (*static_cast<const std::function<void(std::uint64_t, std::uint64_t)> *>(context))(done, total);
}

} // namespace detail

using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

class Bundle {
public:
  static Result<Bundle> open(const std::string &path, const std::string &weightsFolder = {}) {
    moert_open_options options = {sizeof options,
                                  weightsFolder.empty() ? nullptr : weightsFolder.c_str()};
    moert_bundle *bundle = nullptr;
    if (moert_error *error = moert_bundle_open(path.c_str(), &options, &bundle))
      return detail::take(error);
    return Bundle(bundle);
  }
  Result<Done> verify(const Progress &progress = {}) const {
    return detail::done(moert_bundle_verify(get(), progress ? detail::report : nullptr,
                                            const_cast<Progress *>(&progress)));
  }
  moert_bundle *get() const { return owner.get(); }

private:
  explicit Bundle(moert_bundle *bundle) : owner(bundle) {}
  detail::Owner<moert_bundle, moert_bundle_close> owner;
};

struct Tensor {
  std::uint32_t type = 0; // MOERT_F32 ...
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

struct LoadOptions {
  std::uint32_t threads = 0; // 0: one for each core that the process may use
  std::string variant = {};  // empty: the first that this machine can run
  Progress progress = {};
  std::string device = {}; // "cpu", "cuda", "cuda:1"; empty: what the first variant that fits needs
  bool captureGraphs = true; // keep steps that come again as CUDA graphs
};

class Model {
public:
  static Result<Model> load(const Bundle &bundle, const LoadOptions &options = {}) {
    moert_load_options given = {};
    given.size = sizeof given;
    given.threads = options.threads;
    given.variant = options.variant.empty() ? nullptr : options.variant.c_str();
    given.progress = options.progress ? detail::report : nullptr;
    given.context = const_cast<Progress *>(&options.progress);
    given.device = options.device.empty() ? nullptr : options.device.c_str();
    given.no_graphs = options.captureGraphs ? 0 : 1;
    moert_model *model = nullptr;
    if (moert_error *error = moert_model_load(bundle.get(), &given, &model))
      return detail::take(error);
    return Model(model);
  }
  moert_model_info info() const {
    moert_model_info info = {};
    info.size = sizeof info;
    moert_model_get_info(get(), &info);
    return info;
  }
  std::string device() const { return moert_model_device(get()); } // "cpu", "cuda:0"
  bool isEnd(std::int32_t token) const { return moert_model_is_end(get(), token) != 0; }

  // An empty entry: the only one.
  Result<std::map<std::string, Tensor>> run(const std::string &entry,
                                            const std::map<std::string, Tensor> &inputs) const {
    std::vector<moert_tensor> views;
    for (auto &[name, tensor] : inputs)
      views.push_back({name.c_str(), tensor.type, static_cast<std::uint32_t>(tensor.shape.size()),
                       tensor.shape.data(), tensor.data.data(), tensor.data.size()});
    moert_tensors *raw = nullptr;
    if (moert_error *error =
            moert_model_run(get(), entry.c_str(), views.data(), views.size(), &raw))
      return detail::take(error);
    detail::Owner<moert_tensors, moert_tensors_free> outputs(raw);
    std::map<std::string, Tensor> result;
    for (std::size_t i = 0; i < moert_tensors_count(raw); ++i) {
      const moert_tensor &view = *moert_tensors_get(raw, i);
      auto *data = static_cast<const std::byte *>(view.data);
      result[view.name] = {
          view.type, {view.shape, view.shape + view.rank}, {data, data + view.bytes}};
    }
    return result;
  }
  moert_model *get() const { return owner.get(); }

private:
  explicit Model(moert_model *model) : owner(model) {}
  detail::Owner<moert_model, moert_model_free> owner;
};

class Tokenizer {
public:
  static Result<Tokenizer> create(const Model &model) {
    moert_tokenizer *tokenizer = nullptr;
    if (moert_error *error = moert_tokenizer_create(model.get(), &tokenizer))
      return detail::take(error);
    return Tokenizer(tokenizer);
  }
  Result<std::vector<std::int32_t>> encode(std::string_view text) const {
    std::int32_t *ids = nullptr;
    std::size_t count = 0;
    if (moert_error *error =
            moert_tokenizer_encode(owner.get(), text.data(), text.size(), &ids, &count))
      return detail::take(error);
    return detail::takeIds(ids, count);
  }
  Result<std::string> decode(std::span<const std::int32_t> ids, bool special = false) const {
    char *text = nullptr;
    std::size_t bytes = 0;
    if (moert_error *error =
            moert_tokenizer_decode(owner.get(), ids.data(), ids.size(), special, &text, &bytes))
      return detail::take(error);
    std::string result(text, bytes);
    moert_free(text);
    return result;
  }
  // Perhaps part of a character.
  std::string_view bytes(std::int32_t id, bool special = false) const {
    std::size_t count = 0;
    const char *text = moert_tokenizer_bytes(owner.get(), id, special, &count);
    return {text, count};
  }

private:
  explicit Tokenizer(moert_tokenizer *tokenizer) : owner(tokenizer) {}
  detail::Owner<moert_tokenizer, moert_tokenizer_free> owner;
};

// Embeddings of an image: see moert_image_encode_file.
class Image {
public:
  static Result<Image> encode(const Model &model, std::span<const std::byte> file) {
    moert_image *image = nullptr;
    if (moert_error *error = moert_image_encode_file(model.get(), file.data(), file.size(), &image))
      return detail::take(error);
    return Image(image);
  }
  // f32 [frames, rows, columns, 3, side, side], normalised.
  static Result<Image> encodePatches(const Model &model, std::span<const float> patches,
                                     std::uint32_t frames, std::uint32_t rows,
                                     std::uint32_t columns) {
    moert_patches given = {sizeof given, patches.data(), patches.size(), frames, rows, columns, 0};
    moert_image *image = nullptr;
    if (moert_error *error = moert_image_encode_patches(model.get(), &given, &image))
      return detail::take(error);
    return Image(image);
  }
  std::size_t tokens() const { return moert_image_tokens(get()); }
  moert_image *get() const { return owner.get(); }

private:
  explicit Image(moert_image *image) : owner(image) {}
  detail::Owner<moert_image, moert_image_free> owner;
};

enum class LogitRows : std::uint32_t { None, Last, All };

struct StepPart {
  moert_sequence sequence = 0;
  std::span<const std::int32_t> tokens;
  LogitRows logits = LogitRows::Last;
};

// Valid until the session's next call.
struct Logits {
  const float *data = nullptr;
  std::size_t rows = 0, vocabulary = 0;
  std::span<const float> row(std::size_t index) const {
    return {data + index * vocabulary, vocabulary};
  }
};

using Choice = moert_choice; // how one token is chosen from a row of logits

using Snapshot = detail::Owner<moert_snapshot, moert_snapshot_free>;

struct GenerateOptions {
  std::uint64_t maximumTokens = 128;
  double temperature = 0; // 0: greedy
  std::int64_t topK = 0;
  double topP = 1;
  std::uint64_t seed = 0;
  bool ignoreEnd = false;
  std::uint64_t chunk = 0;
  std::function<bool(std::int32_t)> onToken = {}; // false stops
  // For the prompt's tokens moert_model_info::image_token, in order; they outlive the call.
  std::vector<const Image *> images = {};
};

class Session {
public:
  static Result<Session> create(const Model &model, std::uint64_t maximumTokens = 0,
                                std::uint64_t maximumStateBytes = 0) {
    moert_session_options options = {sizeof options, maximumTokens, maximumStateBytes};
    moert_session *session = nullptr;
    if (moert_error *error = moert_session_create(model.get(), &options, &session))
      return detail::take(error);
    return Session(session);
  }

  Result<moert_sequence> createSequence() {
    moert_sequence sequence = 0;
    if (moert_error *error = moert_sequence_create(get(), &sequence))
      return detail::take(error);
    return sequence;
  }
  Result<Done> release(moert_sequence sequence) {
    return detail::done(moert_sequence_release(get(), sequence));
  }
  Result<std::uint64_t> length(moert_sequence sequence) const {
    std::uint64_t length = 0;
    if (moert_error *error = moert_sequence_length(get(), sequence, &length))
      return detail::take(error);
    return length;
  }
  Result<Done> truncate(moert_sequence sequence, std::uint64_t length) {
    return detail::done(moert_sequence_truncate(get(), sequence, length));
  }
  Result<moert_sequence> fork(moert_sequence sequence) {
    moert_sequence fresh = 0;
    if (moert_error *error = moert_sequence_fork(get(), sequence, &fresh))
      return detail::take(error);
    return fresh;
  }
  Result<Snapshot> snapshot(moert_sequence sequence) {
    moert_snapshot *snapshot = nullptr;
    if (moert_error *error = moert_snapshot_take(get(), sequence, &snapshot))
      return detail::take(error);
    return Snapshot(snapshot);
  }
  Result<Done> restore(moert_sequence sequence, const Snapshot &snapshot) {
    return detail::done(moert_snapshot_restore(get(), sequence, snapshot.get()));
  }

  Result<Done> placeImage(moert_sequence sequence, std::uint64_t position, const Image &image) {
    return detail::done(moert_sequence_place_image(get(), sequence, position, image.get()));
  }

  Result<Logits> step(std::span<const StepPart> parts) {
    std::vector<moert_step_part> raw = toRaw(parts);
    moert_logits logits = {};
    if (moert_error *error = moert_session_step(get(), raw.data(), raw.size(), &logits))
      return detail::take(error);
    return Logits{logits.data, logits.rows, logits.vocabulary};
  }
  // The same, but the logits stay on the device, for logits() and choose(). Gives their rows.
  Result<std::size_t> advance(std::span<const StepPart> parts) {
    std::vector<moert_step_part> raw = toRaw(parts);
    std::size_t rows = 0;
    if (moert_error *error = moert_session_advance(get(), raw.data(), raw.size(), &rows))
      return detail::take(error);
    return rows;
  }
  Result<Logits> logits() {
    moert_logits logits = {};
    if (moert_error *error = moert_session_logits(get(), &logits))
      return detail::take(error);
    return Logits{logits.data, logits.rows, logits.vocabulary};
  }
  Result<std::vector<std::int32_t>> choose(std::span<const Choice> choices) {
    std::vector<std::int32_t> tokens(choices.size());
    if (moert_error *error =
            moert_session_choose(get(), choices.data(), choices.size(), tokens.data()))
      return detail::take(error);
    return tokens;
  }

  Result<std::vector<std::int32_t>> generate(std::span<const std::int32_t> prompt,
                                             const GenerateOptions &options = {}) {
    if (options.maximumTokens == 0)
      return std::vector<std::int32_t>();
    moert_generate_options given = {};
    given.size = sizeof given;
    given.maximum_tokens = options.maximumTokens;
    given.temperature = options.temperature;
    given.top_k = options.topK;
    given.top_p = options.topP;
    given.seed = options.seed;
    given.ignore_end = options.ignoreEnd;
    given.chunk = options.chunk;
    given.context = const_cast<GenerateOptions *>(&options);
    if (options.onToken)
      given.on_token = [](void *context, std::int32_t token) {
        return static_cast<const GenerateOptions *>(context)->onToken(token) ? 0 : 1;
      };
    std::vector<const moert_image *> images;
    for (const Image *image : options.images)
      images.push_back(image->get());
    given.images = images.data();
    given.image_count = images.size();
    std::int32_t *ids = nullptr;
    std::size_t count = 0;
    if (moert_error *error =
            moert_generate(get(), prompt.data(), prompt.size(), &given, &ids, &count))
      return detail::take(error);
    return detail::takeIds(ids, count);
  }
  moert_session *get() const { return owner.get(); }

private:
  static std::vector<moert_step_part> toRaw(std::span<const StepPart> parts) {
    std::vector<moert_step_part> raw;
    for (const StepPart &part : parts)
      raw.push_back({part.sequence, part.tokens.data(), part.tokens.size(),
                     static_cast<std::uint32_t>(part.logits)});
    return raw;
  }
  explicit Session(moert_session *session) : owner(session) {}
  detail::Owner<moert_session, moert_session_free> owner;
};

} // namespace v1
} // namespace moert

#endif
