// RUN: %moec-opt %s --pass-pipeline="builtin.module(func.func(moec-raise-experts,canonicalize,cse))" | FileCheck %s

// Clamped SwiGLU, gate and up interleaved, weights stored as [experts, inputs, outputs].

// CHECK-LABEL: func.func @interleaved_swiglu
// CHECK-SAME: %[[X:[^ :]+]]: tensor<?x4xf32>
// CHECK-SAME: %[[WEIGHTS:[^ :]+]]: tensor<?x2xf32>
// CHECK-DAG: %[[W1:.+]] = moe.weight "w1"
// CHECK-DAG: %[[B1:.+]] = moe.weight "b1"
// CHECK-DAG: %[[W2:.+]] = moe.weight "w2"
// CHECK-DAG: %[[B2:.+]] = moe.weight "b2"
// CHECK-DAG: %[[GATE_UP:.+]] = linalg.transpose ins(%[[W1]] :
// CHECK-DAG: %[[DOWN:.+]] = linalg.transpose ins(%[[W2]] :
// CHECK-DAG: %[[IDS:.+]] = arith.trunci
// CHECK: %[[Y:.+]] = moe.experts %[[X]] to %[[IDS]], %[[WEIGHTS]] gate_up(%[[GATE_UP]] : tensor<3x12x4xf32>) down(%[[DOWN]] : tensor<3x4x6xf32>)
// CHECK-SAME: gate_up_bias(%[[B1]] : tensor<3x12xf32>) down_bias(%[[B2]] : tensor<3x4xf32>)
// CHECK-SAME: <swiglu, alpha = 1.702e+00, beta = 1.0e+00, limit = 7.0e+00, interleaved = true>
// CHECK: return %[[Y]]
func.func @interleaved_swiglu(%arg0: tensor<?x4xf32> {moe.dims = ["tokens"]}, %arg1: tensor<?x2xi64> {moe.dims = ["tokens"]}, %arg2: tensor<?x2xf32> {moe.dims = ["tokens"]}) -> (tensor<?x4xf32>) {
  %cst = arith.constant dense<1.702000e+00> : tensor<f32>
  %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
  %cst_1 = arith.constant dense<-7.000000e+00> : tensor<f32>
  %cst_2 = arith.constant dense<7.000000e+00> : tensor<f32>
  %cst_3 = arith.constant 0.000000e+00 : f32
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x4xf32>
  %0 = tensor.empty(%dim) : tensor<?x2x4xf32>
  %broadcasted = linalg.broadcast ins(%arg0 : tensor<?x4xf32>) outs(%0 : tensor<?x2x4xf32>) dimensions = [1] 
  %collapsed = tensor.collapse_shape %broadcasted [[0, 1], [2]] : tensor<?x2x4xf32> into tensor<?x4xf32>
  %collapsed_4 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<?x2xi64> into tensor<?xi64>
  %1 = moe.weight "w1" at <"w", 1044, 576> : tensor<3x4x12xf32>
  %2 = arith.muli %dim, %c2 : index
  %3 = tensor.empty(%2) : tensor<?x4x12xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%3 : tensor<?x4x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %44 = linalg.index 2 : index
    %extracted = tensor.extract %1[%42, %43, %44] : tensor<3x4x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4x12xf32>
  %5 = moe.weight "b1" at <"w", 1636, 144> : tensor<3x12xf32>
  %6 = tensor.empty(%2) : tensor<?x12xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%6 : tensor<?x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %extracted = tensor.extract %5[%42, %43] : tensor<3x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x12xf32>
  %expanded = tensor.expand_shape %collapsed [[0], [1, 2]] output_shape [%2, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %8 = tensor.empty(%2) : tensor<?x1x12xf32>
  %9 = linalg.fill ins(%cst_3 : f32) outs(%8 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %10 = linalg.batch_matmul ins(%expanded, %4 : tensor<?x1x4xf32>, tensor<?x4x12xf32>) outs(%9 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %collapsed_5 = tensor.collapse_shape %10 [[0], [1, 2]] : tensor<?x1x12xf32> into tensor<?x12xf32>
  %11 = arith.addf %collapsed_5, %7 : tensor<?x12xf32>
  %extracted_slice = tensor.extract_slice %11[0, 0] [%2, 6] [1, 2] : tensor<?x12xf32> to tensor<?x6xf32>
  %extracted_slice_6 = tensor.extract_slice %11[0, 1] [%2, 6] [1, 2] : tensor<?x12xf32> to tensor<?x6xf32>
  %12 = tensor.empty(%2) : tensor<?x6xf32>
  %broadcasted_7 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %13 = arith.minimumf %extracted_slice, %broadcasted_7 : tensor<?x6xf32>
  %broadcasted_8 = linalg.broadcast ins(%cst_1 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %14 = arith.maximumf %extracted_slice_6, %broadcasted_8 : tensor<?x6xf32>
  %15 = arith.minimumf %14, %broadcasted_7 : tensor<?x6xf32>
  %broadcasted_9 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %16 = arith.addf %15, %broadcasted_9 : tensor<?x6xf32>
  %broadcasted_10 = linalg.broadcast ins(%cst : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %17 = arith.mulf %13, %broadcasted_10 : tensor<?x6xf32>
  %18 = arith.negf %17 : tensor<?x6xf32>
  %19 = math.exp %18 : tensor<?x6xf32>
  %20 = arith.addf %broadcasted_9, %19 : tensor<?x6xf32>
  %21 = arith.divf %broadcasted_9, %20 : tensor<?x6xf32>
  %22 = arith.mulf %13, %21 : tensor<?x6xf32>
  %23 = arith.mulf %16, %22 : tensor<?x6xf32>
  %24 = moe.weight "w2" at <"w", 1798, 288> : tensor<3x6x4xf32>
  %25 = tensor.empty(%2) : tensor<?x6x4xf32>
  %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%25 : tensor<?x6x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %44 = linalg.index 2 : index
    %extracted = tensor.extract %24[%42, %43, %44] : tensor<3x6x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x6x4xf32>
  %27 = moe.weight "b2" at <"w", 2100, 48> : tensor<3x4xf32>
  %28 = tensor.empty(%2) : tensor<?x4xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%28 : tensor<?x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %extracted = tensor.extract %27[%42, %43] : tensor<3x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4xf32>
  %expanded_11 = tensor.expand_shape %23 [[0], [1, 2]] output_shape [%2, 1, 6] : tensor<?x6xf32> into tensor<?x1x6xf32>
  %30 = tensor.empty(%2) : tensor<?x1x4xf32>
  %31 = linalg.fill ins(%cst_3 : f32) outs(%30 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %32 = linalg.batch_matmul ins(%expanded_11, %26 : tensor<?x1x6xf32>, tensor<?x6x4xf32>) outs(%31 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %collapsed_12 = tensor.collapse_shape %32 [[0], [1, 2]] : tensor<?x1x4xf32> into tensor<?x4xf32>
  %33 = arith.addf %collapsed_12, %29 : tensor<?x4xf32>
  %collapsed_13 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %broadcasted_14 = linalg.broadcast ins(%collapsed_13 : tensor<?xf32>) outs(%28 : tensor<?x4xf32>) dimensions = [1] 
  %34 = arith.mulf %33, %broadcasted_14 : tensor<?x4xf32>
  %expanded_15 = tensor.expand_shape %34 [[0, 1], [2]] output_shape [%dim, 2, 4] : tensor<?x4xf32> into tensor<?x2x4xf32>
  %35 = tensor.empty(%dim) : tensor<?x4xf32>
  %36 = linalg.fill ins(%cst_3 : f32) outs(%35 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %reduced = linalg.reduce ins(%expanded_15 : tensor<?x2x4xf32>) outs(%36 : tensor<?x4xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %37 = arith.addf %in, %init : f32
      linalg.yield %37 : f32
    }
  return %reduced : tensor<?x4xf32>
}

// SiLU, all gates before all ups.

// CHECK-LABEL: func.func @concatenated_silu
// CHECK: moe.experts
// CHECK-SAME: <silu>
func.func @concatenated_silu(%arg0: tensor<?x4xf32> {moe.dims = ["tokens"]}, %arg1: tensor<?x2xi64> {moe.dims = ["tokens"]}, %arg2: tensor<?x2xf32> {moe.dims = ["tokens"]}) -> (tensor<?x4xf32>) {
  %cst = arith.constant dense<1.000000e+00> : tensor<f32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x4xf32>
  %0 = tensor.empty(%dim) : tensor<?x2x4xf32>
  %broadcasted = linalg.broadcast ins(%arg0 : tensor<?x4xf32>) outs(%0 : tensor<?x2x4xf32>) dimensions = [1] 
  %collapsed = tensor.collapse_shape %broadcasted [[0, 1], [2]] : tensor<?x2x4xf32> into tensor<?x4xf32>
  %collapsed_1 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<?x2xi64> into tensor<?xi64>
  %1 = moe.weight "w1" at <"w", 925, 576> : tensor<3x4x12xf32>
  %2 = arith.muli %dim, %c2 : index
  %3 = tensor.empty(%2) : tensor<?x4x12xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_1 : tensor<?xi64>) outs(%3 : tensor<?x4x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %32 = arith.index_cast %in : i64 to index
    %33 = arith.cmpi slt, %32, %c0 : index
    %34 = arith.addi %32, %c3 : index
    %35 = arith.select %33, %34, %32 : index
    %36 = arith.maxsi %35, %c0 : index
    %37 = arith.minsi %36, %c2 : index
    %38 = linalg.index 1 : index
    %39 = linalg.index 2 : index
    %extracted = tensor.extract %1[%37, %38, %39] : tensor<3x4x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4x12xf32>
  %5 = moe.weight "b1" at <"w", 1517, 144> : tensor<3x12xf32>
  %6 = tensor.empty(%2) : tensor<?x12xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_1 : tensor<?xi64>) outs(%6 : tensor<?x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %32 = arith.index_cast %in : i64 to index
    %33 = arith.cmpi slt, %32, %c0 : index
    %34 = arith.addi %32, %c3 : index
    %35 = arith.select %33, %34, %32 : index
    %36 = arith.maxsi %35, %c0 : index
    %37 = arith.minsi %36, %c2 : index
    %38 = linalg.index 1 : index
    %extracted = tensor.extract %5[%37, %38] : tensor<3x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x12xf32>
  %expanded = tensor.expand_shape %collapsed [[0], [1, 2]] output_shape [%2, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %8 = tensor.empty(%2) : tensor<?x1x12xf32>
  %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %10 = linalg.batch_matmul ins(%expanded, %4 : tensor<?x1x4xf32>, tensor<?x4x12xf32>) outs(%9 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %collapsed_2 = tensor.collapse_shape %10 [[0], [1, 2]] : tensor<?x1x12xf32> into tensor<?x12xf32>
  %11 = arith.addf %collapsed_2, %7 : tensor<?x12xf32>
  %extracted_slice = tensor.extract_slice %11[0, 0] [%2, 6] [1, 1] : tensor<?x12xf32> to tensor<?x6xf32>
  %extracted_slice_3 = tensor.extract_slice %11[0, 6] [%2, 6] [1, 1] : tensor<?x12xf32> to tensor<?x6xf32>
  %12 = tensor.empty(%2) : tensor<?x6xf32>
  %broadcasted_4 = linalg.broadcast ins(%cst : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %13 = arith.negf %extracted_slice : tensor<?x6xf32>
  %14 = math.exp %13 : tensor<?x6xf32>
  %15 = arith.addf %broadcasted_4, %14 : tensor<?x6xf32>
  %16 = arith.divf %broadcasted_4, %15 : tensor<?x6xf32>
  %17 = arith.mulf %extracted_slice, %16 : tensor<?x6xf32>
  %18 = arith.mulf %extracted_slice_3, %17 : tensor<?x6xf32>
  %19 = moe.weight "w2" at <"w", 1679, 288> : tensor<3x6x4xf32>
  %20 = tensor.empty(%2) : tensor<?x6x4xf32>
  %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_1 : tensor<?xi64>) outs(%20 : tensor<?x6x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %32 = arith.index_cast %in : i64 to index
    %33 = arith.cmpi slt, %32, %c0 : index
    %34 = arith.addi %32, %c3 : index
    %35 = arith.select %33, %34, %32 : index
    %36 = arith.maxsi %35, %c0 : index
    %37 = arith.minsi %36, %c2 : index
    %38 = linalg.index 1 : index
    %39 = linalg.index 2 : index
    %extracted = tensor.extract %19[%37, %38, %39] : tensor<3x6x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x6x4xf32>
  %22 = moe.weight "b2" at <"w", 1981, 48> : tensor<3x4xf32>
  %23 = tensor.empty(%2) : tensor<?x4xf32>
  %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_1 : tensor<?xi64>) outs(%23 : tensor<?x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %32 = arith.index_cast %in : i64 to index
    %33 = arith.cmpi slt, %32, %c0 : index
    %34 = arith.addi %32, %c3 : index
    %35 = arith.select %33, %34, %32 : index
    %36 = arith.maxsi %35, %c0 : index
    %37 = arith.minsi %36, %c2 : index
    %38 = linalg.index 1 : index
    %extracted = tensor.extract %22[%37, %38] : tensor<3x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4xf32>
  %expanded_5 = tensor.expand_shape %18 [[0], [1, 2]] output_shape [%2, 1, 6] : tensor<?x6xf32> into tensor<?x1x6xf32>
  %25 = tensor.empty(%2) : tensor<?x1x4xf32>
  %26 = linalg.fill ins(%cst_0 : f32) outs(%25 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %27 = linalg.batch_matmul ins(%expanded_5, %21 : tensor<?x1x6xf32>, tensor<?x6x4xf32>) outs(%26 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %collapsed_6 = tensor.collapse_shape %27 [[0], [1, 2]] : tensor<?x1x4xf32> into tensor<?x4xf32>
  %28 = arith.addf %collapsed_6, %24 : tensor<?x4xf32>
  %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %broadcasted_8 = linalg.broadcast ins(%collapsed_7 : tensor<?xf32>) outs(%23 : tensor<?x4xf32>) dimensions = [1] 
  %29 = arith.mulf %28, %broadcasted_8 : tensor<?x4xf32>
  %expanded_9 = tensor.expand_shape %29 [[0, 1], [2]] output_shape [%dim, 2, 4] : tensor<?x4xf32> into tensor<?x2x4xf32>
  %30 = tensor.empty(%dim) : tensor<?x4xf32>
  %31 = linalg.fill ins(%cst_0 : f32) outs(%30 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %reduced = linalg.reduce ins(%expanded_9 : tensor<?x2x4xf32>) outs(%31 : tensor<?x4xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %32 = arith.addf %in, %init : f32
      linalg.yield %32 : f32
    }
  return %reduced : tensor<?x4xf32>
}

// Gate and up are clamped differently.

// CHECK-LABEL: func.func @two_limits
// CHECK-NOT: moe.experts
// CHECK: return
func.func @two_limits(%arg0: tensor<?x4xf32> {moe.dims = ["tokens"]}, %arg1: tensor<?x2xi64> {moe.dims = ["tokens"]}, %arg2: tensor<?x2xf32> {moe.dims = ["tokens"]}) -> (tensor<?x4xf32>) {
  %cst = arith.constant dense<1.702000e+00> : tensor<f32>
  %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
  %cst_1 = arith.constant dense<-6.000000e+00> : tensor<f32>
  %cst_2 = arith.constant dense<7.000000e+00> : tensor<f32>
  %cst_3 = arith.constant 0.000000e+00 : f32
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x4xf32>
  %0 = tensor.empty(%dim) : tensor<?x2x4xf32>
  %broadcasted = linalg.broadcast ins(%arg0 : tensor<?x4xf32>) outs(%0 : tensor<?x2x4xf32>) dimensions = [1] 
  %collapsed = tensor.collapse_shape %broadcasted [[0, 1], [2]] : tensor<?x2x4xf32> into tensor<?x4xf32>
  %collapsed_4 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<?x2xi64> into tensor<?xi64>
  %1 = moe.weight "w1" at <"w", 1044, 576> : tensor<3x4x12xf32>
  %2 = arith.muli %dim, %c2 : index
  %3 = tensor.empty(%2) : tensor<?x4x12xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%3 : tensor<?x4x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %44 = linalg.index 2 : index
    %extracted = tensor.extract %1[%42, %43, %44] : tensor<3x4x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4x12xf32>
  %5 = moe.weight "b1" at <"w", 1636, 144> : tensor<3x12xf32>
  %6 = tensor.empty(%2) : tensor<?x12xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%6 : tensor<?x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %extracted = tensor.extract %5[%42, %43] : tensor<3x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x12xf32>
  %expanded = tensor.expand_shape %collapsed [[0], [1, 2]] output_shape [%2, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %8 = tensor.empty(%2) : tensor<?x1x12xf32>
  %9 = linalg.fill ins(%cst_3 : f32) outs(%8 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %10 = linalg.batch_matmul ins(%expanded, %4 : tensor<?x1x4xf32>, tensor<?x4x12xf32>) outs(%9 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %collapsed_5 = tensor.collapse_shape %10 [[0], [1, 2]] : tensor<?x1x12xf32> into tensor<?x12xf32>
  %11 = arith.addf %collapsed_5, %7 : tensor<?x12xf32>
  %extracted_slice = tensor.extract_slice %11[0, 0] [%2, 6] [1, 2] : tensor<?x12xf32> to tensor<?x6xf32>
  %extracted_slice_6 = tensor.extract_slice %11[0, 1] [%2, 6] [1, 2] : tensor<?x12xf32> to tensor<?x6xf32>
  %12 = tensor.empty(%2) : tensor<?x6xf32>
  %broadcasted_7 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %13 = arith.minimumf %extracted_slice, %broadcasted_7 : tensor<?x6xf32>
  %broadcasted_8 = linalg.broadcast ins(%cst_1 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %14 = arith.maximumf %extracted_slice_6, %broadcasted_8 : tensor<?x6xf32>
  %15 = arith.minimumf %14, %broadcasted_7 : tensor<?x6xf32>
  %broadcasted_9 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %16 = arith.addf %15, %broadcasted_9 : tensor<?x6xf32>
  %broadcasted_10 = linalg.broadcast ins(%cst : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %17 = arith.mulf %13, %broadcasted_10 : tensor<?x6xf32>
  %18 = arith.negf %17 : tensor<?x6xf32>
  %19 = math.exp %18 : tensor<?x6xf32>
  %20 = arith.addf %broadcasted_9, %19 : tensor<?x6xf32>
  %21 = arith.divf %broadcasted_9, %20 : tensor<?x6xf32>
  %22 = arith.mulf %13, %21 : tensor<?x6xf32>
  %23 = arith.mulf %16, %22 : tensor<?x6xf32>
  %24 = moe.weight "w2" at <"w", 1798, 288> : tensor<3x6x4xf32>
  %25 = tensor.empty(%2) : tensor<?x6x4xf32>
  %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%25 : tensor<?x6x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %44 = linalg.index 2 : index
    %extracted = tensor.extract %24[%42, %43, %44] : tensor<3x6x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x6x4xf32>
  %27 = moe.weight "b2" at <"w", 2100, 48> : tensor<3x4xf32>
  %28 = tensor.empty(%2) : tensor<?x4xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%28 : tensor<?x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %extracted = tensor.extract %27[%42, %43] : tensor<3x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4xf32>
  %expanded_11 = tensor.expand_shape %23 [[0], [1, 2]] output_shape [%2, 1, 6] : tensor<?x6xf32> into tensor<?x1x6xf32>
  %30 = tensor.empty(%2) : tensor<?x1x4xf32>
  %31 = linalg.fill ins(%cst_3 : f32) outs(%30 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %32 = linalg.batch_matmul ins(%expanded_11, %26 : tensor<?x1x6xf32>, tensor<?x6x4xf32>) outs(%31 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %collapsed_12 = tensor.collapse_shape %32 [[0], [1, 2]] : tensor<?x1x4xf32> into tensor<?x4xf32>
  %33 = arith.addf %collapsed_12, %29 : tensor<?x4xf32>
  %collapsed_13 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %broadcasted_14 = linalg.broadcast ins(%collapsed_13 : tensor<?xf32>) outs(%28 : tensor<?x4xf32>) dimensions = [1] 
  %34 = arith.mulf %33, %broadcasted_14 : tensor<?x4xf32>
  %expanded_15 = tensor.expand_shape %34 [[0, 1], [2]] output_shape [%dim, 2, 4] : tensor<?x4xf32> into tensor<?x2x4xf32>
  %35 = tensor.empty(%dim) : tensor<?x4xf32>
  %36 = linalg.fill ins(%cst_3 : f32) outs(%35 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %reduced = linalg.reduce ins(%expanded_15 : tensor<?x2x4xf32>) outs(%36 : tensor<?x4xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %37 = arith.addf %in, %init : f32
      linalg.yield %37 : f32
    }
  return %reduced : tensor<?x4xf32>
}

// The second product uses another choice than the first one.

// CHECK-LABEL: func.func @two_choices
// CHECK-NOT: moe.experts
// CHECK: return
func.func @two_choices(%arg0: tensor<?x4xf32> {moe.dims = ["tokens"]}, %arg1: tensor<?x2xi64> {moe.dims = ["tokens"]}, %arg2: tensor<?x2xf32> {moe.dims = ["tokens"]}, %arg3: tensor<?x2xi64> {moe.dims = ["tokens"]}) -> (tensor<?x4xf32>) {
  %cst = arith.constant dense<1.702000e+00> : tensor<f32>
  %cst_0 = arith.constant dense<1.000000e+00> : tensor<f32>
  %cst_1 = arith.constant dense<-7.000000e+00> : tensor<f32>
  %cst_2 = arith.constant dense<7.000000e+00> : tensor<f32>
  %cst_3 = arith.constant 0.000000e+00 : f32
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x4xf32>
  %0 = tensor.empty(%dim) : tensor<?x2x4xf32>
  %broadcasted = linalg.broadcast ins(%arg0 : tensor<?x4xf32>) outs(%0 : tensor<?x2x4xf32>) dimensions = [1] 
  %collapsed = tensor.collapse_shape %broadcasted [[0, 1], [2]] : tensor<?x2x4xf32> into tensor<?x4xf32>
  %collapsed_4 = tensor.collapse_shape %arg1 [[0, 1]] : tensor<?x2xi64> into tensor<?xi64>
  %collapsed_5 = tensor.collapse_shape %arg3 [[0, 1]] : tensor<?x2xi64> into tensor<?xi64>
  %1 = moe.weight "w1" at <"w", 1116, 576> : tensor<3x4x12xf32>
  %2 = arith.muli %dim, %c2 : index
  %3 = tensor.empty(%2) : tensor<?x4x12xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%3 : tensor<?x4x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %44 = linalg.index 2 : index
    %extracted = tensor.extract %1[%42, %43, %44] : tensor<3x4x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4x12xf32>
  %5 = moe.weight "b1" at <"w", 1708, 144> : tensor<3x12xf32>
  %6 = tensor.empty(%2) : tensor<?x12xf32>
  %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_4 : tensor<?xi64>) outs(%6 : tensor<?x12xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %extracted = tensor.extract %5[%42, %43] : tensor<3x12xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x12xf32>
  %expanded = tensor.expand_shape %collapsed [[0], [1, 2]] output_shape [%2, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
  %8 = tensor.empty(%2) : tensor<?x1x12xf32>
  %9 = linalg.fill ins(%cst_3 : f32) outs(%8 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %10 = linalg.batch_matmul ins(%expanded, %4 : tensor<?x1x4xf32>, tensor<?x4x12xf32>) outs(%9 : tensor<?x1x12xf32>) -> tensor<?x1x12xf32>
  %collapsed_6 = tensor.collapse_shape %10 [[0], [1, 2]] : tensor<?x1x12xf32> into tensor<?x12xf32>
  %11 = arith.addf %collapsed_6, %7 : tensor<?x12xf32>
  %extracted_slice = tensor.extract_slice %11[0, 0] [%2, 6] [1, 2] : tensor<?x12xf32> to tensor<?x6xf32>
  %extracted_slice_7 = tensor.extract_slice %11[0, 1] [%2, 6] [1, 2] : tensor<?x12xf32> to tensor<?x6xf32>
  %12 = tensor.empty(%2) : tensor<?x6xf32>
  %broadcasted_8 = linalg.broadcast ins(%cst_2 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %13 = arith.minimumf %extracted_slice, %broadcasted_8 : tensor<?x6xf32>
  %broadcasted_9 = linalg.broadcast ins(%cst_1 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %14 = arith.maximumf %extracted_slice_7, %broadcasted_9 : tensor<?x6xf32>
  %15 = arith.minimumf %14, %broadcasted_8 : tensor<?x6xf32>
  %broadcasted_10 = linalg.broadcast ins(%cst_0 : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %16 = arith.addf %15, %broadcasted_10 : tensor<?x6xf32>
  %broadcasted_11 = linalg.broadcast ins(%cst : tensor<f32>) outs(%12 : tensor<?x6xf32>) dimensions = [0, 1] 
  %17 = arith.mulf %13, %broadcasted_11 : tensor<?x6xf32>
  %18 = arith.negf %17 : tensor<?x6xf32>
  %19 = math.exp %18 : tensor<?x6xf32>
  %20 = arith.addf %broadcasted_10, %19 : tensor<?x6xf32>
  %21 = arith.divf %broadcasted_10, %20 : tensor<?x6xf32>
  %22 = arith.mulf %13, %21 : tensor<?x6xf32>
  %23 = arith.mulf %16, %22 : tensor<?x6xf32>
  %24 = moe.weight "w2" at <"w", 1870, 288> : tensor<3x6x4xf32>
  %25 = tensor.empty(%2) : tensor<?x6x4xf32>
  %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_5 : tensor<?xi64>) outs(%25 : tensor<?x6x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %44 = linalg.index 2 : index
    %extracted = tensor.extract %24[%42, %43, %44] : tensor<3x6x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x6x4xf32>
  %27 = moe.weight "b2" at <"w", 2172, 48> : tensor<3x4xf32>
  %28 = tensor.empty(%2) : tensor<?x4xf32>
  %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_5 : tensor<?xi64>) outs(%28 : tensor<?x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %37 = arith.index_cast %in : i64 to index
    %38 = arith.cmpi slt, %37, %c0 : index
    %39 = arith.addi %37, %c3 : index
    %40 = arith.select %38, %39, %37 : index
    %41 = arith.maxsi %40, %c0 : index
    %42 = arith.minsi %41, %c2 : index
    %43 = linalg.index 1 : index
    %extracted = tensor.extract %27[%42, %43] : tensor<3x4xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x4xf32>
  %expanded_12 = tensor.expand_shape %23 [[0], [1, 2]] output_shape [%2, 1, 6] : tensor<?x6xf32> into tensor<?x1x6xf32>
  %30 = tensor.empty(%2) : tensor<?x1x4xf32>
  %31 = linalg.fill ins(%cst_3 : f32) outs(%30 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %32 = linalg.batch_matmul ins(%expanded_12, %26 : tensor<?x1x6xf32>, tensor<?x6x4xf32>) outs(%31 : tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
  %collapsed_13 = tensor.collapse_shape %32 [[0], [1, 2]] : tensor<?x1x4xf32> into tensor<?x4xf32>
  %33 = arith.addf %collapsed_13, %29 : tensor<?x4xf32>
  %collapsed_14 = tensor.collapse_shape %arg2 [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %broadcasted_15 = linalg.broadcast ins(%collapsed_14 : tensor<?xf32>) outs(%28 : tensor<?x4xf32>) dimensions = [1] 
  %34 = arith.mulf %33, %broadcasted_15 : tensor<?x4xf32>
  %expanded_16 = tensor.expand_shape %34 [[0, 1], [2]] output_shape [%dim, 2, 4] : tensor<?x4xf32> into tensor<?x2x4xf32>
  %35 = tensor.empty(%dim) : tensor<?x4xf32>
  %36 = linalg.fill ins(%cst_3 : f32) outs(%35 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %reduced = linalg.reduce ins(%expanded_16 : tensor<?x2x4xf32>) outs(%36 : tensor<?x4xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %37 = arith.addf %in, %init : f32
      linalg.yield %37 : f32
    }
  return %reduced : tensor<?x4xf32>
}
