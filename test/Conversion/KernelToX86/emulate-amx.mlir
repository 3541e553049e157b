// RUN: %moec-opt %s --moec-emulate-amx | FileCheck %s

module attributes {moec.target = "cpu:sapphirerapids"} {

// CHECK-LABEL: func.func @tiles
// CHECK-NOT:   amx.
// CHECK:       scf.for {{.*}} -> (vector<16x16xf32>)
// CHECK:         math.fma %{{.*}} : vector<16xf32>
// CHECK-NOT:   amx.
// CHECK:       return
func.func @tiles(%a: memref<?x32xbf16>, %c: memref<16x16xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %zero) -> (!amx.tile<16x16xf32>) {
    %x = amx.tile_load %a[%i, %c0] : memref<?x32xbf16> into !amx.tile<16x32xbf16>
    %r = amx.tile_mulf %x, %x, %s : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    scf.yield %r : !amx.tile<16x16xf32>
  }
  amx.tile_store %c[%c0, %c0], %sum : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// CHECK-LABEL: func.func @lookup
// CHECK-NOT:   llvm.call_intrinsic
// CHECK:       vector.gather
func.func @lookup(%t: memref<32xi16>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %0 = vector.load %t[%c0] : memref<32xi16>, vector<32xi16>
  %1 = llvm.call_intrinsic "llvm.x86.avx512.permvar.hi.512"(%0, %0) : (vector<32xi16>, vector<32xi16>) -> vector<32xi16>
  vector.store %1, %t[%c0] : memref<32xi16>, vector<32xi16>
  return
}

}
