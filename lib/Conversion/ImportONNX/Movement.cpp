//===- Movement.cpp - operators that move elements without changing them
//--------------------------===//

#include "Handlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include "onnx-ml.pb.h"

namespace mlir::moec::onnx_import {

/// Gives an output the input's elements in another shape.
static LogicalResult setReshaped(NodeImporter &node, Shape shape) {
  ImportedValue &input = node.input(0);
  if (input.contents)
    return node.setContents(0, *input.contents, std::move(shape), input.dataType);
  bool nonNegative = input.nonNegative;
  if (failed(node.setOutput(0, node.reshape(node.tensor(0), input.shape, shape), shape,
                            input.dataType)))
    return failure();
  node.output(0).nonNegative = nonNegative;
  return success();
}

LogicalResult importReshape(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)))
    return failure();
  FailureOr<SmallVector<SymbolicSize>> wanted = node.sizeList(1, "the shape");
  if (failed(wanted))
    return failure();
  const Shape &from = node.input(0).shape;
  bool allowZero = node.integer("allowzero", 0) != 0;
  Shape shape;
  std::optional<size_t> inferred;
  for (auto [i, size] : llvm::enumerate(*wanted)) {
    if (size.isConstant(-1)) {
      if (inferred)
        return node.fail("the shape holds -1 twice");
      inferred = i;
      shape.push_back(SymbolicSize(1));
    } else if (size.isConstant(0) && !allowZero) {
      if (i >= from.size())
        return node.fail("the shape copies dimension " + Twine(i) + ", which the input has not");
      shape.push_back(from[i]);
    } else {
      shape.push_back(size);
    }
  }
  FailureOr<SymbolicSize> all = node.product(from), known = node.product(shape);
  if (failed(all) || failed(known))
    return failure();
  if (inferred) {
    std::optional<SymbolicSize> rest = SymbolicSize::divideExactly(*all, *known);
    if (!rest)
      return node.fail("cannot infer the size at -1: " + node.graph.toString(*all) +
                       " elements in rows of " + node.graph.toString(*known));
    shape[*inferred] = *rest;
  }
  return setReshaped(node, std::move(shape));
}

LogicalResult importFlatten(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  const Shape &from = node.input(0).shape;
  int64_t rank = from.size(), axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return node.fail("axis " + Twine(axis) + " is outside the rank " + Twine(rank));
  axis = axis < 0 ? axis + rank : axis;
  FailureOr<SymbolicSize> rows = node.product(ArrayRef(from).take_front(axis));
  FailureOr<SymbolicSize> columns = node.product(ArrayRef(from).drop_front(axis));
  if (failed(rows) || failed(columns))
    return failure();
  return setReshaped(node, {*rows, *columns});
}

LogicalResult importSqueeze(NodeImporter &node) {
  if (failed(node.expectInputs(1, 2)))
    return failure();
  const Shape &from = node.input(0).shape;
  FailureOr<std::optional<SmallVector<int64_t>>> axes = node.axes(1);
  if (failed(axes))
    return failure();
  llvm::SmallBitVector dropped(from.size());
  if (*axes) {
    for (int64_t given : **axes) {
      FailureOr<int64_t> axis = node.axis(given, from.size());
      if (failed(axis))
        return failure();
      if (!from[*axis].isConstant(1))
        return node.fail("dimension " + Twine(*axis) + " is " + node.graph.toString(from[*axis]) +
                         ", expected 1");
      dropped.set(*axis);
    }
  } else {
    for (auto [i, size] : llvm::enumerate(from))
      if (size.isConstant(1))
        dropped.set(i);
  }
  Shape shape;
  for (auto [i, size] : llvm::enumerate(from))
    if (!dropped.test(i))
      shape.push_back(size);
  return setReshaped(node, std::move(shape));
}

LogicalResult importUnsqueeze(NodeImporter &node) {
  if (failed(node.expectInputs(1, 2)))
    return failure();
  const Shape &from = node.input(0).shape;
  FailureOr<std::optional<SmallVector<int64_t>>> axes = node.axes(1);
  if (failed(axes))
    return failure();
  if (!*axes)
    return node.fail("axes are missing");
  size_t rank = from.size() + (*axes)->size();
  llvm::SmallBitVector inserted(rank);
  for (int64_t given : **axes) {
    FailureOr<int64_t> axis = node.axis(given, rank);
    if (failed(axis))
      return failure();
    if (inserted.test(*axis))
      return node.fail("axis " + Twine(given) + " is given twice");
    inserted.set(*axis);
  }
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(inserted.test(i) ? SymbolicSize(1) : from[next++]);
  return setReshaped(node, std::move(shape));
}

LogicalResult importExpand(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)))
    return failure();
  FailureOr<SmallVector<SymbolicSize>> wanted = node.sizeList(1, "the shape");
  if (failed(wanted))
    return failure();
  ImportedValue &input = node.input(0);
  FailureOr<Shape> shape =
      node.broadcastShape({input.shape, Shape(wanted->begin(), wanted->end())});
  if (failed(shape))
    return failure();
  bool nonNegative = input.nonNegative;
  if (failed(node.setOutput(0, node.broadcast(node.tensor(0), input.shape, *shape), *shape,
                            input.dataType)))
    return failure();
  node.output(0).nonNegative = nonNegative;
  return success();
}

LogicalResult importConcat(NodeImporter &node) {
  if (failed(node.expectInputs(1, SIZE_MAX)))
    return failure();
  std::optional<int64_t> given = node.integer("axis");
  if (!given)
    return node.fail("attribute 'axis' is missing");
  for (size_t i = 0; i < node.inputCount(); ++i)
    if (!node.hasInput(i))
      return node.fail("input " + Twine(i) + " is missing");
  ImportedValue &first = node.input(0);
  FailureOr<int64_t> axis = node.axis(*given, first.rank());
  if (failed(axis))
    return failure();
  Shape shape = first.shape;
  bool shapeArithmetic = first.rank() == 1, nonNegative = true;
  SmallVector<SymbolicSize> contents;
  for (size_t i = 0; i < node.inputCount(); ++i) {
    ImportedValue &input = node.input(i);
    if (input.dataType != first.dataType)
      return node.fail("input " + Twine(i) + " is of type " + dataTypeName(input.dataType) +
                       ", expected " + dataTypeName(first.dataType));
    Shape expected = shape;
    if (input.rank() == expected.size())
      expected[*axis] = input.shape[*axis];
    if (input.shape != expected)
      return node.fail("input " + Twine(i) + " has shape " + node.graph.toString(input.shape) +
                       ", which does not fit " + node.graph.toString(first.shape));
    nonNegative &= input.nonNegative;
    shapeArithmetic &= input.contents.has_value();
    if (shapeArithmetic)
      contents.append(*input.contents);
    if (i == 0)
      continue;
    FailureOr<SymbolicSize> size = node.add(shape[*axis], input.shape[*axis]);
    if (failed(size))
      return failure();
    shape[*axis] = *size;
  }
  if (shapeArithmetic && contents.size() <= 64)
    return node.setContents(0, std::move(contents), std::move(shape), first.dataType);
  SmallVector<Value> tensors;
  for (size_t i = 0; i < node.inputCount(); ++i)
    tensors.push_back(node.tensor(i));
  Value result = tensors.size() == 1 ? tensors.front() : node.concatenate(tensors, *axis, shape);
  if (failed(node.setOutput(0, result, shape, first.dataType)))
    return failure();
  node.output(0).nonNegative = nonNegative;
  return success();
}

LogicalResult importSplit(NodeImporter &node) {
  if (failed(node.expectInputs(1, 2)))
    return failure();
  ImportedValue &input = node.input(0);
  FailureOr<int64_t> axis = node.axis(node.integer("axis", 0), input.rank());
  if (failed(axis))
    return failure();
  size_t outputs = node.node.output_size();
  SmallVector<SymbolicSize> sizes;
  if (node.hasInput(1)) {
    FailureOr<SmallVector<SymbolicSize>> given = node.sizeList(1, "the split");
    if (failed(given))
      return failure();
    sizes = *given;
  } else {
    int64_t count = node.integer("num_outputs", outputs);
    if (count < 1 || static_cast<size_t>(count) != outputs)
      return node.fail("num_outputs is " + Twine(count) + ", but there are " + Twine(outputs) +
                       " outputs");
    // With a remainder the last part is smaller than the others.
    std::optional<SymbolicSize> part =
        SymbolicSize::divideExactly(input.shape[*axis], SymbolicSize(count));
    if (part) {
      sizes.assign(count, *part);
    } else if (std::optional<int64_t> size = input.shape[*axis].constant()) {
      int64_t rounded = (*size + count - 1) / count;
      for (int64_t i = 0, rest = *size; i < count; ++i, rest -= rounded)
        sizes.push_back(SymbolicSize(std::clamp<int64_t>(rest, 0, rounded)));
    } else {
      return node.fail("cannot split " + node.graph.toString(input.shape[*axis]) + " into " +
                       Twine(count) + " parts");
    }
  }
  if (sizes.size() != outputs)
    return node.fail("the split has " + Twine(sizes.size()) + " parts, but there are " +
                     Twine(outputs) + " outputs");
  SmallVector<SymbolicSize> offsets(input.rank(), SymbolicSize(0));
  SmallVector<int64_t> strides(input.rank(), 1);
  Value tensor = node.tensor(0);
  for (auto [i, size] : llvm::enumerate(sizes)) {
    Shape shape = input.shape;
    shape[*axis] = size;
    FailureOr<SymbolicSize> end = node.add(offsets[*axis], size);
    if (failed(end))
      return failure();
    std::optional<SymbolicSize> rest = SymbolicSize::subtract(input.shape[*axis], *end);
    if (!rest || !rest->isAtLeast(0) || !size.isAtLeast(0))
      return node.fail("part " + Twine(i) + " of size " + node.graph.toString(size) +
                       " does not fit into " + node.graph.toString(input.shape[*axis]));
    if (failed(
            node.setOutput(i, node.slice(tensor, offsets, shape, strides), shape, input.dataType)))
      return failure();
    offsets[*axis] = *end;
  }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Slice
//===------------------------------------------------------------------------------------------===//

namespace {
struct SliceRange {
  SymbolicSize start, size;
  int64_t step = 1;
};
} // namespace

/// Brings one end of a slice into [low, high] by the sizes alone; none when that takes running.
static std::optional<SymbolicSize> clampSymbolically(SymbolicSize value, const SymbolicSize &size,
                                                     const SymbolicSize &low,
                                                     const SymbolicSize &high) {
  // Negative numbers count from the end. INT64_MIN and INT64_MAX mean the ends themselves.
  if (std::optional<int64_t> number = value.constant()) {
    if (*number >= INT32_MAX)
      return high;
    if (*number <= INT32_MIN)
      return low;
    if (*number < 0) {
      std::optional<SymbolicSize> fromEnd = SymbolicSize::add(value, size);
      if (!fromEnd)
        return std::nullopt;
      value = *fromEnd;
    }
  } else if (!value.isAtLeast(0)) {
    return std::nullopt;
  }
  std::optional<SymbolicSize> aboveLow = SymbolicSize::subtract(value, low);
  std::optional<SymbolicSize> belowHigh = SymbolicSize::subtract(high, value);
  if (aboveLow && aboveLow->isAtLeast(0) && belowHigh && belowHigh->isAtLeast(0))
    return value;
  // Constants on both sides can be compared even where they do not fit.
  if (aboveLow && aboveLow->constant() && *aboveLow->constant() < 0)
    return low;
  if (belowHigh && belowHigh->constant() && *belowHigh->constant() < 0)
    return high;
  return std::nullopt;
}

/// The same at run time.
static SymbolicSize clampAtRunTime(NodeImporter &node, const SymbolicSize &value,
                                   const SymbolicSize &size, const SymbolicSize &low,
                                   const SymbolicSize &high) {
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Value number = node.graph.sizeValue(value), length = node.graph.sizeValue(size);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isNegative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, number, zero);
  Value fromEnd = arith::AddIOp::create(builder, loc, number, length);
  number = arith::SelectOp::create(builder, loc, isNegative, fromEnd, number);
  number = arith::MaxSIOp::create(builder, loc, number, node.graph.sizeValue(low));
  number = arith::MinSIOp::create(builder, loc, number, node.graph.sizeValue(high));
  return node.graph.symbolFor(number, "slice end of " + node.graph.toString(size));
}

static FailureOr<SliceRange> sliceRange(NodeImporter &node, const SymbolicSize &start,
                                        const SymbolicSize &end, int64_t step,
                                        const SymbolicSize &size) {
  if (step == 0)
    return node.fail("a step is 0");
  if (step < 0 && !size.isAtLeast(1) && !size.isConstant(0))
    return node.fail("a negative step over a dimension that may be empty is not supported");
  SymbolicSize zero(0), last, beforeFirst(-1);
  FailureOr<SymbolicSize> sizeLessOne = node.subtract(size, SymbolicSize(1));
  if (failed(sizeLessOne))
    return failure();
  const SymbolicSize &low = step > 0 ? zero : beforeFirst;
  const SymbolicSize &high = step > 0 ? size : *sizeLessOne;
  auto clampEnd = [&](const SymbolicSize &value) {
    std::optional<SymbolicSize> known = clampSymbolically(value, size, low, high);
    return known ? *known : clampAtRunTime(node, value, size, low, high);
  };
  SliceRange range;
  range.step = step;
  range.start = clampEnd(start);
  SymbolicSize bound = clampEnd(end);
  FailureOr<SymbolicSize> length =
      step > 0 ? node.subtract(bound, range.start) : node.subtract(range.start, bound);
  if (failed(length))
    return failure();
  int64_t stride = std::abs(step);
  if (std::optional<int64_t> number = length->constant()) {
    range.size = SymbolicSize(*number <= 0 ? 0 : (*number - 1) / stride + 1);
    return range;
  }
  if (stride == 1 && length->isAtLeast(0)) {
    range.size = *length;
    return range;
  }
  if (std::optional<SymbolicSize> parts =
          SymbolicSize::divideExactly(*length, SymbolicSize(stride));
      parts && parts->isAtLeast(0)) {
    range.size = *parts;
    return range;
  }
  Value number = node.graph.sizeValue(*length);
  Value zeroValue = arith::ConstantIndexOp::create(node.builder, node.location, 0);
  number = arith::MaxSIOp::create(node.builder, node.location, number, zeroValue);
  if (stride != 1) {
    Value divisor = arith::ConstantIndexOp::create(node.builder, node.location, stride);
    number = arith::CeilDivUIOp::create(node.builder, node.location, number, divisor);
  }
  range.size = node.graph.symbolFor(number, "slice of " + node.graph.toString(size));
  return range;
}

LogicalResult importSlice(NodeImporter &node) {
  if (failed(node.expectInputs(3, 5)))
    return failure();
  ImportedValue &input = node.input(0);
  FailureOr<SmallVector<SymbolicSize>> starts = node.sizeList(1, "starts");
  FailureOr<SmallVector<SymbolicSize>> ends = node.sizeList(2, "ends");
  if (failed(starts) || failed(ends))
    return failure();
  SmallVector<int64_t> axes, steps(starts->size(), 1);
  for (size_t i = 0; i < starts->size(); ++i)
    axes.push_back(i);
  if (node.hasInput(3)) {
    FailureOr<SmallVector<int64_t>> given = node.integerList(3, "axes");
    if (failed(given))
      return failure();
    axes = *given;
  }
  if (node.hasInput(4)) {
    FailureOr<SmallVector<int64_t>> given = node.integerList(4, "steps");
    if (failed(given))
      return failure();
    steps = *given;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size())
    return node.fail("starts, ends, axes and steps differ in length");
  SmallVector<SliceRange> ranges(input.rank());
  for (auto [i, size] : llvm::enumerate(input.shape))
    ranges[i].size = size;
  llvm::SmallBitVector seen(input.rank());
  bool reversed = false;
  for (auto [i, given] : llvm::enumerate(axes)) {
    FailureOr<int64_t> axis = node.axis(given, input.rank());
    if (failed(axis))
      return failure();
    if (seen.test(*axis))
      return node.fail("axis " + Twine(given) + " is given twice");
    seen.set(*axis);
    FailureOr<SliceRange> range =
        sliceRange(node, (*starts)[i], (*ends)[i], steps[i], input.shape[*axis]);
    if (failed(range))
      return failure();
    ranges[*axis] = *range;
    reversed |= steps[i] < 0;
  }
  if (input.contents && input.rank() == 1 && ranges[0].start.constant() &&
      ranges[0].size.constant()) {
    SmallVector<SymbolicSize> contents;
    int64_t position = *ranges[0].start.constant();
    for (int64_t i = 0; i < *ranges[0].size.constant(); ++i, position += ranges[0].step)
      contents.push_back((*input.contents)[position]);
    Shape shape = {ranges[0].size};
    return node.setContents(0, std::move(contents), shape, input.dataType);
  }
  Shape offsets, shape;
  SmallVector<int64_t> strides;
  for (const SliceRange &range : ranges) {
    offsets.push_back(range.start);
    shape.push_back(range.size);
    strides.push_back(range.step);
  }
  if (!reversed)
    return node.setOutput(0, node.slice(node.tensor(0), offsets, shape, strides), shape,
                          input.dataType);
  // A backward walk: every element reads from where it says.
  Value tensor = node.tensor(0);
  SmallVector<Value> starting;
  for (const SymbolicSize &offset : offsets)
    starting.push_back(node.graph.sizeValue(offset));
  Type element = node.graph.elementType(input.dataType);
  Value result = node.parallel(
      {}, {}, shape, element, [&](OpBuilder &builder, Location loc, ValueRange) -> Value {
        SmallVector<Value> indices;
        for (auto [i, stride] : llvm::enumerate(strides)) {
          Value index = linalg::IndexOp::create(builder, loc, i);
          Value factor = arith::ConstantIndexOp::create(builder, loc, stride);
          index = arith::MulIOp::create(builder, loc, index, factor);
          indices.push_back(arith::AddIOp::create(builder, loc, index, starting[i]));
        }
        return tensor::ExtractOp::create(builder, loc, tensor, indices);
      });
  return node.setOutput(0, result, shape, input.dataType);
}

LogicalResult importTranspose(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  ImportedValue &input = node.input(0);
  SmallVector<int64_t> permutation;
  for (size_t i = input.rank(); i-- > 0;)
    permutation.push_back(i);
  if (std::optional<SmallVector<int64_t>> given = node.integers("perm"))
    permutation = *given;
  llvm::SmallBitVector seen(input.rank());
  for (int64_t source : permutation)
    if (source >= 0 && source < static_cast<int64_t>(input.rank()))
      seen.set(source);
  if (permutation.size() != input.rank() || !seen.all())
    return node.fail("attribute 'perm' is no permutation of " + Twine(input.rank()) +
                     " dimensions");
  Shape shape;
  for (int64_t source : permutation)
    shape.push_back(input.shape[source]);
  return node.setOutput(0, node.transpose(node.tensor(0), permutation), shape, input.dataType);
}

} // namespace mlir::moec::onnx_import
