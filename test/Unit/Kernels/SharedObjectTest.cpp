// What the compiled shared object is from outside: one exported symbol, no dependencies.

#include "GenericKernel.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace moec_test;

namespace {

/// Copies, fills, functions, conversions and a large row: all that compilers like to turn into
/// calls.
std::string moduleText() {
  return genericKernel({"?x5000xf32", "5000xf32"},
                       {"?x5000xf32", "?x5000xf32", "?x5000xbf16", "?x5000xf16"}, R"(
    %c0 = arith.constant 0 : index
    %rows = tensor.dim %i0, %c0 : tensor<?x5000xf32>
    %o0 = math.absf %i0 : tensor<?x5000xf32>
    %zero = arith.constant 0.0 : f32
    %o1 = tensor.splat %zero[%rows] : tensor<?x5000xf32>
    %s = math.sin %i0 : tensor<?x5000xf32>
    %e = math.exp %s : tensor<?x5000xf32>
    %p = math.powf %e, %i0 : tensor<?x5000xf32>
    %t = math.tanh %p : tensor<?x5000xf32>
    %r = math.round %t : tensor<?x5000xf32>
    %n = moe.rms_norm %r weight(%i1 : tensor<5000xf32>) {epsilon = 1.0e-5 : f64} : tensor<?x5000xf32>
    %o2 = arith.truncf %n : tensor<?x5000xf32> to tensor<?x5000xbf16>
    %o3 = arith.truncf %n : tensor<?x5000xf32> to tensor<?x5000xf16>)",
                       "1");
}

class SharedObject : public testing::TestWithParam<const char *> {};

TEST_P(SharedObject, ExportsTheQueryAndNeedsNothing) {
  KernelHarness harness(moduleText(), GetParam());
  ASSERT_FALSE(harness.getSharedObject().empty()) << harness.getError();
  llvm::MemoryBufferRef buffer(harness.getSharedObject(), "kernels");
  auto object = llvm::object::ObjectFile::createELFObjectFile(buffer);
  ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
  auto *elf = llvm::dyn_cast<llvm::object::ELF64LEObjectFile>(object->get());
  ASSERT_NE(elf, nullptr);
  std::vector<std::string> names;
  for (llvm::object::ELFSymbolRef symbol : elf->getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    ASSERT_TRUE(bool(name)) << llvm::toString(name.takeError());
    if (!name->empty())
      names.push_back(name->str());
  }
  EXPECT_EQ(names, std::vector<std::string>{MOERT_KERNEL_QUERY_NAME});
  auto entries = elf->getELFFile().dynamicEntries();
  ASSERT_TRUE(bool(entries)) << llvm::toString(entries.takeError());
  for (const auto &entry : *entries)
    EXPECT_NE(entry.getTag(), uint64_t(llvm::ELF::DT_NEEDED));
  // No names of files of the machine that compiled it.
  EXPECT_EQ(harness.getSharedObject().find("/tmp"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Targets, SharedObject,
                         testing::Values("cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:sapphirerapids",
                                         "cpu:znver4"));

TEST(SharedObject, TableIsSortedByName) {
  std::string empty =
      "(%scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} { return }\n";
  KernelHarness harness("func.func @b" + empty + "func.func @c" + empty + "func.func @a" + empty,
                        "cpu");
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  for (const char *name : {"a", "b", "c"})
    EXPECT_TRUE(harness.run(name, {}));
  EXPECT_FALSE(harness.run("d", {}));
}

/// Enough kernels to be compiled in several parts, all of which read one constant.
TEST(SharedObject, JoinsKernelsCompiledApart) {
  std::string text =
      "memref.global \"private\" constant @table : memref<4xi32> = dense<[3, 5, 7, 11]>\n";
  constexpr int count = 23;
  for (int i = 0; i < count; ++i)
    text += llvm::formatv(R"(
      func.func @kernel_{0}(%out: memref<4xi32>, %scratch: memref<?xi8>, %workgroup: index) attributes {{plan.kernel} {{
        %c0 = arith.constant 0 : index
        %n = arith.constant dense<{0}> : vector<4xi32>
        %t = memref.get_global @table : memref<4xi32>
        %v = vector.load %t[%c0] : memref<4xi32>, vector<4xi32>
        %r = arith.muli %v, %n : vector<4xi32>
        vector.store %r, %out[%c0] : memref<4xi32>, vector<4xi32>
        return
      })",
                          i)
                .str();
  KernelHarness harness(text, "cpu"), again(text, "cpu");
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  EXPECT_EQ(harness.getSharedObject(), again.getSharedObject());
  for (int i = 0; i < count; ++i) {
    Guarded<int32_t> out(4);
    ASSERT_TRUE(harness.run("kernel_" + std::to_string(i), {out.bind()})) << i;
    EXPECT_TRUE(out.isIntact());
    const int table[] = {3, 5, 7, 11};
    for (int j = 0; j < 4; ++j)
      EXPECT_EQ(out[j], table[j] * i);
  }
}

} // namespace
