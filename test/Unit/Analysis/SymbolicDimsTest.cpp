#include "moec/Analysis/SymbolicDims.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::moec;

namespace {

class SymbolicDimsTest : public testing::Test {
protected:
  SymbolicDimsTest() {
    context.loadDialect<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, moe::MoEDialect, tensor::TensorDialect>();
  }

  func::FuncOp parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return *module->getOps<func::FuncOp>().begin();
  }

  /// Dimension `dim` of operand `index` of the return, as text over s0, s1, ...
  std::string getDim(StringRef text, unsigned index, int64_t dim) {
    func::FuncOp function = parse(text);
    FailureOr<SymbolicDims> dims = SymbolicDims::create(function);
    EXPECT_TRUE(succeeded(dims));
    AffineExpr expr =
        dims->getDim(function.getBody().front().getTerminator()->getOperand(index), dim);
    std::string result;
    llvm::raw_string_ostream stream(result);
    if (expr)
      expr.print(stream);
    return result;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(SymbolicDimsTest, ArgumentsNameTheirSizes) {
  func::FuncOp function = parse(
      R"(func.func @f(%a: tensor<?x4xi32> {moe.dims = ["tokens"]}, %b: tensor<?x?xi32> {moe.dims = ["sequences + 1", "tokens"]}) { return })");
  FailureOr<SymbolicDims> dims = SymbolicDims::create(function);
  ASSERT_TRUE(succeeded(dims));
  EXPECT_EQ(dims->getSymbols().vec(), (std::vector<std::string>{"tokens", "sequences"}));
  AffineExpr tokens = getAffineSymbolExpr(0, &context),
             sequences = getAffineSymbolExpr(1, &context);
  EXPECT_EQ(dims->getDim(function.getArgument(0), 0), tokens);
  EXPECT_EQ(dims->getDim(function.getArgument(0), 1), getAffineConstantExpr(4, &context));
  EXPECT_EQ(dims->getDim(function.getArgument(1), 0), sequences + 1);
  EXPECT_EQ(dims->getDim(function.getArgument(1), 1), tokens);
}

TEST_F(SymbolicDimsTest, UnnamedSizesAreTheirOwnSymbols) {
  func::FuncOp function = parse(R"(func.func @f(%a: tensor<?x?xi32> {moe.name = "x"}) { return })");
  FailureOr<SymbolicDims> dims = SymbolicDims::create(function);
  ASSERT_TRUE(succeeded(dims));
  EXPECT_EQ(dims->getSymbols().vec(), (std::vector<std::string>{"x.0", "x.1"}));
}

TEST_F(SymbolicDimsTest, MalformedTextsAreReported) {
  for (StringRef text : {"\"2 * n\"", "\"\"", "\"n + m\"", "\"n + 1 + 1\"", "4"}) {
    func::FuncOp function =
        parse(("func.func @f(%a: tensor<?xi32> {moe.dims = [" + text + "]}) { return }").str());
    std::string message;
    ScopedDiagnosticHandler handler(&context,
                                    [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
    EXPECT_TRUE(failed(SymbolicDims::create(function))) << text.str();
    EXPECT_NE(message.find("moe.dims"), std::string::npos) << message;
  }
}

TEST_F(SymbolicDimsTest, ReshapesMultiplyAndExpand) {
  StringRef text =
      R"(func.func @f(%a: tensor<?x?x8xf32> {moe.dims = ["batch", "tokens"]}) -> (tensor<?x8xf32>, tensor<?x2x4xf32>) {
    %c0 = arith.constant 0 : index
    %r = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
    %d = tensor.dim %r, %c0 : tensor<?x8xf32>
    %e = tensor.expand_shape %r [[0], [1, 2]] output_shape [%d, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
    return %r, %e : tensor<?x8xf32>, tensor<?x2x4xf32>
  })";
  EXPECT_EQ(getDim(text, 0, 0), "s0 * s1");
  EXPECT_EQ(getDim(text, 1, 0), "s0 * s1");
}

TEST_F(SymbolicDimsTest, OpsAreAskedForTheirShapes) {
  StringRef text =
      R"(func.func @f(%ids: tensor<?x4xi32> {moe.dims = ["tokens"]}) -> (tensor<17xi32>, tensor<?xi32>) {
    %o, %p = moe.group_tokens %ids : tensor<?x4xi32> -> tensor<17xi32>, tensor<?xi32>
    return %o, %p : tensor<17xi32>, tensor<?xi32>
  })";
  EXPECT_EQ(getDim(text, 1, 0), "s0 * 4");
  // What was built to find out is gone again.
  unsigned ops = 0;
  module->walk([&](Operation *) { ++ops; });
  EXPECT_EQ(ops, 4u); // module, function, group_tokens, return
}

TEST_F(SymbolicDimsTest, SizesThatDependOnDataAreNone) {
  StringRef text = R"(func.func @f(%n: index) -> tensor<?xf32> {
    %e = tensor.empty(%n) : tensor<?xf32>
    return %e : tensor<?xf32>
  })";
  EXPECT_EQ(getDim(text, 0, 0), "");
}

TEST_F(SymbolicDimsTest, MinimumOfSizes) {
  func::FuncOp function = parse(R"(func.func @f(%a: tensor<?xf32> {moe.dims = ["n"]}) -> index {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %d = tensor.dim %a, %c0 : tensor<?xf32>
    %m = arith.minsi %d, %c16 : index
    %t = arith.muli %m, %c3 : index
    return %t : index
  })");
  FailureOr<SymbolicDims> dims = SymbolicDims::create(function);
  ASSERT_TRUE(succeeded(dims));
  SmallVector<AffineExpr> least =
      dims->getMinimum(function.getBody().front().getTerminator()->getOperand(0));
  ASSERT_EQ(least.size(), 2u);
  EXPECT_EQ(least[0], getAffineSymbolExpr(0, &context) * 3);
  EXPECT_EQ(least[1], getAffineConstantExpr(48, &context));
}

} // namespace
