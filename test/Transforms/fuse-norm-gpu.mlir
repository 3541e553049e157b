// RUN: %moec-opt %s --moec-fuse-norm | FileCheck %s

// Products on a GPU read rows as they lie in memory: the norm stays an op of its own.
// CHECK: moe.rms_norm
// CHECK-NOT: norm(
module attributes {moec.target = "cuda:sm_90a"} {
  func.func @norm_stays(%x: tensor<?x32xf32>, %n: tensor<32xf32>, %w: tensor<64x32xf32>) -> tensor<?x64xf32> {
    %h = moe.rms_norm %x weight(%n : tensor<32xf32>) {epsilon = 1.0e-5} : tensor<?x32xf32>
    %y = moe.linear %h, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
}
