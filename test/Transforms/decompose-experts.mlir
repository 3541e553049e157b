// RUN: %moec-opt %s --moec-decompose-experts | FileCheck %s

// CHECK-LABEL: @experts
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[IDS:[a-z0-9]+]]: tensor<?x2xi32>, %[[WEIGHTS:[a-z0-9]+]]: tensor<?x2xf32>
func.func @experts(%x: tensor<?x32xf32>, %ids: tensor<?x2xi32>, %weights: tensor<?x2xf32>,
    %w1: tensor<4x96x32xbf16>, %w2: tensor<4x32x48xbf16>, %b1: tensor<4x96xbf16>) -> tensor<?x32xf32> {
  // CHECK: %[[OFFSETS:.*]], %[[PAIRS:.*]] = moe.group_tokens %[[IDS]] : tensor<?x2xi32> -> tensor<5xi32>, tensor<?xi32>
  // CHECK: %[[INNER:.*]] = moe.grouped_linear %[[X]] by %[[OFFSETS]], %[[PAIRS]] weight({{.*}}) bias({{.*}}) {activation = #moe.activation<silu>, gather, top_k = 2 : i64} {{.*}} -> tensor<?x48xf32>
  // CHECK: %[[OUTER:.*]] = moe.grouped_linear %[[INNER]] by %[[OFFSETS]], %[[PAIRS]] weight({{.*}}) {scatter, top_k = 2 : i64} {{.*}} -> tensor<?x32xf32>
  // CHECK: moe.combine %[[OUTER]], %[[WEIGHTS]], %[[IDS]] residual(%[[X]] : tensor<?x32xf32>)
  // CHECK-NOT: moe.experts
  %y = moe.experts %x to %ids, %weights gate_up(%w1 : tensor<4x96x32xbf16>) down(%w2 : tensor<4x32x48xbf16>) gate_up_bias(%b1 : tensor<4x96xbf16>) residual(%x : tensor<?x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
