// Names of targets and what they stand for.

#include "moec/Target/TargetDescription.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

TargetDescription parse(StringRef name) {
  std::string error;
  FailureOr<TargetDescription> target = TargetDescription::parse(name, error);
  EXPECT_TRUE(succeeded(target)) << error;
  return succeeded(target) ? *target : TargetDescription();
}

TEST(TargetDescription, KnowsMicroArchitectures) {
  TargetDescription v3 = parse("cpu:x86-64-v3");
  EXPECT_EQ(v3.name, "cpu:x86-64-v3");
  EXPECT_EQ(v3.cpu, "x86-64-v3");
  EXPECT_TRUE(v3.has("avx2") && v3.has("fma") && v3.has("f16c") && v3.has("sse4.1") && v3.has("cmov"));
  EXPECT_FALSE(v3.has("avx512f"));
  EXPECT_EQ(v3.getVectorBytes(), 32u);
  EXPECT_TRUE(llvm::is_sorted(v3.features));

  TargetDescription rapids = parse("cpu:sapphirerapids");
  EXPECT_TRUE(rapids.has("amx-tile") && rapids.has("amx-bf16") && rapids.has("avx512vl"));
  // What only an operating system uses says nothing about where code runs.
  EXPECT_FALSE(rapids.has("sgx") || rapids.has("pconfig"));
  EXPECT_EQ(rapids.getVectorBytes(), 64u);
  EXPECT_EQ(parse("cpu:x86-64-v2").getVectorBytes(), 16u);
}

TEST(TargetDescription, SwitchesFeaturesWithWhatTheyImply) {
  TargetDescription target = parse("cpu:sapphirerapids,-avx512f");
  EXPECT_FALSE(target.has("avx512bw") || target.has("avx512vl"));
  EXPECT_TRUE(target.has("avx2"));
  EXPECT_EQ(target.getVectorBytes(), 32u);
  EXPECT_TRUE(parse("cpu:x86-64-v3,+avx512vl").has("avx512f"));
}

TEST(TargetDescription, GivesEqualTargetsEqualNames) {
  EXPECT_EQ(parse("cpu:x86-64-v3,+avx2").name, "cpu:x86-64-v3");
  EXPECT_EQ(parse("cpu:sapphirerapids,-amx-bf16,-amx-int8").name, parse("cpu:sapphirerapids,-amx-int8,-amx-bf16").name);
}

TEST(TargetDescription, NameOfTheHostReadsBackAsTheHost) {
  TargetDescription host = parse("cpu");
  TargetDescription again = parse(host.name);
  EXPECT_EQ(again.name, host.name);
  EXPECT_EQ(again.features, host.features);
}

TEST(TargetDescription, SaysWhatIsWrongAndWhatThereIs) {
  struct Case {
    const char *name, *message;
  };
  for (Case c : {Case{"gpu", "expected 'cpu' (this machine), 'cpu:'"}, Case{"cpu:", "unknown micro-architecture ''"},
                 Case{"cpu:arm", "sapphirerapids"}, Case{"cpu:x86-64-v3,avx2", "expected '+' or '-'"},
                 Case{"cpu:x86-64-v3,+nothing", "unknown feature 'nothing'"}, Case{"cpu:x86-64-v3,", "expected '+' or '-'"}}) {
    std::string error;
    EXPECT_TRUE(failed(TargetDescription::parse(c.name, error))) << c.name;
    EXPECT_NE(error.find(c.message), std::string::npos) << error;
    EXPECT_NE(error.find(c.name), std::string::npos) << error;
  }
}

TEST(TargetDescription, TravelsInTheModule) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  TargetDescription target = parse("cpu:x86-64-v3");
  target.batchInvariant = true;
  target.set(*module);
  FailureOr<TargetDescription> read = TargetDescription::get(*module);
  ASSERT_TRUE(succeeded(read));
  EXPECT_EQ(read->name, target.name);
  EXPECT_TRUE(read->batchInvariant);
  target.batchInvariant = false;
  target.set(*module);
  EXPECT_FALSE(TargetDescription::get(*module)->batchInvariant);
}

} // namespace
