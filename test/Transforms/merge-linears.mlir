// RUN: %moec-opt %s --moec-merge-linears | FileCheck %s

// CHECK-LABEL: @query_key_value
// CHECK-SAME: %[[X:.*]]: tensor<?x32xf32>
func.func @query_key_value(%x: tensor<?x32xf32>) -> (tensor<?x64xf32>, tensor<?x16xf32>) {
  // CHECK: %[[W:.*]] = moe.weight "q" at <"m.safetensors", 0, 4096> and ["k"] at [#moe.weight_ref<"m.safetensors", 4096, 1024>] : tensor<80x32xbf16>
  // CHECK: %[[Y:.*]] = moe.linear %[[X]], %[[W]] : {{.*}} -> tensor<?x80xf32>
  // CHECK: tensor.extract_slice %[[Y]][0, 0] [%{{.*}}, 64] [1, 1]
  // CHECK: tensor.extract_slice %[[Y]][0, 64] [%{{.*}}, 16] [1, 1]
  // CHECK-NOT: moe.linear
  %q = moe.weight "q" at <"m.safetensors", 0, 4096> : tensor<64x32xbf16>
  %a = moe.linear %x, %q : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  %k = moe.weight "k" at <"m.safetensors", 4096, 1024> : tensor<16x32xbf16>
  %b = moe.linear %x, %k : tensor<?x32xf32>, tensor<16x32xbf16> -> tensor<?x16xf32>
  return %a, %b : tensor<?x64xf32>, tensor<?x16xf32>
}

// CHECK-LABEL: @other_inputs_types_and_residuals_stay
func.func @other_inputs_types_and_residuals_stay(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %given: tensor<32x32xbf16>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NOT: tensor.concat
  %w = moe.weight "w" at <"m.safetensors", 0, 2048> : tensor<32x32xbf16>
  %v = moe.weight "v" at <"m.safetensors", 2048, 4096> : tensor<32x32xf32>
  %a = moe.linear %x, %w : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  %b = moe.linear %y, %w : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  %c = moe.linear %x, %v : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %d = moe.linear %x, %w residual(%y : tensor<?x32xf32>) : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  %e = moe.linear %x, %given : tensor<?x32xf32>, tensor<32x32xbf16> -> tensor<?x32xf32>
  return %a, %b, %c, %d, %e : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}
