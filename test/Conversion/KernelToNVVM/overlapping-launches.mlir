// A kernel may be on the GPU before the one before it has ended: it waits first of all, and no load is one of constants, which ptxas would
// move before the wait. An expert's product reads first how many tokens there are: what the router's kernel writes.
// RUN: moec compile %s --target=cuda:sm_90a --ptx-only -o %t.moeb
// RUN: FileCheck %s --input-file %t.moeb/code/cuda_sm_90a/kernels.ptx --implicit-check-not=global.nc
// CHECK: .visible .entry step_{{[0-9]+}}_cuda_grouped_linear_tiles
// CHECK: griddepcontrol.launch_dependents
// CHECK-NEXT: griddepcontrol.wait
// CHECK: ld.global.b32
func.func @step(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["tokens"]}, %logits: tensor<?x4xf32> {moe.name = "l", moe.dims = ["tokens"]},
    %up: tensor<4x64x32xbf16> {moe.name = "u"}, %down: tensor<4x32x32xbf16> {moe.name = "d"}) -> (tensor<?x32xf32> {moe.name = "y"}) attributes {moe.entry} {
  %w, %i = moe.route softmax(%logits) {top_k = 2} : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %y = moe.experts %x to %i, %w gate_up(%up : tensor<4x64x32xbf16>) down(%down : tensor<4x32x32xbf16>) <silu>
      : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
