// Which failures of passes count as the compiler's own.

#include "moec/Compiler/RunPasses.h"
#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// A pass that does what a test asks for.
struct TestPass : PassWrapper<TestPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPass)
  using Body = std::function<LogicalResult(ModuleOp)>;

  explicit TestPass(Body body) : body(std::move(body)) {}
  StringRef getArgument() const override { return "test-pass"; }
  void runOnOperation() override {
    if (failed(body(getOperation())))
      signalPassFailure();
  }
  Body body;
};

/// All errors of running `pass` on the module, one a line; "fine" when there is no failure.
std::string errorsOf(std::unique_ptr<Pass> pass, StringRef text = "func.func private @f()") {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, plan::PlanDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors += diagnostic.str() + "\n";
  });
  PassManager passes(&context);
  passes.addPass(std::move(pass));
  return succeeded(runPasses(passes, *module)) ? "fine" : errors;
}

std::string errorsOf(TestPass::Body body) {
  return errorsOf(std::make_unique<TestPass>(std::move(body)));
}

const std::string tail = "; this is a mistake of moec, not of the input\n";

TEST(RunPasses, ReportsOfPassesAreAboutTheInput) {
  EXPECT_EQ(errorsOf([](ModuleOp) { return success(); }), "fine");
  EXPECT_EQ(errorsOf([](ModuleOp module) -> LogicalResult {
              return emitError(module.getLoc()) << "the model is strange";
            }),
            "the model is strange\n");
}

TEST(RunPasses, SilentFailuresAreInternal) {
  EXPECT_EQ(errorsOf([](ModuleOp) { return failure(); }),
            "internal error: test-pass failed" + tail);
  EXPECT_EQ(errorsOf([](ModuleOp module) -> LogicalResult {
              emitWarning(module.getLoc()) << "hm";
              return failure();
            }),
            "internal error: test-pass failed" + tail);
}

TEST(RunPasses, InvalidProgramsAreInternal) {
  std::string errors = errorsOf([](ModuleOp module) {
    auto function = cast<func::FuncOp>(module.getBody()->front());
    function.addEntryBlock(); // without a terminator
    return success();
  });
  EXPECT_NE(errors.find("internal error: test-pass has left a program that is not valid" + tail),
            std::string::npos)
      << errors;
}

TEST(RunPasses, WhatPhaseVerifiersFindIsInternal) {
  std::string errors = errorsOf(createVerifyPlan(), R"(
    plan.program @overlap symbols ["n"] {
      plan.arena 0 scale affine_map<()[s0] -> (s0)> bytes 128
      %a = plan.buffer scale affine_map<()[s0] -> (s0)> bytes 64 at <arena = 0, offset = 0, first = 0, last = 1>
      %b = plan.buffer scale affine_map<()[s0] -> (s0)> bytes 64 at <arena = 0, offset = 0, first = 1, last = 2>
    })");
  EXPECT_NE(errors.find("internal error: moec-verify-plan failed" + tail), std::string::npos)
      << errors;
}

} // namespace
