//===- ModelBuilder.h - the blocks that model families are made of
//-----------------------------===//
//
// Builds the step function of a language model. Each block is named after the tensors that it uses;
// the name becomes the ops' location. A missing or unfit tensor becomes a complaint of the
// checkpoint and a stand-in, so that building goes on and finds the other problems, too.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_MODELBUILDER_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_MODELBUILDER_H

#include "Checkpoint.h"
#include "LanguageModelConfig.h"
#include "RotaryConfig.h"
#include "VisionConfig.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::moec {

class ModelBuilder {
public:
  /// With `layers` only these are built, the first and the last one.
  ModelBuilder(MLIRContext *context, Checkpoint &checkpoint, Type activationType,
               int64_t blockTokens, std::optional<std::pair<int64_t, int64_t>> layers = {});

  /// The layers to build of a model's `count`, in order. Complains when it has fewer than asked
  /// for.
  SmallVector<int64_t> getLayers(int64_t count);

  MLIRContext *getContext() { return builder.getContext(); }
  Type getActivationType() const { return activationType; }

  // Weights. A tensor that is asked for twice is the same value.
  bool hasTensor(StringRef name) const { return checkpoint.hasTensor(name); }
  Value weight(StringRef name, ArrayRef<int64_t> shape);
  /// Part `part` of `parts` equal ones of a tensor, along its first dimension.
  Value weightPart(StringRef name, ArrayRef<int64_t> shape, int64_t part, int64_t parts);
  /// Tensors of shape `partShape` and one type, one behind the other, as a weight of shape `shape`.
  Value stackedWeight(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                      ArrayRef<int64_t> shape);
  /// `name`_blocks and `name`_scales, as one MXFP4 tensor of logical shape `shape`.
  Value mxfp4Weight(StringRef name, ArrayRef<int64_t> shape);
  /// The weight with all dimensions but the first as one.
  Value foldedWeight(StringRef name, ArrayRef<int64_t> stored);
  /// The weight's elements, in order, in another shape. Both shapes have one number of elements.
  Value reshapedWeight(StringRef name, ArrayRef<int64_t> stored, ArrayRef<int64_t> shape);
  /// The shape that the checkpoint has of a tensor; empty where it has none.
  SmallVector<int64_t> getTensorShape(StringRef name) const;
  // Matrices as checkpoints quantise them; see QuantizedWeights.cpp.
  /// NAME.weight [rows, columns].
  Value matrix(StringRef name, int64_t rows, int64_t columns);
  /// As stackedWeight, of whatever the tensors are: which ones are quantised is read from their
  /// types and from the tensors beside them, as lists of exceptions in configs are not exact.
  Value stackedMatrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                        ArrayRef<int64_t> shape);
  /// A matrix [groups * rows, columns] as [groups, rows, columns].
  Value groupRows(StringRef name, Value matrix, int64_t groups);
  /// Of a matrix whose rows form `groups` equal groups: from each group `count` rows from `first`
  /// on, for one part after the other.
  struct RowsOfGroup {
    int64_t first, count;
  };
  Value regroupedRows(StringRef name, Value matrix, int64_t groups, ArrayRef<RowsOfGroup> parts);
  /// The last two dimensions of three exchanged; of a weight that is done when it is loaded.
  Value transpose(StringRef name, Value input);
  /// A weight of shape [outer, columns, rows], seen as [outer, rows, columns].
  Value transposedWeight(StringRef name, int64_t outer, int64_t rows, int64_t columns);

  // What each token computes alone: [tokens, ...] to [tokens, ...].
  Value embedding(StringRef name, int64_t vocabulary, int64_t hidden);
  /// With `unitOffset` the input is multiplied by 1 + weight.
  Value rmsNorm(StringRef name, Value input, double epsilon, bool unitOffset = false);
  /// Without a weight.
  Value plainRmsNorm(StringRef name, Value input, double epsilon);
  /// NAME.weight and, if the checkpoint has it, NAME.bias.
  Value layerNorm(StringRef name, Value input, double epsilon);
  /// name.weight [features, ...] and, with `hasBias`, name.bias. The result is of the activation
  /// type unless said otherwise.
  Value linear(StringRef name, Value input, int64_t features, bool hasBias, Type resultType = {});
  /// A product with a matrix [features, ...] that is known already.
  Value product(StringRef name, Value input, Value matrix, Type resultType = {});
  /// `groups` products of `inputs` features each with the rows of a part of NAME.weight,
  /// [groups * features, inputs], one behind the other.
  Value groupedLinear(StringRef name, Value input, int64_t groups, int64_t inputs,
                      int64_t features);
  Value add(StringRef name, Value left, Value right);
  Value sigmoid(StringRef name, Value input);
  /// Attention residuals: the weight is the product of `norm`.weight [features] and
  /// `projection`.weight [1, features].
  Value mixResiduals(StringRef norm, StringRef projection, ValueRange candidates, double epsilon);
  Value gate(StringRef name, Value gate, Value up, moe::ActivationAttr activation);
  /// activation(gate x, up x), then down: the plain weights NAME.gate_proj, NAME.up_proj,
  /// NAME.down_proj.
  Value gatedLayer(const std::string &name, Value input, int64_t inner,
                   moe::ActivationAttr activation);
  /// The same with silu(gate x) * up x.
  Value swigluLayer(const std::string &name, Value input, int64_t inner);
  Value splitHeads(StringRef name, Value input, int64_t heads);
  Value mergeHeads(StringRef name, Value input);
  /// Elements [first, first + count) of the last dimension, or of `dimension`.
  Value slice(StringRef name, Value input, int64_t first, int64_t count,
              std::optional<int64_t> dimension = {});
  /// Along the last dimension.
  Value concatenate(StringRef name, ValueRange parts);
  /// Each head [tokens, heads, k] times its own matrix of weight [heads, n, k].
  Value headLinear(StringRef name, Value input, Value weight);
  /// [tokens, dimension] to [tokens, heads, dimension], the same for each head.
  Value repeatHead(StringRef name, Value input, int64_t heads);
  /// input * sigmoid(gate), elementwise, in f32 and rounded once. A gate [tokens, 1] is for all
  /// elements of a token.
  Value sigmoidGate(StringRef name, Value input, Value gate);
  Value rope(StringRef name, Value input, const RotaryConfig &rotary);

  // Attention over a paged cache.
  struct AttentionParameters {
    double scale = 1;
    int64_t window = 0; // 0: none
    Value sinks;        // may be null
    Value indices;      // the positions that each token sees; null: all of them
  };
  /// One more cache of the step; the first one is "kv.0".
  Value cache(int64_t kvHeads, int64_t keyDimension, int64_t valueDimension,
              moe::CacheForm form = moe::CacheForm::split);
  /// Without `value` the cache's keys hold the values.
  Value attention(StringRef name, Value query, Value key, Value value, Value cache,
                  const AttentionParameters &parameters);
  /// The positions of each token's best keys: see moe.select_keys. Weights are f32 [tokens, heads].
  Value selectKeys(StringRef name, Value query, Value weights, Value key, Value cache, int64_t topK,
                   double scale);

  // Linear attention, over one slot a sequence in each state; see ModelBuilderRecurrent.cpp.
  /// One more state of the step; the first one is "state.0".
  Value state(ArrayRef<int64_t> shape, Type elementType);
  /// The weight NAME.weight of shape [channels, 1, taps], and silu.
  Value causalConv(StringRef name, Value input, int64_t taps);
  /// `input` f32 [tokens, heads, channels]; a_log [at least heads], bias [heads, channels].
  Value decayGate(StringRef name, Value input, Value aLog, Value bias,
                  std::optional<double> lowerBound);
  struct DeltaRuleOperands {
    Value query, key, value; // [tokens, heads, dimension]
    Value decay, beta; // f32 [tokens, heads, key dimension] or [tokens, heads]; [tokens, heads]
  };
  /// The result is f32. Queries and keys are made unit vectors first.
  Value deltaRule(StringRef name, const DeltaRuleOperands &operands, double scale,
                  double normEpsilon);
  /// Over each head; the weight NAME.weight [dimension].
  Value gatedRmsNorm(StringRef name, Value input, Value gate, moe::GateFunction function,
                     double epsilon);

  // A residual of several streams, [tokens, streams, features]; see ModelBuilderCompression.cpp.
  struct HyperParameters {
    int64_t streams = 1, iterations = 1;
    double epsilon = 0, normEpsilon = 0;
  };
  /// The weights PREFIXfn, PREFIXscale and PREFIXbase. With `isHead` what collapses alone.
  Value hyperWeights(StringRef prefix, Value streams, const HyperParameters &parameters,
                     bool isHead);
  Value hyperCollapse(StringRef name, Value streams, Value weights);
  Value hyperExpand(StringRef name, Value input, Value streams, Value weights);

  // Attention over windows of tokens that are compressed into entries.
  struct CompressorParameters {
    int64_t ratio = 1, dimension = 1;
    bool overlaps = false;
    double epsilon = 0;
    RotaryConfig rotary;
  };
  /// Compresses by the weights NAME.wkv, NAME.wgate, NAME.ape and NAME.norm. -> a cache of entries.
  Value compress(const std::string &name, Value input, const CompressorParameters &parameters);
  /// The `count` entries of a cache that score best, for each token.
  Value selectEntries(StringRef name, Value query, Value weights, Value entries, int64_t ratio,
                      int64_t count);
  /// `rows` [tokens, 1, dimension] of this step's tokens are keys and values. `indices` may be
  /// null.
  Value compressedAttention(StringRef name, Value query, Value rows, Value entries, Value indices,
                            int64_t ratio, const AttentionParameters &parameters);

  // Images; see ModelBuilderVision.cpp.
  /// The step gets embeddings of images, which take the places of the tokens' where they are given.
  /// To be said before the embedding is built.
  void expectImages(int64_t hidden);
  /// The patches of an item in the order of the embeddings that they become, flat: [embeddings *
  /// merge^2 * frames, ...]. Attention does not look at the order.
  struct ImagePatches {
    Value pixels;                         // f32 [patches, 3 * side * side]
    Value rows, heights, columns, widths; // i32 [patches]: places, and the sizes of the frame
    Value times;                          // 0 in items of one frame, else 1 + the frame
    Value keys, lastKeys, items; // where a patch's key goes in the item's cache, the last of
                                 // them, and the number of the item
    Value blockTable;
    Value embeddings, frames; // how many
  };
  /// Adds an entry beside the step; `build` gives its result.
  void imageEncoder(const VisionConfig &config, function_ref<Value(const ImagePatches &)> build);
  /// Keys and values of one layer at a time, of all patches of an item.
  Value itemCache(int64_t heads, int64_t dimension);
  /// Each patch sees all patches of its item.
  Value itemAttention(StringRef name, Value query, Value key, Value value, Value cache,
                      const ImagePatches &patches, double scale);
  Value rotateInPlane(StringRef name, Value input, const ImagePatches &patches,
                      ArrayRef<double> frequencies);
  /// Adds NAME.weight [rows, columns, features], interpolated, and the time.
  Value addPositions(StringRef name, Value input, const ImagePatches &patches,
                     const VisionConfig &config);
  Value mergePatches(StringRef name, Value input, const ImagePatches &patches, int64_t merge);
  Value toActivationType(StringRef name, Value input);
  /// x/2 (1 + erf(x / sqrt 2)), or with the usual approximation by tanh; in f32, rounded once.
  Value gelu(StringRef name, Value input, bool isApproximate);

  // Mixture of experts.
  struct RouteParameters {
    moe::ScoreFunction score = moe::ScoreFunction::softmax;
    Value selectionBias; // f32 [experts], may be null
    int64_t topK = 1, groups = 1, topGroups = 1;
    bool renormalize = false;
    double scale = 1;
    int64_t vocabulary = 0; // where experts follow from token ids
  };
  struct Routing {
    Value weights, indices;
  };
  /// Experts by token id, from the table NAME [vocabulary, topK].
  Routing hashRoute(StringRef name, Value logits, const RouteParameters &parameters);
  Routing route(StringRef name, Value logits, const RouteParameters &parameters);
  struct ExpertWeights {
    Value gateUp, down;         // [experts, 2 inner, hidden], [experts, hidden, inner]
    Value gateUpBias, downBias; // may be null
  };
  Value experts(StringRef name, Value input, const Routing &routing, const ExpertWeights &weights,
                moe::ActivationAttr activation);

  /// Only the rows whose logits are wanted.
  Value selectLogitRows(Value input);

  /// Completes the function and the module around it.
  OwningOpRef<ModuleOp> finish(Value logits, const LanguageModelConfig &config, StringRef model,
                               StringRef weightRoot);

private:
  void append(StringRef name, Value key, Value value, Value cache);
  Location at(StringRef name);
  Value addArgument(StringRef name, ArrayRef<StringRef> dims);
  Value addArgument(StringRef name, RankedTensorType type, ArrayRef<StringRef> dims);
  /// Ends the function at hand, which gives `result`.
  void finishEntry(Value result, StringRef name);
  void setVision(StringRef entry, const VisionConfig &config);
  Value spliceImages(StringRef name, Value embeddings);
  Value ropeAt(StringRef name, Value input, Value places, const RotaryConfig &rotary);
  Value cacheOfBlocks(int64_t kvHeads, int64_t keyDimension, int64_t valueDimension, int64_t block,
                      moe::CacheForm form = moe::CacheForm::split);
  /// How entries of windows of `ratio` tokens lie in blocks: `block` of them in one, or one at the
  /// end of every `stride` blocks.
  struct EntryBlocks {
    int64_t block, stride;
  };
  EntryBlocks getEntryBlocks(int64_t ratio);
  /// Where in a sequence the window of each token begins, and where in a cache of entries the entry
  /// goes that a token completes (-1: nowhere).
  struct WindowPlaces {
    Value starts, entries;
  };
  WindowPlaces getWindowPlaces(int64_t ratio);
  RankedTensorType typeLike(Value input, int64_t features, Type elementType);
  Value takeWeight(StringRef name, ArrayRef<int64_t> shape, ArrayRef<moert::ElementType> accepted);
  Value takeStack(ArrayRef<std::string> names, ArrayRef<int64_t> partShape, ArrayRef<int64_t> shape,
                  SmallVector<moert::ElementType> accepted);
  /// Whether NAME is a tensor of codes, or there are packed ones in its place.
  bool isQuantized(const std::string &name) const;
  /// MXFP4: two codes of a row in a byte, the first one in the low bits, and a scale for 32 of
  /// them.
  Value mxfp4Matrices(ArrayRef<std::string> codeNames, ArrayRef<std::string> scaleNames,
                      ArrayRef<int64_t> partShape, ArrayRef<int64_t> shape);
  Value float8Matrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                       ArrayRef<int64_t> shape);
  Value int4Matrices(ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
                     ArrayRef<int64_t> shape);
  /// The parts' values in the activation type, as one tensor of shape `shape`.
  Value dequantize(StringRef name, moe::CodeFormat format, Value codes, Value scales,
                   std::pair<int64_t, int64_t> block, ArrayRef<int64_t> stacked,
                   ArrayRef<int64_t> shape);
  /// Rows and columns that share a scale of FP8; nothing where a whole matrix does.
  std::optional<std::pair<int64_t, int64_t>> getScaleBlock();
  Type getElementType(const CheckpointTensor *tensor, moert::ElementType otherwise);
  moe::WeightRefAttr getReference(const CheckpointTensor *tensor);

  Checkpoint &checkpoint;
  Type activationType;
  int64_t blockTokens;
  std::optional<std::pair<int64_t, int64_t>> layers;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  func::FuncOp step; // or the entry that is built at the moment
  llvm::StringMap<Value> weights;
  SmallVector<Attribute> argumentAttributes;
  Value tokenCount;
  Value tokens, positions, tokenSequences, sequenceOffsets, blockTable, logitRows;
  Value stateSlots;                 // null before the first state
  Value imageRows, imageEmbeddings; // null where nothing is said of images
  DictionaryAttr vision;            // the same
  std::optional<std::optional<std::pair<int64_t, int64_t>>> scaleBlock; // once it was read
  llvm::DenseMap<int64_t, WindowPlaces> windowPlaces;                   // by ratio
  int64_t caches = 0, states = 0;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_MODELBUILDER_H
