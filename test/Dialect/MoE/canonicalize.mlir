// RUN: %moec-opt %s --canonicalize --cse | FileCheck %s

!panels = tensor<64x32xbf16, #moe.layout<tile = [16, 1], order = [1, 0], swizzle = none>>
!pairs = tensor<64x32xbf16, #moe.layout<tile = [16, 2], order = [0, 1], swizzle = pairs>>

// CHECK-LABEL: func.func @relayout_to_same
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: return %[[X]]
func.func @relayout_to_same(%x: tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  %0 = moe.relayout %x : tensor<64x32xbf16> -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}

// CHECK-LABEL: func.func @relayout_there_and_back
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: return %[[X]]
func.func @relayout_there_and_back(%x: tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  %0 = moe.relayout %x : tensor<64x32xbf16> -> !panels
  %1 = moe.relayout %0 : !panels -> tensor<64x32xbf16>
  return %1 : tensor<64x32xbf16>
}

// CHECK-LABEL: func.func @relayout_kept
// CHECK: moe.relayout
// CHECK: moe.relayout
func.func @relayout_kept(%x: tensor<64x32xbf16>) -> !pairs {
  %0 = moe.relayout %x : tensor<64x32xbf16> -> !panels
  %1 = moe.relayout %0 : !panels -> !pairs
  return %1 : !pairs
}

// Pure ops without users go, and equal ones become one.
// CHECK-LABEL: func.func @unused_and_equal
// CHECK-NOT: moe.rms_norm
// CHECK: %[[Y:.*]] = moe.linear
// CHECK-NOT: moe.linear
// CHECK: return %[[Y]], %[[Y]]
func.func @unused_and_equal(%x: tensor<?x32xf32>, %w: tensor<64x32xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = moe.rms_norm %x {epsilon = 0.0} : tensor<?x32xf32>
  %1 = moe.linear %x, %w : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  %2 = moe.linear %x, %w : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  return %1, %2 : tensor<?x64xf32>, tensor<?x64xf32>
}

!cache = !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 8, block = 16, f32>

// Two reads of a cache with a write between them are not the same.
// CHECK-LABEL: func.func @cache_reads_and_writes
// CHECK: moe.attention
// CHECK: moe.kv_append
// CHECK: moe.attention
func.func @cache_reads_and_writes(%q: tensor<?x2x8xf32>, %cache: !cache, %positions: tensor<?xi32>, %sequences: tensor<?xi32>,
                                  %table: tensor<?x?xi32>) -> (tensor<?x2x8xf32>, tensor<?x2x8xf32>) {
  %0 = moe.attention %q over %cache at (%positions, %sequences, %table) {scale = 1.0}
      : tensor<?x2x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2x8xf32>
  moe.kv_append %q, %q into %cache at (%positions, %sequences, %table)
      : tensor<?x2x8xf32>, tensor<?x2x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  %1 = moe.attention %q over %cache at (%positions, %sequences, %table) {scale = 1.0}
      : tensor<?x2x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2x8xf32>
  return %0, %1 : tensor<?x2x8xf32>, tensor<?x2x8xf32>
}

moe.global @w : tensor<8xf32>

// A store stays although nothing here reads it.
// CHECK-LABEL: func.func @store
// CHECK: moe.global_store
func.func @store(%x: tensor<8xf32>) {
  moe.global_store %x, @w : tensor<8xf32>
  return
}
