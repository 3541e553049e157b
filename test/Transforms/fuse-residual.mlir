// RUN: %moec-opt %s --moec-fuse-residual | FileCheck %s

// CHECK-LABEL: @residual_into_linear
// CHECK-SAME: %[[X:.*]]: tensor<?x32xf32>, %[[W:.*]]: tensor<32x32xf32>
func.func @residual_into_linear(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
  // CHECK: %[[Y:.*]] = moe.linear %[[X]], %[[W]] residual(%[[X]] : tensor<?x32xf32>)
  // CHECK-NOT: arith.addf
  // CHECK: return %[[Y]]
  %y = moe.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %z = arith.addf %x, %y : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// CHECK-LABEL: @result_with_another_use_stays
func.func @result_with_another_use_stays(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: arith.addf
  %y = moe.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %z = arith.addf %x, %y : tensor<?x32xf32>
  return %y, %z : tensor<?x32xf32>, tensor<?x32xf32>
}

// The second summand is made after the product: it cannot become its operand.
// CHECK-LABEL: @both_products_are_used_once
func.func @both_products_are_used_once(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
  // CHECK: %[[A:.*]] = moe.linear
  // CHECK-NOT: residual
  // CHECK: %[[B:.*]] = moe.linear {{.*}} residual(%[[A]]
  // CHECK: return %[[B]]
  %a = moe.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %b = moe.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %z = arith.addf %b, %a : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// CHECK-LABEL: @a_second_residual_stays
func.func @a_second_residual_stays(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
  // CHECK: moe.linear {{.*}} residual
  // CHECK: arith.addf
  %y = moe.linear %x, %w residual(%x : tensor<?x32xf32>) : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %z = arith.addf %x, %y : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}
