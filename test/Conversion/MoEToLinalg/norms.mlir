// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// Sums are in f32 and the result is rounded once.
// CHECK-LABEL: func.func @rms_norm_in_bf16
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xbf16>, %[[W:.*]]: tensor<64xbf16>
// CHECK:       %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<?x64xbf16>) outs(%{{.*}} : tensor<?xf32>)
// CHECK:         %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f32
// CHECK:         arith.addf %{{.*}}, %[[SQUARE]] : f32
// CHECK:       math.rsqrt %{{.*}} : f32
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %{{.*}}, %[[W]] : tensor<?x64xbf16>, tensor<?xf32>, tensor<64xbf16>) outs(%{{.*}} : tensor<?x64xbf16>)
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
// CHECK-NOT:     arith.truncf
// CHECK:       return
func.func @rms_norm_in_bf16(%x: tensor<?x64xbf16>, %w: tensor<64xbf16>) -> tensor<?x64xbf16> {
  %y = moe.rms_norm %x weight(%w : tensor<64xbf16>) {epsilon = 1.0e-5 : f64} : tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// CHECK-LABEL: func.func @rms_norm_unit_offset
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?xf32>, tensor<64xf32>)
// CHECK:         %[[FACTOR:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.mulf %{{.*}}, %[[FACTOR]] : f32
func.func @rms_norm_unit_offset(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32> {
  %y = moe.rms_norm %x weight(%w : tensor<64xf32>) {epsilon = 1.0e-5 : f64, unit_offset} : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// The mean first, then the squares of what differs from it.
// CHECK-LABEL: func.func @layer_norm_in_two_passes
// CHECK-COUNT-2: "reduction"
// CHECK-NOT:     "reduction"
// CHECK:         return
func.func @layer_norm_in_two_passes(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = moe.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @dynamic_width_stays
// CHECK:         moe.rms_norm
func.func @dynamic_width_stays(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = moe.rms_norm %x {epsilon = 1.0e-5 : f64} : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @gate_after_norm
// CHECK-SAME:    %[[X:.*]]: tensor<?x3x8xf32>, %[[G:.*]]: tensor<?x3x8xbf16>
// CHECK:       math.rsqrt
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %{{.*}}, %[[G]] : tensor<?x3x8xf32>, tensor<?x3xf32>, tensor<?x3x8xbf16>) outs(%{{.*}} : tensor<?x3x8xbf16>)
// CHECK:         %[[WIDE:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK:         %[[NEGATIVE:.*]] = arith.negf %[[WIDE]] : f32
// CHECK:         %[[SIGMOID:.*]] = arith.divf
// CHECK:         arith.mulf %[[WIDE]], %[[SIGMOID]] : f32
// CHECK:         arith.truncf
// CHECK-NOT:     arith.truncf
// CHECK:       return
func.func @gate_after_norm(%x: tensor<?x3x8xf32>, %g: tensor<?x3x8xbf16>) -> tensor<?x3x8xbf16> {
  %y = moe.gated_rms_norm %x by silu(%g : tensor<?x3x8xbf16>) {epsilon = 1.0e-5 : f64} : tensor<?x3x8xf32> -> tensor<?x3x8xbf16>
  return %y : tensor<?x3x8xbf16>
}
