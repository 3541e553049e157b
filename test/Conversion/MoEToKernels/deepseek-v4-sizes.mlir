// The ops of DeepSeek-V4 in their true sizes have kernels for GPUs: nothing needs more shared memory than a block has.
// RUN: moec compile %s -o %t.moeb --target=cuda:sm_90a --ptx-only
// RUN: FileCheck %s --input-file %t.moeb/code/cuda_sm_90a/kernels.ptx
// CHECK-DAG: .visible .entry step_{{[0-9]+}}_cuda_select_entries
// CHECK-DAG: .visible .entry step_{{[0-9]+}}_cuda_compressed_attention
// CHECK-DAG: .visible .entry step_{{[0-9]+}}_cuda_hyper_weights
// CHECK-DAG: .visible .entry step_{{[0-9]+}}_moe_hyper_collapse
// CHECK-DAG: .visible .entry step_{{[0-9]+}}_moe_hyper_expand

func.func @step(%q: tensor<?x64x512xbf16> {moe.name = "q", moe.dims = ["tokens"]}, %iq: tensor<?x64x128xbf16> {moe.name = "iq", moe.dims = ["tokens"]}, %iw: tensor<?x64xf32> {moe.name = "iw", moe.dims = ["tokens"]},
  %p: tensor<?xi32> {moe.name = "p", moe.dims = ["tokens"]}, %s: tensor<?xi32> {moe.name = "s", moe.dims = ["tokens"]}, %t: tensor<?x?xi32> {moe.name = "t", moe.dims = ["sequences", "blocks"]}, %pool: tensor<?xi32> {moe.name = "pool", moe.dims = ["cache_blocks"]},
  %x: tensor<?x4x4096xbf16> {moe.name = "x", moe.dims = ["tokens"]}, %pr: tensor<?x24xf32> {moe.name = "pr", moe.dims = ["tokens"]}, %sc: tensor<3xf32> {moe.name = "sc"}, %ba: tensor<24xf32> {moe.name = "ba"}, %y: tensor<?x4096xbf16> {moe.name = "y", moe.dims = ["tokens"]},
  %c: !moe.cache<kv_heads = 1, key_dim = 512, value_dim = 512, block = 16, bf16> {moe.name = "c"}, %e: !moe.cache<kv_heads = 1, key_dim = 512, value_dim = 512, block = 4, bf16> {moe.name = "e"}, %k: !moe.cache<kv_heads = 1, key_dim = 128, value_dim = 128, block = 4, bf16> {moe.name = "k"})
  -> (tensor<?x64x512xbf16> {moe.name = "o"}, tensor<?x4x4096xbf16> {moe.name = "z"}, tensor<?x4096xbf16> {moe.name = "h"}) attributes {moe.entry} {
  %i = moe.select_entries %iq weights(%iw : tensor<?x64xf32>) over %k at (%p, %s, %t) {ratio = 4} : tensor<?x64x128xbf16>, !moe.cache<kv_heads = 1, key_dim = 128, value_dim = 128, block = 4, bf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x512xi32>
  %o = moe.compressed_attention %q over %c and %e at (%p, %s, %t) indices(%i : tensor<?x512xi32>) {scale = 0.0442, window = 128, ratio = 4} : tensor<?x64x512xbf16>, !moe.cache<kv_heads = 1, key_dim = 512, value_dim = 512, block = 16, bf16>, !moe.cache<kv_heads = 1, key_dim = 512, value_dim = 512, block = 4, bf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x64x512xbf16>
  %w = moe.hyper_weights %pr of %x scale(%sc : tensor<3xf32>) base(%ba : tensor<24xf32>) {iterations = 20, epsilon = 1.0e-6, norm_epsilon = 1.0e-6} : tensor<?x24xf32>, tensor<?x4x4096xbf16> -> tensor<?x24xf32>
  %h = moe.hyper_collapse %x by %w : tensor<?x4x4096xbf16>, tensor<?x24xf32> -> tensor<?x4096xbf16>
  %z = moe.hyper_expand %y into %x by %w : tensor<?x4096xbf16>, tensor<?x4x4096xbf16>, tensor<?x24xf32>
  return %o, %z, %h : tensor<?x64x512xbf16>, tensor<?x4x4096xbf16>, tensor<?x4096xbf16>
}
