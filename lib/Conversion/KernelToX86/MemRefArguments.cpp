//===- MemRefArguments.cpp - kernels that take pointers and sizes -----------------------------===//

#include "MemRefArguments.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::moec;

/// Scratch is not described further to the kernel: strategies index what they asked for.
static constexpr int64_t scratchSize = int64_t(1) << 40;

/// Builds the descriptor of an identity-layout memref whose dynamic sizes are `dynamicSizes`.
static Value describeMemRef(OpBuilder &builder, Location loc, const LLVMTypeConverter &converter,
                            MemRefType type, Value base, ValueRange dynamicSizes) {
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                    builder.getI64IntegerAttr(value));
  };
  SmallVector<Value> sizes, strides(type.getRank());
  for (int64_t size : type.getShape()) {
    if (ShapedType::isDynamic(size)) {
      sizes.push_back(dynamicSizes.front());
      dynamicSizes = dynamicSizes.drop_front();
    } else {
      sizes.push_back(constant(size));
    }
  }
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim)
    strides[dim] = dim == type.getRank() - 1
                       ? constant(1)
                       : LLVM::MulOp::create(builder, loc, strides[dim + 1], sizes[dim + 1]);
  SmallVector<Value> fields = {base, base, constant(0)};
  fields.append(sizes);
  fields.append(strides);
  Value descriptor = MemRefDescriptor::pack(builder, loc, converter, type, fields);
  return UnrealizedConversionCastOp::create(builder, loc, type, descriptor).getResult(0);
}

void mlir::moec::flattenSignature(func::FuncOp kernel, const LLVMTypeConverter &converter) {
  MLIRContext *context = kernel.getContext();
  Location loc = kernel.getLoc();
  Block &entry = kernel.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  Type pointer = LLVM::LLVMPointerType::get(context);
  unsigned oldCount = entry.getNumArguments();
  unsigned bindings = oldCount - 2;

  SmallVector<Value> bases, dimensions;
  for (unsigned i = 0; i < bindings; ++i)
    bases.push_back(entry.addArgument(pointer, loc));
  for (unsigned i = 0; i < bindings; ++i)
    for (int64_t j = cast<MemRefType>(entry.getArgument(i).getType()).getNumDynamicDims(); j > 0;
         --j)
      dimensions.push_back(entry.addArgument(builder.getI64Type(), loc));
  Value scratch = entry.addArgument(pointer, loc);
  Value workgroup = entry.addArgument(builder.getI64Type(), loc);

  ValueRange remaining = dimensions;
  for (unsigned i = 0; i < bindings; ++i) {
    auto type = cast<MemRefType>(entry.getArgument(i).getType());
    unsigned count = type.getNumDynamicDims();
    entry.getArgument(i).replaceAllUsesWith(
        describeMemRef(builder, loc, converter, type, bases[i], remaining.take_front(count)));
    remaining = remaining.drop_front(count);
  }
  Value scratchBytes = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                                builder.getI64IntegerAttr(scratchSize));
  entry.getArgument(bindings).replaceAllUsesWith(describeMemRef(
      builder, loc, converter, cast<MemRefType>(entry.getArgument(bindings).getType()), scratch,
      scratchBytes));
  entry.getArgument(bindings + 1)
      .replaceAllUsesWith(
          arith::IndexCastOp::create(builder, loc, builder.getIndexType(), workgroup));
  entry.eraseArguments(0, oldCount);
  kernel.setType(FunctionType::get(context, entry.getArgumentTypes(), {}));

  // A launch never binds one range of bytes twice, unless nobody writes it.
  SmallVector<Attribute> argumentAttributes(entry.getNumArguments(), builder.getDictionaryAttr({}));
  auto noAlias = builder.getDictionaryAttr(
      builder.getNamedAttr(LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr()));
  for (unsigned i = 0; i < bindings; ++i)
    argumentAttributes[i] = noAlias;
  argumentAttributes[bindings + dimensions.size()] = noAlias;
  kernel.setArgAttrsAttr(builder.getArrayAttr(argumentAttributes));
}
