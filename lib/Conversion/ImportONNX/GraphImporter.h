//===- GraphImporter.h - values, symbols and problems of one graph
//------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_GRAPHIMPORTER_H
#define MOEC_CONVERSION_IMPORTONNX_GRAPHIMPORTER_H

#include "ModelFile.h"
#include "SymbolicSize.h"
#include "TensorData.h"

#include "moec/Conversion/ImportONNX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace onnx {
class GraphProto;
class NodeProto;
class TensorProto;
class ValueInfoProto;
} // namespace onnx

namespace mlir::moec::onnx_import {

struct LanguageModelInterface;

using Shape = SmallVector<SymbolicSize>;

/// A tensor of the graph. Its IR is made on first use, so that shape arithmetic that only shapes
/// need leaves none.
struct ImportedValue {
  int dataType = 0; // TensorProto.DataType
  Shape shape;
  /// Elements of a small integer tensor whose values are known as expressions of the sizes,
  /// row-major.
  std::optional<SmallVector<SymbolicSize>> contents;
  /// Elements of a small constant.
  DenseElementsAttr constant;
  Value tensor;
  const TensorData *weight = nullptr; // an initialiser that is referred to
  std::string name;
  bool nonNegative = false; // integer elements that are never negative
  bool failed = false;      // could not be imported; its users are skipped

  size_t rank() const { return shape.size(); }
  /// The one element of a constant of one element.
  std::optional<double> scalar() const;
};

/// Where a symbol's value comes from: a size of a tensor, or an index.
struct SymbolSource {
  std::string name;
  Value tensor;
  int64_t dimension = 0;
  Value index;
};

class GraphImporter {
public:
  GraphImporter(const ModelFile &file, const ImportONNXOptions &options, MLIRContext *context);

  /// Everything: opsets, interface, initialisers, nodes, results. Reports all problems as one
  /// diagnostic.
  FailureOr<OwningOpRef<ModuleOp>> run();

  // What node handlers use.
  OpBuilder builder;
  Location location;

  void problem(const Twine &text);
  bool hasProblems() const { return !problems.empty(); }

  std::string toString(const SymbolicSize &size) const;
  std::string toString(const Shape &shape) const;

  /// A new symbol whose value is `index`.
  SymbolicSize symbolFor(Value index, const Twine &name);
  Value sizeValue(const SymbolicSize &size);
  OpFoldResult sizeFold(const SymbolicSize &size);
  SmallVector<OpFoldResult> sizeFolds(ArrayRef<SymbolicSize> shape);

  /// The MLIR type of elements; integers are signless. Null when there is none.
  Type elementType(int dataType);
  RankedTensorType tensorType(Type element, ArrayRef<SymbolicSize> shape);

  /// Makes `value` the constant that an attribute holds. Reports what is wrong with it.
  bool importConstantTensor(const onnx::TensorProto &tensor, ImportedValue &value);

  /// The IR of a value.
  Value materialize(ImportedValue &value);

  llvm::StringMap<ImportedValue> values;

private:
  bool collectOpsets();
  bool checkOperators();
  bool importTensor(const onnx::TensorProto &tensor, std::optional<uint64_t> rawDataOffset,
                    ImportedValue &value, std::string &why);
  void importInputs();
  void importInitializers();
  void importNodes();
  void importOutputs();
  LogicalResult describeLanguageModel(const LanguageModelInterface &interface);
  std::optional<Shape> importShape(const onnx::ValueInfoProto &info, int &dataType);
  SymbolicSize namedDimension(const std::string &name);
  Value materializeWeight(ImportedValue &value);

  const ModelFile &file;
  const ImportONNXOptions &options;
  MLIRContext *context;
  const onnx::GraphProto &graph;
  llvm::StringMap<int64_t> opsets;
  llvm::StringMap<int64_t> fixedDimensions;
  llvm::StringMap<unsigned> dimensionSymbols;
  std::vector<SymbolSource> symbols;
  std::vector<std::unique_ptr<TensorData>> initializers;
  std::vector<std::string> problems;
  size_t problemCount = 0;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

} // namespace mlir::moec::onnx_import

#endif
