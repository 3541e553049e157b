// A bundle made ready to run: code loaded, weights read and packed.
#ifndef MOERT_SESSION_MODEL_H
#define MOERT_SESSION_MODEL_H

#include "runtime/base/ElementType.h"
#include "runtime/base/Status.h"
#include "runtime/bundle/Bundle.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

class Device;
class LoadedVariant;
class Timeline;

struct LoadOptions {
  // Threads that run kernels, the calling one included. 0: one for each core that this process may
  // use (its CPU affinity and its cgroup quota, rounded up).
  unsigned threads = 0;
  // A variant's target, such as "cpu:x86-64-v3". Empty: the first that the machine can run.
  std::string variant = {};
  // "cpu"; "cuda", the first GPU that a variant fits; "cuda:1", that GPU; "auto" or empty: whatever
  // the first variant that fits is for.
  std::string device = {};
  // Let a GPU keep steps that come again as CUDA graphs.
  bool captureGraphs = true;
  // Weight bytes read so far. Called from the loading thread.
  ByteProgress progress = {};
};

// A dense tensor in ordinary memory, row-major (ElementType.h says how elements lie).
struct Tensor {
  ElementType type = ElementType::Unspecified;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

// What one kernel launch of a program took, summed over all steps since profiling began.
struct ProfileEntry {
  std::string source; // which ops of the model
  std::string kernel;
  std::uint64_t launches = 0;
  double seconds = 0;
  double flops = 0;      // as the compiler states them; 0: unknown
  double bytesMoved = 0; // the same
};

// What running a program took: each launch by itself, and, in a second run, all of them in one go.
struct RunProfile {
  std::vector<ProfileEntry> launches;
  double seconds = 0;
};

struct MemoryUse {
  std::uint64_t weights = 0; // read as they lie in files and still needed
  std::uint64_t globals = 0; // packed at load
};

// Immutable; any number of threads and sessions may share it. Programs of one model run one at a
// time: its device serves one program after the other.
class Model {
public:
  static Result<std::shared_ptr<const Model>> load(std::shared_ptr<const Bundle> bundle,
                                                   const LoadOptions &options = {});
  ~Model();

  const Bundle &bundle() const { return *source; }
  const std::string &variant() const; // the target that was chosen
  unsigned threads() const;           // of this process that work for the device
  MemoryUse memory() const;
  bool isLanguageModel() const { return source->manifest().has_language_model(); }
  std::vector<std::string> entries() const;

  // Runs an entry once on plain tensors. `inputs` must have exactly the entry's inputs, by name,
  // with their types; shapes must agree on every symbol. An empty `entry` means the only one.
  // States begin as zeros and are dropped afterwards. A `profile` runs the entry twice.
  Result<std::map<std::string, Tensor>> run(std::string_view entry,
                                            const std::map<std::string, Tensor> &inputs,
                                            RunProfile *profile = nullptr,
                                            Timeline *timeline = nullptr) const;

  const std::shared_ptr<Device> &device() const { return runsOn; }

  // For Session.
  const LoadedVariant &loaded() const { return *code; }

private:
  Model() = default;
  std::shared_ptr<const Bundle> source;
  std::shared_ptr<Device> runsOn;
  std::unique_ptr<LoadedVariant> code;
};

// Targets of the bundle in its order, each with what this machine lacks for it ("" when it runs
// here).
struct VariantFit {
  std::string target;
  std::string missing;
};
std::vector<VariantFit> fitVariants(const moec::bundle::Manifest &manifest);

} // namespace moert

#endif
