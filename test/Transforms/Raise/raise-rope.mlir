// RUN: %moec-opt %s --pass-pipeline="builtin.module(func.func(moec-raise-rope,canonicalize,cse))" | FileCheck %s

// Halves: channel i goes with channel i + 4. Positions are an argument, frequencies a weight whose values are shown.

// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:[^ :]+]]: tensor<1x3x?x8xf32>
// CHECK-SAME: %[[P:[^ :]+]]: tensor<1x?xi64>
// CHECK: %[[ROWS:.+]] = linalg.transpose
// CHECK-SAME: permutation = [1, 0, 2]
// CHECK: %[[POSITIONS:.+]] = arith.trunci
// CHECK: %[[Y:.+]] = moe.rope %[[ROWS]] at %[[POSITIONS]] <[5.0e-01, 2.5e-01, 1.25e-01, 6.25e-02], magnitude = 1.5e+00> : tensor<?x3x8xf32>
// CHECK-NOT: math.cos
func.func @halves(%arg0: tensor<1x3x?x8xf32> {moe.dims = ["tokens"]}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"]}) -> (tensor<1x3x?x8xf32>) {
  %cst = arith.constant dense<1.500000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %arg0, %c2 : tensor<1x3x?x8xf32>
  %expanded = tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [1, %dim, 1] : tensor<1x?xi64> into tensor<1x?x1xi64>
  %0 = arith.sitofp %expanded : tensor<1x?x1xi64> to tensor<1x?x1xf32>
  %collapsed = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<1x?x1xf32> into tensor<1x?xf32>
  %1 = tensor.empty(%dim) : tensor<1x?x4xf32>
  %broadcasted = linalg.broadcast ins(%collapsed : tensor<1x?xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [2] 
  %2 = moe.weight "f" at <"w", 484, 16> {moe.constant_value = dense<[5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02]> : tensor<4xf32>} : tensor<4xf32>
  %broadcasted_0 = linalg.broadcast ins(%2 : tensor<4xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1] 
  %3 = arith.mulf %broadcasted, %broadcasted_0 : tensor<1x?x4xf32>
  %4 = math.cos %3 : tensor<1x?x4xf32>
  %broadcasted_1 = linalg.broadcast ins(%cst : tensor<f32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1, 2] 
  %5 = arith.mulf %4, %broadcasted_1 : tensor<1x?x4xf32>
  %6 = math.sin %3 : tensor<1x?x4xf32>
  %7 = arith.mulf %6, %broadcasted_1 : tensor<1x?x4xf32>
  %extracted_slice = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %extracted_slice_2 = tensor.extract_slice %arg0[0, 0, 0, 4] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %8 = tensor.empty(%dim) : tensor<1x3x?x4xf32>
  %broadcasted_3 = linalg.broadcast ins(%5 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %9 = arith.mulf %extracted_slice, %broadcasted_3 : tensor<1x3x?x4xf32>
  %broadcasted_4 = linalg.broadcast ins(%7 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %10 = arith.mulf %extracted_slice_2, %broadcasted_4 : tensor<1x3x?x4xf32>
  %11 = arith.mulf %extracted_slice_2, %broadcasted_3 : tensor<1x3x?x4xf32>
  %12 = arith.mulf %extracted_slice, %broadcasted_4 : tensor<1x3x?x4xf32>
  %13 = arith.subf %9, %10 : tensor<1x3x?x4xf32>
  %14 = arith.addf %11, %12 : tensor<1x3x?x4xf32>
  %concat = tensor.concat dim(3) %13, %14 : (tensor<1x3x?x4xf32>, tensor<1x3x?x4xf32>) -> tensor<1x3x?x8xf32>
  return %concat : tensor<1x3x?x8xf32>
}

// Neighbours: channel 2 i goes with channel 2 i + 1.

// CHECK-LABEL: func.func @neighbours
// CHECK: moe.rope
// CHECK-SAME: magnitude = 1.5e+00, interleaved>
// CHECK-NOT: math.sin
func.func @neighbours(%arg0: tensor<1x3x?x8xf32> {moe.dims = ["tokens"]}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"]}) -> (tensor<1x3x?x8xf32>) {
  %cst = arith.constant dense<1.500000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %arg0, %c2 : tensor<1x3x?x8xf32>
  %expanded = tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [1, %dim, 1] : tensor<1x?xi64> into tensor<1x?x1xi64>
  %0 = arith.sitofp %expanded : tensor<1x?x1xi64> to tensor<1x?x1xf32>
  %collapsed = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<1x?x1xf32> into tensor<1x?xf32>
  %1 = tensor.empty(%dim) : tensor<1x?x4xf32>
  %broadcasted = linalg.broadcast ins(%collapsed : tensor<1x?xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [2] 
  %2 = moe.weight "f" at <"w", 577, 16> {moe.constant_value = dense<[5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02]> : tensor<4xf32>} : tensor<4xf32>
  %broadcasted_0 = linalg.broadcast ins(%2 : tensor<4xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1] 
  %3 = arith.mulf %broadcasted, %broadcasted_0 : tensor<1x?x4xf32>
  %4 = math.cos %3 : tensor<1x?x4xf32>
  %broadcasted_1 = linalg.broadcast ins(%cst : tensor<f32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1, 2] 
  %5 = arith.mulf %4, %broadcasted_1 : tensor<1x?x4xf32>
  %6 = math.sin %3 : tensor<1x?x4xf32>
  %7 = arith.mulf %6, %broadcasted_1 : tensor<1x?x4xf32>
  %extracted_slice = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, %dim, 4] [1, 1, 1, 2] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %extracted_slice_2 = tensor.extract_slice %arg0[0, 0, 0, 1] [1, 3, %dim, 4] [1, 1, 1, 2] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %8 = tensor.empty(%dim) : tensor<1x3x?x4xf32>
  %broadcasted_3 = linalg.broadcast ins(%5 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %9 = arith.mulf %extracted_slice, %broadcasted_3 : tensor<1x3x?x4xf32>
  %broadcasted_4 = linalg.broadcast ins(%7 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %10 = arith.mulf %extracted_slice_2, %broadcasted_4 : tensor<1x3x?x4xf32>
  %11 = arith.mulf %extracted_slice_2, %broadcasted_3 : tensor<1x3x?x4xf32>
  %12 = arith.mulf %extracted_slice, %broadcasted_4 : tensor<1x3x?x4xf32>
  %13 = arith.subf %9, %10 : tensor<1x3x?x4xf32>
  %14 = arith.addf %11, %12 : tensor<1x3x?x4xf32>
  %expanded_5 = tensor.expand_shape %13 [[0], [1], [2], [3, 4]] output_shape [1, 3, %dim, 4, 1] : tensor<1x3x?x4xf32> into tensor<1x3x?x4x1xf32>
  %expanded_6 = tensor.expand_shape %14 [[0], [1], [2], [3, 4]] output_shape [1, 3, %dim, 4, 1] : tensor<1x3x?x4xf32> into tensor<1x3x?x4x1xf32>
  %concat = tensor.concat dim(4) %expanded_5, %expanded_6 : (tensor<1x3x?x4x1xf32>, tensor<1x3x?x4x1xf32>) -> tensor<1x3x?x4x2xf32>
  %collapsed_7 = tensor.collapse_shape %concat [[0], [1], [2], [3, 4]] : tensor<1x3x?x4x2xf32> into tensor<1x3x?x8xf32>
  return %collapsed_7 : tensor<1x3x?x8xf32>
}

// The last two channels are not rotated.

// CHECK-LABEL: func.func @some_channels
// CHECK: moe.rope
// CHECK-SAME: <[5.0e-01, 2.5e-01, 1.25e-01, 6.25e-02], magnitude = 1.5e+00>
// CHECK-NOT: math.sin
func.func @some_channels(%arg0: tensor<1x3x?x10xf32> {moe.dims = ["tokens"]}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"]}) -> (tensor<1x3x?x10xf32>) {
  %cst = arith.constant dense<1.500000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %arg0, %c2 : tensor<1x3x?x10xf32>
  %expanded = tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [1, %dim, 1] : tensor<1x?xi64> into tensor<1x?x1xi64>
  %0 = arith.sitofp %expanded : tensor<1x?x1xi64> to tensor<1x?x1xf32>
  %collapsed = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<1x?x1xf32> into tensor<1x?xf32>
  %1 = tensor.empty(%dim) : tensor<1x?x4xf32>
  %broadcasted = linalg.broadcast ins(%collapsed : tensor<1x?xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [2] 
  %2 = moe.weight "f" at <"w", 598, 16> {moe.constant_value = dense<[5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02]> : tensor<4xf32>} : tensor<4xf32>
  %broadcasted_0 = linalg.broadcast ins(%2 : tensor<4xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1] 
  %3 = arith.mulf %broadcasted, %broadcasted_0 : tensor<1x?x4xf32>
  %4 = math.cos %3 : tensor<1x?x4xf32>
  %broadcasted_1 = linalg.broadcast ins(%cst : tensor<f32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1, 2] 
  %5 = arith.mulf %4, %broadcasted_1 : tensor<1x?x4xf32>
  %6 = math.sin %3 : tensor<1x?x4xf32>
  %7 = arith.mulf %6, %broadcasted_1 : tensor<1x?x4xf32>
  %extracted_slice = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, %dim, 8] [1, 1, 1, 1] : tensor<1x3x?x10xf32> to tensor<1x3x?x8xf32>
  %extracted_slice_2 = tensor.extract_slice %arg0[0, 0, 0, 8] [1, 3, %dim, 2] [1, 1, 1, 1] : tensor<1x3x?x10xf32> to tensor<1x3x?x2xf32>
  %extracted_slice_3 = tensor.extract_slice %extracted_slice[0, 0, 0, 0] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %extracted_slice_4 = tensor.extract_slice %extracted_slice[0, 0, 0, 4] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %8 = tensor.empty(%dim) : tensor<1x3x?x4xf32>
  %broadcasted_5 = linalg.broadcast ins(%5 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %9 = arith.mulf %extracted_slice_3, %broadcasted_5 : tensor<1x3x?x4xf32>
  %broadcasted_6 = linalg.broadcast ins(%7 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %10 = arith.mulf %extracted_slice_4, %broadcasted_6 : tensor<1x3x?x4xf32>
  %11 = arith.mulf %extracted_slice_4, %broadcasted_5 : tensor<1x3x?x4xf32>
  %12 = arith.mulf %extracted_slice_3, %broadcasted_6 : tensor<1x3x?x4xf32>
  %13 = arith.subf %9, %10 : tensor<1x3x?x4xf32>
  %14 = arith.addf %11, %12 : tensor<1x3x?x4xf32>
  %concat = tensor.concat dim(3) %13, %14 : (tensor<1x3x?x4xf32>, tensor<1x3x?x4xf32>) -> tensor<1x3x?x8xf32>
  %concat_7 = tensor.concat dim(3) %concat, %extracted_slice_2 : (tensor<1x3x?x8xf32>, tensor<1x3x?x2xf32>) -> tensor<1x3x?x10xf32>
  return %concat_7 : tensor<1x3x?x10xf32>
}

// A reflection is no rotation.

// CHECK-LABEL: func.func @reflection
// CHECK-NOT: moe.rope
// CHECK: return
func.func @reflection(%arg0: tensor<1x3x?x8xf32> {moe.dims = ["tokens"]}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"]}) -> (tensor<1x3x?x8xf32>) {
  %cst = arith.constant dense<1.500000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %arg0, %c2 : tensor<1x3x?x8xf32>
  %expanded = tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [1, %dim, 1] : tensor<1x?xi64> into tensor<1x?x1xi64>
  %0 = arith.sitofp %expanded : tensor<1x?x1xi64> to tensor<1x?x1xf32>
  %collapsed = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<1x?x1xf32> into tensor<1x?xf32>
  %1 = tensor.empty(%dim) : tensor<1x?x4xf32>
  %broadcasted = linalg.broadcast ins(%collapsed : tensor<1x?xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [2] 
  %2 = moe.weight "f" at <"w", 484, 16> {moe.constant_value = dense<[5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02]> : tensor<4xf32>} : tensor<4xf32>
  %broadcasted_0 = linalg.broadcast ins(%2 : tensor<4xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1] 
  %3 = arith.mulf %broadcasted, %broadcasted_0 : tensor<1x?x4xf32>
  %4 = math.cos %3 : tensor<1x?x4xf32>
  %broadcasted_1 = linalg.broadcast ins(%cst : tensor<f32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1, 2] 
  %5 = arith.mulf %4, %broadcasted_1 : tensor<1x?x4xf32>
  %6 = math.sin %3 : tensor<1x?x4xf32>
  %7 = arith.mulf %6, %broadcasted_1 : tensor<1x?x4xf32>
  %extracted_slice = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %extracted_slice_2 = tensor.extract_slice %arg0[0, 0, 0, 4] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %8 = tensor.empty(%dim) : tensor<1x3x?x4xf32>
  %broadcasted_3 = linalg.broadcast ins(%5 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %9 = arith.mulf %extracted_slice, %broadcasted_3 : tensor<1x3x?x4xf32>
  %broadcasted_4 = linalg.broadcast ins(%7 : tensor<1x?x4xf32>) outs(%8 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %10 = arith.mulf %extracted_slice_2, %broadcasted_4 : tensor<1x3x?x4xf32>
  %11 = arith.mulf %extracted_slice_2, %broadcasted_3 : tensor<1x3x?x4xf32>
  %12 = arith.mulf %extracted_slice, %broadcasted_4 : tensor<1x3x?x4xf32>
  %13 = arith.addf %9, %10 : tensor<1x3x?x4xf32>
  %14 = arith.addf %11, %12 : tensor<1x3x?x4xf32>
  %concat = tensor.concat dim(3) %13, %14 : (tensor<1x3x?x4xf32>, tensor<1x3x?x4xf32>) -> tensor<1x3x?x8xf32>
  return %concat : tensor<1x3x?x8xf32>
}

// The two halves are at positions of their own.

// CHECK-LABEL: func.func @two_positions
// CHECK-NOT: moe.rope
// CHECK: return
func.func @two_positions(%arg0: tensor<1x3x?x8xf32> {moe.dims = ["tokens"]}, %arg1: tensor<1x?xi64> {moe.dims = ["tokens"]}, %arg2: tensor<1x?xi64> {moe.dims = ["tokens"]}) -> (tensor<1x3x?x8xf32>) {
  %cst = arith.constant dense<1.500000e+00> : tensor<f32>
  %c2 = arith.constant 2 : index
  %dim = tensor.dim %arg0, %c2 : tensor<1x3x?x8xf32>
  %expanded = tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [1, %dim, 1] : tensor<1x?xi64> into tensor<1x?x1xi64>
  %0 = arith.sitofp %expanded : tensor<1x?x1xi64> to tensor<1x?x1xf32>
  %collapsed = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<1x?x1xf32> into tensor<1x?xf32>
  %1 = tensor.empty(%dim) : tensor<1x?x4xf32>
  %broadcasted = linalg.broadcast ins(%collapsed : tensor<1x?xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [2] 
  %2 = moe.weight "f" at <"w", 732, 16> {moe.constant_value = dense<[5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02]> : tensor<4xf32>} : tensor<4xf32>
  %broadcasted_0 = linalg.broadcast ins(%2 : tensor<4xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1] 
  %3 = arith.mulf %broadcasted, %broadcasted_0 : tensor<1x?x4xf32>
  %4 = math.cos %3 : tensor<1x?x4xf32>
  %broadcasted_1 = linalg.broadcast ins(%cst : tensor<f32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [0, 1, 2] 
  %5 = arith.mulf %4, %broadcasted_1 : tensor<1x?x4xf32>
  %6 = math.sin %3 : tensor<1x?x4xf32>
  %7 = arith.mulf %6, %broadcasted_1 : tensor<1x?x4xf32>
  %expanded_2 = tensor.expand_shape %arg2 [[0], [1, 2]] output_shape [1, %dim, 1] : tensor<1x?xi64> into tensor<1x?x1xi64>
  %8 = arith.sitofp %expanded_2 : tensor<1x?x1xi64> to tensor<1x?x1xf32>
  %collapsed_3 = tensor.collapse_shape %8 [[0], [1, 2]] : tensor<1x?x1xf32> into tensor<1x?xf32>
  %broadcasted_4 = linalg.broadcast ins(%collapsed_3 : tensor<1x?xf32>) outs(%1 : tensor<1x?x4xf32>) dimensions = [2] 
  %9 = arith.mulf %broadcasted_4, %broadcasted_0 : tensor<1x?x4xf32>
  %10 = math.cos %9 : tensor<1x?x4xf32>
  %11 = arith.mulf %10, %broadcasted_1 : tensor<1x?x4xf32>
  %12 = math.sin %9 : tensor<1x?x4xf32>
  %13 = arith.mulf %12, %broadcasted_1 : tensor<1x?x4xf32>
  %extracted_slice = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %extracted_slice_5 = tensor.extract_slice %arg0[0, 0, 0, 4] [1, 3, %dim, 4] [1, 1, 1, 1] : tensor<1x3x?x8xf32> to tensor<1x3x?x4xf32>
  %14 = tensor.empty(%dim) : tensor<1x3x?x4xf32>
  %broadcasted_6 = linalg.broadcast ins(%5 : tensor<1x?x4xf32>) outs(%14 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %15 = arith.mulf %extracted_slice, %broadcasted_6 : tensor<1x3x?x4xf32>
  %broadcasted_7 = linalg.broadcast ins(%7 : tensor<1x?x4xf32>) outs(%14 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %16 = arith.mulf %extracted_slice_5, %broadcasted_7 : tensor<1x3x?x4xf32>
  %broadcasted_8 = linalg.broadcast ins(%11 : tensor<1x?x4xf32>) outs(%14 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %17 = arith.mulf %extracted_slice_5, %broadcasted_8 : tensor<1x3x?x4xf32>
  %broadcasted_9 = linalg.broadcast ins(%13 : tensor<1x?x4xf32>) outs(%14 : tensor<1x3x?x4xf32>) dimensions = [1] 
  %18 = arith.mulf %extracted_slice, %broadcasted_9 : tensor<1x3x?x4xf32>
  %19 = arith.subf %15, %16 : tensor<1x3x?x4xf32>
  %20 = arith.addf %17, %18 : tensor<1x3x?x4xf32>
  %concat = tensor.concat dim(3) %19, %20 : (tensor<1x3x?x4xf32>, tensor<1x3x?x4xf32>) -> tensor<1x3x?x8xf32>
  return %concat : tensor<1x3x?x8xf32>
}
