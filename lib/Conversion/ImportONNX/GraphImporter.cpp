//===- GraphImporter.cpp - values, symbols and problems of one graph
//----------------------------===//

#include "GraphImporter.h"

#include "LanguageModelFiles.h"
#include "LanguageModelInterface.h"
#include "OperatorTable.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "onnx-ml.pb.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mlir::moec::onnx_import {

/// More than this many elements are no shape arithmetic.
static constexpr int64_t maximumContents = 64;
/// Weights of at most this many bytes show their values to the raising passes: the frequencies of
/// rotary embeddings.
static constexpr uint64_t shownWeightBytes = 1024;
/// Larger tables of integers stay in their file.
static constexpr uint64_t largestTableBytes = 4096;
/// A file with more problems is hopeless; the first ones are enough.
static constexpr size_t shownProblems = 50;

std::optional<double> ImportedValue::scalar() const {
  if (contents && contents->size() == 1)
    if (std::optional<int64_t> value = contents->front().constant())
      return static_cast<double>(*value);
  if (!constant || constant.getNumElements() != 1)
    return std::nullopt;
  if (isa<FloatType>(constant.getElementType()))
    return (*constant.value_begin<APFloat>()).convertToDouble();
  return static_cast<double>((*constant.value_begin<APInt>()).getSExtValue());
}

GraphImporter::GraphImporter(const ModelFile &file, const ImportONNXOptions &options,
                             MLIRContext *context)
    : builder(context), location(FileLineColLoc::get(context, file.path, 0, 0)), file(file),
      options(options), context(context), graph(file.model->graph()),
      fixedDimensions(options.dimensions) {}

void GraphImporter::problem(const Twine &text) {
  if (++problemCount <= shownProblems)
    problems.push_back(text.str());
}

std::string GraphImporter::toString(const SymbolicSize &size) const {
  return size.toString([&](unsigned symbol) { return symbols[symbol].name; });
}

std::string GraphImporter::toString(const Shape &shape) const {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + toString(size);
  return text + "]";
}

//===------------------------------------------------------------------------------------------===//
// Sizes and types
//===------------------------------------------------------------------------------------------===//

SymbolicSize GraphImporter::symbolFor(Value index, const Twine &name) {
  symbols.push_back({name.str(), Value(), 0, index});
  return SymbolicSize::symbol(symbols.size() - 1);
}

SymbolicSize GraphImporter::namedDimension(const std::string &name) {
  if (auto fixed = fixedDimensions.find(name); fixed != fixedDimensions.end())
    return SymbolicSize(fixed->second);
  auto [entry, isNew] = dimensionSymbols.try_emplace(name, symbols.size());
  if (isNew)
    symbols.push_back({name, Value(), 0, Value()});
  return SymbolicSize::symbol(entry->second);
}

Value GraphImporter::sizeValue(const SymbolicSize &size) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, location, value);
  };
  Value sum;
  for (const auto &[product, coefficient] : size.terms()) {
    Value term;
    for (unsigned symbol : product) {
      const SymbolSource &source = symbols[symbol];
      Value factor = source.index;
      if (!factor)
        factor = tensor::DimOp::create(builder, location, source.tensor, source.dimension);
      term = term ? arith::MulIOp::create(builder, location, term, factor) : factor;
    }
    if (!term)
      term = index(coefficient);
    else if (coefficient != 1)
      term = arith::MulIOp::create(builder, location, term, index(coefficient));
    sum = sum ? arith::AddIOp::create(builder, location, sum, term) : term;
  }
  return sum ? sum : index(0);
}

OpFoldResult GraphImporter::sizeFold(const SymbolicSize &size) {
  if (std::optional<int64_t> constant = size.constant())
    return builder.getIndexAttr(*constant);
  return sizeValue(size);
}

SmallVector<OpFoldResult> GraphImporter::sizeFolds(ArrayRef<SymbolicSize> shape) {
  return llvm::map_to_vector(shape, [&](const SymbolicSize &size) { return sizeFold(size); });
}

Type GraphImporter::elementType(int dataType) {
  std::optional<moert::ElementType> type = elementTypeFromONNX(dataType);
  if (!type)
    return Type();
  using moert::ElementType;
  switch (*type) {
  case ElementType::F32:
    return builder.getF32Type();
  case ElementType::F16:
    return builder.getF16Type();
  case ElementType::BF16:
    return builder.getBF16Type();
  case ElementType::F64:
    return builder.getF64Type();
  case ElementType::I1:
    return builder.getI1Type();
  case ElementType::I8:
  case ElementType::U8:
    return builder.getI8Type();
  case ElementType::I16:
  case ElementType::U16:
    return builder.getI16Type();
  case ElementType::I32:
  case ElementType::U32:
    return builder.getI32Type();
  case ElementType::I64:
  case ElementType::U64:
    return builder.getI64Type();
  // Types that a graph can carry only into operators which are not imported yet.
  default:
    return Type();
  }
}

RankedTensorType GraphImporter::tensorType(Type element, ArrayRef<SymbolicSize> shape) {
  SmallVector<int64_t> sizes;
  for (const SymbolicSize &size : shape) {
    int64_t number = size.constant().value_or(ShapedType::kDynamic);
    if (number < 0 && number != ShapedType::kDynamic) {
      problem("a tensor of shape " + toString(Shape(shape)) + " cannot be: a size is negative");
      number = 0;
    }
    sizes.push_back(number);
  }
  return RankedTensorType::get(sizes, element);
}

//===------------------------------------------------------------------------------------------===//
// Values
//===------------------------------------------------------------------------------------------===//

Value GraphImporter::materializeWeight(ImportedValue &value) {
  auto type = tensorType(elementType(value.dataType), value.shape);
  auto reference =
      moe::WeightRefAttr::get(context, value.weight->reference->file,
                              value.weight->reference->offset, value.weight->byteCount);
  auto weight =
      moe::WeightOp::create(builder, location, type, builder.getStringAttr(value.name), reference);
  if (value.constant)
    weight->setAttr(onnxConstantValueAttr, value.constant);
  return weight;
}

Value GraphImporter::materialize(ImportedValue &value) {
  if (value.tensor)
    return value.tensor;
  if (value.weight)
    return value.tensor = materializeWeight(value);
  Type element = elementType(value.dataType);
  RankedTensorType type = tensorType(element, value.shape);
  if (!value.constant && value.contents) {
    bool allConstant =
        llvm::all_of(*value.contents, [](const SymbolicSize &size) { return size.constant(); });
    if (allConstant) {
      SmallVector<APInt> elements;
      for (const SymbolicSize &size : *value.contents)
        elements.push_back(APInt(element.getIntOrFloatBitWidth(), *size.constant(), true, true));
      value.constant = DenseElementsAttr::get(type, elements);
    } else {
      SmallVector<Value> elements;
      for (const SymbolicSize &size : *value.contents)
        elements.push_back(arith::IndexCastOp::create(builder, location, element, sizeValue(size)));
      return value.tensor = tensor::FromElementsOp::create(builder, location, type, elements);
    }
  }
  assert(value.constant && "a value without IR is a constant, a weight or shape arithmetic");
  return value.tensor = arith::ConstantOp::create(builder, location, type, value.constant);
}

/// Null where the raw bytes are not a valid constant of the type.
static DenseElementsAttr toConstant(RankedTensorType type, ArrayRef<char> bytes) {
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> elements(bytes.begin(), bytes.end());
    return DenseElementsAttr::get(type, elements);
  }
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  bool splat = false;
  if (!DenseElementsAttr::isValidRawBuffer(type, bytes, splat))
    return {};
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

bool GraphImporter::importTensor(const onnx::TensorProto &tensor,
                                 std::optional<uint64_t> rawDataOffset, ImportedValue &value,
                                 std::string &why) {
  moert::Result<TensorData> data = readTensor(tensor, file, rawDataOffset);
  if (!data.isOk())
    return why = data.status().message(), false;
  Type element = elementType(tensor.data_type());
  if (!element)
    return why = "element type " + dataTypeName(tensor.data_type()) + " is not supported", false;
  initializers.push_back(std::make_unique<TensorData>(std::move(*data)));
  TensorData &stored = *initializers.back();
  value.dataType = tensor.data_type();
  value.shape.clear();
  for (int64_t size : stored.shape)
    value.shape.push_back(SymbolicSize(size));
  auto type = RankedTensorType::get(stored.shape, element);
  int64_t elements = type.getNumElements();
  // Numbers that many nodes share (axes, scalars) are constants; tensors of floats are the model's
  // weights.
  bool isWeight = stored.reference && elements > 1 && !element.isInteger(1) &&
                  (isa<FloatType>(element) || stored.byteCount > largestTableBytes);
  if (isWeight)
    value.weight = &stored;
  if (!isWeight || stored.byteCount <= shownWeightBytes) {
    moert::Result<std::vector<char>> bytes = readBytes(stored, file);
    if (!bytes.isOk())
      return why = bytes.status().message(), false;
    value.constant = toConstant(type, *bytes);
    if (!value.constant)
      return why = "the data does not fit its type", false;
  }
  if ((element.isInteger(64) || element.isInteger(32)) && value.constant &&
      elements <= maximumContents) {
    value.contents.emplace();
    for (const APInt &number : value.constant.getValues<APInt>())
      value.contents->push_back(SymbolicSize(number.getSExtValue()));
    value.nonNegative =
        llvm::all_of(*value.contents, [](const SymbolicSize &size) { return size.isAtLeast(0); });
  }
  return true;
}

bool GraphImporter::importConstantTensor(const onnx::TensorProto &tensor, ImportedValue &value) {
  std::string why;
  if (!importTensor(tensor, std::nullopt, value, why))
    return problem("constant of node: " + why), false;
  value.failed = false;
  return true;
}

void GraphImporter::importInitializers() {
  if (graph.sparse_initializer_size())
    problem("sparse initialisers are not supported");
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const onnx::TensorProto &tensor = graph.initializer(i);
    std::string where = "initialiser " + moert::inQuotes(tensor.name()) + ": ";
    if (tensor.name().empty()) {
      problem("initialiser " + Twine(i) + " has no name");
      continue;
    }
    auto [entry, isNew] = values.try_emplace(tensor.name());
    ImportedValue &value = entry->second;
    if (!isNew) {
      problem(where + "the name is taken by another value");
      continue;
    }
    value.failed = true;
    value.name = tensor.name();
    std::string why;
    if (importTensor(tensor, file.rawDataOffsets[i], value, why))
      value.failed = false;
    else
      problem(where + why);
  }
}

//===------------------------------------------------------------------------------------------===//
// The graph
//===------------------------------------------------------------------------------------------===//

/// A module may be read from elsewhere than where it was made.
static std::string makeAbsolute(StringRef path) {
  SmallString<256> absolute(path);
  if (llvm::sys::fs::make_absolute(absolute))
    return path.str();
  llvm::sys::path::remove_dots(absolute, /*remove_dot_dot=*/false);
  return absolute.str().str();
}

static std::string domainName(StringRef domain) {
  return domain.empty() ? std::string("ai.onnx") : domain.str();
}

bool GraphImporter::collectOpsets() {
  for (const onnx::OperatorSetIdProto &opset : file.model->opset_import()) {
    StringRef domain = opset.domain() == "ai.onnx" ? StringRef() : StringRef(opset.domain());
    if (!opsets.try_emplace(domain, opset.version()).second)
      problem("opset_import names the domain " + moert::inQuotes(domainName(domain)) + " twice");
  }
  auto standard = opsets.find("");
  if (standard != opsets.end() && (standard->second < 13 || standard->second > 28))
    problem("opset " + Twine(standard->second) +
            " of ai.onnx is not supported, expected 13 to 28; convert the model with "
            "onnx.version_converter");
  return !hasProblems();
}

bool GraphImporter::checkOperators() {
  for (const onnx::NodeProto &node : graph.node()) {
    StringRef domain = node.domain() == "ai.onnx" ? StringRef() : StringRef(node.domain());
    auto opset = opsets.find(domain);
    std::string what = "node " + moert::inQuotes(node.name()) + ": operator " +
                       moert::inQuotes(node.op_type()) + " of domain " +
                       moert::inQuotes(domainName(domain));
    if (opset == opsets.end()) {
      problem(what + ": opset_import does not name the domain");
      continue;
    }
    what += ", version " + std::to_string(opset->second) + ": ";
    std::string why;
    const OperatorEntry *entry = findOperator(domain, node.op_type(), opset->second, why);
    if (!entry) {
      problem(what + why);
      continue;
    }
    SmallVector<StringRef> known;
    entry->attributes.split(known, ' ');
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (!llvm::is_contained(known, attribute.name()))
        problem(what + "attribute " + moert::inQuotes(attribute.name()) + " is not supported");
  }
  return !hasProblems();
}

std::optional<Shape> GraphImporter::importShape(const onnx::ValueInfoProto &info, int &dataType) {
  std::string where = "input " + moert::inQuotes(info.name()) + ": ";
  if (!info.type().has_tensor_type()) {
    problem(where + "is no tensor");
    return std::nullopt;
  }
  const onnx::TypeProto::Tensor &type = info.type().tensor_type();
  dataType = type.elem_type();
  if (!elementType(dataType)) {
    problem(where + "element type " + dataTypeName(dataType) + " is not supported");
    return std::nullopt;
  }
  if (!type.has_shape()) {
    problem(where + "its rank is unknown; export the model with a shape for every input");
    return std::nullopt;
  }
  Shape shape;
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const onnx::TensorShapeProto::Dimension &dimension = type.shape().dim(i);
    if (dimension.has_dim_value()) {
      if (dimension.dim_value() < 0) {
        problem(where + "dimension " + Twine(i) + " is " + Twine(dimension.dim_value()));
        return std::nullopt;
      }
      shape.push_back(SymbolicSize(dimension.dim_value()));
    } else {
      std::string name = dimension.dim_param();
      shape.push_back(namedDimension(name.empty() ? info.name() + "." + std::to_string(i) : name));
    }
  }
  return shape;
}

void GraphImporter::importInputs() {
  llvm::StringSet<> initializerNames;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializerNames.insert(tensor.name());
  Block *entry = &function.getBody().front();
  SmallVector<Attribute> argumentAttributes;
  for (const onnx::ValueInfoProto &info : graph.input()) {
    if (initializerNames.contains(info.name()))
      continue;
    int dataType = 0;
    std::optional<Shape> shape = importShape(info, dataType);
    auto [position, isNew] = values.try_emplace(info.name());
    ImportedValue &value = position->second;
    if (!isNew)
      problem("input " + moert::inQuotes(info.name()) + ": the name is taken by another value");
    value.failed = !shape || !isNew;
    if (value.failed)
      continue;
    value.dataType = dataType;
    value.shape = *shape;
    value.name = info.name();
    value.tensor = entry->addArgument(tensorType(elementType(dataType), value.shape),
                                      NameLoc::get(builder.getStringAttr(info.name()), location));
    SmallVector<Attribute> dimensionNames;
    for (auto [i, size] : llvm::enumerate(value.shape)) {
      if (size.constant())
        continue;
      unsigned symbol = size.terms().begin()->first.front();
      StringRef name = symbols[symbol].name;
      bool isIdentifier = (llvm::isAlpha(name.front()) || name.front() == '_') &&
                          llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
      dimensionNames.push_back(
          builder.getStringAttr(isIdentifier ? name.str() : "dim." + std::to_string(symbol)));
      // The first input that has a dimension tells its size.
      SymbolSource &source = symbols[symbol];
      if (!source.tensor && !source.index)
        source.tensor = value.tensor, source.dimension = i;
    }
    argumentAttributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(onnxNameAttr, builder.getStringAttr(info.name())),
         builder.getNamedAttr(onnxDimensionsAttr, builder.getArrayAttr(dimensionNames))}));
  }
  function.setType(builder.getFunctionType(entry->getArgumentTypes(), {}));
  if (!hasProblems())
    function.setArgAttrsAttr(builder.getArrayAttr(argumentAttributes));
}

void GraphImporter::importNodes() {
  Location fileLocation = location;
  for (const onnx::NodeProto &node : graph.node()) {
    StringRef domain = node.domain() == "ai.onnx" ? StringRef() : StringRef(node.domain());
    int64_t version = opsets.lookup(domain);
    std::string why;
    const OperatorEntry *entry = findOperator(domain, node.op_type(), version, why);
    std::string name = node.name().empty() && node.output_size() ? node.output(0) : node.name();
    location = NameLoc::get(builder.getStringAttr(name), fileLocation);

    bool failed = false;
    for (const std::string &input : node.input()) {
      if (input.empty())
        continue;
      auto found = values.find(input);
      if (found == values.end()) {
        problem("node " + moert::inQuotes(name) + ": its input " + moert::inQuotes(input) +
                " is no input, initialiser or output of an earlier node");
        failed = true;
      } else {
        failed |= found->second.failed;
      }
    }
    for (const std::string &output : node.output()) {
      if (output.empty())
        continue;
      if (!values.try_emplace(output).second) {
        problem("node " + moert::inQuotes(name) + ": its output " + moert::inQuotes(output) +
                " has the name of another value");
        failed = true;
        continue;
      }
      values[output].failed = true;
      values[output].name = output;
    }
    if (failed)
      continue;
    NodeImporter importer(*this, node, version);
    if (succeeded(entry->handler(importer)))
      importer.finish();
  }
  location = fileLocation;
}

void GraphImporter::importOutputs() {
  SmallVector<Value> results;
  SmallVector<Attribute> resultAttributes;
  for (const onnx::ValueInfoProto &info : graph.output()) {
    std::string where = "output " + moert::inQuotes(info.name()) + ": ";
    auto found = values.find(info.name());
    if (found == values.end()) {
      problem(where + "no node writes it");
      continue;
    }
    ImportedValue &value = found->second;
    if (value.failed)
      continue; // reported where it failed
    if (info.type().has_tensor_type() && info.type().tensor_type().elem_type() &&
        info.type().tensor_type().elem_type() != value.dataType) {
      problem(where + "declared as " + dataTypeName(info.type().tensor_type().elem_type()) +
              ", but the graph computes " + dataTypeName(value.dataType));
      continue;
    }
    results.push_back(materialize(value));
    resultAttributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(onnxNameAttr, builder.getStringAttr(info.name()))));
  }
  if (graph.output_size() == 0)
    problem("the graph has no output");
  if (hasProblems())
    return;
  func::ReturnOp::create(builder, location, results);
  function.setType(
      builder.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
  function.setResAttrsAttr(builder.getArrayAttr(resultAttributes));
}

/// What the raising passes and the runtime have to know about a language model.
LogicalResult GraphImporter::describeLanguageModel(const LanguageModelInterface &interface) {
  auto logits = cast<RankedTensorType>(function.getResultTypes()[interface.logits]);
  int64_t vocabulary = logits.getRank() == 3 ? logits.getDimSize(2) : ShapedType::kDynamic;
  if (ShapedType::isDynamic(vocabulary))
    return emitError(location) << "the logits are of type " << logits
                               << ", expected [batch, tokens, vocabulary] with a fixed vocabulary";
  auto number = [&](int64_t i) -> Attribute { return builder.getI64IntegerAttr(i); };
  auto list = [&](ArrayRef<unsigned> numbers) -> Attribute {
    return builder.getDenseI64ArrayAttr(SmallVector<int64_t>(numbers.begin(), numbers.end()));
  };
  auto dictionary = [&](ArrayRef<std::pair<StringRef, Attribute>> entries) {
    SmallVector<NamedAttribute> attributes;
    for (auto [name, value] : entries)
      attributes.push_back(builder.getNamedAttr(name, value));
    return builder.getDictionaryAttr(attributes);
  };
  function->setAttr(onnxLanguageModelAttr, dictionary({{"tokens", number(interface.tokens)},
                                                       {"positions", number(interface.positions)},
                                                       {"logits", number(interface.logits)},
                                                       {"past", list(interface.past)},
                                                       {"present", list(interface.present)}}));
  bool beside = options.tokenizerFolder.empty();
  const std::string &folder = beside ? file.folderPath : options.tokenizerFolder;
  moert::Result<LanguageModelFiles> read = readLanguageModelFiles(folder, vocabulary);
  if (!read.isOk())
    return emitError(location) << read.status().toString();
  SmallVector<std::pair<StringRef, Attribute>> entries = {
      {"vocabulary", number(vocabulary)},
      {"bos", number(read->bosToken)},
      {"eos", builder.getDenseI64ArrayAttr(read->eosTokens)},
      {"add_bos", builder.getBoolAttr(read->addBos)},
      {"maximum_tokens", number(read->maximumTokens)},
      {"block_tokens", number(options.blockTokens)}};
  // Relative to the weights' folder, like every file of the model.
  if (read->hasTokenizer)
    entries.push_back(
        {"tokenizer",
         builder.getStringAttr(beside ? std::string("tokenizer.json")
                                      : moert::joinPath(makeAbsolute(folder), "tokenizer.json"))});
  (*module)->setAttr("moe.language_model", dictionary(entries));
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> GraphImporter::run() {
  module = ModuleOp::create(location);
  (*module)->setAttr("moe.weight_root", builder.getStringAttr(makeAbsolute(file.folderPath)));
  (*module)->setAttr("moe.model", builder.getStringAttr(file.fileName));
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, location, "main", builder.getFunctionType({}, {}));
  function->setAttr("moe.entry", builder.getUnitAttr());
  builder.setInsertionPointToEnd(function.addEntryBlock());

  std::string why;
  std::optional<LanguageModelInterface> languageModel;
  if (options.interface != ImportONNXOptions::Interface::Tensors)
    languageModel = recognizeLanguageModel(graph, options, why);
  if (!languageModel && options.interface == ImportONNXOptions::Interface::LanguageModel)
    problem("not recognised as a language model: " + why);
  if (languageModel) {
    // A step works on tokens of any number of sequences, so the batch that the file speaks of is 1.
    if (!languageModel->batchName.empty())
      fixedDimensions[languageModel->batchName] = 1;
  }

  if (collectOpsets() && checkOperators()) {
    importInputs();
    importInitializers();
    if (!hasProblems()) {
      importNodes();
      importOutputs();
    }
  }
  if (hasProblems()) {
    std::string text;
    for (const std::string &line : problems)
      text += (problemCount > 1 ? "\n  " : "") + line;
    if (problemCount > problems.size())
      text += "\n  and " + std::to_string(problemCount - problems.size()) + " more";
    InFlightDiagnostic diagnostic = emitError(FileLineColLoc::get(context, file.path, 0, 0));
    if (problemCount > 1)
      diagnostic << problemCount << " problems:";
    return diagnostic << text;
  }
  using Precision = ImportONNXOptions::Precision;
  if (options.precision != Precision::Model)
    (*module)->setAttr(onnxActivationTypeAttr, TypeAttr::get(options.precision == Precision::F32
                                                                 ? Type(builder.getF32Type())
                                                                 : Type(builder.getBF16Type())));
  if (languageModel && failed(describeLanguageModel(*languageModel)))
    return failure();
  return std::move(module);
}

} // namespace mlir::moec::onnx_import
