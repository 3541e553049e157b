// RUN: %moec-opt %s --moec-expand-math --moec-legalize-floats | FileCheck %s --check-prefixes=CHECK,FMA
// RUN: sed s/x86-64-v3/x86-64-v2/ %s | %moec-opt --moec-expand-math --moec-legalize-floats | FileCheck %s --check-prefixes=CHECK,NOFMA

module attributes {moec.target = "cpu:x86-64-v3"} {

// CHECK-LABEL: func.func @functions
// CHECK-NOT:   math.{{exp|tanh|sin|powf|rsqrt|log}}
// FMA:         math.fma
// NOFMA-NOT:   math.fma
// CHECK:       return
func.func @functions(%x: memref<16xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %1 = math.exp %0 : vector<16xf32>
  %2 = math.tanh %1 : vector<16xf32>
  %3 = math.sin %2 : vector<16xf32>
  %4 = math.powf %3, %0 : vector<16xf32>
  %5 = math.rsqrt %4 : vector<16xf32>
  %6 = math.log %5 : vector<16xf32>
  %7 = math.fma %6, %5, %4 : vector<16xf32>
  vector.store %7, %x[%c0] : memref<16xf32>, vector<16xf32>
  return
}

// Narrow types are computed in f32 and rounded by integer operations: no library, no instruction beyond the target's.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT:   arith.addf %{{.*}} : vector<16xbf16>
// CHECK:       arith.addf %{{.*}} : vector<16xf32>
// CHECK-NOT:   arith.truncf %{{.*}} to vector<16xbf16>
// CHECK:       return
func.func @narrow(%x: memref<16xbf16>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<16xbf16>, vector<16xbf16>
  %1 = arith.addf %0, %0 : vector<16xbf16>
  vector.store %1, %x[%c0] : memref<16xbf16>, vector<16xbf16>
  return
}

// Outside of kernels nothing changes.
// CHECK-LABEL: func.func @other
// CHECK:         math.exp
func.func @other(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}

}
