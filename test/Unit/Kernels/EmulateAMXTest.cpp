// AMX tile products and AVX-512 table look-ups, emulated.

#include "GenericKernel.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

TEST(EmulateAMX, MultipliesTiles) {
  KernelHarness harness(R"(
    func.func @product(%a: memref<?x?x32xbf16>, %b: memref<?x32xbf16>, %c: memref<16x16xf32>, %scratch: memref<?xi8>, %workgroup: index)
        attributes {plan.kernel} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %blocks = memref.dim %a, %c0 : memref<?x?x32xbf16>
      %zero = amx.tile_zero : !amx.tile<16x16xf32>
      %sum = scf.for %i = %c0 to %blocks step %c1 iter_args(%s = %zero) -> (!amx.tile<16x16xf32>) {
        %row = arith.muli %i, %c16 : index
        %x = amx.tile_load %a[%i, %c0, %c0] : memref<?x?x32xbf16> into !amx.tile<16x32xbf16>
        %w = amx.tile_load %b[%row, %c0] : memref<?x32xbf16> into !amx.tile<16x32xbf16>
        %r = amx.tile_mulf %x, %w, %s : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
        scf.yield %r : !amx.tile<16x16xf32>
      }
      amx.tile_store %c[%c0, %c0], %sum : memref<16x16xf32>, !amx.tile<16x16xf32>
      return
    })",
                        "cpu:sapphirerapids", {.emulate = true});
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  const int blocks = 3;
  FloatBuffer a("bf16", blocks * 16 * 32), b("bf16", blocks * 16 * 32), c("f32", 256);
  Random random;
  a.randomize(random);
  b.randomize(random);
  // The hardware reads subnormal numbers as zero.
  a.set(5, 1e-39f);
  b.set(0, 1e30f);
  ASSERT_TRUE(harness.run("product", {a.bind({blocks, 16}), b.bind({blocks * 16}), c.bind()}));
  EXPECT_TRUE(c.isIntact());
  auto flushed = [](float value) { return std::abs(value) < 0x1p-126f ? 0.0 : double(value); };
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      double sum = 0, magnitude = 0;
      for (int i = 0; i < blocks; ++i)
        for (int k = 0; k < 32; ++k) {
          double product = flushed(a.get((i * 16 + m) * 32 + k)) *
                           flushed(b.get((i * 16 + k / 2) * 32 + 2 * n + k % 2));
          sum += product;
          magnitude += std::abs(product);
        }
      ASSERT_NEAR(c.get(m * 16 + n), sum, 1e-6 * magnitude) << m << ", " << n;
    }
}

TEST(EmulateAMX, LooksUpWords) {
  KernelHarness harness(R"(
    func.func @lookup(%table: memref<32xi16>, %codes: memref<32xi16>, %out: memref<32xi16>, %scratch: memref<?xi8>, %workgroup: index)
        attributes {plan.kernel} {
      %c0 = arith.constant 0 : index
      %t = vector.load %table[%c0] : memref<32xi16>, vector<32xi16>
      %i = vector.load %codes[%c0] : memref<32xi16>, vector<32xi16>
      %r = llvm.call_intrinsic "llvm.x86.avx512.permvar.hi.512"(%t, %i) : (vector<32xi16>, vector<32xi16>) -> vector<32xi16>
      vector.store %r, %out[%c0] : memref<32xi16>, vector<32xi16>
      return
    })",
                        "cpu:sapphirerapids", {.emulate = true});
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  Guarded<int16_t> table(32), codes(32), out(32);
  for (int i = 0; i < 32; ++i) {
    table[i] = 100 - 7 * i;
    codes[i] = int16_t(i * 2113);
  }
  ASSERT_TRUE(harness.run("lookup", {table.bind(), codes.bind(), out.bind()}));
  EXPECT_TRUE(out.isIntact());
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], table[codes[i] & 31]);
}

} // namespace
