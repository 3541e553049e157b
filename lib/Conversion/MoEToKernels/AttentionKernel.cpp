#include "AttentionKernel.h"

using namespace mlir;
using namespace mlir::moec;

AttentionScratch::AttentionScratch(moe::AttentionOp op, const AttentionShape &shape,
                                   ScratchAllocator allocator)
    : rotary(op.getRotaryAttr(), /*lanes=*/16, allocator) {
  MLIRContext *context = op.getContext();
  Type f32 = Float32Type::get(context);
  query = allocator.allocate({shape.rows, shape.keyDim}, f32);
  output = allocator.allocate({shape.rows, shape.valueDim}, f32);
  sums = allocator.allocate({shape.rows, shape.lanes}, f32);
  maxima = allocator.allocate({shape.rows}, f32);
  positions = allocator.allocate({shape.rows}, IntegerType::get(context, 32));
  scores = allocator.allocate({shape.rowBlock, shape.chunk}, f32);
  blocks = allocator.allocate({shape.getChunkBlocks()}, IntegerType::get(context, 32));
  nextBlocks = allocator.allocate({shape.getChunkBlocks()}, IntegerType::get(context, 32));
  bytes = allocator.getBytes();
}

AttentionKernel::AttentionKernel(CodeBuilder &code, moe::AttentionOp op, ValueRange operands,
                                 Value result, Value scratchMemory, const TargetDescription &target)
    : code(code), op(op), shape(op, target), query(operands[0]), cache(operands[1]),
      positions(operands[2]), tokenSequences(operands[3]), blockTable(operands[4]),
      sinks(op.getSinks() ? operands[5] : Value()), result(result),
      scratch(op, shape, ScratchAllocator(code, scratchMemory)) {}

void AttentionKernel::build(Value workgroup) {
  Value tile = code.divide(workgroup, shape.getWorkgroupsPerTile());
  Value piece = code.remainder(workgroup, shape.getWorkgroupsPerTile());
  kvHead = code.divide(piece, shape.parts);
  Value firstOfPart = code.mul(code.remainder(piece, shape.parts), shape.partHeads);
  firstHead = code.add(code.mul(kvHead, shape.group), firstOfPart);
  headCount = shape.parts == 1 ? code.index(shape.group)
                               : code.minimum(code.index(shape.partHeads),
                                              code.sub(code.index(shape.group), firstOfPart));
  scratch.rotary.layDownFrequencies(code);

  Value tokens = code.dim(query, 0), size = findTileSize(tokens);
  Value first = code.mul(tile, size);
  Value end = code.minimum(code.add(first, size), tokens);
  code.loop(first, end, 1, [&](Value token) {
    Value sequence = code.loadIndex(tokenSequences, token);
    Value before = code.maximum(code.sub(token, code.index(1)), first);
    Value startsRun = arith::OrIOp::create(
        code, code.getLoc(), code.compare(arith::CmpIPredicate::eq, token, first),
        code.compare(arith::CmpIPredicate::ne, sequence, code.loadIndex(tokenSequences, before)));
    code.when(startsRun, [&] { buildRun(token, findRunEnd(token, end, sequence), sequence); });
  });
}

/// Tokens of a tile; the last tiles may be smaller or empty.
Value AttentionKernel::findTileSize(Value tokens) {
  Value needed = code.divide(code.add(tokens, shape.tileTokens - 1), shape.tileTokens);
  Value tiles = code.minimum(tokens, code.add(needed, AttentionShape::extraTiles));
  return code.divide(code.add(tokens, code.sub(tiles, code.index(1))), tiles);
}

Value AttentionKernel::findRunEnd(Value first, Value tileEnd, Value sequence) {
  Value second = code.add(first, 1);
  return code
      .loop(second, tileEnd, 1, {second},
            [&](Value token, ValueRange carried) -> SmallVector<Value> {
              Value continues = code.both(code.compare(arith::CmpIPredicate::eq, token, carried[0]),
                                          code.compare(arith::CmpIPredicate::eq, sequence,
                                                       code.loadIndex(tokenSequences, token)));
              return {code.select(continues, code.add(token, 1), carried[0])};
            })
      .front();
}

void AttentionKernel::buildRun(Value first, Value end, Value sequence) {
  Run run{first, end, sequence, code.mul(code.sub(end, first), headCount), {}, {}};
  findKeys(run);
  prepareRows(run);
  Value firstChunk = code.mul(code.divide(run.firstKey, shape.chunk), shape.chunk);
  code.loop(firstChunk, run.keysEnd, shape.chunk, [&](Value chunkStart) {
    Value allBlocksExist = resolveBlocks(run, chunkStart);
    forEachRowBlock(run, [&](Value firstRow) { buildChunk(firstRow, chunkStart, allBlocksExist); });
  });
  finishRows(run);
}

/// The keys from the first that some token of the run sees to the last; none when the sequence is
/// unknown.
void AttentionKernel::findKeys(Run &run) {
  Value firstPosition = code.loadIndex(positions, run.first);
  SmallVector<Value> range =
      code.loop(run.first, run.end, 1, {firstPosition, firstPosition},
                [&](Value token, ValueRange carried) -> SmallVector<Value> {
                  Value position = code.loadIndex(positions, token);
                  return {code.minimum(carried[0], position), code.maximum(carried[1], position)};
                });
  int64_t window = op.getWindow();
  Value zero = code.index(0);
  run.firstKey = window > 0 ? code.maximum(code.add(range[0], 1 - window), zero) : zero;
  Value capacity = code.mul(code.dim(blockTable, 1), shape.block);
  run.keysEnd = code.select(code.isWithin(run.sequence, code.dim(blockTable, 0)),
                            code.minimum(code.add(range[1], 1), capacity), zero);
}

/// Looks up the pool blocks of a chunk and of the next one, once for all rows. Returns whether all
/// of the chunk's exist.
Value AttentionKernel::resolveBlocks(const Run &run, Value chunkStart) {
  return code
      .loop(code.index(0), code.index(shape.getChunkBlocks()), 1, {code.boolean(true)},
            [&](Value i, ValueRange carried) -> SmallVector<Value> {
              Value firstKey = code.add(chunkStart, code.mul(i, shape.block));
              Value block = resolveBlock(run, firstKey, code.int32(-1));
              code.storeInt(block, scratch.blocks, i);
              Value nextBlock = resolveBlock(run, code.add(firstKey, shape.chunk), block);
              code.storeInt(nextBlock, scratch.nextBlocks, i);
              Value exists = code.compare(arith::CmpIPredicate::sge, block, code.int32(0));
              return {code.both(carried[0], exists)};
            })
      .front();
}

/// The pool block that begins with key `firstKey`, `otherwise` when no row needs it or when it is
/// not in the pool.
Value AttentionKernel::resolveBlock(const Run &run, Value firstKey, Value otherwise) {
  Value needed = code.both(
      code.compare(arith::CmpIPredicate::slt, firstKey, run.keysEnd),
      code.compare(arith::CmpIPredicate::sgt, code.add(firstKey, shape.block), run.firstKey));
  return code
      .choose(
          needed, code.getI32Type(),
          [&]() -> SmallVector<Value> {
            Value entry =
                code.loadInt(blockTable, {run.sequence, code.divide(firstKey, shape.block)});
            Value known = code.isWithin(code.toIndex(entry), code.dim(cache, 0));
            return {code.select(known, entry, otherwise)};
          },
          [&]() -> SmallVector<Value> { return {otherwise}; })
      .front();
}

void AttentionKernel::forEachRowBlock(const Run &run, function_ref<void(Value)> body) {
  code.loop(code.index(0), run.rows, shape.rowBlock, body);
}
