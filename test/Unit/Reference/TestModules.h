// A context with everything that the interpreter needs, and modules in it.
#ifndef MOEC_TEST_UNIT_REFERENCE_TESTMODULES_H
#define MOEC_TEST_UNIT_REFERENCE_TESTMODULES_H

#include "moec/Dialect/MoE/Reference/Interpreter.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

class TestContext {
public:
  TestContext();
  mlir::MLIRContext *get() { return &context; }
  /// Fails the test when the text does not parse.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  /// All errors since the last call, one a line.
  std::string takeErrors();

private:
  mlir::MLIRContext context;
  std::string errors;
};

#endif
