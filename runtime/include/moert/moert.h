// moert: runs bundles that moec compiled. The frozen C interface.
//
// Frozen means: functions, structures and numbers of this file keep their meaning as long as
// MOERT_INTERFACE_VERSION stays. Structures that a caller fills begin with `size`, which the caller
// sets to sizeof the structure; fields may be added at the end. A field left zero means its
// default. Programs in C++ use moert.hpp.
//
// Errors: a function that can fail returns an error, or NULL on success. Whoever receives an error
// frees it. After an error the output arguments are untouched, unless said otherwise.
//
// Ownership: what a function hands out through `T **` belongs to the caller, who gives it back with
// the function named in its comment. Every such function accepts NULL. Objects keep alive what they
// were made from: a bundle may be closed as soon as its model is loaded, a model freed while
// sessions of it go on.
//
// Threads: bundles, models and tokenizers may be used by any number of threads at once. A session,
// with its snapshots, is used by one thread at a time. No call throws a C++ exception.
//
// Strings are UTF-8 and end in NUL. Sizes are in bytes and times in seconds unless said otherwise.
#ifndef MOERT_MOERT_H
#define MOERT_MOERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOERT_INTERFACE_VERSION 1
#define MOERT_API __attribute__((visibility("default")))

// MOERT_INTERFACE_VERSION of the library, and its release ("0.1.0").
MOERT_API uint32_t moert_interface_version(void);
MOERT_API const char *moert_version(void);

// Frees memory that a function of this file allocated (texts, token lists). Not for objects.
MOERT_API void moert_free(void *memory);

//===-- Errors -----------------------------------------------------------===//

enum {
  MOERT_INVALID_ARGUMENT = 1, // the caller passed something out of range
  MOERT_NOT_FOUND = 2,        // a file, tensor or entry does not exist
  MOERT_INVALID_DATA = 3,     // a file is damaged, truncated or contradicts itself
  MOERT_UNSUPPORTED = 4,      // well-formed, but this version or machine cannot do it
  MOERT_INPUT_OUTPUT = 5,     // the operating system refused
  MOERT_OUT_OF_MEMORY = 6,
  MOERT_WRONG_STATE = 7, // a valid call at the wrong time
  MOERT_INTERNAL = 8     // a defect of the library
};

typedef struct moert_error moert_error;

MOERT_API int moert_error_code(const moert_error *error);
// What was expected and found; where (a file and the field or tensor in it); what to do. The last
// two may be empty. The texts live as long as the error.
MOERT_API const char *moert_error_message(const moert_error *error);
MOERT_API const char *moert_error_location(const moert_error *error);
MOERT_API const char *moert_error_hint(const moert_error *error);
MOERT_API void moert_error_free(moert_error *error);

//===-- Bundles ----------------------------------------------------------===//

typedef struct moert_bundle moert_bundle;

// Called now and then from the working thread: what is done and what there is to do, in bytes.
typedef void (*moert_progress)(void *context, uint64_t done, uint64_t total);

typedef struct moert_open_options {
  size_t size;
  const char *weights_folder; // where to look for weight files outside the bundle; NULL: where the
                              // bundle says
} moert_open_options;

// Opens a bundle folder and checks its manifest, and sizes and headers of all its files. Loads no
// code. `options` may be NULL. Close with moert_bundle_close.
MOERT_API moert_error *moert_bundle_open(const char *path, const moert_open_options *options,
                                         moert_bundle **bundle);
MOERT_API void moert_bundle_close(moert_bundle *bundle);

// Reads every byte of the bundle and its weights and compares all digests. `progress` may be NULL.
MOERT_API moert_error *moert_bundle_verify(const moert_bundle *bundle, moert_progress progress,
                                           void *context);

//===-- Models -----------------------------------------------------------===//

typedef struct moert_model moert_model;

typedef struct moert_load_options {
  size_t size;
  uint32_t threads; // that run kernels, the calling one included; 0: one for each core the process
                    // may use
  const char
      *variant; // a target such as "cpu:x86-64-v3"; NULL: the first that this machine can run
  moert_progress progress; // weight bytes read; may be NULL
  void *context;           // for `progress`
  const char *device; // "cpu"; "cuda", the first GPU that fits; "cuda:1", that GPU; "auto" or NULL:
                      // what the first variant that fits is for
  uint32_t no_graphs; // 1: do not keep steps that come again as CUDA graphs
  uint32_t reserved;
} moert_load_options;

// Loads the code, reads the weights and packs them. A bundle holds native code: load only what you
// trust. `options` may be NULL. Free with moert_model_free.
MOERT_API moert_error *moert_model_load(const moert_bundle *bundle,
                                        const moert_load_options *options, moert_model **model);
MOERT_API void moert_model_free(moert_model *model);

typedef struct moert_model_info {
  size_t size;
  uint32_t threads;
  uint32_t is_language_model; // 1, or 0: then the fields below are 0
  uint32_t vocabulary;        // token ids are 0 to vocabulary - 1
  uint32_t add_bos;           // 1: a prompt begins with bos_token
  int64_t bos_token;          // -1: none
  uint64_t maximum_tokens;    // longest sequence; 0: unbounded
  uint64_t weight_bytes;      // memory taken by weights, packed and raw
  int64_t image_token;        // stands for an image in a text; -1: the model takes no images
} moert_model_info;

// The caller sets info->size.
MOERT_API void moert_model_get_info(const moert_model *model, moert_model_info *info);
// Where it runs: "cpu", "cuda:0". Lives as long as the model.
MOERT_API const char *moert_model_device(const moert_model *model);
// 1 if `token` ends a text, else 0.
MOERT_API int moert_model_is_end(const moert_model *model, int32_t token);

//===-- Plain tensors ----------------------------------------------------===//

// Numbers of element types.
enum {
  MOERT_F32 = 1,
  MOERT_F16 = 2,
  MOERT_BF16 = 3,
  MOERT_F64 = 4,
  MOERT_I1 = 5, // one byte each, 0 or 1
  MOERT_I4 = 6, // types below 8 bits are packed, the first element in the lowest bits
  MOERT_I8 = 7,
  MOERT_I16 = 8,
  MOERT_I32 = 9,
  MOERT_I64 = 10,
  MOERT_U4 = 11,
  MOERT_U8 = 12,
  MOERT_U16 = 13,
  MOERT_U32 = 14,
  MOERT_U64 = 15,
  MOERT_F8E4M3 = 16,
  MOERT_F8E5M2 = 17,
  MOERT_E8M0 = 18,
  MOERT_F4E2M1 = 19,
  MOERT_I2 = 20,
  MOERT_U2 = 21,
  MOERT_F8E4M3FNUZ = 22,
  MOERT_F8E5M2FNUZ = 23
};

// Dense, row-major, without padding.
typedef struct moert_tensor {
  const char *name;
  uint32_t type;
  uint32_t rank;
  const int64_t *shape; // `rank` numbers
  const void *data;
  size_t bytes;
} moert_tensor;

typedef struct moert_tensors moert_tensors;

// Runs an entry once on all its inputs, given by name in any order; they are only read. `entry`
// NULL or empty: the only one. Free the outputs with moert_tensors_free.
MOERT_API moert_error *moert_model_run(const moert_model *model, const char *entry,
                                       const moert_tensor *inputs, size_t count,
                                       moert_tensors **outputs);
MOERT_API size_t moert_tensors_count(const moert_tensors *tensors);
// By name order. Lives as long as `tensors`; `index` below moert_tensors_count.
MOERT_API const moert_tensor *moert_tensors_get(const moert_tensors *tensors, size_t index);
MOERT_API void moert_tensors_free(moert_tensors *tensors);

//===-- Tokenizers -------------------------------------------------------===//

typedef struct moert_tokenizer moert_tokenizer;

// The tokenizer in the model's bundle; MOERT_NOT_FOUND if it has none. Free with
// moert_tokenizer_free.
MOERT_API moert_error *moert_tokenizer_create(const moert_model *model,
                                              moert_tokenizer **tokenizer);
MOERT_API void moert_tokenizer_free(moert_tokenizer *tokenizer);

// The tokens of `bytes` bytes of text. Adds no begin-of-text; texts of special tokens become those
// tokens. Free *ids with moert_free.
MOERT_API moert_error *moert_tokenizer_encode(const moert_tokenizer *tokenizer, const char *text,
                                              size_t bytes, int32_t **ids, size_t *count);
// The text of tokens, ended by NUL, with special tokens if `special` is not 0. Free *text with
// moert_free.
MOERT_API moert_error *moert_tokenizer_decode(const moert_tokenizer *tokenizer, const int32_t *ids,
                                              size_t count, int special, char **text,
                                              size_t *bytes);
// The raw bytes of one token, perhaps part of a character; they live as long as the tokenizer.
// Unknown ids, and special tokens unless `special`, have none.
MOERT_API const char *moert_tokenizer_bytes(const moert_tokenizer *tokenizer, int32_t id,
                                            int special, size_t *bytes);

//===-- Images -----------------------------------------------------------===//

// What a model sees in an image: embeddings, each in the place of one token. Belongs to no session;
// any number of sequences of the model may use it.
typedef struct moert_image moert_image;

// Encodes a JPEG or PNG file of `bytes` bytes. Free with moert_image_free.
MOERT_API moert_error *moert_image_encode_file(const moert_model *model, const void *file,
                                               size_t bytes, moert_image **image);

// Patches that the caller has cut and normalised: f32 [frames, rows, columns, 3, side, side],
// colour by colour, with the model's side of a patch.
typedef struct moert_patches {
  size_t size;
  const float *data;
  size_t count; // numbers
  uint32_t frames;
  uint32_t rows;    // of a frame, in patches
  uint32_t columns; // the same
  uint32_t reserved;
} moert_patches;

MOERT_API moert_error *moert_image_encode_patches(const moert_model *model,
                                                  const moert_patches *patches,
                                                  moert_image **image);
// How many tokens it takes the places of.
MOERT_API size_t moert_image_tokens(const moert_image *image);
MOERT_API void moert_image_free(moert_image *image);

//===-- Sessions ---------------------------------------------------------===//

typedef struct moert_session moert_session;
typedef struct moert_snapshot moert_snapshot;
// A sequence of tokens in a session. Numbers are never used twice; 0 is none.
typedef uint64_t moert_sequence;

typedef struct moert_session_options {
  size_t size;
  uint64_t maximum_tokens;      // longest sequence, at most the model's own limit; 0: that
  uint64_t maximum_state_bytes; // of the caches of all sequences together; 0: no limit
} moert_session_options;

// `options` may be NULL. Free with moert_session_free.
MOERT_API moert_error *moert_session_create(const moert_model *model,
                                            const moert_session_options *options,
                                            moert_session **session);
MOERT_API void moert_session_free(moert_session *session);

MOERT_API moert_error *moert_sequence_create(moert_session *session, moert_sequence *sequence);
MOERT_API moert_error *moert_sequence_release(moert_session *session, moert_sequence sequence);
// Tokens so far.
MOERT_API moert_error *moert_sequence_length(const moert_session *session, moert_sequence sequence,
                                             uint64_t *length);
// Forgets everything after the first `length` tokens. Models with recurrent states only go back to
// 0.
MOERT_API moert_error *moert_sequence_truncate(moert_session *session, moert_sequence sequence,
                                               uint64_t length);
// A new sequence with the same past; memory is shared until one of the two is written.
MOERT_API moert_error *moert_sequence_fork(moert_session *session, moert_sequence sequence,
                                           moert_sequence *fork);
// What a sequence is now, and putting the same or another sequence of the session back to it, any
// number of times. Free with moert_snapshot_free.
MOERT_API moert_error *moert_snapshot_take(moert_session *session, moert_sequence sequence,
                                           moert_snapshot **snapshot);
MOERT_API moert_error *moert_snapshot_restore(moert_session *session, moert_sequence sequence,
                                              const moert_snapshot *snapshot);
MOERT_API void moert_snapshot_free(moert_snapshot *snapshot);

// From `position` on the sequence's tokens are the image's: moert_image_tokens of them, each the
// model's image_token, appended by any number of steps after this call. Images follow each other. A
// fork, and a sequence that is restored, have the images of what they copy; truncating keeps those
// that begin before the new end. The image may be freed at once.
MOERT_API moert_error *moert_sequence_place_image(moert_session *session, moert_sequence sequence,
                                                  uint64_t position, const moert_image *image);

// Which tokens' logits are wanted.
enum { MOERT_LOGITS_NONE = 0, MOERT_LOGITS_LAST = 1, MOERT_LOGITS_ALL = 2 };

// One sequence's share of a step.
typedef struct moert_step_part {
  moert_sequence sequence; // each sequence at most once a step
  const int32_t *tokens;   // appended to it
  size_t count;            // at least 1
  uint32_t logits;         // MOERT_LOGITS_...
} moert_step_part;

// f32 [rows, vocabulary], row after row: those of the first part, then those of the second, and so
// on.
typedef struct moert_logits {
  const float *data; // belongs to the session; valid until its next call
  size_t rows;
  size_t vocabulary;
} moert_logits;

// Appends tokens to one or many sequences: prompts, single tokens and any mix. After an error every
// sequence is as it was.
MOERT_API moert_error *moert_session_step(moert_session *session, const moert_step_part *parts,
                                          size_t count, moert_logits *logits);

// The same, but the logits stay on the device, for the two functions below, until the next step.
// `rows` may be NULL; it gets the number of rows of logits.
MOERT_API moert_error *moert_session_advance(moert_session *session, const moert_step_part *parts,
                                             size_t count, size_t *rows);
// Brings the last step's logits to the host.
MOERT_API moert_error *moert_session_logits(moert_session *session, moert_logits *logits);

// How one token is chosen from a row of the last step's logits.
typedef struct moert_choice {
  uint64_t row;
  float temperature; // 0: the largest logit, ties to the lowest id
  int32_t top_k;     // 0: all
  double top_p;      // 1: all
  double random;     // at least 0, less than 1
} moert_choice;

// Chooses a token for each of `choices`, on the device: nothing else comes to the host. `tokens`
// has room for `count`.
MOERT_API moert_error *moert_session_choose(moert_session *session, const moert_choice *choices,
                                            size_t count, int32_t *tokens);

//===-- Generation -------------------------------------------------------===//

typedef struct moert_generate_options {
  size_t size;
  uint64_t maximum_tokens; // 0: 128
  double temperature;      // 0: greedy, ties to the lowest id
  int64_t top_k;           // 0: all
  double top_p;            // 0: all
  uint64_t seed;
  uint32_t ignore_end; // 1: go on after an end-of-text token
  uint32_t reserved;
  uint64_t chunk; // feed the prompt in pieces of so many tokens; 0: all at once
  // Called with each new token; anything but 0 stops. May be NULL.
  int (*on_token)(void *context, int32_t token);
  void *context;
  // Images take the places of the prompt's tokens image_token, one each, in order.
  const moert_image *const *images;
  size_t image_count;
} moert_generate_options;

// Continues `prompt` in a sequence of its own. `options` may be NULL. Free *ids with moert_free.
MOERT_API moert_error *moert_generate(moert_session *session, const int32_t *prompt,
                                      size_t prompt_count, const moert_generate_options *options,
                                      int32_t **ids, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
