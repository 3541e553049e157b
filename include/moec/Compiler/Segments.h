//===- Segments.h - a step function cut into its layers -------------------------------------===//
//
// `moec verify` compares compiled code with a reference layer by layer, each layer with the
// reference's inputs. For that the step function of phase moe is cut: what is named after layer N
// (by its location, such as "model.layers.3.mlp.router", or by the weights that it reads) up to
// what is named after the next layer is one segment; what comes before is the embedding, what comes
// after the head. Ops that depend on no token (weights, constants, sizes) belong to no segment:
// each gets its copy.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_COMPILER_SEGMENTS_H
#define MOEC_COMPILER_SEGMENTS_H

#include "moec/Analysis/SymbolicDims.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::moec {

struct Segment {
  std::string name; ///< "embedding", "layer 3", "layers 3 to 5", "head", or "program" where there
                    ///< are no layers
  std::optional<int64_t> layer;     ///< the last one
  std::vector<Operation *> ops;     ///< of the step function, in its order
  SmallVector<Value> results;       ///< that later segments read or the function returns
  SmallVector<Operation *> choices; ///< ops that turn numbers into integers: routers
};

/// A function of its own, in a module of its own.
struct SegmentProgram {
  OwningOpRef<ModuleOp> module;
  SmallVector<Value> arguments; ///< which values of the step function its arguments are
};

/// The step function stays as it is and must outlive this.
class Segmentation {
public:
  /// Reports sizes that it cannot express, and values between layers that are no tensors.
  static FailureOr<Segmentation> create(func::FuncOp step);

  const std::vector<Segment> &getSegments() const { return segments; }
  /// All of the function as one segment.
  Segment getWhole() const;

  /// The function `segment`, which computes `results` from what its ops read; its results are
  /// called "r0", "r1", ...
  FailureOr<SegmentProgram> extract(const Segment &segment, ArrayRef<Value> results) const;
  /// The same of one op of a segment.
  FailureOr<SegmentProgram> extract(Operation *op) const;

  /// The segment up to `last`, for finding the first op of several that goes wrong.
  Segment getPrefix(const Segment &segment, Operation *last) const;

  /// Every tensor that the segment's ops compute, in their order, but for views of others.
  SmallVector<Value> getComputedValues(const Segment &segment) const;

  /// Whether `value` of the segment is computed from a result of `choice`.
  bool dependsOn(const Segment &segment, Value value, Operation *choice) const;

private:
  explicit Segmentation(func::FuncOp step) : step(step) {}
  void findCopied();
  void cut();
  void mergeSharedStates();
  void findResults();
  bool isCopied(Operation *op) const { return copied.contains(op); }
  /// The texts of `moe.dims` for an argument that stands for `value`.
  ArrayAttr nameDims(Value value, SymbolicDims &dims,
                     std::vector<std::pair<AffineExpr, std::string>> &named) const;

  mutable func::FuncOp step; ///< a handle: MLIR knows no const ops
  DenseSet<Operation *> copied;
  std::vector<Segment> segments;
};

/// The layer that a name such as "model.layers.3.self_attn.q_proj.weight" speaks of.
std::optional<int64_t> parseLayer(StringRef name);

/// The name in a location: "model.layers.3.self_attn.q_proj"; empty where there is none.
std::string getLocationName(Location location);

} // namespace mlir::moec

#endif // MOEC_COMPILER_SEGMENTS_H
