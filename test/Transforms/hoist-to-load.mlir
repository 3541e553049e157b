// RUN: %moec-opt %s --moec-hoist-to-load --canonicalize | FileCheck %s

// CHECK: moe.global @[[G:.*]] : tensor<48x32xbf16>
// CHECK-LABEL: func.func @load() attributes {moe.load}
// CHECK-DAG: %[[A:.*]] = moe.weight "a"
// CHECK-DAG: %[[B:.*]] = moe.weight "b"
// CHECK: %[[C:.*]] = tensor.concat dim(0) %[[A]], %[[B]]
// CHECK: moe.global_store %[[C]], @[[G]]
// CHECK-NOT: moe.global_store

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<?x32xf32> {moe.dims = ["tokens"]}) -> (tensor<?x48xf32>, tensor<?x32xf32>, tensor<16xbf16>) attributes {moe.entry} {
  // CHECK-DAG: %[[W:.*]] = moe.global_load @[[G]]
  // CHECK-NOT: tensor.concat
  // CHECK: moe.linear %{{.*}}, %[[W]]
  %a = moe.weight "a" at <"m.safetensors", 0, 1024> : tensor<16x32xbf16>
  %b = moe.weight "b" at <"m.safetensors", 1024, 2048> : tensor<32x32xbf16>
  %c = tensor.concat dim(0) %a, %b : (tensor<16x32xbf16>, tensor<32x32xbf16>) -> tensor<48x32xbf16>
  %y = moe.linear %x, %c : tensor<?x32xf32>, tensor<48x32xbf16> -> tensor<?x48xf32>
  // A weight that is read as it is stays a reference; reshapes cost nothing.
  // CHECK: moe.weight "n"
  // CHECK: moe.rms_norm
  %n = moe.weight "n" at <"m.safetensors", 3072, 64> : tensor<4x8xbf16>
  %m = tensor.collapse_shape %n [[0, 1]] : tensor<4x8xbf16> into tensor<32xbf16>
  %h = moe.rms_norm %x weight(%m : tensor<32xbf16>) {epsilon = 1.0e-5} : tensor<?x32xf32>
  %o = moe.weight "o" at <"m.safetensors", 4096, 32> : tensor<16xbf16>
  return %y, %h, %o : tensor<?x48xf32>, tensor<?x32xf32>, tensor<16xbf16>
}
