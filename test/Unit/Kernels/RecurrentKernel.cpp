#include "RecurrentKernel.h"

using namespace mlir;
using namespace mlir::moec::moe;
using namespace moec_test;

static std::string join(const std::vector<int64_t> &shape, const char *separator) {
  std::string text;
  for (int64_t size : shape)
    text += std::to_string(size) + separator;
  return text;
}

int64_t moec_test::countElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::string moec_test::getTargetName(const testing::TestParamInfo<const char *> &info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

double moec_test::drawNormal(std::mt19937 &random) {
  return std::normal_distribution<double>()(random);
}

std::string RecurrentCase::getStateText() const {
  std::string sizes = join(stateShape, ", ");
  return "!moe.state<[" + sizes.substr(0, sizes.size() - 2) + "], " + stateType + ">";
}

KernelText RecurrentCase::describe(const std::string &sequences) const {
  auto tensor = [](const Operand &operand) {
    return tensorArgument((operand.isWeight ? "" : "?x") + join(operand.shape, "x") + operand.type);
  };
  KernelText text;
  for (const Operand &operand : operands)
    text.inputs.push_back(tensor(operand));
  text.inputs.push_back({"memref<?x" + join(stateShape, "x") + stateType + ">", getStateText()});
  text.inputs.push_back(tensorArgument("?xi32"));
  text.inputs.push_back(tensorArgument("?xi32"));
  text.inputs.push_back(tensorArgument(sequences + "xi32"));
  text.outputs.push_back(tensor(result));
  text.op = "%r0 = " + op + " : " + types + getStateText() +
            ", tensor<?xi32>, tensor<?xi32>, tensor<" + sequences + "xi32>" +
            (namesResult ? " -> " + text.outputs[0].value : "");
  return text;
}

RecurrentKernel::RecurrentKernel(const RecurrentCase &shape, int64_t slots, std::string target,
                                 std::string suffix)
    : state(shape.stateType, slots * countElements(shape.stateShape)), shape(shape), slots(slots),
      kernel(
          [shape, target, suffix](std::string sequences) {
            std::string text = shape.describe(sequences).print();
            if (llvm::StringRef(target).starts_with("cuda")) {
              size_t name = text.find("\"cpu.") + 1;
              text.insert(text.find('"', name), suffix);
              text.replace(name, 3, "cuda");
            }
            return text;
          },
          target),
      reference(shape.describe("?").printFunction("op")) {
  auto type = reference.getArgumentType<StateType>("op", shape.operands.size());
  referenceState = *ReferenceState::create(type, slots);
}

RecurrentKernel::Inputs RecurrentKernel::makeInputs(const Step &step) const {
  Inputs inputs;
  inputs.offsets.push_back(0);
  for (const SequencePiece &piece : step) {
    for (int i = 0; i < piece.count; ++i)
      inputs.positions.push_back(piece.first + i);
    inputs.offsets.push_back(static_cast<int32_t>(inputs.positions.size()));
    inputs.slots.push_back(piece.slot);
  }
  int64_t tokens = inputs.positions.size();
  for (auto [index, operand] : llvm::enumerate(shape.operands)) {
    int64_t width = countElements(operand.shape);
    TestBuffer buffer(operand.type, operand.isWeight ? width : tokens * width);
    auto fill = [&](int64_t row, unsigned seed) {
      std::mt19937 random(seed * 31 + static_cast<unsigned>(index));
      for (int64_t i = 0; i < width; ++i)
        buffer.set(row * width + i, operand.draw(random));
    };
    int64_t row = 0;
    if (operand.isWeight)
      fill(0, 1);
    else
      for (const SequencePiece &piece : step)
        for (int i = 0; i < piece.count; ++i)
          fill(row++, static_cast<unsigned>(piece.sequence * 100'003 + piece.first + i + 7));
    inputs.operands.push_back(std::move(buffer));
  }
  return inputs;
}

TestBuffer RecurrentKernel::run(const Step &step) {
  Inputs inputs = makeInputs(step);
  int64_t tokens = inputs.positions.size(), sequences = step.size();
  TestBuffer result(shape.result.type, tokens * countElements(shape.result.shape));
  std::vector<int32_t> &offsets = forcedOffsets.empty() ? inputs.offsets : forcedOffsets;
  std::vector<int32_t> &places = forcedSlots.empty() ? inputs.slots : forcedSlots;
  std::vector<Binding> bindings;
  Unchanged unchanged{};
  for (const TestBuffer &buffer : inputs.operands)
    unchanged.add(buffer);
  for (auto [buffer, operand] : llvm::zip(inputs.operands, shape.operands))
    bindings.push_back(
        {buffer.data(), operand.isWeight ? std::vector<int64_t>() : std::vector<int64_t>{tokens}});
  bindings.push_back({state.data(), {slots}});
  bindings.push_back({inputs.positions.data(), {tokens}});
  bindings.push_back({offsets.data(), {sequences + 1}});
  bindings.push_back({places.data(), {sequences}});
  bindings.push_back({result.data(), {tokens}});
  EXPECT_TRUE(kernel.run(sequences, bindings));
  return result;
}

ReferenceTensor RecurrentKernel::interpret(const Step &step) {
  Inputs inputs = makeInputs(step);
  int64_t tokens = inputs.positions.size(), sequences = step.size();
  std::vector<ReferenceValue> arguments;
  for (auto [buffer, operand] : llvm::zip(inputs.operands, shape.operands)) {
    std::vector<int64_t> sizes = operand.shape;
    if (!operand.isWeight)
      sizes.insert(sizes.begin(), tokens);
    arguments.push_back(reference.tensor(buffer, sizes));
  }
  arguments.push_back(referenceState);
  arguments.push_back(reference.tensor(inputs.positions, {tokens}));
  arguments.push_back(reference.tensor(inputs.offsets, {sequences + 1}));
  arguments.push_back(reference.tensor(inputs.slots, {sequences}));
  std::vector<ReferenceValue> results = reference.call("op", arguments);
  return results.empty() ? ReferenceTensor() : results.front().getTensor();
}

/// The largest difference, relative to the largest number, without what two roundings to the type
/// may cost. Not relative to each number: they are sums whose terms may cancel.
static double compareTensors(const TestBuffer &actual, const ReferenceTensor &expected) {
  double largest = 1e-30, worst = 0;
  for (int64_t i = 0; i < expected.getSize(); ++i)
    largest = std::fmax(largest, std::abs(expected.getReal(i)));
  for (int64_t i = 0; i < expected.getSize(); ++i) {
    double reference = expected.getReal(i), number = actual.get(i);
    if (std::isnan(reference) && std::isnan(number))
      continue; // of a slot that nobody has
    double error = std::abs(number - reference) - 2 * actual.getRoundingError(reference);
    error = error <= 0 ? 0 : error / largest;
    worst = error <= worst ? worst : error; // NaN wins
  }
  return worst;
}

double RecurrentKernel::compare(const Step &step, double tolerance) {
  TestBuffer result = run(step);
  ReferenceTensor expected = interpret(step);
  EXPECT_EQ(result.size(), expected.getSize());
  if (result.size() != expected.getSize())
    return INFINITY;
  double worst = compareTensors(result, expected);
  EXPECT_LE(worst, tolerance) << "results";
  double worstState = compareTensors(state, referenceState->slots);
  EXPECT_LE(worstState, tolerance) << "state";
  return std::max(worst, worstState);
}
