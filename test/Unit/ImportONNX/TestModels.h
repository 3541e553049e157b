#ifndef MOEC_TEST_UNIT_IMPORTONNX_TESTMODELS_H
#define MOEC_TEST_UNIT_IMPORTONNX_TESTMODELS_H

#include "moec/Conversion/ImportONNX.h"

#include "onnx-ml.pb.h"

#include <string>

namespace moec_test {

/// Collects diagnostics instead of printing them.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          text += diagnostic.str() + "\n";
          for (mlir::Diagnostic &note : diagnostic.getNotes())
            text += "note: " + note.str() + "\n";
          ++count;
        }) {}
  std::string text;
  unsigned count = 0;

private:
  mlir::ScopedDiagnosticHandler handler;
};

/// A graph built in a test.
class GraphBuilder {
public:
  explicit GraphBuilder(int64_t opset = 23) {
    model.set_ir_version(10);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }

  /// Dimensions are numbers or names.
  GraphBuilder &input(const std::string &name, int type, const std::vector<std::string> &shape) {
    describe(model.mutable_graph()->add_input(), name, type, shape);
    return *this;
  }
  GraphBuilder &output(const std::string &name, int type, const std::vector<std::string> &shape) {
    describe(model.mutable_graph()->add_output(), name, type, shape);
    return *this;
  }
  GraphBuilder &integers(const std::string &name, const std::vector<int64_t> &values,
                         bool scalar = false) {
    onnx::TensorProto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    if (!scalar)
      tensor->add_dims(values.size());
    for (int64_t value : values)
      tensor->add_int64_data(value);
    return *this;
  }
  GraphBuilder &floats(const std::string &name, const std::vector<int64_t> &shape,
                       const std::vector<float> &values) {
    onnx::TensorProto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t size : shape)
      tensor->add_dims(size);
    for (float value : values)
      tensor->add_float_data(value);
    return *this;
  }
  /// The node, for attributes.
  onnx::NodeProto *node(const std::string &op, const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs) {
    onnx::NodeProto *node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name("node_" + outputs.front());
    for (const std::string &name : inputs)
      node->add_input(name);
    for (const std::string &name : outputs)
      node->add_output(name);
    return node;
  }
  static void set(onnx::NodeProto *node, const std::string &name, int64_t value) {
    onnx::AttributeProto *attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  static void set(onnx::NodeProto *node, const std::string &name,
                  const std::vector<int64_t> &values) {
    onnx::AttributeProto *attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (int64_t value : values)
      attribute->add_ints(value);
  }

  onnx::ModelProto model;

private:
  void describe(onnx::ValueInfoProto *info, const std::string &name, int type,
                const std::vector<std::string> &shape) {
    info->set_name(name);
    auto *tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const std::string &size : shape) {
      auto *dimension = tensor->mutable_shape()->add_dim();
      if (!size.empty() && (isdigit(size[0]) || size[0] == '-'))
        dimension->set_dim_value(std::stoll(size));
      else
        dimension->set_dim_param(size);
    }
  }
};

} // namespace moec_test

#endif
