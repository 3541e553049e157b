// RUN: %moec-opt %s --moec-cuda-kernel-pipeline | FileCheck %s

// A product that adds in the same order for any number of rows: sums of blocks or warpgroups are never added to each other. Tiles of 128 rows serve
// few rows, too, and blocks may still copy the weight for each other.
// CHECK-LABEL: func.func @product
// CHECK:         multicast_mask
// CHECK-NOT:     llvm.load {{.*}}vector<2xf32>
// CHECK:         return
module attributes {moec.target = "cuda:sm_90a", moec.batch_invariant} {
func.func @product(%x: memref<?x7168xbf16>, %w: memref<2048x7168xbf16>, %out: memref<?x2048xbf16>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.threads = 384} {
  %a = bufferization.to_tensor %x restrict : memref<?x7168xbf16> to tensor<?x7168xbf16>
  %b = bufferization.to_tensor %w restrict : memref<2048x7168xbf16> to tensor<2048x7168xbf16>
  %y = moe.linear %a, %b {strategy = "cuda.linear.wgmma"} : tensor<?x7168xbf16>, tensor<2048x7168xbf16> -> tensor<?x2048xbf16>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x2048xbf16>, memref<?x2048xbf16>) -> ()
  return
}
}
