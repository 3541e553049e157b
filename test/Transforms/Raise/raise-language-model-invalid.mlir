// RUN: %moec-opt %s -split-input-file -verify-diagnostics --moec-raise-language-model

// Every query sees the key after it, too.
// expected-error @+1 {{this language model cannot be run as one: no attention that is understood reads 'past_key_values.0.key'}}
func.func @sees_the_next_key(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_4 = arith.constant dense<1> : tensor<i64>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1302, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_5 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_5) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2374, 128> : tensor<8x4xf32>
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
    %42 = linalg.index 0 : index
    %43 = arith.index_cast %42 : index to i64
    linalg.yield %43 : i64
  } -> tensor<?xi64>
  %11 = tensor.empty(%dim) : tensor<?xi64>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %42 = linalg.index 0 : index
    %43 = arith.index_cast %42 : index to i64
    linalg.yield %43 : i64
  } -> tensor<?xi64>
  %13 = arith.index_cast %dim_11 : index to i64
  %from_elements = tensor.from_elements %13 : tensor<i64>
  %broadcasted = linalg.broadcast ins(%from_elements : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %14 = arith.addi %12, %broadcasted : tensor<?xi64>
  %broadcasted_12 = linalg.broadcast ins(%cst_4 : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %15 = arith.addi %14, %broadcasted_12 : tensor<?xi64>
  %16 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted_13 = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%16 : tensor<?x?xi64>) dimensions = [0] 
  %broadcasted_14 = linalg.broadcast ins(%15 : tensor<?xi64>) outs(%16 : tensor<?x?xi64>) dimensions = [1] 
  %17 = arith.cmpi sle, %broadcasted_13, %broadcasted_14 : tensor<?x?xi64>
  %18 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_15 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%18 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_16 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%18 : tensor<?x?xf32>) dimensions = [0, 1] 
  %19 = arith.select %17, %broadcasted_15, %broadcasted_16 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_17 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_18 = tensor.collapse_shape %concat_10 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %20 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_19 = linalg.broadcast ins(%collapsed_18 : tensor<1x?x4xf32>) outs(%20 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %21 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_20 = tensor.dim %collapsed_17, %c1 : tensor<1x?x4xf32>
  %22 = tensor.empty(%dim_20) : tensor<1x4x?xf32>
  %transposed_21 = linalg.transpose ins(%collapsed_17 : tensor<1x?x4xf32>) outs(%22 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_22 = linalg.broadcast ins(%transposed_21 : tensor<1x4x?xf32>) outs(%21 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_23 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_24 = tensor.collapse_shape %broadcasted_22 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %23 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %24 = linalg.fill ins(%cst_1 : f32) outs(%23 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %25 = linalg.batch_matmul ins(%collapsed_23, %collapsed_24 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%24 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_25 = tensor.expand_shape %25 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %26 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_26 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %27 = arith.mulf %expanded_25, %broadcasted_26 : tensor<1x2x?x?xf32>
  %broadcasted_27 = linalg.broadcast ins(%19 : tensor<?x?xf32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %28 = arith.addf %27, %broadcasted_27 : tensor<1x2x?x?xf32>
  %29 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%28 : tensor<1x2x?x?xf32>) outs(%30 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %42 = arith.maximumf %in, %init : f32
      linalg.yield %42 : f32
    }
  %broadcasted_28 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %31 = arith.subf %28, %broadcasted_28 : tensor<1x2x?x?xf32>
  %32 = math.exp %31 : tensor<1x2x?x?xf32>
  %33 = linalg.fill ins(%cst_1 : f32) outs(%29 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_29 = linalg.reduce ins(%32 : tensor<1x2x?x?xf32>) outs(%33 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %42 = arith.addf %in, %init : f32
      linalg.yield %42 : f32
    }
  %broadcasted_30 = linalg.broadcast ins(%reduced_29 : tensor<1x2x?xf32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %34 = arith.divf %32, %broadcasted_30 : tensor<1x2x?x?xf32>
  %collapsed_31 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_32 = tensor.collapse_shape %broadcasted_19 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %35 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %36 = linalg.fill ins(%cst_1 : f32) outs(%35 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  // expected-note @+1 {{an attention here is different: its mask is neither 'key <= past + query' nor a window before it}}
  %37 = linalg.batch_matmul ins(%collapsed_31, %collapsed_32 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%36 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_33 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_34 = tensor.dim %expanded_33, %c2 : tensor<1x2x?x4xf32>
  %38 = tensor.empty(%dim_34) : tensor<1x?x2x4xf32>
  %transposed_35 = linalg.transpose ins(%expanded_33 : tensor<1x2x?x4xf32>) outs(%38 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_36 = tensor.collapse_shape %transposed_35 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %39 = moe.weight "head_weight" at <"w", 1839, 512> : tensor<8x16xf32>
  %40 = tensor.empty() : tensor<16x8xf32>
  %transposed_37 = linalg.transpose ins(%39 : tensor<8x16xf32>) outs(%40 : tensor<16x8xf32>) permutation = [1, 0] 
  %41 = moe.linear %collapsed_36, %transposed_37 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_38 = tensor.expand_shape %41 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_38, %concat, %concat_10 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}

// -----
// No query sees its own key.
// expected-error @+1 {{this language model cannot be run as one: no attention that is understood reads 'past_key_values.0.key'}}
func.func @does_not_see_itself(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_4 = arith.constant dense<-1> : tensor<i64>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1302, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_5 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_5) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2374, 128> : tensor<8x4xf32>
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
    %42 = linalg.index 0 : index
    %43 = arith.index_cast %42 : index to i64
    linalg.yield %43 : i64
  } -> tensor<?xi64>
  %11 = tensor.empty(%dim) : tensor<?xi64>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %42 = linalg.index 0 : index
    %43 = arith.index_cast %42 : index to i64
    linalg.yield %43 : i64
  } -> tensor<?xi64>
  %13 = arith.index_cast %dim_11 : index to i64
  %from_elements = tensor.from_elements %13 : tensor<i64>
  %broadcasted = linalg.broadcast ins(%from_elements : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %14 = arith.addi %12, %broadcasted : tensor<?xi64>
  %broadcasted_12 = linalg.broadcast ins(%cst_4 : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %15 = arith.addi %14, %broadcasted_12 : tensor<?xi64>
  %16 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted_13 = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%16 : tensor<?x?xi64>) dimensions = [0] 
  %broadcasted_14 = linalg.broadcast ins(%15 : tensor<?xi64>) outs(%16 : tensor<?x?xi64>) dimensions = [1] 
  %17 = arith.cmpi sle, %broadcasted_13, %broadcasted_14 : tensor<?x?xi64>
  %18 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_15 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%18 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_16 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%18 : tensor<?x?xf32>) dimensions = [0, 1] 
  %19 = arith.select %17, %broadcasted_15, %broadcasted_16 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_17 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_18 = tensor.collapse_shape %concat_10 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %20 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_19 = linalg.broadcast ins(%collapsed_18 : tensor<1x?x4xf32>) outs(%20 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %21 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_20 = tensor.dim %collapsed_17, %c1 : tensor<1x?x4xf32>
  %22 = tensor.empty(%dim_20) : tensor<1x4x?xf32>
  %transposed_21 = linalg.transpose ins(%collapsed_17 : tensor<1x?x4xf32>) outs(%22 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_22 = linalg.broadcast ins(%transposed_21 : tensor<1x4x?xf32>) outs(%21 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_23 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_24 = tensor.collapse_shape %broadcasted_22 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %23 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %24 = linalg.fill ins(%cst_1 : f32) outs(%23 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %25 = linalg.batch_matmul ins(%collapsed_23, %collapsed_24 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%24 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_25 = tensor.expand_shape %25 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %26 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_26 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %27 = arith.mulf %expanded_25, %broadcasted_26 : tensor<1x2x?x?xf32>
  %broadcasted_27 = linalg.broadcast ins(%19 : tensor<?x?xf32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %28 = arith.addf %27, %broadcasted_27 : tensor<1x2x?x?xf32>
  %29 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%28 : tensor<1x2x?x?xf32>) outs(%30 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %42 = arith.maximumf %in, %init : f32
      linalg.yield %42 : f32
    }
  %broadcasted_28 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %31 = arith.subf %28, %broadcasted_28 : tensor<1x2x?x?xf32>
  %32 = math.exp %31 : tensor<1x2x?x?xf32>
  %33 = linalg.fill ins(%cst_1 : f32) outs(%29 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_29 = linalg.reduce ins(%32 : tensor<1x2x?x?xf32>) outs(%33 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %42 = arith.addf %in, %init : f32
      linalg.yield %42 : f32
    }
  %broadcasted_30 = linalg.broadcast ins(%reduced_29 : tensor<1x2x?xf32>) outs(%26 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %34 = arith.divf %32, %broadcasted_30 : tensor<1x2x?x?xf32>
  %collapsed_31 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_32 = tensor.collapse_shape %broadcasted_19 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %35 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %36 = linalg.fill ins(%cst_1 : f32) outs(%35 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  // expected-note @+1 {{an attention here is different: its mask is neither 'key <= past + query' nor a window before it}}
  %37 = linalg.batch_matmul ins(%collapsed_31, %collapsed_32 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%36 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_33 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_34 = tensor.dim %expanded_33, %c2 : tensor<1x2x?x4xf32>
  %38 = tensor.empty(%dim_34) : tensor<1x?x2x4xf32>
  %transposed_35 = linalg.transpose ins(%expanded_33 : tensor<1x2x?x4xf32>) outs(%38 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_36 = tensor.collapse_shape %transposed_35 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %39 = moe.weight "head_weight" at <"w", 1839, 512> : tensor<8x16xf32>
  %40 = tensor.empty() : tensor<16x8xf32>
  %transposed_37 = linalg.transpose ins(%39 : tensor<8x16xf32>) outs(%40 : tensor<16x8xf32>) permutation = [1, 0] 
  %41 = moe.linear %collapsed_36, %transposed_37 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_38 = tensor.expand_shape %41 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_38, %concat, %concat_10 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}

// -----
// What should be seen is hidden.
// expected-error @+1 {{this language model cannot be run as one: no attention that is understood reads 'past_key_values.0.key'}}
func.func @wrong_way_round(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_3 = arith.constant dense<-3.40282347E+38> : tensor<f32>
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
  // expected-note @+1 {{an attention here is different: its mask is no conjunction of comparisons of positions}}
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
// Keys behind the query are not hidden.
// expected-error @+1 {{this language model cannot be run as one: no attention that is understood reads 'past_key_values.0.key'}}
func.func @sees_the_future(%arg0: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "input_ids"}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"], moe.name = "position_ids"}, %arg2: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.key"}, %arg3: tensor<1x1x?x4xf32> {moe.dims = ["past"], moe.name = "past_key_values.0.value"}) -> (tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) attributes {moe.onnx_language_model = {logits = 0 : i64, past = array<i64: 2, 3>, positions = 1 : i64, present = array<i64: 1, 2>, tokens = 0 : i64}} {
  %cst = arith.constant 0xFF800000 : f32
  %cst_0 = arith.constant dense<5.000000e-01> : tensor<f32>
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant dense<-3.40282347E+38> : tensor<f32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_4 = arith.constant dense<3> : tensor<i64>
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = moe.weight "table" at <"w", 1325, 512> : tensor<16x8xf32>
  %dim = tensor.dim %arg0, %c1 : tensor<1x?xi64>
  %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x?xi64> into tensor<?xi64>
  %1 = arith.trunci %collapsed : tensor<?xi64> to tensor<?xi32>
  %2 = moe.embedding %1, %0 : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %expanded = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, %dim, 2, 4] : tensor<?x8xf32> into tensor<1x?x2x4xf32>
  %dim_5 = tensor.dim %expanded, %c1 : tensor<1x?x2x4xf32>
  %3 = tensor.empty(%dim_5) : tensor<1x2x?x4xf32>
  %transposed = linalg.transpose ins(%expanded : tensor<1x?x2x4xf32>) outs(%3 : tensor<1x2x?x4xf32>) permutation = [0, 2, 1, 3] 
  %4 = moe.weight "kv_weight" at <"w", 2397, 128> : tensor<8x4xf32>
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
    %43 = linalg.index 0 : index
    %44 = arith.index_cast %43 : index to i64
    linalg.yield %44 : i64
  } -> tensor<?xi64>
  %11 = tensor.empty(%dim) : tensor<?xi64>
  %12 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
  ^bb0(%out: i64):
    %43 = linalg.index 0 : index
    %44 = arith.index_cast %43 : index to i64
    linalg.yield %44 : i64
  } -> tensor<?xi64>
  %13 = arith.index_cast %dim_11 : index to i64
  %from_elements = tensor.from_elements %13 : tensor<i64>
  %broadcasted = linalg.broadcast ins(%from_elements : tensor<i64>) outs(%11 : tensor<?xi64>) dimensions = [0] 
  %14 = arith.addi %12, %broadcasted : tensor<?xi64>
  %expanded_12 = tensor.expand_shape %14 [[0, 1]] output_shape [%dim, 1] : tensor<?xi64> into tensor<?x1xi64>
  %15 = tensor.empty(%dim) : tensor<?x1xi64>
  %broadcasted_13 = linalg.broadcast ins(%cst_4 : tensor<i64>) outs(%15 : tensor<?x1xi64>) dimensions = [0, 1] 
  %16 = arith.subi %expanded_12, %broadcasted_13 : tensor<?x1xi64>
  %17 = tensor.empty(%dim, %8) : tensor<?x?xi64>
  %broadcasted_14 = linalg.broadcast ins(%10 : tensor<?xi64>) outs(%17 : tensor<?x?xi64>) dimensions = [0] 
  %collapsed_15 = tensor.collapse_shape %16 [[0, 1]] : tensor<?x1xi64> into tensor<?xi64>
  %broadcasted_16 = linalg.broadcast ins(%collapsed_15 : tensor<?xi64>) outs(%17 : tensor<?x?xi64>) dimensions = [1] 
  %18 = arith.cmpi sgt, %broadcasted_14, %broadcasted_16 : tensor<?x?xi64>
  %19 = tensor.empty(%dim, %8) : tensor<?x?xf32>
  %broadcasted_17 = linalg.broadcast ins(%cst_3 : tensor<f32>) outs(%19 : tensor<?x?xf32>) dimensions = [0, 1] 
  %broadcasted_18 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%19 : tensor<?x?xf32>) dimensions = [0, 1] 
  %20 = arith.select %18, %broadcasted_17, %broadcasted_18 : tensor<?x?xi1>, tensor<?x?xf32>
  %collapsed_19 = tensor.collapse_shape %concat [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %collapsed_20 = tensor.collapse_shape %concat_10 [[0], [1, 2], [3]] : tensor<1x1x?x4xf32> into tensor<1x?x4xf32>
  %21 = tensor.empty(%8) : tensor<1x2x?x4xf32>
  %broadcasted_21 = linalg.broadcast ins(%collapsed_20 : tensor<1x?x4xf32>) outs(%21 : tensor<1x2x?x4xf32>) dimensions = [1] 
  %22 = tensor.empty(%8) : tensor<1x2x4x?xf32>
  %dim_22 = tensor.dim %collapsed_19, %c1 : tensor<1x?x4xf32>
  %23 = tensor.empty(%dim_22) : tensor<1x4x?xf32>
  %transposed_23 = linalg.transpose ins(%collapsed_19 : tensor<1x?x4xf32>) outs(%23 : tensor<1x4x?xf32>) permutation = [0, 2, 1] 
  %broadcasted_24 = linalg.broadcast ins(%transposed_23 : tensor<1x4x?xf32>) outs(%22 : tensor<1x2x4x?xf32>) dimensions = [1] 
  %collapsed_25 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %collapsed_26 = tensor.collapse_shape %broadcasted_24 [[0, 1], [2], [3]] : tensor<1x2x4x?xf32> into tensor<2x4x?xf32>
  %24 = tensor.empty(%dim, %8) : tensor<2x?x?xf32>
  %25 = linalg.fill ins(%cst_1 : f32) outs(%24 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %26 = linalg.batch_matmul ins(%collapsed_25, %collapsed_26 : tensor<2x?x4xf32>, tensor<2x4x?xf32>) outs(%25 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %expanded_27 = tensor.expand_shape %26 [[0, 1], [2], [3]] output_shape [1, 2, %dim, %8] : tensor<2x?x?xf32> into tensor<1x2x?x?xf32>
  %27 = tensor.empty(%dim, %8) : tensor<1x2x?x?xf32>
  %broadcasted_28 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%27 : tensor<1x2x?x?xf32>) dimensions = [0, 1, 2, 3] 
  %28 = arith.mulf %expanded_27, %broadcasted_28 : tensor<1x2x?x?xf32>
  %broadcasted_29 = linalg.broadcast ins(%20 : tensor<?x?xf32>) outs(%27 : tensor<1x2x?x?xf32>) dimensions = [0, 1] 
  %29 = arith.addf %28, %broadcasted_29 : tensor<1x2x?x?xf32>
  %30 = tensor.empty(%dim) : tensor<1x2x?xf32>
  %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced = linalg.reduce ins(%29 : tensor<1x2x?x?xf32>) outs(%31 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %43 = arith.maximumf %in, %init : f32
      linalg.yield %43 : f32
    }
  %broadcasted_30 = linalg.broadcast ins(%reduced : tensor<1x2x?xf32>) outs(%27 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %32 = arith.subf %29, %broadcasted_30 : tensor<1x2x?x?xf32>
  %33 = math.exp %32 : tensor<1x2x?x?xf32>
  %34 = linalg.fill ins(%cst_1 : f32) outs(%30 : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %reduced_31 = linalg.reduce ins(%33 : tensor<1x2x?x?xf32>) outs(%34 : tensor<1x2x?xf32>) dimensions = [3] 
    (%in: f32, %init: f32) {
      %43 = arith.addf %in, %init : f32
      linalg.yield %43 : f32
    }
  %broadcasted_32 = linalg.broadcast ins(%reduced_31 : tensor<1x2x?xf32>) outs(%27 : tensor<1x2x?x?xf32>) dimensions = [3] 
  %35 = arith.divf %33, %broadcasted_32 : tensor<1x2x?x?xf32>
  %collapsed_33 = tensor.collapse_shape %35 [[0, 1], [2], [3]] : tensor<1x2x?x?xf32> into tensor<2x?x?xf32>
  %collapsed_34 = tensor.collapse_shape %broadcasted_21 [[0, 1], [2], [3]] : tensor<1x2x?x4xf32> into tensor<2x?x4xf32>
  %36 = tensor.empty(%dim) : tensor<2x?x4xf32>
  %37 = linalg.fill ins(%cst_1 : f32) outs(%36 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  // expected-note @+1 {{an attention here is different: it is not causal: nothing hides the keys after a query}}
  %38 = linalg.batch_matmul ins(%collapsed_33, %collapsed_34 : tensor<2x?x?xf32>, tensor<2x?x4xf32>) outs(%37 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %expanded_35 = tensor.expand_shape %38 [[0, 1], [2], [3]] output_shape [1, 2, %dim, 4] : tensor<2x?x4xf32> into tensor<1x2x?x4xf32>
  %dim_36 = tensor.dim %expanded_35, %c2 : tensor<1x2x?x4xf32>
  %39 = tensor.empty(%dim_36) : tensor<1x?x2x4xf32>
  %transposed_37 = linalg.transpose ins(%expanded_35 : tensor<1x2x?x4xf32>) outs(%39 : tensor<1x?x2x4xf32>) permutation = [0, 2, 1, 3] 
  %collapsed_38 = tensor.collapse_shape %transposed_37 [[0, 1], [2, 3]] : tensor<1x?x2x4xf32> into tensor<?x8xf32>
  %40 = moe.weight "head_weight" at <"w", 1862, 512> : tensor<8x16xf32>
  %41 = tensor.empty() : tensor<16x8xf32>
  %transposed_39 = linalg.transpose ins(%40 : tensor<8x16xf32>) outs(%41 : tensor<16x8xf32>) permutation = [1, 0] 
  %42 = moe.linear %collapsed_38, %transposed_39 : tensor<?x8xf32>, tensor<16x8xf32> -> tensor<?x16xf32>
  %expanded_40 = tensor.expand_shape %42 [[0, 1], [2]] output_shape [1, %dim, 16] : tensor<?x16xf32> into tensor<1x?x16xf32>
  return %expanded_40, %concat, %concat_10 : tensor<1x?x16xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>
}
