#include "RouteKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();
static constexpr int64_t taken = std::numeric_limits<int32_t>::min();
/// Below every finite score that occurs, finite itself.
static constexpr double lowestMaximum = -1e30;

RouteShape::RouteShape(moe::RouteOp op, const TargetDescription &target) {
  experts = op.getLogits().getType().getDimSize(1);
  choices = op.getTopK();
  groups = op.getGroups();
  groupExperts = experts / groups;
  lanes = target.getVectorBytes() / 4;
  paddedExperts = llvm::alignTo(experts, lanes);
  paddedGroups = llvm::alignTo(groups, lanes);
  paddedChoices = llvm::alignTo(choices, lanes);
  limitsGroups = groups > 1 && op.getTopGroups() < op.getGroups();
  // About as much work as starting a workgroup is worth.
  tileTokens = std::clamp<int64_t>(8192 / (paddedExperts * choices), 1, 8);
  softmaxOfChosen = op.getScore() == moe::ScoreFunction::softmax && op.getRenormalize();
  choosesByLogits =
      op.getScore() == moe::ScoreFunction::softmax && !op.getSelectionBias() && !limitsGroups;
}

RouteScratch::RouteScratch(Builder &builder, const RouteShape &shape, ScratchAllocator allocator) {
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  logits = allocator.allocate({shape.paddedExperts}, f32);
  scores = allocator.allocate({shape.paddedExperts}, f32);
  selection = allocator.allocate({shape.paddedExperts}, f32);
  ranks = allocator.allocate({shape.paddedExperts}, i32);
  groupRanks = allocator.allocate({shape.paddedGroups}, i32);
  chosen = allocator.allocate({shape.paddedChoices}, f32);
  bytes = allocator.getBytes();
}

RouteKernel::RouteKernel(CodeBuilder &code, moe::RouteOp op, ValueRange operands,
                         ValueRange results, Value scratchMemory, const TargetDescription &target)
    : code(code), op(op), shape(op, target), logits(operands[0]),
      bias(op.getSelectionBias() ? operands[1] : Value()), weights(results[0]), indices(results[1]),
      scratch(code, shape, ScratchAllocator(code, scratchMemory)) {}

void RouteKernel::build(Value workgroup) {
  Value first = code.mul(workgroup, shape.tileTokens);
  Value end = code.minimum(code.add(first, shape.tileTokens), code.dim(logits, 0));
  code.loop(first, end, 1, [&](Value token) {
    loadLogits(token);
    if (!shape.choosesByLogits || !shape.softmaxOfChosen)
      buildScores();
    buildSelection();
    buildRanks();
    if (shape.limitsGroups)
      leaveOutGroups();
    chooseExperts(token);
    buildWeights(token);
  });
}

void RouteKernel::loadLogits(Value token) {
  int64_t tail = shape.paddedExperts - shape.lanes;
  code.storeFloats(code.floatSplat(minusInfinity, shape.lanes), scratch.logits, code.index(tail));
  code.panels(shape.experts, shape.lanes, [&](Value i, int64_t lanes) {
    Value x = code.loadFloats(logits, {token, i}, lanes);
    Value isNumber = code.compare(arith::CmpFPredicate::ORD, x, x);
    code.storeFloats(code.select(isNumber, x, code.floatSplat(minusInfinity, lanes)),
                     scratch.logits, i);
  });
}

void RouteKernel::buildScores() {
  if (op.getScore() == moe::ScoreFunction::softmax)
    return buildSoftmax();
  code.loop(0, shape.paddedExperts, shape.lanes, [&](Value i) {
    code.storeFloats(scoreOf(code.loadFloats(scratch.logits, i, shape.lanes)), scratch.scores, i);
  });
}

Value RouteKernel::scoreOf(Value x) {
  Location loc = code.getLoc();
  Value zero = code.floatSplat(0, shape.lanes), one = code.floatSplat(1, shape.lanes);
  if (op.getScore() == moe::ScoreFunction::sigmoid)
    return code.divide(one, code.add(one, code.exp(code.sub(zero, x))));
  // softplus(x) = max(x, 0) + log(1 + exp(-|x|)): no exponential overflows.
  Value decay = code.exp(code.sub(zero, math::AbsFOp::create(code, loc, x)));
  Value softplus = code.add(code.maximum(x, zero), math::Log1pOp::create(code, loc, decay));
  return math::SqrtOp::create(code, loc, softplus);
}

void RouteKernel::buildSoftmax() {
  auto splat = [&](double value) { return code.floatSplat(value, shape.lanes); };
  Value zero = code.index(0), end = code.index(shape.paddedExperts);
  Value maxima = code.loop(zero, end, shape.lanes, {splat(lowestMaximum)},
                           [&](Value i, ValueRange carried) -> SmallVector<Value> {
                             Value x = code.loadFloats(scratch.logits, i, shape.lanes);
                             return {code.maximum(x, carried[0])};
                           })
                     .front();
  Value maximum = code.broadcast(code.maximumLane(maxima), shape.lanes);
  Value sums = code.loop(zero, end, shape.lanes, {splat(0)},
                         [&](Value i, ValueRange carried) -> SmallVector<Value> {
                           Value x = code.loadFloats(scratch.logits, i, shape.lanes);
                           Value exponential = code.exp(code.sub(x, maximum));
                           code.storeFloats(exponential, scratch.scores, i);
                           return {code.add(carried[0], exponential)};
                         })
                   .front();
  // Without a single number in the row the sum is 0, and 0 is then the score of all.
  Value sum = code.maximum(code.sumLanes(sums), code.float32(1e-30));
  Value divisor = code.broadcast(sum, shape.lanes);
  code.loop(zero, end, shape.lanes, [&](Value i) {
    Value exponential = code.loadFloats(scratch.scores, i, shape.lanes);
    code.storeFloats(code.divide(exponential, divisor), scratch.scores, i);
  });
}

void RouteKernel::buildSelection() {
  Value source = shape.choosesByLogits ? scratch.logits : scratch.scores;
  code.panels(shape.experts, shape.lanes, [&](Value i, int64_t lanes) {
    Value x = code.loadFloats(source, i, lanes);
    if (bias)
      x = code.add(x, code.loadFloats(bias, i, lanes));
    // A bias may be NaN, too. Adding zero makes -0 equal to 0.
    Value isNumber = code.compare(arith::CmpFPredicate::ORD, x, x);
    x = code.select(isNumber, x, code.floatSplat(minusInfinity, lanes));
    code.storeFloats(code.add(x, code.floatSplat(0, lanes)), scratch.selection, i);
  });
}

void RouteKernel::buildRanks() {
  int64_t tail = shape.paddedExperts - shape.lanes;
  code.storeInts(code.intSplat(taken, shape.lanes), scratch.ranks, code.index(tail));
  code.panels(shape.experts, shape.lanes, [&](Value i, int64_t lanes) {
    code.storeInts(rankOf(code.loadFloats(scratch.selection, i, lanes)), scratch.ranks, i);
  });
}

/// The bits of a float, of negative ones all but the sign flipped, are ordered like the floats.
Value RouteKernel::rankOf(Value selection) {
  Location loc = code.getLoc();
  Type type = code.getI32Type();
  if (auto vector = dyn_cast<VectorType>(selection.getType()))
    type = code.intVector(vector.getNumElements());
  auto constant = [&](int64_t value) -> Value {
    if (auto vector = dyn_cast<VectorType>(type))
      return code.intSplat(value, vector.getNumElements());
    return code.int32(value);
  };
  Value bits = arith::BitcastOp::create(code, loc, type, selection);
  Value sign = arith::ShRSIOp::create(code, loc, bits, constant(31));
  Value flip = arith::AndIOp::create(code, loc, sign, constant(0x7fffffff));
  return arith::XOrIOp::create(code, loc, bits, flip);
}

/// Experts outside the best groups get the rank of minus infinity.
void RouteKernel::leaveOutGroups() {
  int64_t tail = shape.paddedGroups - shape.lanes;
  code.storeInts(code.intSplat(taken, shape.lanes), scratch.groupRanks, code.index(tail));
  code.loop(0, shape.groups, 1, [&](Value group) {
    code.storeInt(rankOf(scoreOfGroup(group)), scratch.groupRanks, group);
  });
  code.loop(0, op.getTopGroups(), 1,
            [&](Value) { takeLargest(scratch.groupRanks, shape.paddedGroups); });
  Value lowest = rankOf(code.floatSplat(minusInfinity, 1));
  Value rank = code.lane(lowest, 0);
  code.loop(0, shape.groups, 1, [&](Value group) {
    Value isLeftOut = code.compare(arith::CmpIPredicate::ne,
                                   code.loadInt(scratch.groupRanks, group), code.int32(taken));
    code.when(isLeftOut, [&] {
      Value first = code.mul(group, shape.groupExperts);
      code.panels(shape.groupExperts, shape.lanes, [&](Value i, int64_t lanes) {
        code.storeInts(code.broadcast(rank, lanes), scratch.ranks, code.add(first, i));
      });
    });
  });
}

std::pair<Value, Value> RouteKernel::insert(Value x, Value largest, Value second) {
  return {code.maximum(x, largest), code.maximum(code.minimum(x, largest), second)};
}

/// The sum of the two largest selection scores of a group (of the only one).
Value RouteKernel::scoreOfGroup(Value group) {
  Value first = code.mul(group, shape.groupExperts);
  if (shape.groupExperts == 1)
    return code.loadFloat(scratch.selection, first);
  Value lowest = code.float32(minusInfinity);
  Value largest = lowest, second = lowest;
  int64_t whole = shape.groupExperts / shape.lanes * shape.lanes;
  if (whole > 0) {
    // The two largest of each lane, then of the lanes.
    Value lowestLanes = code.floatSplat(minusInfinity, shape.lanes);
    SmallVector<Value> best =
        code.loop(code.index(0), code.index(whole), shape.lanes, {lowestLanes, lowestLanes},
                  [&](Value i, ValueRange carried) -> SmallVector<Value> {
                    Value x = code.loadFloats(scratch.selection, code.add(first, i), shape.lanes);
                    auto [a, b] = insert(x, carried[0], carried[1]);
                    return {a, b};
                  });
    for (Value vector : best)
      for (int64_t lane = 0; lane < shape.lanes; ++lane)
        std::tie(largest, second) = insert(code.lane(vector, lane), largest, second);
  }
  SmallVector<Value> best =
      code.loop(code.index(whole), code.index(shape.groupExperts), 1, {largest, second},
                [&](Value i, ValueRange carried) -> SmallVector<Value> {
                  Value x = code.loadFloat(scratch.selection, code.add(first, i));
                  auto [a, b] = insert(x, carried[0], carried[1]);
                  return {a, b};
                });
  Value sum = code.add(best[0], best[1]);
  Value isNumber = code.compare(arith::CmpFPredicate::ORD, sum, sum);
  return code.add(code.select(isNumber, sum, lowest), code.float32(0));
}

Value RouteKernel::takeLargest(Value ranks, int64_t count) {
  Value lowest = code.intSplat(taken, shape.lanes);
  Value iota = code.iota(shape.lanes);
  SmallVector<Value> best = code.loop(
      code.index(0), code.index(count), shape.lanes, {lowest, code.intSplat(0, shape.lanes)},
      [&](Value i, ValueRange carried) -> SmallVector<Value> {
        Value rank = code.loadInts(ranks, i, shape.lanes);
        Value here = code.add(code.broadcast(code.toInt32(i), shape.lanes), iota);
        Value larger = code.compare(arith::CmpIPredicate::sgt, rank, carried[0]);
        return {code.select(larger, rank, carried[0]), code.select(larger, here, carried[1])};
      });
  Value largest = code.broadcast(code.maximumLane(best[0]), shape.lanes);
  Value isLargest = code.compare(arith::CmpIPredicate::eq, best[0], largest);
  Value never = code.intSplat(std::numeric_limits<int32_t>::max(), shape.lanes);
  Value position = code.toIndex(code.minimumLane(code.select(isLargest, best[1], never)));
  code.storeInt(code.int32(taken), ranks, position);
  return position;
}

void RouteKernel::chooseExperts(Value token) {
  Value source = shape.softmaxOfChosen ? scratch.logits : scratch.scores;
  // What pads the choices adds nothing: exp(-inf), or zero.
  Value padding = code.floatSplat(shape.softmaxOfChosen ? minusInfinity : 0, shape.lanes);
  code.storeFloats(padding, scratch.chosen, code.index(shape.paddedChoices - shape.lanes));
  code.loop(0, shape.choices, 1, [&](Value choice) {
    Value expert = takeLargest(scratch.ranks, shape.paddedExperts);
    code.storeInt(code.toInt32(expert), indices, {token, choice});
    code.storeFloat(code.loadFloat(source, expert), scratch.chosen, choice);
  });
}

void RouteKernel::buildWeights(Value token) {
  Value divisor;
  if (shape.softmaxOfChosen) {
    replaceChosenByExponentials();
    divisor = code.maximum(sumOfChosen(), code.float32(1e-30));
  } else if (op.getRenormalize()) {
    divisor = code.add(sumOfChosen(), code.float32(1e-20));
  }
  code.panels(shape.choices, shape.lanes, [&](Value i, int64_t lanes) {
    Value weight = code.loadFloats(scratch.chosen, i, lanes);
    if (divisor)
      weight = code.divide(weight, code.broadcast(divisor, lanes));
    weight = code.mul(weight, code.floatSplat(op.getScale().convertToDouble(), lanes));
    code.storeFloats(weight, weights, {token, i});
  });
}

Value RouteKernel::sumOfChosen() {
  return code.sumLanes(code.loop(code.index(0), code.index(shape.paddedChoices), shape.lanes,
                                 {code.floatSplat(0, shape.lanes)},
                                 [&](Value i, ValueRange carried) -> SmallVector<Value> {
                                   Value x = code.loadFloats(scratch.chosen, i, shape.lanes);
                                   return {code.add(carried[0], x)};
                                 })
                           .front());
}

void RouteKernel::replaceChosenByExponentials() {
  Value maxima = code.loop(code.index(0), code.index(shape.paddedChoices), shape.lanes,
                           {code.floatSplat(lowestMaximum, shape.lanes)},
                           [&](Value i, ValueRange carried) -> SmallVector<Value> {
                             Value x = code.loadFloats(scratch.chosen, i, shape.lanes);
                             return {code.maximum(x, carried[0])};
                           })
                     .front();
  Value maximum = code.broadcast(code.maximumLane(maxima), shape.lanes);
  code.loop(0, shape.paddedChoices, shape.lanes, [&](Value i) {
    Value x = code.loadFloats(scratch.chosen, i, shape.lanes);
    code.storeFloats(code.exp(code.sub(x, maximum)), scratch.chosen, i);
  });
}
