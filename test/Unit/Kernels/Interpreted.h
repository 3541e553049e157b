// A module that the reference interpreter runs on the buffers of a kernel test.
#ifndef MOEC_TEST_UNIT_KERNELS_INTERPRETED_H
#define MOEC_TEST_UNIT_KERNELS_INTERPRETED_H

#include "TestBuffer.h"

#include "test/Unit/Reference/TestModules.h"

#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

namespace moec_test {

class Interpreted {
public:
  explicit Interpreted(const std::string &text)
      : module(context.parse(text)), interpreter(*module, nullptr) {}

  std::vector<mlir::moec::moe::ReferenceValue>
  call(llvm::StringRef function, llvm::ArrayRef<mlir::moec::moe::ReferenceValue> arguments) {
    auto results = interpreter.call(function, arguments);
    EXPECT_TRUE(succeeded(results)) << context.takeErrors();
    if (failed(results))
      return {};
    return {results->begin(), results->end()};
  }

  mlir::moec::moe::ReferenceTensor tensor(const TestBuffer &buffer, llvm::ArrayRef<int64_t> shape) {
    mlir::Builder builder(context.get());
    mlir::Type type = buffer.getType() == "f32"    ? mlir::Type(builder.getF32Type())
                      : buffer.getType() == "bf16" ? mlir::Type(builder.getBF16Type())
                                                   : mlir::Type(builder.getF16Type());
    std::vector<double> values;
    for (int64_t i = 0; i < buffer.size(); ++i)
      values.push_back(buffer.get(i));
    return *mlir::moec::moe::ReferenceTensor::createFrom(type, shape,
                                                         llvm::ArrayRef<double>(values));
  }
  mlir::moec::moe::ReferenceTensor tensor(const std::vector<int32_t> &values,
                                          llvm::ArrayRef<int64_t> shape) {
    return *mlir::moec::moe::ReferenceTensor::createFrom(mlir::IntegerType::get(context.get(), 32),
                                                         shape, llvm::ArrayRef<int32_t>(values));
  }

  /// The type of an argument of `function`.
  template <typename Type>
  Type getArgumentType(llvm::StringRef function, unsigned index) {
    auto op = module->lookupSymbol<mlir::func::FuncOp>(function);
    return llvm::cast<Type>(op.getArgumentTypes()[index]);
  }

private:
  TestContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::moec::moe::Interpreter interpreter;
};

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_INTERPRETED_H
