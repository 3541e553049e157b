// RUN: %moec-opt %s --moec-fuse-rotary | FileCheck %s

!cache = !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 8, block = 16, f32>
#rotary = #moe.rotary<[1.0, 0.5, 0.25, 0.125]>

// CHECK-LABEL: @query_and_key
func.func @query_and_key(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, %cache: !cache,
    %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %table: tensor<?x?xi32>) -> tensor<?x4x8xf32> {
  // CHECK-NOT: moe.rope
  // CHECK: moe.kv_append %{{.*}} {rotary = #moe.rotary<
  // CHECK: moe.attention %{{.*}} {rotary = #moe.rotary<
  %kr = moe.rope %k at %positions <[1.0, 0.5, 0.25, 0.125]> : tensor<?x2x8xf32>, tensor<?xi32>
  moe.kv_append %kr, %v into %cache at (%positions, %sequences, %table) : tensor<?x2x8xf32>, tensor<?x2x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  %qr = moe.rope %q at %positions <[1.0, 0.5, 0.25, 0.125]> : tensor<?x4x8xf32>, tensor<?xi32>
  %y = moe.attention %qr over %cache at (%positions, %sequences, %table) {scale = 0.5} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// Values are not rotated, and other positions are another rotation.
// CHECK-LABEL: @value_and_other_positions_stay
func.func @value_and_other_positions_stay(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, %cache: !cache,
    %positions: tensor<?xi32>, %others: tensor<?xi32>, %sequences: tensor<?xi32>, %table: tensor<?x?xi32>) -> tensor<?x4x8xf32> {
  // CHECK-COUNT-2: moe.rope
  // CHECK-NOT: rotary =
  %vr = moe.rope %v at %positions <[1.0, 0.5, 0.25, 0.125]> : tensor<?x2x8xf32>, tensor<?xi32>
  moe.kv_append %k, %vr into %cache at (%positions, %sequences, %table) : tensor<?x2x8xf32>, tensor<?x2x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  %qr = moe.rope %q at %others <[1.0, 0.5, 0.25, 0.125]> : tensor<?x4x8xf32>, tensor<?xi32>
  %y = moe.attention %qr over %cache at (%positions, %sequences, %table) {scale = 0.5} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}
