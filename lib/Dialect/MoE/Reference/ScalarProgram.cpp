#include "ScalarProgram.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec::moe;

std::optional<ScalarProgram> ScalarProgram::compile(Block &body, ReferenceFrame &frame,
                                                    const DenseSet<Operation *> &exact) {
  ScalarProgram program;
  DenseMap<Value, unsigned> numbers;
  auto define = [&](Value value) {
    numbers[value] = program.registers.size();
    program.registers.push_back(Scalar::fromInteger(0));
    return numbers[value];
  };
  for (BlockArgument argument : body.getArguments())
    define(argument);
  program.arguments = body.getNumArguments();

  // Values from outside the body are constants while it runs.
  auto use = [&](Value value) -> std::optional<unsigned> {
    if (auto known = numbers.find(value); known != numbers.end())
      return known->second;
    if (value.getParentBlock() == &body || !frame.get(value).isScalar())
      return std::nullopt;
    unsigned number = define(value);
    program.registers[number] = frame.getScalar(value);
    return number;
  };

  size_t widest = 1;
  for (Operation &op : body.without_terminator()) {
    if (op.getNumResults() != 1 || op.getNumRegions() != 0)
      return std::nullopt;
    Instruction instruction;
    instruction.op = &op;
    ValueRange operands = op.getOperands();
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      instruction.loop = index.getDim();
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      if (extract.getTensor().getParentBlock() == &body)
        return std::nullopt;
      instruction.tensor = &frame.getTensor(extract.getTensor());
      operands = extract.getIndices();
    } else {
      auto elementwise = dyn_cast<ReferenceEvaluationOpInterface>(op);
      if (elementwise)
        instruction.function = elementwise.getScalarFunction();
      if (!instruction.function)
        return std::nullopt;
      if (!exact.contains(&op))
        instruction.rounds = ScalarType::get(op.getResult(0).getType());
    }
    for (Value operand : operands) {
      std::optional<unsigned> number = use(operand);
      if (!number)
        return std::nullopt;
      instruction.operands.push_back(*number);
    }
    widest = std::max(widest, instruction.operands.size());
    instruction.result = define(op.getResult(0));
    program.instructions.push_back(std::move(instruction));
  }
  for (Value operand : body.getTerminator()->getOperands()) {
    std::optional<unsigned> number = use(operand);
    if (!number)
      return std::nullopt;
    program.results.push_back(*number);
  }
  program.operands.resize(widest);
  return program;
}

LogicalResult ScalarProgram::extract(const Instruction &instruction) {
  const ReferenceTensor &tensor = *instruction.tensor;
  int64_t index = 0;
  for (auto [number, size] : llvm::zip_equal(instruction.operands, tensor.getShape())) {
    int64_t i = registers[number].integer;
    if (i < 0 || i >= size)
      return instruction.op->emitError() << "while interpreting: index " << i
                                         << " is out of bounds of a dimension of size " << size;
    index = index * size + i;
  }
  registers[instruction.result] = tensor.get(index);
  return success();
}

LogicalResult ScalarProgram::run(ArrayRef<int64_t> point) {
  for (const Instruction &instruction : instructions) {
    if (instruction.loop >= 0) {
      registers[instruction.result] = Scalar::fromInteger(point[instruction.loop]);
      continue;
    }
    if (instruction.tensor) {
      if (failed(extract(instruction)))
        return failure();
      continue;
    }
    for (auto [i, number] : llvm::enumerate(instruction.operands))
      operands[i] = registers[number];
    Scalar result = instruction.function(operands.data());
    registers[instruction.result] = instruction.rounds ? instruction.rounds->round(result) : result;
  }
  return success();
}
