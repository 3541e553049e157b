//===- Route.cpp - strategy that chooses experts and their weights ----------------------------===//

#include "RouteKernel.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class RouteStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.route"; }
  StringRef getOpName() const override { return moe::RouteOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto route = dyn_cast<moe::RouteOp>(op);
    return route && target.isCPU() &&
           !route.getLogits().getType().isDynamicDim(1);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto route = cast<moe::RouteOp>(op);
    return countTiles(builder, op->getLoc(), route.getLogits(),
                      RouteShape(route, target).tileTokens, 1);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    RouteShape shape(cast<moe::RouteOp>(op), target);
    return builder.getIndexAttr(RouteScratch(builder, shape, ScratchAllocator()).bytes);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    RouteKernel(code, cast<moe::RouteOp>(op), operands, results, scratch, target).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getRouteStrategy() {
  static const RouteStrategy strategy;
  return strategy;
}
