// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// Rows are clamped to what is there; a row below 0 keeps its own.
// CHECK-LABEL: func.func @replace
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x8xbf16>, %[[N:[a-z0-9]+]]: tensor<?x8xf32>, %[[R:[a-z0-9]+]]: tensor<?xi32>
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %[[R]] : tensor<?x8xbf16>, tensor<?xi32>)
// CHECK:       ^bb0(%[[KEPT:[a-z0-9_]+]]: bf16
// CHECK:         %[[IS_KEPT:.*]] = arith.cmpi slt
// CHECK:         arith.maxsi
// CHECK:         arith.minsi
// CHECK:         tensor.extract %[[N]]
// CHECK:         %[[OTHER:.*]] = arith.truncf
// CHECK:         arith.select %[[IS_KEPT]], %[[KEPT]], %[[OTHER]] : bf16
func.func @replace(%x: tensor<?x8xbf16>, %n: tensor<?x8xf32>, %r: tensor<?xi32>) -> tensor<?x8xbf16> {
  %y = moe.replace_rows %x with %n at %r : tensor<?x8xbf16>, tensor<?x8xf32>, tensor<?xi32>
  return %y : tensor<?x8xbf16>
}

// Coordinates stay within the grid of 6 x 4; four entries, rounded once.
// CHECK-LABEL: func.func @positions
// CHECK-SAME:    %[[G:[a-z0-9]+]]: tensor<6x4x8xbf16>
// CHECK-DAG:   %[[LAST_ROW:.*]] = arith.constant 5.000000e+00 : f32
// CHECK-DAG:   %[[LAST_COLUMN:.*]] = arith.constant 3.000000e+00 : f32
// CHECK:       linalg.generic
// CHECK:         arith.minimumf %{{.*}}, %[[LAST_ROW]]
// CHECK:         arith.minimumf %{{.*}}, %[[LAST_COLUMN]]
// CHECK-COUNT-4: tensor.extract %[[G]]
// CHECK:         arith.truncf
// CHECK-NEXT:    linalg.yield
func.func @positions(%g: tensor<6x4x8xbf16>, %r: tensor<?xi32>, %h: tensor<?xi32>, %c: tensor<?xi32>, %w: tensor<?xi32>) -> tensor<?x8xbf16> {
  %p = moe.interpolate_positions %g at (%r of %h, %c of %w) : tensor<6x4x8xbf16>, tensor<?xi32> -> tensor<?x8xbf16>
  return %p : tensor<?x8xbf16>
}
