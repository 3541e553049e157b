// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// CHECK-DAG: #[[INPUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-DAG: #[[TRANSPOSED:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// Sums are f32, rounded once at the end.
// CHECK-LABEL: func.func @plain
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x4x8xbf16>, %[[W:[a-z0-9]+]]: tensor<4x3x8xbf16>
// CHECK:       linalg.generic {indexing_maps = [#[[INPUT]], #[[WEIGHT]], #[[RESULT]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME:    ins(%[[X]], %[[W]] : tensor<?x4x8xbf16>, tensor<4x3x8xbf16>) outs(%{{.*}} : tensor<?x4x3xf32>)
// CHECK:       arith.truncf %{{.*}} : f32 to bf16
// CHECK:       return %{{.*}} : tensor<?x4x3xbf16>
func.func @plain(%x: tensor<?x4x8xbf16>, %w: tensor<4x3x8xbf16>) -> tensor<?x4x3xbf16> {
  %y = moe.head_linear %x, %w : tensor<?x4x8xbf16>, tensor<4x3x8xbf16> -> tensor<?x4x3xbf16>
  return %y : tensor<?x4x3xbf16>
}

// CHECK-LABEL: func.func @transposed
// CHECK:       linalg.generic {indexing_maps = [#[[INPUT]], #[[TRANSPOSED]], #[[RESULT]]]
// CHECK-NOT:   arith.truncf
// CHECK:       return
func.func @transposed(%x: tensor<?x4x8xf32>, %w: tensor<4x8x3xbf16>) -> tensor<?x4x3xf32> {
  %y = moe.head_linear %x, %w {transposed} : tensor<?x4x8xf32>, tensor<4x8x3xbf16> -> tensor<?x4x3xf32>
  return %y : tensor<?x4x3xf32>
}
