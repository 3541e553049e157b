// RUN: %moec-opt %s --moec-fuse-norm | FileCheck %s

// CHECK-LABEL: @norm_into_products
// CHECK-SAME: %[[X:.*]]: tensor<?x32xf32>, %[[N:.*]]: tensor<32xf32>
func.func @norm_into_products(%x: tensor<?x32xf32>, %n: tensor<32xf32>, %w: tensor<64x32xf32>) -> (tensor<?x64xf32>, index) {
  // CHECK-NOT: moe.rms_norm
  // CHECK: moe.linear %[[X]], %{{.*}} norm(%[[N]] : tensor<32xf32>) {epsilon = 1.000000e-05 : f64}
  // CHECK: tensor.dim %[[X]]
  %c0 = arith.constant 0 : index
  %h = moe.rms_norm %x weight(%n : tensor<32xf32>) {epsilon = 1.0e-5} : tensor<?x32xf32>
  %y = moe.linear %h, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %d = tensor.dim %h, %c0 : tensor<?x32xf32>
  return %y, %d : tensor<?x64xf32>, index
}

// CHECK-LABEL: @norm_with_another_reader_stays
func.func @norm_with_another_reader_stays(%x: tensor<?x32xf32>, %n: tensor<32xf32>, %w: tensor<64x32xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  // CHECK: moe.rms_norm
  // CHECK-NOT: norm(
  %h = moe.rms_norm %x weight(%n : tensor<32xf32>) {epsilon = 1.0e-5} : tensor<?x32xf32>
  %y = moe.linear %h, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return %y, %h : tensor<?x64xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: @norm_as_residual_stays
func.func @norm_as_residual_stays(%x: tensor<?x32xf32>, %n: tensor<32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
  // CHECK: moe.rms_norm
  %h = moe.rms_norm %x weight(%n : tensor<32xf32>) {epsilon = 1.0e-5} : tensor<?x32xf32>
  %y = moe.linear %x, %w residual(%h : tensor<?x32xf32>) : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// CHECK-LABEL: @norm_with_unit_offset_stays
func.func @norm_with_unit_offset_stays(%x: tensor<?x32xf32>, %n: tensor<32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
  // CHECK: moe.rms_norm
  %h = moe.rms_norm %x weight(%n : tensor<32xf32>) {epsilon = 1.0e-5, unit_offset} : tensor<?x32xf32>
  %y = moe.linear %h, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
