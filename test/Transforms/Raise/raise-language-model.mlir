// RUN: %moec-opt %s -split-input-file --pass-pipeline="builtin.module(moec-raise-language-model,func.func(moec-fold-movement,canonicalize,cse))" | FileCheck %s

// A window of 3 and sinks; two query heads share one key head.

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[TOKENS:[^ :]+]]: tensor<?xi32> {moe.dims = ["tokens"], moe.name = "tokens"}
// CHECK-SAME: %[[POSITIONS:[^ :]+]]: tensor<?xi32> {moe.dims = ["tokens"], moe.name = "positions"}
// CHECK-SAME: %[[SEQUENCES:[^ :]+]]: tensor<?xi32> {moe.dims = ["tokens"], moe.name = "token_sequences"}
// CHECK-SAME: moe.name = "sequence_offsets"
// CHECK-SAME: %[[TABLE:[^ :]+]]: tensor<?x?xi32>
// CHECK-SAME: %[[ROWS:[^ :]+]]: tensor<?xi32> {moe.dims = ["rows"]
// CHECK-SAME: %[[CACHE:[^ :]+]]: !moe.cache<kv_heads = 1, key_dim = 4, value_dim = 4, block = 16, f32> {moe.name = "kv.0"}
// CHECK-SAME: -> (tensor<?x16xf32> {moe.name = "logits"})
// CHECK: %[[X:.+]] = moe.embedding %[[TOKENS]]
// CHECK: moe.linear %[[X]]
// CHECK: %[[QUERY:.+]] = tensor.expand_shape %[[X]]
// CHECK: %[[SINK:.+]] = moe.weight "sink"
// CHECK-SAME: tensor<2xf32>
// CHECK: moe.kv_append %[[KV:.+]], %[[KV]] into %[[CACHE]] at(%[[POSITIONS]], %[[SEQUENCES]], %[[TABLE]])
// CHECK: %[[O:.+]] = moe.attention %[[QUERY]] over %[[CACHE]] at(%[[POSITIONS]], %[[SEQUENCES]], %[[TABLE]]) sinks(%[[SINK]] : tensor<2xf32>) {scale = 5.000000e-01 : f64, window = 3 : i64}
// CHECK: %[[FLAT:.+]] = tensor.collapse_shape %[[O]]
// CHECK: %[[WANTED:.+]] = moe.gather_rows %[[FLAT]], %[[ROWS]]
// CHECK: %[[LOGITS:.+]] = moe.linear %[[WANTED]]
// CHECK: return %[[LOGITS]]
func.func @window_and_sinks(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_4 = arith.constant dense<3> : tensor<i64>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1544, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_5 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_5) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2616, 128> : tensor<8x4xf32>
  %5 = tensor.empty() : tensor<4x8xf32>
  %transposed_6 = linalg.transpose ins(%4 : tensor<8x4xf32>) outs(%5 : tensor<4x8xf32>) permutation = [1, 0] 
  %6 = moe.linear %2, %transposed_6 : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %expanded_7 = tensor.expand_shape %6 [[0, 1], [2, 3]] output_shape [1, %dim, 1, 4] : tensor<?x4xf32> into tensor<1x?x1x4xf32>
  %dim_8 = tensor.dim %expanded_7, %c1 : tensor<1x?x1x4xf32>
  %7 = tensor.empty(%dim_8) : tensor<1x1x?x4xf32>
  %transposed_9 = linalg.transpose ins(%expanded_7 : tensor<1x?x1x4xf32>) outs(%7 : tensor<1x1x?x4xf32>) permutation = [0, 2, 1, 3] 
  %concat = tensor.concat dim(2) %arg2, %transposed_9 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %concat_10 = tensor.concat dim(2) %arg3, %transposed_9 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %dim_11 = tensor.dim %arg2, %c2 : tensor<1x1x?x4xf32>
  %8 = arith.addi %dim, %dim_11 : index
  %9 = tensor.empty(%8) : tensor<?xi64>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%9 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %50 = linalg.index 0 : index
    %51 = arith.index_cast %50 : index to i64
    linalg.yield %51 : i64
  } -> tensor<?xi64>
  %11 = tensor.empty(%dim) : tensor<?xi64>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %50 = linalg.index 0 : index
    %51 = arith.index_cast %50 : index to i64
    linalg.yield %51 : i64
  } -> tensor<?xi64>
  %13 = arith.index_cast %dim_11 : index to i64
  %from_elements = tensor.from_elements %13 : tensor<i64>
  %broadcasted = linalg.broadcast ins(%from_elements : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %14 = arith.addi %12, %broadcasted : tensor<?xi64>
  %expanded_12 = tensor.expand_shape %14 [[0, 1]] output_shape [%dim, 1] : tensor<?xi64> into tensor<?x1xi64>
  %15 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted_13 = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [0] 
  %broadcasted_14 = linalg.broadcast ins(%14 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [1] 
  %16 = arith.cmpi sle, %broadcasted_13, %broadcasted_14 : tensor<?x?xi64>
  %17 = tensor.empty(%dim) : tensor<?x1xi64>
  %broadcasted_15 = linalg.broadcast ins(%cst_4 : tensor<i64>) outs(%17 : tensor<?x1xi64>) dimensions = [0, 1] 
  %18 = arith.subi %expanded_12, %broadcasted_15 : tensor<?x1xi64>
  %collapsed_16 = tensor.collapse_shape %18 [[0, 1]] : tensor<?x1xi64> into tensor<?xi64>
  %broadcasted_17 = linalg.broadcast ins(%collapsed_16 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [1] 
  %19 = arith.cmpi sgt, %broadcasted_13, %broadcasted_17 : tensor<?x?xi64>
  %20 = arith.andi %16, %19 : tensor<?x?xi1>
  %21 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_18 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%21 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_19 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%21 : tensor<?x?xf32>) dimensions = [0, 1] 
  %22 = arith.select %20, %broadcasted_18, %broadcasted_19 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_20 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_21 = tensor.collapse_shape %concat_10 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %23 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_22 = linalg.broadcast ins(%collapsed_21 : tensor<1x?x4xf32>) outs(%23 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %24 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_23 = tensor.dim %collapsed_20, %c1 : tensor<1x?x4xf32>
  %25 = tensor.empty(%dim_23) : tensor<1x4x?xf32>
  %transposed_24 = linalg.transpose ins(%collapsed_20 : tensor<1x?x4xf32>) outs(%25 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_25 = linalg.broadcast ins(%transposed_24 : tensor<1x4x?xf32>) outs(%24 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_26 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_27 = tensor.collapse_shape %broadcasted_25 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %26 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %27 = linalg.fill ins(%cst_1 : f32) outs(%26 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %28 = linalg.batch_matmul ins(%collapsed_26, %collapsed_27 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%27 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_28 = tensor.expand_shape %28 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %29 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_29 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%29 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %30 = arith.mulf %expanded_28, %broadcasted_29 : tensor<1x2x?x?xf32>
  %broadcasted_30 = linalg.broadcast ins(%22 : tensor<?x?xf32>) outs(%29 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %31 = arith.addf %30, %broadcasted_30 : tensor<1x2x?x?xf32>
  %32 = moe.weight "sink" at <"w", 2764, 8> : tensor<1x2x1x1xf32>
  %collapsed_31 = tensor.collapse_shape %32 [[0], [1], [2, 3]] : tensor<1x2x1x1xf32> into tensor<1x2x1xf32>
  %33 = tensor.empty(%dim) : tensor<1x2x?x1xf32>
  %broadcasted_32 = linalg.broadcast ins(%collapsed_31 : tensor<1x2x1xf32>) outs(%33 : tensor<1x2x?x1xf32>) dimensions = [2] 
  %concat_33 = tensor.concat dim(3) %31, %broadcasted_32 : (tensor<1x2x?x?xf32>, tensor<1x2x?x1xf32>) -> tensor<1x2x?x?xf32>
  %34 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %35 = linalg.fill ins(%cst : f32) outs(%34 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%concat_33 : tensor<1x2x?x?xf32>) outs(%35 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %50 = arith.maximumf %in, %init : f32
      linalg.yield %50 : f32
    }
  %36 = arith.addi %dim, %c1 : index
  %37 = arith.addi %36, %dim_11 : index
  %38 = tensor.empty(%dim, %37) : tensor<1x2x?x?xf32>
  %broadcasted_34 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%38 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %39 = arith.subf %concat_33, %broadcasted_34 : tensor<1x2x?x?xf32>
  %40 = math.exp %39 : tensor<1x2x?x?xf32>
  %41 = linalg.fill ins(%cst_1 : f32) outs(%34 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_35 = linalg.reduce ins(%40 : tensor<1x2x?x?xf32>) outs(%41 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %50 = arith.addf %in, %init : f32
      linalg.yield %50 : f32
    }
  %broadcasted_36 = linalg.broadcast ins(%reduced_35 : tensor<1x2x?xf32>) outs(%38 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %42 = arith.divf %40, %broadcasted_36 : tensor<1x2x?x?xf32>
  %extracted_slice = tensor.extract_slice %42[0, 0, 0, 0] [1, 2, %dim, %8] [1, 1, 1, 1] : tensor<1x2x?x?xf32> to tensor<1x2x?x?xf32>
  %collapsed_37 = tensor.collapse_shape %extracted_slice [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_38 = tensor.collapse_shape %broadcasted_22 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %43 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %44 = linalg.fill ins(%cst_1 : f32) outs(%43 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %45 = linalg.batch_matmul ins(%collapsed_37, %collapsed_38 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%44 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_39 = tensor.expand_shape %45 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_40 = tensor.dim %expanded_39, %c2 : tensor<1x2x?x4xf32>
  %46 = tensor.empty(%dim_40) : tensor<1x?x2x4xf32>
  %transposed_41 = linalg.transpose ins(%expanded_39 : tensor<1x2x?x4xf32>) outs(%46 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_42 = tensor.collapse_shape %transposed_41 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %47 = moe.weight "head_weight" at <"w", 2081, 512> : tensor<8x16xf32>
  %48 = tensor.empty() : tensor<16x8xf32>
  %transposed_43 = linalg.transpose ins(%47 : tensor<8x16xf32>) outs(%48 : tensor<16x8xf32>) permutation = [1, 0] 
  %49 = moe.linear %collapsed_42, %transposed_43 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_44 = tensor.expand_shape %49 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_44, %concat, %concat_10 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}

// -----
// Neither window nor sinks.

// CHECK-LABEL: func.func @step
// CHECK: moe.attention
// CHECK-NOT: sinks
// CHECK-NOT: window
// CHECK-SAME: {scale = 5.000000e-01 : f64} :
func.func @causal(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1276, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_4 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_4) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2348, 128> : tensor<8x4xf32>
  %5 = tensor.empty() : tensor<4x8xf32>
  %transposed_5 = linalg.transpose ins(%4 : tensor<8x4xf32>) outs(%5 : tensor<4x8xf32>) permutation = [1, 0] 
  %6 = moe.linear %2, %transposed_5 : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %expanded_6 = tensor.expand_shape %6 [[0, 1], [2, 3]] output_shape [1, %dim, 1, 4] : tensor<?x4xf32> into tensor<1x?x1x4xf32>
  %dim_7 = tensor.dim %expanded_6, %c1 : tensor<1x?x1x4xf32>
  %7 = tensor.empty(%dim_7) : tensor<1x1x?x4xf32>
  %transposed_8 = linalg.transpose ins(%expanded_6 : tensor<1x?x1x4xf32>) outs(%7 : tensor<1x1x?x4xf32>) permutation = [0, 2, 1, 3] 
  %concat = tensor.concat dim(2) %arg2, %transposed_8 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %concat_9 = tensor.concat dim(2) %arg3, %transposed_8 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %dim_10 = tensor.dim %arg2, %c2 : tensor<1x1x?x4xf32>
  %8 = arith.addi %dim, %dim_10 : index
  %9 = tensor.empty(%8) : tensor<?xi64>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%9 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %41 = linalg.index 0 : index
    %42 = arith.index_cast %41 : index to i64
    linalg.yield %42 : i64
  } -> tensor<?xi64>
  %11 = tensor.empty(%dim) : tensor<?xi64>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %41 = linalg.index 0 : index
    %42 = arith.index_cast %41 : index to i64
    linalg.yield %42 : i64
  } -> tensor<?xi64>
  %13 = arith.index_cast %dim_10 : index to i64
  %from_elements = tensor.from_elements %13 : tensor<i64>
  %broadcasted = linalg.broadcast ins(%from_elements : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %14 = arith.addi %12, %broadcasted : tensor<?xi64>
  %15 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted_11 = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [0] 
  %broadcasted_12 = linalg.broadcast ins(%14 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [1] 
  %16 = arith.cmpi sle, %broadcasted_11, %broadcasted_12 : tensor<?x?xi64>
  %17 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_13 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%17 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_14 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%17 : tensor<?x?xf32>) dimensions = [0, 1] 
  %18 = arith.select %16, %broadcasted_13, %broadcasted_14 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_15 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_16 = tensor.collapse_shape %concat_9 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %19 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_17 = linalg.broadcast ins(%collapsed_16 : tensor<1x?x4xf32>) outs(%19 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %20 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_18 = tensor.dim %collapsed_15, %c1 : tensor<1x?x4xf32>
  %21 = tensor.empty(%dim_18) : tensor<1x4x?xf32>
  %transposed_19 = linalg.transpose ins(%collapsed_15 : tensor<1x?x4xf32>) outs(%21 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_20 = linalg.broadcast ins(%transposed_19 : tensor<1x4x?xf32>) outs(%20 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_21 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_22 = tensor.collapse_shape %broadcasted_20 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %22 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %23 = linalg.fill ins(%cst_1 : f32) outs(%22 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %24 = linalg.batch_matmul ins(%collapsed_21, %collapsed_22 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%23 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_23 = tensor.expand_shape %24 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %25 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_24 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%25 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %26 = arith.mulf %expanded_23, %broadcasted_24 : tensor<1x2x?x?xf32>
  %broadcasted_25 = linalg.broadcast ins(%18 : tensor<?x?xf32>) outs(%25 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %27 = arith.addf %26, %broadcasted_25 : tensor<1x2x?x?xf32>
  %28 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %29 = linalg.fill ins(%cst : f32) outs(%28 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%27 : tensor<1x2x?x?xf32>) outs(%29 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %41 = arith.maximumf %in, %init : f32
      linalg.yield %41 : f32
    }
  %broadcasted_26 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%25 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %30 = arith.subf %27, %broadcasted_26 : tensor<1x2x?x?xf32>
  %31 = math.exp %30 : tensor<1x2x?x?xf32>
  %32 = linalg.fill ins(%cst_1 : f32) outs(%28 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_27 = linalg.reduce ins(%31 : tensor<1x2x?x?xf32>) outs(%32 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %41 = arith.addf %in, %init : f32
      linalg.yield %41 : f32
    }
  %broadcasted_28 = linalg.broadcast ins(%reduced_27 : tensor<1x2x?xf32>) outs(%25 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %33 = arith.divf %31, %broadcasted_28 : tensor<1x2x?x?xf32>
  %collapsed_29 = tensor.collapse_shape %33 [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_30 = tensor.collapse_shape %broadcasted_17 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %34 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %35 = linalg.fill ins(%cst_1 : f32) outs(%34 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %36 = linalg.batch_matmul ins(%collapsed_29, %collapsed_30 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%35 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_31 = tensor.expand_shape %36 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_32 = tensor.dim %expanded_31, %c2 : tensor<1x2x?x4xf32>
  %37 = tensor.empty(%dim_32) : tensor<1x?x2x4xf32>
  %transposed_33 = linalg.transpose ins(%expanded_31 : tensor<1x2x?x4xf32>) outs(%37 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_34 = tensor.collapse_shape %transposed_33 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %38 = moe.weight "head_weight" at <"w", 1813, 512> : tensor<8x16xf32>
  %39 = tensor.empty() : tensor<16x8xf32>
  %transposed_35 = linalg.transpose ins(%38 : tensor<8x16xf32>) outs(%39 : tensor<16x8xf32>) permutation = [1, 0] 
  %40 = moe.linear %collapsed_34, %transposed_35 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_36 = tensor.expand_shape %40 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_36, %concat, %concat_9 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}

// -----
// The mask compares with the positions that the graph is given instead of past + index.

// CHECK-LABEL: func.func @step
// CHECK: moe.attention
// CHECK-SAME: {scale = 5.000000e-01 : f64} :
func.func @mask_by_positions(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1258, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_4 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_4) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2330, 128> : tensor<8x4xf32>
  %5 = tensor.empty() : tensor<4x8xf32>
  %transposed_5 = linalg.transpose ins(%4 : tensor<8x4xf32>) outs(%5 : tensor<4x8xf32>) permutation = [1, 0] 
  %6 = moe.linear %2, %transposed_5 : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %expanded_6 = tensor.expand_shape %6 [[0, 1], [2, 3]] output_shape [1, %dim, 1, 4] : tensor<?x4xf32> into tensor<1x?x1x4xf32>
  %dim_7 = tensor.dim %expanded_6, %c1 : tensor<1x?x1x4xf32>
  %7 = tensor.empty(%dim_7) : tensor<1x1x?x4xf32>
  %transposed_8 = linalg.transpose ins(%expanded_6 : tensor<1x?x1x4xf32>) outs(%7 : tensor<1x1x?x4xf32>) permutation = [0, 2, 1, 3] 
  %concat = tensor.concat dim(2) %arg2, %transposed_8 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %concat_9 = tensor.concat dim(2) %arg3, %transposed_8 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %dim_10 = tensor.dim %arg2, %c2 : tensor<1x1x?x4xf32>
  %8 = arith.addi %dim, %dim_10 : index
  %9 = tensor.empty(%8) : tensor<?xi64>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%9 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %37 = linalg.index 0 : index
    %38 = arith.index_cast %37 : index to i64
    linalg.yield %38 : i64
  } -> tensor<?xi64>
  %collapsed_11 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %11 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%11 : tensor<?x?xi64>) dimensions = [0] 
  %broadcasted_12 = linalg.broadcast ins(%collapsed_11 : tensor<?xi64>) outs(%11 : tensor<?x?xi64>) dimensions = [1] 
  %12 = arith.cmpi sle, %broadcasted, %broadcasted_12 : tensor<?x?xi64>
  %13 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_13 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%13 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_14 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%13 : tensor<?x?xf32>) dimensions = [0, 1] 
  %14 = arith.select %12, %broadcasted_13, %broadcasted_14 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_15 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_16 = tensor.collapse_shape %concat_9 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %15 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_17 = linalg.broadcast ins(%collapsed_16 : tensor<1x?x4xf32>) outs(%15 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %16 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_18 = tensor.dim %collapsed_15, %c1 : tensor<1x?x4xf32>
  %17 = tensor.empty(%dim_18) : tensor<1x4x?xf32>
  %transposed_19 = linalg.transpose ins(%collapsed_15 : tensor<1x?x4xf32>) outs(%17 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_20 = linalg.broadcast ins(%transposed_19 : tensor<1x4x?xf32>) outs(%16 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_21 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_22 = tensor.collapse_shape %broadcasted_20 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %18 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %19 = linalg.fill ins(%cst_1 : f32) outs(%18 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %20 = linalg.batch_matmul ins(%collapsed_21, %collapsed_22 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%19 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_23 = tensor.expand_shape %20 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %21 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_24 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%21 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %22 = arith.mulf %expanded_23, %broadcasted_24 : tensor<1x2x?x?xf32>
  %broadcasted_25 = linalg.broadcast ins(%14 : tensor<?x?xf32>) outs(%21 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %23 = arith.addf %22, %broadcasted_25 : tensor<1x2x?x?xf32>
  %24 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %25 = linalg.fill ins(%cst : f32) outs(%24 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%23 : tensor<1x2x?x?xf32>) outs(%25 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %37 = arith.maximumf %in, %init : f32
      linalg.yield %37 : f32
    }
  %broadcasted_26 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%21 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %26 = arith.subf %23, %broadcasted_26 : tensor<1x2x?x?xf32>
  %27 = math.exp %26 : tensor<1x2x?x?xf32>
  %28 = linalg.fill ins(%cst_1 : f32) outs(%24 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_27 = linalg.reduce ins(%27 : tensor<1x2x?x?xf32>) outs(%28 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %37 = arith.addf %in, %init : f32
      linalg.yield %37 : f32
    }
  %broadcasted_28 = linalg.broadcast ins(%reduced_27 : tensor<1x2x?xf32>) outs(%21 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %29 = arith.divf %27, %broadcasted_28 : tensor<1x2x?x?xf32>
  %collapsed_29 = tensor.collapse_shape %29 [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_30 = tensor.collapse_shape %broadcasted_17 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %30 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %31 = linalg.fill ins(%cst_1 : f32) outs(%30 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %32 = linalg.batch_matmul ins(%collapsed_29, %collapsed_30 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%31 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_31 = tensor.expand_shape %32 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_32 = tensor.dim %expanded_31, %c2 : tensor<1x2x?x4xf32>
  %33 = tensor.empty(%dim_32) : tensor<1x?x2x4xf32>
  %transposed_33 = linalg.transpose ins(%expanded_31 : tensor<1x2x?x4xf32>) outs(%33 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_34 = tensor.collapse_shape %transposed_33 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %34 = moe.weight "head_weight" at <"w", 1795, 512> : tensor<8x16xf32>
  %35 = tensor.empty() : tensor<16x8xf32>
  %transposed_35 = linalg.transpose ins(%34 : tensor<8x16xf32>) outs(%35 : tensor<16x8xf32>) permutation = [1, 0] 
  %36 = moe.linear %collapsed_34, %transposed_35 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_36 = tensor.expand_shape %36 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_36, %concat, %concat_9 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}

// -----
// 'Greater or equal' makes the same bound a window of 4.

// CHECK-LABEL: func.func @step
// CHECK: moe.attention
// CHECK-SAME: window = 4 : i64
func.func @window_with_its_end(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_4 = arith.constant dense<3> : tensor<i64>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1551, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_5 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_5) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2623, 128> : tensor<8x4xf32>
  %5 = tensor.empty() : tensor<4x8xf32>
  %transposed_6 = linalg.transpose ins(%4 : tensor<8x4xf32>) outs(%5 : tensor<4x8xf32>) permutation = [1, 0] 
  %6 = moe.linear %2, %transposed_6 : tensor<?x8xf32>, tensor<4x8xf32> -> tensor<?x4xf32>
  %expanded_7 = tensor.expand_shape %6 [[0, 1], [2, 3]] output_shape [1, %dim, 1, 4] : tensor<?x4xf32> into tensor<1x?x1x4xf32>
  %dim_8 = tensor.dim %expanded_7, %c1 : tensor<1x?x1x4xf32>
  %7 = tensor.empty(%dim_8) : tensor<1x1x?x4xf32>
  %transposed_9 = linalg.transpose ins(%expanded_7 : tensor<1x?x1x4xf32>) outs(%7 : tensor<1x1x?x4xf32>) permutation = [0, 2, 1, 3] 
  %concat = tensor.concat dim(2) %arg2, %transposed_9 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %concat_10 = tensor.concat dim(2) %arg3, %transposed_9 : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  %dim_11 = tensor.dim %arg2, %c2 : tensor<1x1x?x4xf32>
  %8 = arith.addi %dim, %dim_11 : index
  %9 = tensor.empty(%8) : tensor<?xi64>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%9 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %50 = linalg.index 0 : index
    %51 = arith.index_cast %50 : index to i64
    linalg.yield %51 : i64
  } -> tensor<?xi64>
  %11 = tensor.empty(%dim) : tensor<?xi64>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %50 = linalg.index 0 : index
    %51 = arith.index_cast %50 : index to i64
    linalg.yield %51 : i64
  } -> tensor<?xi64>
  %13 = arith.index_cast %dim_11 : index to i64
  %from_elements = tensor.from_elements %13 : tensor<i64>
  %broadcasted = linalg.broadcast ins(%from_elements : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %14 = arith.addi %12, %broadcasted : tensor<?xi64>
  %expanded_12 = tensor.expand_shape %14 [[0, 1]] output_shape [%dim, 1] : tensor<?xi64> into tensor<?x1xi64>
  %15 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted_13 = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [0] 
  %broadcasted_14 = linalg.broadcast ins(%14 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [1] 
  %16 = arith.cmpi sle, %broadcasted_13, %broadcasted_14 : tensor<?x?xi64>
  %17 = tensor.empty(%dim) : tensor<?x1xi64>
  %broadcasted_15 = linalg.broadcast ins(%cst_4 : tensor<i64>) outs(%17 : tensor<?x1xi64>) dimensions = [0, 1] 
  %18 = arith.subi %expanded_12, %broadcasted_15 : tensor<?x1xi64>
  %collapsed_16 = tensor.collapse_shape %18 [[0, 1]] : tensor<?x1xi64> into tensor<?xi64>
  %broadcasted_17 = linalg.broadcast ins(%collapsed_16 : tensor<?xi64>) outs(%15 : tensor<?x?xi64>) dimensions = [1] 
  %19 = arith.cmpi sge, %broadcasted_13, %broadcasted_17 : tensor<?x?xi64>
  %20 = arith.andi %16, %19 : tensor<?x?xi1>
  %21 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_18 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%21 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_19 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%21 : tensor<?x?xf32>) dimensions = [0, 1] 
  %22 = arith.select %20, %broadcasted_18, %broadcasted_19 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_20 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_21 = tensor.collapse_shape %concat_10 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %23 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_22 = linalg.broadcast ins(%collapsed_21 : tensor<1x?x4xf32>) outs(%23 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %24 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_23 = tensor.dim %collapsed_20, %c1 : tensor<1x?x4xf32>
  %25 = tensor.empty(%dim_23) : tensor<1x4x?xf32>
  %transposed_24 = linalg.transpose ins(%collapsed_20 : tensor<1x?x4xf32>) outs(%25 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_25 = linalg.broadcast ins(%transposed_24 : tensor<1x4x?xf32>) outs(%24 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_26 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_27 = tensor.collapse_shape %broadcasted_25 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %26 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %27 = linalg.fill ins(%cst_1 : f32) outs(%26 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %28 = linalg.batch_matmul ins(%collapsed_26, %collapsed_27 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%27 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_28 = tensor.expand_shape %28 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %29 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_29 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%29 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %30 = arith.mulf %expanded_28, %broadcasted_29 : tensor<1x2x?x?xf32>
  %broadcasted_30 = linalg.broadcast ins(%22 : tensor<?x?xf32>) outs(%29 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %31 = arith.addf %30, %broadcasted_30 : tensor<1x2x?x?xf32>
  %32 = moe.weight "sink" at <"w", 2771, 8> : tensor<1x2x1x1xf32>
  %collapsed_31 = tensor.collapse_shape %32 [[0], [1], [2, 3]] : tensor<1x2x1x1xf32> into tensor<1x2x1xf32>
  %33 = tensor.empty(%dim) : tensor<1x2x?x1xf32>
  %broadcasted_32 = linalg.broadcast ins(%collapsed_31 : tensor<1x2x1xf32>) outs(%33 : tensor<1x2x?x1xf32>) dimensions = [2] 
  %concat_33 = tensor.concat dim(3) %31, %broadcasted_32 : (tensor<1x2x?x?xf32>, tensor<1x2x?x1xf32>) -> tensor<1x2x?x?xf32>
  %34 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %35 = linalg.fill ins(%cst : f32) outs(%34 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%concat_33 : tensor<1x2x?x?xf32>) outs(%35 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %50 = arith.maximumf %in, %init : f32
      linalg.yield %50 : f32
    }
  %36 = arith.addi %dim, %c1 : index
  %37 = arith.addi %36, %dim_11 : index
  %38 = tensor.empty(%dim, %37) : tensor<1x2x?x?xf32>
  %broadcasted_34 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%38 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %39 = arith.subf %concat_33, %broadcasted_34 : tensor<1x2x?x?xf32>
  %40 = math.exp %39 : tensor<1x2x?x?xf32>
  %41 = linalg.fill ins(%cst_1 : f32) outs(%34 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_35 = linalg.reduce ins(%40 : tensor<1x2x?x?xf32>) outs(%41 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %50 = arith.addf %in, %init : f32
      linalg.yield %50 : f32
    }
  %broadcasted_36 = linalg.broadcast ins(%reduced_35 : tensor<1x2x?xf32>) outs(%38 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %42 = arith.divf %40, %broadcasted_36 : tensor<1x2x?x?xf32>
  %extracted_slice = tensor.extract_slice %42[0, 0, 0, 0] [1, 2, %dim, %8] [1, 1, 1, 1] : tensor<1x2x?x?xf32> to tensor<1x2x?x?xf32>
  %collapsed_37 = tensor.collapse_shape %extracted_slice [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_38 = tensor.collapse_shape %broadcasted_22 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %43 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %44 = linalg.fill ins(%cst_1 : f32) outs(%43 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %45 = linalg.batch_matmul ins(%collapsed_37, %collapsed_38 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%44 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_39 = tensor.expand_shape %45 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_40 = tensor.dim %expanded_39, %c2 : tensor<1x2x?x4xf32>
  %46 = tensor.empty(%dim_40) : tensor<1x?x2x4xf32>
  %transposed_41 = linalg.transpose ins(%expanded_39 : tensor<1x2x?x4xf32>) outs(%46 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_42 = tensor.collapse_shape %transposed_41 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %47 = moe.weight "head_weight" at <"w", 2088, 512> : tensor<8x16xf32>
  %48 = tensor.empty() : tensor<16x8xf32>
  %transposed_43 = linalg.transpose ins(%47 : tensor<8x16xf32>) outs(%48 : tensor<16x8xf32>) permutation = [1, 0] 
  %49 = moe.linear %collapsed_42, %transposed_43 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_44 = tensor.expand_shape %49 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_44, %concat, %concat_10 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}
