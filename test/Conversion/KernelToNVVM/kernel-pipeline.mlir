// RUN: %moec-opt %s --moec-cuda-kernel-pipeline | FileCheck %s

module attributes {moec.target = "cuda:sm_80"} {

// Threads take neighbouring elements and meet at a barrier.
// CHECK-LABEL: func.func @add
// CHECK:       %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:       %[[THREAD:.*]] = arith.index_cast %[[TID]]
// CHECK:       scf.for %{{.*}} = %[[THREAD]] to %{{.*}} step %c256
// CHECK:         memref.load
// CHECK:         memref.load
// CHECK:         arith.addf %{{.*}} : f32
// CHECK:         memref.store
// CHECK:       nvvm.barrier0
// CHECK-NOT:   linalg
func.func @add(%x: memref<?x40xf32>, %y: memref<?x40xf32>, %out: memref<?x40xf32>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 4>, plan.threads = 256} {
  %a = bufferization.to_tensor %x restrict : memref<?x40xf32> to tensor<?x40xf32>
  %b = bufferization.to_tensor %y restrict : memref<?x40xf32> to tensor<?x40xf32>
  %sum = arith.addf %a, %b : tensor<?x40xf32>
  bufferization.materialize_in_destination %sum in restrict writable %out : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
  return
}

// A row's sum: each thread a part of it, five exchanges in a warp, one number a warp in shared memory.
// CHECK-DAG:   memref.global "private" @norm_shared_{{[0-9]+}} : memref<8xf32, 3> = uninitialized
// CHECK-LABEL: func.func @norm
// CHECK-NOT:   memref.alloc
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT:   nvvm.shfl.sync
// CHECK:       nvvm.barrier0
// CHECK:       math.rsqrt
// CHECK:       return
func.func @norm(%x: memref<?x256xbf16>, %w: memref<256xbf16>, %out: memref<?x256xbf16>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 1>, plan.threads = 256} {
  %a = bufferization.to_tensor %x restrict : memref<?x256xbf16> to tensor<?x256xbf16>
  %b = bufferization.to_tensor %w restrict : memref<256xbf16> to tensor<256xbf16>
  %y = moe.rms_norm %a weight(%b : tensor<256xbf16>) {epsilon = 1.0e-5 : f64} : tensor<?x256xbf16>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x256xbf16>, memref<?x256xbf16>) -> ()
  return
}
}
