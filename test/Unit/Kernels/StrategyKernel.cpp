#include "StrategyKernel.h"

#include "moec/Conversion/KernelStrategy.h"
#include "moec/InitDialects.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::moec;
using namespace moec_test;

StrategyKernel::StrategyKernel(TextMaker makeText, std::string target, HarnessOptions options)
    : makeText(makeText), target(target),
      harness(std::make_unique<KernelHarness>(makeText("?"), target, options)) {}

StrategyKernel::LaunchSize StrategyKernel::getLaunchSize(int64_t tokens) const {
  auto [place, isNew] = launchSizes.try_emplace(tokens);
  if (isNew)
    place->second = computeLaunchSize(tokens);
  return place->second;
}

StrategyKernel::LaunchSize StrategyKernel::computeLaunchSize(int64_t tokens) const {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string error;
  FailureOr<TargetDescription> description = TargetDescription::parse(target, error);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(makeText(std::to_string(tokens)), ParserConfig(&context));
  if (failed(description) || !module)
    return {};
  LaunchSize size;
  module->walk([&](Operation *op) {
    auto name = op->getAttrOfType<StringAttr>("strategy");
    if (!name)
      return;
    const KernelStrategy *strategy = findKernelStrategy(name.getValue());
    OpBuilder builder(op);
    size.workgroups =
        getConstantIntValue(strategy->countWorkgroups(builder, op, *description)).value_or(-1);
    size.scratchBytes =
        getConstantIntValue(strategy->countScratchBytes(builder, op, *description)).value_or(-1);
  });
  return size;
}

bool StrategyKernel::run(int64_t tokens, const std::vector<Binding> &bindings) const {
  LaunchSize size = getLaunchSize(tokens);
  if (size.workgroups < 0 || size.scratchBytes < 0)
    return false;
  return harness->run("kernel", bindings, size.workgroups, size.scratchBytes);
}

KernelText::Argument moec_test::tensorArgument(const std::string &shape) {
  return {"memref<" + shape + ">", "tensor<" + shape + ">"};
}

std::string KernelText::print() const {
  std::string arguments, body, results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string number = std::to_string(i);
    arguments += "%in" + number + ": " + inputs[i].storage + ", ";
    // A tensor in a layout has no memref of its own shape.
    bool isTensor = inputs[i].value.starts_with("tensor") &&
                    inputs[i].value.find("#moe.layout") == std::string::npos;
    body += "  %" + number + " = " +
            (isTensor ? "bufferization.to_tensor %in" + number + " restrict : "
                      : "builtin.unrealized_conversion_cast %in" + number + " : ") +
            inputs[i].storage + " to " + inputs[i].value + "\n";
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string number = std::to_string(i);
    arguments += "%out" + number + ": " + outputs[i].storage + ", ";
    results += "  bufferization.materialize_in_destination %r" + number +
               " in restrict writable %out" + number + " : (" + outputs[i].value + ", " +
               outputs[i].storage + ") -> ()\n";
  }
  return "func.func @kernel(" + arguments +
         "%scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {\n" + body + "  " +
         op + "\n" + results + "  return\n}\n";
}

std::string KernelText::printFunction(const std::string &name) const {
  std::string arguments, results, types;
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments += (i ? ", %" : "%") + std::to_string(i) + ": " + inputs[i].value;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results += (i ? ", %r" : " %r") + std::to_string(i);
    types += (i ? ", " : "") + outputs[i].value;
  }
  return "func.func @" + name + "(" + arguments + ") -> (" + types + ") {\n  " + op + "\n  return" +
         results + (outputs.empty() ? "" : " : " + types) + "\n}\n";
}
