// RUN: %moec-opt %s --moec-select-strategies --moec-unify-layouts --moec-form-program --mlir-print-local-scope | FileCheck %s

module attributes {moec.target = "cpu:x86-64-v3"} {
  // Rows of a weight that become panels are written out first; other kernels read slices where they are.
  // CHECK: plan.program @main
  // CHECK: %[[W:.*]] = plan.weight "w"
  // CHECK: plan.launch @{{.*}}tensor.extract_slice ins(%[[W]]) outs(%[[ROWS:.*]]) dimensions
  // CHECK: plan.launch @{{.*}}relayout{{.*}} ins(%[[ROWS]]) outs(%[[PANELS:.*]]) dimensions
  // CHECK: plan.launch @{{.*}}linear{{.*}} ins({{.*}}%[[PANELS]]{{.*}})
  func.func @main(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["tokens"]}) -> (tensor<?x72xf32> {moe.name = "y"}) attributes {moe.entry} {
    %w = moe.weight "w" at <"m.safetensors", 0, 9216> : tensor<144x32xbf16>
    %s = tensor.extract_slice %w[72, 0] [72, 32] [1, 1] : tensor<144x32xbf16> to tensor<72x32xbf16>
    %y = moe.linear %x, %s : tensor<?x32xf32>, tensor<72x32xbf16> -> tensor<?x72xf32>
    return %y : tensor<?x72xf32>
  }
}
