// RUN: %moec-opt %s --moec-kernel-pipeline | FileCheck %s --check-prefixes=CHECK,V3
// RUN: sed s/x86-64-v3/x86-64-v4/ %s | %moec-opt --moec-kernel-pipeline | FileCheck %s --check-prefixes=CHECK,V4

module attributes {moec.target = "cpu:x86-64-v3"} {

// Two registers of f32 at a time, then the rest in one shorter vector; nothing is allocated.
// CHECK-LABEL: func.func @add
// CHECK:       scf.for
// CHECK-NOT:   memref.alloc
// V3:            arith.addf %{{.*}} : vector<16xf32>
// V3:          arith.addf %{{.*}} : vector<8xf32>
// V4:            arith.addf %{{.*}} : vector<40xf32>
func.func @add(%x: memref<?x40xf32>, %y: memref<?x40xf32>, %out: memref<?x40xf32>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 4>} {
  %a = bufferization.to_tensor %x restrict : memref<?x40xf32> to tensor<?x40xf32>
  %b = bufferization.to_tensor %y restrict : memref<?x40xf32> to tensor<?x40xf32>
  %sum = arith.addf %a, %b : tensor<?x40xf32>
  bufferization.materialize_in_destination %sum in restrict writable %out : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
  return
}

// Four vectors of partial sums, combined at the end; temporaries are stack at the entry.
// CHECK-LABEL: func.func @norm
// V3:          memref.alloca() {alignment = 64 : i64} : memref<1x32xf32>
// V4:          memref.alloca() {alignment = 64 : i64} : memref<1x64xf32>
// CHECK:       scf.for
// CHECK-NOT:   memref.alloca
// V3:            arith.addf %{{.*}} : vector<32xf32>
// V4:            arith.addf %{{.*}} : vector<64xf32>
// CHECK:       vector.multi_reduction <add>
// CHECK:       math.rsqrt %{{.*}} : f32
// CHECK:       return
func.func @norm(%x: memref<?x256xbf16>, %w: memref<256xbf16>, %out: memref<?x256xbf16>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 1>} {
  %a = bufferization.to_tensor %x restrict : memref<?x256xbf16> to tensor<?x256xbf16>
  %b = bufferization.to_tensor %w restrict : memref<256xbf16> to tensor<256xbf16>
  %y = moe.rms_norm %a weight(%b : tensor<256xbf16>) {epsilon = 1.0e-5 : f64} : tensor<?x256xbf16>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x256xbf16>, memref<?x256xbf16>) -> ()
  return
}

// A gather is a scalar loop.
// CHECK-LABEL: func.func @rows
// CHECK:       memref.load %{{.*}} : memref<9x64xbf16>
// CHECK-NOT:   linalg.
// CHECK:       return
func.func @rows(%ids: memref<?xi32>, %t: memref<9x64xbf16>, %out: memref<?x64xbf16>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 1>} {
  %a = bufferization.to_tensor %ids restrict : memref<?xi32> to tensor<?xi32>
  %b = bufferization.to_tensor %t restrict : memref<9x64xbf16> to tensor<9x64xbf16>
  %y = moe.embedding %a, %b : tensor<?xi32>, tensor<9x64xbf16> -> tensor<?x64xbf16>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x64xbf16>, memref<?x64xbf16>) -> ()
  return
}

}
