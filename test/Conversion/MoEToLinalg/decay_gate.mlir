// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// The bounded form is a sigmoid; of a padded a_log only the heads are read, one number for all channels of a head.
// CHECK-LABEL: func.func @bounded
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x3x8xbf16>, %[[A:[a-z0-9]+]]: tensor<16xf32>, %[[B:[a-z0-9]+]]: tensor<3x8xf32>
// CHECK:       %[[HEADS:.*]] = tensor.extract_slice %[[A]][0] [3] [1] : tensor<16xf32> to tensor<3xf32>
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %[[HEADS]], %[[B]] : tensor<?x3x8xbf16>, tensor<3xf32>, tensor<3x8xf32>) outs(%{{.*}} : tensor<?x3x8xf32>)
// CHECK:         math.exp
// CHECK-NOT:     math.log1p
// CHECK:         arith.divf
// CHECK:       return
func.func @bounded(%x: tensor<?x3x8xbf16>, %a: tensor<16xf32>, %b: tensor<3x8xf32>) -> tensor<?x3x8xf32> {
  %g = moe.decay_gate %x a_log(%a : tensor<16xf32>) bias(%b : tensor<3x8xf32>) {lower_bound = -5.0} : tensor<?x3x8xbf16> -> tensor<?x3x8xf32>
  return %g : tensor<?x3x8xf32>
}

// CHECK-LABEL: func.func @softplus_per_head
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x3xf32>, %[[A:[a-z0-9]+]]: tensor<3xf32>
// CHECK-NOT:   tensor.extract_slice
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %[[A]], %{{.*}} : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
// CHECK:         math.log1p
// CHECK:       return
func.func @softplus_per_head(%x: tensor<?x3xf32>, %a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
  %g = moe.decay_gate %x a_log(%a : tensor<3xf32>) bias(%b : tensor<3xf32>) : tensor<?x3xf32> -> tensor<?x3xf32>
  return %g : tensor<?x3xf32>
}
