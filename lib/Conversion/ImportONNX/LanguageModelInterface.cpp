//===- LanguageModelInterface.cpp - which inputs and outputs make a graph a language model
//-------===//

#include "LanguageModelInterface.h"

#include "onnx-ml.pb.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::moec::onnx_import {

namespace {

int rankOf(const onnx::ValueInfoProto &info) {
  if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape())
    return -1;
  return info.type().tensor_type().shape().dim_size();
}

bool isInteger(const onnx::ValueInfoProto &info) {
  int type = info.type().tensor_type().elem_type();
  return type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
}

class Recognizer {
public:
  Recognizer(const onnx::GraphProto &graph, const ImportONNXOptions &options, std::string &why)
      : graph(graph), names(options.names), why(why) {
    llvm::StringSet<> initializers;
    for (const onnx::TensorProto &tensor : graph.initializer())
      initializers.insert(tensor.name());
    for (const onnx::ValueInfoProto &info : graph.input())
      if (!initializers.contains(info.name()))
        inputs.push_back(&info);
    for (const onnx::ValueInfoProto &info : graph.output())
      outputs.push_back(&info);
  }

  std::optional<LanguageModelInterface> run() {
    if (!findTokens() || !findPositions() || !findLogits() || !findCaches())
      return std::nullopt;
    size_t used = 2 + result.past.size();
    if (used != inputs.size())
      return missing("an input that is neither token ids, positions nor a past key or value");
    if (1 + result.present.size() != outputs.size())
      return missing("an output that is neither logits nor a present key or value");
    const auto &batch = inputs[result.tokens]->type().tensor_type().shape().dim(0);
    if (batch.has_dim_value() && batch.dim_value() != 1)
      return missing("its batch is fixed at " + Twine(batch.dim_value()) +
                     ", expected 1 or a name; export it with a dynamic batch");
    result.batchName = batch.has_dim_value() ? std::string() : batch.dim_param();
    return result;
  }

private:
  std::nullopt_t missing(const Twine &what) {
    why = what.str();
    return std::nullopt;
  }

  static std::optional<unsigned> find(ArrayRef<const onnx::ValueInfoProto *> list, StringRef name) {
    for (auto [i, info] : llvm::enumerate(list))
      if (info->name() == name)
        return i;
    return std::nullopt;
  }

  /// Whether a Gather node looks the input up in an initialiser.
  bool isLookedUp(StringRef name) const {
    for (const onnx::NodeProto &node : graph.node())
      if (node.op_type() == "Gather" && node.input_size() == 2 && node.input(1) == name)
        return true;
    return false;
  }

  bool findTokens() {
    std::optional<unsigned> found =
        find(inputs, names.tokens.empty() ? "input_ids" : StringRef(names.tokens));
    for (unsigned i = 0; names.tokens.empty() && !found && i < inputs.size(); ++i)
      if (isInteger(*inputs[i]) && rankOf(*inputs[i]) == 2 && isLookedUp(inputs[i]->name()))
        found = i;
    if (!found || rankOf(*inputs[*found]) != 2)
      return missing("no input of token ids [batch, tokens]"), false;
    result.tokens = *found;
    return true;
  }

  bool findPositions() {
    std::optional<unsigned> found =
        find(inputs, names.positions.empty() ? "position_ids" : StringRef(names.positions));
    if (names.positions.empty() && !found) {
      for (unsigned i = 0; i < inputs.size(); ++i) {
        if (i == result.tokens || !isInteger(*inputs[i]) || rankOf(*inputs[i]) != 2)
          continue;
        if (found)
          return missing("two inputs that may be the positions"), false;
        found = i;
      }
    }
    if (!found || rankOf(*inputs[*found]) != 2)
      return missing("no input of positions [batch, tokens]"), false;
    result.positions = *found;
    return true;
  }

  bool findLogits() {
    std::optional<unsigned> found =
        find(outputs, names.logits.empty() ? "logits" : StringRef(names.logits));
    if (names.logits.empty() && !found) {
      for (unsigned i = 0; i < outputs.size(); ++i) {
        if (rankOf(*outputs[i]) != 3)
          continue;
        if (found)
          return missing("two outputs that may be the logits"), false;
        found = i;
      }
    }
    if (!found || rankOf(*outputs[*found]) != 3)
      return missing("no output of logits [batch, tokens, vocabulary]"), false;
    result.logits = *found;
    return true;
  }

  bool findCaches() {
    if (!names.past.empty() || !names.present.empty())
      return findNamedCaches(names.past, names.present);
    std::vector<std::string> past, present;
    for (unsigned layer = 0;; ++layer) {
      std::string prefix = "past_key_values." + std::to_string(layer) + ".";
      if (!find(inputs, prefix + "key"))
        break;
      for (StringRef part : {"key", "value"}) {
        past.push_back(prefix + part.str());
        present.push_back("present." + std::to_string(layer) + "." + part.str());
      }
    }
    if (!past.empty())
      return findNamedCaches(past, present);
    // By structure: the order of inputs and outputs pairs them.
    for (unsigned i = 0; i < inputs.size(); ++i)
      if (rankOf(*inputs[i]) == 4 && !isInteger(*inputs[i]))
        result.past.push_back(i);
    for (unsigned i = 0; i < outputs.size(); ++i)
      if (rankOf(*outputs[i]) == 4)
        result.present.push_back(i);
    if (result.past.empty() || result.past.size() % 2 ||
        result.past.size() != result.present.size())
      return missing("no pairs of past and present keys and values"), false;
    return true;
  }

  bool findNamedCaches(ArrayRef<std::string> past, ArrayRef<std::string> present) {
    if (past.size() != present.size() || past.size() % 2)
      return missing("past and present do not come in pairs of keys and values"), false;
    for (auto [pastName, presentName] : llvm::zip(past, present)) {
      std::optional<unsigned> input = find(inputs, pastName), output = find(outputs, presentName);
      if (!input || rankOf(*inputs[*input]) != 4)
        return missing("no input '" + pastName + "' of rank 4"), false;
      if (!output)
        return missing("no output '" + presentName + "'"), false;
      result.past.push_back(*input);
      result.present.push_back(*output);
    }
    return true;
  }

  const onnx::GraphProto &graph;
  const ONNXLanguageModelNames &names;
  std::string &why;
  SmallVector<const onnx::ValueInfoProto *> inputs, outputs;
  LanguageModelInterface result;
};

} // namespace

std::optional<LanguageModelInterface> recognizeLanguageModel(const onnx::GraphProto &graph,
                                                             const ImportONNXOptions &options,
                                                             std::string &why) {
  return Recognizer(graph, options, why).run();
}

} // namespace mlir::moec::onnx_import
