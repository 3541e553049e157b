// The weights that a bundle's programs name, and the files they lie in.
#ifndef MOEC_LIB_CONVERSION_EXPORTBUNDLE_WEIGHTTABLE_H
#define MOEC_LIB_CONVERSION_EXPORTBUNDLE_WEIGHTTABLE_H

#include "moec/Dialect/Plan/IR/Plan.h"

#include "runtime/abi/bundle.pb.h"
#include "runtime/base/File.h"

#include <map>
#include <string>
#include <vector>

namespace mlir::moec {

class WeightTable {
public:
  /// `root` is the folder that references are relative to.
  explicit WeightTable(std::string root) : root(std::move(root)) {}

  /// The index of a weight, or of the first one of several that lie one behind the other, added when
  /// new. Reports a reference beyond its file's end.
  FailureOr<unsigned> add(plan::WeightOp op);

  /// Fills the manifest's tables. Files are referred to from `bundlePath`, relative where both lie
  /// below a common folder other than the root. With `copyTo`, the bytes of all weights are written
  /// to files of that folder instead. Weights get digests when they are copied or when all of them
  /// together are at most `digestLimit` bytes.
  LogicalResult write(Location loc, StringRef bundlePath, StringRef copyTo, uint64_t digestLimit,
                      ::moec::bundle::Manifest &manifest);

private:
  struct SourceFile {
    std::string name;
    moert::File file;
    uint64_t headerBytes = 0;
  };
  FailureOr<unsigned> addFile(Location loc, StringRef name);
  LogicalResult addTensor(plan::WeightOp op, StringRef name, moe::WeightRefAttr ref);
  LogicalResult addDigests(Location loc);
  LogicalResult copy(Location loc, StringRef folder, ::moec::bundle::Manifest &manifest);
  void refer(Location loc, StringRef bundlePath, ::moec::bundle::Manifest &manifest);

  std::string root;
  std::vector<SourceFile> files;
  std::map<std::string, unsigned> fileIndices;
  std::vector<::moec::bundle::Weight> weights;
  /// By name and places.
  std::map<std::tuple<const void *, const void *, const void *>, unsigned> weightIndices;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_EXPORTBUNDLE_WEIGHTTABLE_H
