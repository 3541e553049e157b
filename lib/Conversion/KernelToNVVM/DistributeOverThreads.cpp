//===- DistributeOverThreads.cpp - linalg on buffers, one block of threads --------------------===//
//
// Generic kernels compute a tile with linalg ops, one after the other. On a GPU the threads of a
// block share each op's iterations: neighbouring threads take neighbouring elements. A reduction to
// few results is shared, too: partial results meet through warp exchanges and shared memory, in an
// order that the sizes alone fix. A barrier follows each op, as the next one reads what it wrote.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "../KernelToX86/KernelFunction.h"
#include "../MoEToKernels/CUDA/BlockCode.h"

#include "moec/Conversion/CompileKernels.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"

namespace mlir::moec {
#define GEN_PASS_DEF_DISTRIBUTEOVERTHREADSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// Up to so many results are reduced by the whole block; more of them by a thread each.
static constexpr int64_t mostSharedResults = 16;

namespace {

class ThreadLoops {
public:
  ThreadLoops(BlockCode &code, linalg::LinalgOp op) : code(code), op(op) {
    AffineMap shapesToLoops = op.getShapesToLoopsMap();
    SmallVector<OpFoldResult> shapes;
    for (OpOperand &operand : op->getOpOperands())
      for (int64_t dim = 0; dim < op.getRank(&operand); ++dim)
        shapes.push_back(code.dim(operand.get(), dim));
    for (AffineExpr expr : shapesToLoops.getResults())
      sizes.push_back(apply(AffineMap::get(shapesToLoops.getNumDims(), 0, expr), shapes));
    for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      (iterator == utils::IteratorType::parallel ? parallel : reduction).push_back(dim);
    indices.resize(sizes.size());
  }

  void build() {
    if (reduction.empty())
      code.forEachOfThread(countIterations(parallel), [&](Value number) {
        setIndices(parallel, number);
        storeResults(computeBody(loadOutputs()));
      });
    else if (Operation *combiner = findCombiner(); combiner && hasFewResults())
      buildSharedReductions(combiner);
    else
      code.forEachOfThread(countIterations(parallel), [&](Value number) {
        setIndices(parallel, number);
        storeResults(code.loop(code.index(0), countIterations(reduction), 1, loadOutputs(),
                               [&](Value step, ValueRange carried) {
                                 setIndices(reduction, step);
                                 return computeBody(carried);
                               }));
      });
    code.barrier();
  }

private:
  Value apply(AffineMap map, ArrayRef<OpFoldResult> operands) {
    OpFoldResult result = affine::makeComposedFoldedAffineApply(code, code.getLoc(), map, operands);
    return getValueOrCreateConstantIndexOp(code, code.getLoc(), result);
  }

  Value countIterations(ArrayRef<unsigned> dims) {
    Value count = code.index(1);
    for (unsigned dim : dims)
      count = code.mul(count, sizes[dim]);
    return count;
  }

  /// The indices of iteration `number` along `dims`, the last one running fastest.
  void setIndices(ArrayRef<unsigned> dims, Value number) {
    for (unsigned dim : llvm::reverse(dims)) {
      if (dim == dims.front()) {
        indices[dim] = number;
        break;
      }
      indices[dim] = code.remainder(number, sizes[dim]);
      number = code.divide(number, sizes[dim]);
    }
  }

  SmallVector<Value> getPlace(OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<OpFoldResult> loops;
    for (Value index : indices)
      loops.push_back(index ? OpFoldResult(index) : OpFoldResult(code.getIndexAttr(0)));
    SmallVector<Value> place;
    for (AffineExpr expr : map.getResults())
      place.push_back(apply(AffineMap::get(map.getNumDims(), 0, expr), loops));
    return place;
  }

  Value load(OpOperand &operand) {
    if (!isa<MemRefType>(operand.get().getType()))
      return operand.get(); // a scalar
    return memref::LoadOp::create(code, code.getLoc(), operand.get(), getPlace(operand));
  }

  SmallVector<Value> loadOutputs() {
    SmallVector<Value> values;
    for (OpOperand &output : op.getDpsInitsMutable()) {
      // What is overwritten need not be read.
      bool isRead = op.payloadUsesValueFromOperand(&output);
      values.push_back(isRead ? load(output) : Value());
    }
    return values;
  }

  void storeResults(ValueRange values) {
    for (auto [output, value] : llvm::zip(op.getDpsInitsMutable(), values))
      memref::StoreOp::create(code, code.getLoc(), value, output.get(), getPlace(output));
  }

  /// One iteration: the op's region on the inputs' elements and `outputs`.
  SmallVector<Value> computeBody(ValueRange outputs) {
    IRMapping mapping;
    Block &body = *op.getBlock();
    for (OpOperand *input : op.getDpsInputOperands())
      if (BlockArgument argument = op.getMatchingBlockArgument(input); !argument.use_empty())
        mapping.map(argument, load(*input));
    for (auto [argument, value] : llvm::zip(op.getRegionOutputArgs(), outputs))
      if (value)
        mapping.map(argument, value);
    for (Operation &inner : body.without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner))
        mapping.map(index.getResult(), indices[index.getDim()]);
      else
        code.clone(inner, mapping);
    }
    SmallVector<Value> results;
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(mapping.lookupOrDefault(value));
    return results;
  }

  /// The op that joins partial results, where there is one result and one such op with a neutral
  /// element.
  Operation *findCombiner() {
    if (op.getNumDpsInits() != 1)
      return nullptr;
    SmallVector<Operation *> combiners;
    if (!matchReduction(op.getRegionOutputArgs(), 0, combiners) || combiners.size() != 1)
      return nullptr;
    Type type = combiners[0]->getResult(0).getType();
    bool isNumber = type.isF32() || type.isInteger(32);
    return isNumber && arith::getNeutralElement(combiners[0]) ? combiners[0] : nullptr;
  }

  bool hasFewResults() {
    int64_t count = 1;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    for (unsigned dim : parallel) {
      if (ShapedType::isDynamic(ranges[dim]))
        return false;
      count *= ranges[dim];
    }
    return count <= mostSharedResults;
  }

  Value combine(Operation *combiner, Value a, Value b) {
    OperationState state(code.getLoc(), combiner->getName(), {a, b},
                         combiner->getResultTypes(), combiner->getAttrs());
    return code.create(state)->getResult(0);
  }

  void buildSharedReductions(Operation *combiner) {
    Type type = combiner->getResult(0).getType();
    Value partial = code.allocateShared({code.getWarps()}, type);
    code.loop(code.index(0), countIterations(parallel), 1, [&](Value number) {
      setIndices(parallel, number);
      Value neutral = arith::ConstantOp::create(code, code.getLoc(),
                                                *arith::getNeutralElement(combiner));
      Value mine = code.loop(code.thread(), countIterations(reduction), code.getThreads(),
                             {neutral},
                             [&](Value step, ValueRange carried) {
                               setIndices(reduction, step);
                               return computeBody(carried);
                             })[0];
      for (int64_t distance = BlockCode::warpSize / 2; distance > 0; distance /= 2)
        mine = combine(combiner, mine, buildExchange(code, code.getLoc(), mine, distance));
      Value isFirst = code.compare(arith::CmpIPredicate::eq, code.lane(), code.index(0));
      code.when(isFirst, [&] {
        memref::StoreOp::create(code, code.getLoc(), mine, partial, code.warp());
      });
      code.barrier();
      // Where the results lie, no index of a reduced dimension counts.
      for (unsigned dim : reduction)
        indices[dim] = Value();
      code.when(code.compare(arith::CmpIPredicate::eq, code.thread(), code.index(0)), [&] {
        Value total = loadOutputs()[0];
        for (int64_t warp = 0; warp < code.getWarps(); ++warp)
          total = combine(combiner, total, code.loadInt(partial, code.index(warp)));
        storeResults(total);
      });
      code.barrier();
    });
  }

  BlockCode &code;
  linalg::LinalgOp op;
  SmallVector<Value> sizes, indices;
  SmallVector<unsigned> parallel, reduction;
};

struct DistributeOverThreads : moec::impl::DistributeOverThreadsPassBase<DistributeOverThreads> {
  void runOnOperation() override {
    for (func::FuncOp kernel : getKernels(getOperation())) {
      copyByLinalg(kernel);
      SmallVector<linalg::LinalgOp> ops;
      kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
      for (linalg::LinalgOp op : ops) {
        OpBuilder builder(op);
        BlockCode code(op.getLoc(), builder, genericThreads);
        ThreadLoops(code, op).build();
        op->erase();
        ++numDistributed;
      }
    }
  }

  static void copyByLinalg(func::FuncOp kernel) {
    IRRewriter rewriter(kernel.getContext());
    kernel.walk([&](memref::CopyOp copy) {
      rewriter.setInsertionPoint(copy);
      rewriter.replaceOpWithNewOp<linalg::CopyOp>(copy, copy.getSource(), copy.getTarget());
    });
  }
};

} // namespace
