#include "ProductKernel.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

bool mlir::moec::isProductSupported(Type weight, const TargetDescription &target, bool useTiles) {
  if (!isPanelWeight(weight))
    return false;
  return !useTiles || (!target.batchInvariant && TileProduct::isSupported(weight, target));
}

ProductKernel::ProductKernel(const Problem &problem, const TargetDescription &target)
    : target(target), weight(problem.weight),
      chunks(weight, problem.activation, problem.mostChunks), product(weight, target),
      writer(weight, chunks, problem.activation) {
  if (IntegerProduct::isWanted(problem.weight, problem.input, target))
    integerProduct.emplace(weight);
  if (problem.useTiles)
    tileProduct.emplace(weight, problem.input);
}

int64_t ProductKernel::getTokenCapacity() const {
  int64_t capacity = product.getTokenCapacity();
  return tileProduct ? std::max(capacity, tileProduct->getTokenCapacity()) : capacity;
}

void ProductKernel::allocate(ScratchAllocator &allocator, MLIRContext *context) {
  Type f32 = Float32Type::get(context);
  int64_t capacity = getTokenCapacity();
  rows = allocator.allocate({weight.getBlocks() * capacity * blockColumns}, f32);
  // One panel more: products may write panels in pairs.
  sums = allocator.allocate({(chunks.getSumPanels() + 1) * capacity * panelRows}, f32);
  product.allocate(allocator, f32);
  writer.allocate(allocator, f32);
  if (integerProduct)
    integerProduct->allocate(allocator, context);
  if (tileProduct)
    tileProduct->allocate(allocator, context);
}

void ProductKernel::attach(CodeBuilder &code, Value storage, Value expert) {
  weight.attach(code, storage, expert, target);
}

void ProductKernel::multiply(CodeBuilder &code, const Tokens &tokens, Value first, Value end,
                             Value chunk) const {
  auto forEachBlock = [&](int64_t capacity, auto multiplyBlock) {
    code.loop(first, end, capacity, [&](Value token) {
      Value count = code.minimum(code.sub(end, token), code.index(capacity));
      (this->*multiplyBlock)(code, tokens, token, count, chunk);
    });
    return SmallVector<Value>();
  };
  auto onVectors = [&] {
    return forEachBlock(product.getTokenCapacity(), &ProductKernel::multiplyVectors);
  };
  if (!tileProduct) {
    onVectors();
    return;
  }
  Value few = code.compare(arith::CmpIPredicate::slt, code.sub(end, first),
                           code.index(TileProduct::leastTokens));
  code.choose(few, {}, onVectors, [&] {
    return forEachBlock(tileProduct->getTokenCapacity(), &ProductKernel::multiplyTiles);
  });
}

void ProductKernel::multiplyVectors(CodeBuilder &code, const Tokens &tokens, Value first,
                                    Value count, Value chunk) const {
  TokenBlock block = {rows, sums, count};
  pack(code, tokens, FloatRows(rows, count), first, count);
  multiplyPanels(code, block, chunk);
  write(code, tokens, block, first, count, chunk);
}

void ProductKernel::multiplyPanels(CodeBuilder &code, const TokenBlock &block, Value chunk) const {
  if (!integerProduct) {
    chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value panels) {
      product.build(code, block, panel, sum, panels);
    });
    return;
  }
  Value few = code.compare(arith::CmpIPredicate::sle, block.tokens, code.index(fewTokens));
  code.choose(
      few, {},
      [&] {
        integerProduct->quantize(code, block);
        chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value panels) {
          integerProduct->build(code, block, panel, sum, panels);
        });
        return SmallVector<Value>();
      },
      [&] {
        chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value panels) {
          product.buildMany(code, block, panel, sum, panels);
        });
        return SmallVector<Value>();
      });
}

void ProductKernel::multiplyTiles(CodeBuilder &code, const Tokens &tokens, Value first, Value count,
                                  Value chunk) const {
  // What lies in the tokens behind the last one is multiplied, too, but goes nowhere.
  Value room =
      code.mul(code.divide(code.add(count, TileProduct::tileTokens - 1), TileProduct::tileTokens),
               TileProduct::tileTokens);
  TokenBlock block = {rows, sums, room};
  pack(code, tokens, *tileProduct, first, count);
  chunks.forEachRange(code, chunk, [&](Value panel, Value sum, Value panels) {
    tileProduct->build(code, block, panel, sum, panels, [&](Value one, Value at, Value number) {
      pack(code, tokens, FloatRows(rows, room), first, count);
      product.buildRare(code, block, one, at, number);
    });
  });
  write(code, tokens, block, first, count, chunk);
}

void ProductKernel::pack(CodeBuilder &code, const Tokens &tokens, const RowDestination &destination,
                         Value first, Value count) const {
  code.loop(code.index(0), count, 1, [&](Value token) {
    tokens.packer.pack(code, tokens.getInputRow(code.add(first, token)), destination, token);
  });
}

void ProductKernel::write(CodeBuilder &code, const Tokens &tokens, const TokenBlock &block,
                          Value first, Value count, Value chunk) const {
  code.loop(code.index(0), count, 1, [&](Value token) {
    Value row = tokens.getResultRow(code.add(first, token));
    writer.write(code, block, chunk, token, tokens.result, row);
  });
}
