// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// Cosines and sines once for each token, then both halves of every head in one op.
// CHECK-LABEL: func.func @rotates_all
// CHECK:       math.cos %{{.*}} : f32
// CHECK:       math.sin %{{.*}} : f32
// CHECK-DAG:   %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [%{{.*}}, 2, 2] [1, 1, 1]
// CHECK-DAG:   %[[B:.*]] = tensor.extract_slice %{{.*}}[0, 0, 2] [%{{.*}}, 2, 2] [1, 1, 1]
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]], {{.*}}) outs(%{{.*}} : tensor<?x2x2x2xf32>)
// CHECK:       tensor.collapse_shape %[[R]] {{\[}}[0], [1], [2, 3]]
// CHECK-NOT:   tensor.concat
func.func @rotates_all(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  %y = moe.rope %x at %p <[1.0, 0.5]> : tensor<?x2x4xf32>, tensor<?xi32>
  return %y : tensor<?x2x4xf32>
}

// CHECK-LABEL: func.func @interleaved_pairs_are_neighbours
// CHECK-DAG:   tensor.extract_slice %{{.*}}[0, 0, 0] [%{{.*}}, 2, 2] [1, 1, 2]
// CHECK-DAG:   tensor.extract_slice %{{.*}}[0, 0, 1] [%{{.*}}, 2, 2] [1, 1, 2]
func.func @interleaved_pairs_are_neighbours(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  %y = moe.rope %x at %p <[1.0, 0.5], interleaved> : tensor<?x2x4xf32>, tensor<?xi32>
  return %y : tensor<?x2x4xf32>
}

// CHECK-LABEL: func.func @keeps_what_is_not_rotated
// CHECK:       tensor.concat dim(2) %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x2x1xf32>, tensor<?x2x4xf32>, tensor<?x2x3xf32>)
func.func @keeps_what_is_not_rotated(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %y = moe.rope %x at %p <[1.0, 0.5], offset = 1> : tensor<?x2x8xf32>, tensor<?xi32>
  return %y : tensor<?x2x8xf32>
}
