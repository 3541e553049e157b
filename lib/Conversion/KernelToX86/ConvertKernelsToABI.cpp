//===- ConvertKernelsToABI.cpp - kernels as functions of the kernel ABI -----------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"
#include "MemRefArguments.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

#include "runtime/abi/kernel_abi.h"

namespace mlir::moec {
#define GEN_PASS_DEF_CONVERTKERNELSTOABIPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// `llvm.func @name(arguments, scratch, workgroup)`: loads what the body takes and calls it.
static LLVM::LLVMFuncOp buildEntryPoint(OpBuilder &builder, func::FuncOp body, StringRef name,
                                        unsigned bindings) {
  Location loc = body.getLoc();
  MLIRContext *context = builder.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context), i64 = builder.getI64Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, pointer, i64});
  auto function = LLVM::LLVMFuncOp::create(builder, loc, name, type, LLVM::Linkage::Internal);
  OpBuilder::InsertionGuard guard(builder);
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);

  auto argumentsType = LLVM::LLVMStructType::getLiteral(context, {pointer, pointer});
  auto loadInvariant = [&](Type type, Value address) -> Value {
    auto load = LLVM::LoadOp::create(builder, loc, type, address);
    load.setInvariant(true);
    return load;
  };
  auto field = [&](int32_t index) {
    Value address = LLVM::GEPOp::create(builder, loc, pointer, argumentsType, entry->getArgument(0),
                                        ArrayRef<LLVM::GEPArg>{0, index});
    return loadInvariant(pointer, address);
  };
  auto element = [&](Type type, Value array, int32_t index) {
    Value address =
        LLVM::GEPOp::create(builder, loc, pointer, type, array, ArrayRef<LLVM::GEPArg>{index});
    return loadInvariant(type, address);
  };
  unsigned dimensions = body.getNumArguments() - bindings - 2;
  SmallVector<Value> operands;
  if (bindings) {
    Value buffers = field(0);
    for (unsigned i = 0; i < bindings; ++i)
      operands.push_back(element(pointer, buffers, i));
  }
  if (dimensions) {
    Value sizes = field(1);
    for (unsigned i = 0; i < dimensions; ++i)
      operands.push_back(element(i64, sizes, i));
  }
  operands.append({entry->getArgument(1), entry->getArgument(2)});
  // A func.call until the body becomes an llvm.func, too.
  func::CallOp::create(builder, loc, body, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return function;
}

/// A constant global whose initialiser is what `build` returns.
static LLVM::GlobalOp buildGlobal(OpBuilder &builder, Location loc, Type type, StringRef name,
                                  function_ref<Value()> build) {
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, name, Attribute());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(builder, loc, build());
  return global;
}

/// The table of all kernels and the exported function that returns it.
static void buildTable(OpBuilder &builder, Location loc,
                       MutableArrayRef<LLVM::LLVMFuncOp> kernels) {
  MLIRContext *context = builder.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context), i32 = builder.getI32Type();
  llvm::sort(kernels, [](auto a, auto b) { return a.getName() < b.getName(); });

  auto entryType = LLVM::LLVMStructType::getLiteral(context, {pointer, pointer});
  auto entriesType = LLVM::LLVMArrayType::get(entryType, kernels.size());
  SmallVector<LLVM::GlobalOp> names;
  for (LLVM::LLVMFuncOp kernel : kernels) {
    std::string text = kernel.getName().str() + '\0';
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
    names.push_back(
        LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                               (kernel.getName() + ".name").str(), builder.getStringAttr(text)));
  }
  auto entries = buildGlobal(builder, loc, entriesType, "moert_kernel_entries", [&]() -> Value {
    Value array = LLVM::UndefOp::create(builder, loc, entriesType);
    for (auto [index, kernel] : llvm::enumerate(kernels)) {
      Value name = LLVM::AddressOfOp::create(builder, loc, names[index]);
      Value function = LLVM::AddressOfOp::create(builder, loc, kernel);
      int64_t i = index;
      array = LLVM::InsertValueOp::create(builder, loc, array, name, ArrayRef<int64_t>{i, 0});
      array = LLVM::InsertValueOp::create(builder, loc, array, function, ArrayRef<int64_t>{i, 1});
    }
    return array;
  });

  auto tableType = LLVM::LLVMStructType::getLiteral(context, {i32, i32, pointer});
  auto table = buildGlobal(builder, loc, tableType, "moert_kernel_table", [&]() -> Value {
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(builder, loc, i32, builder.getI32IntegerAttr(value));
    };
    Value result = LLVM::UndefOp::create(builder, loc, tableType);
    Value fields[] = {constant(MOERT_KERNEL_ABI_VERSION), constant(kernels.size()),
                      LLVM::AddressOfOp::create(builder, loc, entries)};
    for (auto [index, value] : llvm::enumerate(fields))
      result = LLVM::InsertValueOp::create(builder, loc, result, value,
                                           ArrayRef<int64_t>{int64_t(index)});
    return result;
  });

  auto query = LLVM::LLVMFuncOp::create(builder, loc, MOERT_KERNEL_QUERY_NAME,
                                        LLVM::LLVMFunctionType::get(pointer, {}));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(query.addEntryBlock(builder));
  Value address = LLVM::AddressOfOp::create(builder, loc, table);
  LLVM::ReturnOp::create(builder, loc, address);
}

namespace {
struct ConvertKernelsToABI : moec::impl::ConvertKernelsToABIPassBase<ConvertKernelsToABI> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LLVMTypeConverter converter(&getContext());
    OpBuilder builder(&getContext());
    SmallVector<LLVM::LLVMFuncOp> entryPoints;
    for (func::FuncOp kernel : getKernels(module)) {
      if (failed(verifyKernelSignature(kernel)))
        return signalPassFailure();
      unsigned bindings = kernel.getNumArguments() - 2;
      flattenSignature(kernel, converter);
      std::string name = kernel.getName().str();
      kernel.setName(name + ".body");
      kernel->removeAttr(kernelAttribute);
      kernel->removeAttr(tileSizesAttribute);
      kernel->setAttr("llvm.linkage",
                      LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
      kernel->setAttr("always_inline", builder.getUnitAttr());
      builder.setInsertionPointAfter(kernel);
      entryPoints.push_back(buildEntryPoint(builder, kernel, name, bindings));
    }
    builder.setInsertionPointToEnd(module.getBody());
    buildTable(builder, module.getLoc(), entryPoints);
  }
};
} // namespace
