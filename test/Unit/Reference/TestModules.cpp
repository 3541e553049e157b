#include "test/Unit/Reference/TestModules.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
              math::MathDialect, moec::moe::MoEDialect, scf::SCFDialect, tensor::TensorDialect>();
  moec::moe::registerReferenceModels(registry);
  return registry;
}

TestContext::TestContext() : context(makeRegistry()) {
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
}

OwningOpRef<ModuleOp> TestContext::parse(const std::string &text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << takeErrors() << text;
  return module;
}

std::string TestContext::takeErrors() { return std::exchange(errors, {}); }
