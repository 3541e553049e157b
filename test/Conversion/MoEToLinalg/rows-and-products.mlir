// RUN: %moec-opt %s --pass-pipeline='builtin.module(func.func(convert-moe-to-linalg,cse))' | FileCheck %s

// Ids are clamped: nothing outside the table is read.
// CHECK-LABEL: func.func @embedding_clamps_ids
// CHECK:         arith.maxsi
// CHECK:         arith.minsi
// CHECK:         tensor.extract
// CHECK:         arith.extf
func.func @embedding_clamps_ids(%i: tensor<?xi32>, %t: tensor<9x64xbf16>) -> tensor<?x64xf32> {
  %y = moe.embedding %i, %t : tensor<?xi32>, tensor<9x64xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @linear_adds_bias_and_residual_before_rounding
// CHECK:       linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]}{{.*}} outs(%{{.*}} : tensor<?x20xf32>)
// CHECK:       linalg.generic {{.*}} outs(%{{.*}} : tensor<?x20xbf16>)
// CHECK-COUNT-2: arith.addf
// CHECK:         arith.truncf
func.func @linear_adds_bias_and_residual_before_rounding(%x: tensor<?x64xbf16>, %w: tensor<20x64xbf16>, %b: tensor<20xf32>, %r: tensor<?x20xbf16>) -> tensor<?x20xbf16> {
  %y = moe.linear %x, %w bias(%b : tensor<20xf32>) residual(%r : tensor<?x20xbf16>) : tensor<?x64xbf16>, tensor<20x64xbf16> -> tensor<?x20xbf16>
  return %y : tensor<?x20xbf16>
}

// A weight in panels needs a strategy.
// CHECK-LABEL: func.func @packed_weight_stays
// CHECK:         moe.linear
func.func @packed_weight_stays(%x: tensor<?x64xf32>, %w: tensor<32x64xf32, #moe.layout<tile = [16, 1], order = [1, 0], swizzle = none>>) -> tensor<?x32xf32> {
  %y = moe.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32, #moe.layout<tile = [16, 1], order = [1, 0], swizzle = none>> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// A row without an expert is skipped by a select, not by a factor of zero: it may hold NaN.
// CHECK-LABEL: func.func @combine_skips_absent_experts
// CHECK:         %[[NEXT:.*]] = arith.addf
// CHECK:         %[[THERE:.*]] = arith.cmpi sge
// CHECK:         arith.select %[[THERE]], %[[NEXT]], %{{.*}} : f32
func.func @combine_skips_absent_experts(%x: tensor<?x64xf32>, %w: tensor<?x4xf32>, %i: tensor<?x4xi32>) -> tensor<?x64xf32> {
  %y = moe.combine %x, %w, %i : tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @dequantize_blocks
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x16x2xbf16>)
// CHECK:           arith.truncf
// CHECK:         tensor.expand_shape %{{.*}} : tensor<256xbf16> into tensor<4x64xbf16>
func.func @dequantize_blocks(%c: tensor<4x2x16xi8>, %s: tensor<4x2xi8>) -> tensor<4x64xbf16> {
  %b = moe.assemble_blocks %c, %s : tensor<4x2x16xi8>, tensor<4x2xi8> -> !moe.block_tensor<[4, 64], mxfp4>
  %y = moe.dequantize %b : !moe.block_tensor<[4, 64], mxfp4> -> tensor<4x64xbf16>
  return %y : tensor<4x64xbf16>
}

// Ends of blocks that are cut short are looked up like all others.
// CHECK-LABEL: func.func @dequantize_codes
// CHECK-SAME:    %[[CODES:.*]]: tensor<80x130xi8>, %[[SCALES:.*]]: tensor<3x5xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[CODES]] : tensor<80x130xi8>) outs(%{{.*}} : tensor<80x130xbf16>)
// CHECK-DAG:       arith.divui %{{.*}}, %{{.*}} : index
// CHECK:           tensor.extract %[[SCALES]]
// CHECK:           arith.truncf
func.func @dequantize_codes(%c: tensor<80x130xi8>, %s: tensor<3x5xf32>) -> tensor<80x130xbf16> {
  %y = moe.dequantize_codes f8e4m3 %c, %s blocks [32, 32] : tensor<80x130xi8>, tensor<3x5xf32> -> tensor<80x130xbf16>
  return %y : tensor<80x130xbf16>
}

// CHECK-LABEL: func.func @dequantize_words
// CHECK-SAME:    %[[WORDS:.*]]: tensor<4x2xi32>
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<4x16xf32>)
// CHECK:           tensor.extract %[[WORDS]]
func.func @dequantize_words(%c: tensor<4x2xi32>, %s: tensor<4x2xbf16>) -> tensor<4x16xf32> {
  %y = moe.dequantize_codes int4 %c, %s blocks [1, 8] : tensor<4x2xi32>, tensor<4x2xbf16> -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
