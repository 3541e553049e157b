// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// The mean of squares gets epsilon; the sum at the end takes the candidates themselves and is the only rounding.
// CHECK-LABEL: func.func @two
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x8xbf16>, %[[B:[a-z0-9]+]]: tensor<?x8xbf16>, %[[W:[a-z0-9]+]]: tensor<8xf32>
// CHECK-NOT:   arith.truncf
// CHECK:       math.rsqrt
// CHECK-NOT:   arith.truncf
// CHECK:       arith.maximumf
// CHECK:       %[[EA:[0-9]+]] = linalg.generic {{.*}} ins(%{{[0-9]+}}, %[[LARGEST:[0-9]+]] : tensor<?xf32>, tensor<?xf32>)
// CHECK:         math.exp
// CHECK:       %[[EB:[0-9]+]] = linalg.generic {{.*}} ins(%{{[0-9]+}}, %[[LARGEST]] : tensor<?xf32>, tensor<?xf32>)
// CHECK:         math.exp
// CHECK:       linalg.generic {{.*}} ins(%[[A]], %[[B]], %[[EA]], %[[EB]], %{{.*}} : tensor<?x8xbf16>, tensor<?x8xbf16>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
// CHECK:         arith.divf
// CHECK-NEXT:    arith.truncf
// CHECK:       return
func.func @two(%a: tensor<?x8xbf16>, %b: tensor<?x8xbf16>, %w: tensor<8xf32>) -> tensor<?x8xbf16> {
  %y = moe.mix_residuals %a, %b weight(%w : tensor<8xf32>) {epsilon = 1.0e-5} : tensor<?x8xbf16>, tensor<?x8xbf16> -> tensor<?x8xbf16>
  return %y : tensor<?x8xbf16>
}
