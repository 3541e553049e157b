#include "moec/Dialect/MoE/Reference/Interpreter.h"

#include "runtime/base/File.h"

using namespace mlir;
using namespace mlir::moec::moe;

WeightSource::~WeightSource() = default;

namespace {
class WeightFolder : public WeightSource {
public:
  explicit WeightFolder(moert::Folder folder) : folder(std::move(folder)) {}

  LogicalResult read(StringRef name, uint64_t offset, MutableArrayRef<std::byte> bytes,
                     std::string &problem) override {
    auto known = files.find(name.str());
    if (known == files.end()) {
      moert::Result<moert::File> file = folder.openFile(name.str());
      if (!file.isOk()) {
        problem = file.status().toString();
        return failure();
      }
      known = files.emplace(name.str(), *std::move(file)).first;
    }
    moert::Status status = known->second.readAt({bytes.data(), bytes.size()}, offset);
    if (status.isOk())
      return success();
    problem = status.toString();
    return failure();
  }

private:
  moert::Folder folder;
  std::map<std::string, moert::File> files;
};
} // namespace

FailureOr<std::unique_ptr<WeightSource>>
mlir::moec::moe::openWeightFolder(StringRef path, bool followLinks, std::string &problem) {
  moert::Result<moert::Folder> folder =
      moert::Folder::open(path.str(), followLinks ? moert::Links::Allow : moert::Links::Refuse);
  if (!folder.isOk()) {
    problem = folder.status().toString();
    return failure();
  }
  return std::unique_ptr<WeightSource>(std::make_unique<WeightFolder>(*std::move(folder)));
}
