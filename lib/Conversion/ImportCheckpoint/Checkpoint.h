//===- Checkpoint.h - a checkpoint folder: config.json and the headers of its shards
//-----------===//
//
// Plain C++, so that its tests run under sanitizers. Nothing here stops at the first problem: they
// gather, and status() tells them all.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_CHECKPOINT_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_CHECKPOINT_H

#include "runtime/base/Json.h"
#include "runtime/base/Safetensors.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlir::moec {

/// Whether `text` is `pattern`, where each '*' of the pattern stands for any text.
bool matchesPattern(std::string_view pattern, std::string_view text);

/// Where a tensor lies.
struct CheckpointTensor {
  std::string file; // below the folder
  const moert::SafetensorsTensor *entry = nullptr;
  bool used = false;
};

class Checkpoint {
public:
  /// Fails only when there is no such folder; everything else lands in status().
  static moert::Result<std::unique_ptr<Checkpoint>> open(const std::string &path);

  /// Changes a field of config.json, before anything reads it: see ImportCheckpointOptions::settings.
  void set(const std::string &setting);
  /// config.json's top level; a null view when it could not be read.
  moert::JsonView config();
  /// Another JSON file of the folder; a null view when there is none.
  moert::JsonView json(const std::string &name);
  /// Whether config.json, or another JSON file that was asked for, had a problem so far.
  bool hasJsonProblems() const;
  bool contains(std::string_view file) const { return folder.contains(file); }

  /// Whether a shard has the tensor or the index lists it.
  bool hasTensor(std::string_view name) const;
  const CheckpointTensor *findTensor(std::string_view name) const;
  /// The tensor, marked as used. Complains and gives null when it is missing, has another shape or
  /// a type that is not accepted; stays silent when its shard could not be read, which was said
  /// already.
  const CheckpointTensor *take(const std::string &name, std::span<const std::int64_t> shape,
                               std::span<const moert::ElementType> accepted);

  /// Tensors of names that match `pattern` may stay unused: the family knows what they are.
  void allowUnused(std::string pattern) { knownUnused.push_back(std::move(pattern)); }

  void complain(std::string message) { problems.push_back(std::move(message)); }
  /// Complains about tensors that nobody took, that no pattern allows and that are not of a layer
  /// outside of `layers` (the first and the last one), if given.
  void checkUnused(std::span<const std::string> allowed,
                   std::optional<std::pair<std::int64_t, std::int64_t>> layers = {});

  /// Every problem so far as one error.
  moert::Status status() const;

private:
  struct Document {
    moert::Json content;
    moert::Problems problems;
  };

  explicit Checkpoint(moert::Folder folder) : folder(std::move(folder)) {}
  Document *load(const std::string &name, bool required);
  void openShards();
  void readIndex();
  std::vector<std::string> findShards();
  void openShard(const std::string &name);
  void checkIndex();

  moert::Folder folder;
  std::map<std::string, std::unique_ptr<Document>> documents;
  std::vector<std::unique_ptr<moert::SafetensorsFile>> shards;
  std::map<std::string, CheckpointTensor, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> weightMap; // tensor -> shard, from the index
  bool hasIndex = false;
  std::set<std::string, std::less<>> brokenShards;
  std::vector<std::string> knownUnused, problems;
  std::string hint;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_CHECKPOINT_H
