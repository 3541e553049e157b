// Products of Kimi K3's 96 and DeepSeek-V3's 128 heads have kernels for GPUs: a block has a tile of one head. On the CPU it takes some heads
// of a token.
// RUN: moec compile %s -o %t.moeb --target=cuda:sm_90a --ptx-only
// RUN: FileCheck %s --input-file %t.moeb/code/cuda_sm_90a/kernels.ptx
// RUN: moec compile %s --target=cpu:x86-64-v3 --to=plan -o - | FileCheck %s --check-prefix=PLAN
// CHECK-COUNT-2: .visible .entry step_{{[0-9]+}}_cuda_head_linear_tiles

// PLAN: func.func private @step_0_moe.head_linear
// PLAN-SAME: plan.tile_sizes = array<i64: 1, 16>
// PLAN: plan.launch @step_0_moe.head_linear
func.func @step(%x: tensor<?x96x128xbf16> {moe.name = "x", moe.dims = ["tokens"]}, %w: tensor<96x512x128xbf16> {moe.name = "w"},
    %l: tensor<?x128x512xbf16> {moe.name = "l", moe.dims = ["tokens"]}, %v: tensor<128x128x512xbf16> {moe.name = "v"})
    -> (tensor<?x96x512xbf16> {moe.name = "y"}, tensor<?x128x128xbf16> {moe.name = "z"}) attributes {moe.entry} {
  %y = moe.head_linear %x, %w : tensor<?x96x128xbf16>, tensor<96x512x128xbf16> -> tensor<?x96x512xbf16>
  %z = moe.head_linear %l, %v : tensor<?x128x512xbf16>, tensor<128x128x512xbf16> -> tensor<?x128x128xbf16>
  return %y, %z : tensor<?x96x512xbf16>, tensor<?x128x128xbf16>
}
