// RUN: %moec-opt %s --pass-pipeline="builtin.module(func.func(moec-raise-routing,canonicalize,cse))" | FileCheck %s

// A softmax over the chosen logits.

// CHECK-LABEL: func.func @softmax_of_chosen
// CHECK-SAME: %[[LOGITS:[^ :]+]]: tensor<?x5xf32>
// CHECK: %[[W:.+]], %[[I:.+]] = moe.route softmax(%[[LOGITS]]) {renormalize, top_k = 2 : i64}
// CHECK: %[[WIDE:.+]] = arith.extui %[[I]]
// CHECK: return %[[W]], %[[WIDE]]
func.func @softmax_of_chosen(%arg0: tensor<?x5xf32> {moe.dims = ["tokens"]}) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %c0_i64 = arith.constant 0 : i64
  %cst_1 = arith.constant dense<0xFF800000> : tensor<f32>
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x5xf32>
  %0 = tensor.empty(%dim) : tensor<?x5xf32>
  %broadcasted = linalg.broadcast ins(%cst_1 : tensor<f32>) outs(%0 : tensor<?x5xf32>) dimensions = [0, 1] 
  %1 = arith.cmpf uno, %arg0, %arg0 : tensor<?x5xf32>
  %2 = arith.select %1, %broadcasted, %arg0 : tensor<?x5xi1>, tensor<?x5xf32>
  %3 = tensor.empty(%dim) : tensor<?x5xi64>
  %4 = linalg.fill ins(%c0_i64 : i64) outs(%3 : tensor<?x5xi64>) -> tensor<?x5xi64>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%2, %2 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%4 : tensor<?x5xi64>) {
  ^bb0(%in: f32, %in_5: f32, %out: i64):
    %17 = arith.cmpf ogt, %in_5, %in : f32
    %18 = arith.cmpf oeq, %in_5, %in : f32
    %19 = linalg.index 1 : index
    %20 = linalg.index 2 : index
    %21 = arith.cmpi ult, %20, %19 : index
    %22 = arith.andi %18, %21 : i1
    %23 = arith.ori %17, %22 : i1
    %24 = arith.extui %23 : i1 to i64
    %25 = arith.addi %out, %24 : i64
    linalg.yield %25 : i64
  } -> tensor<?x5xi64>
  %6 = tensor.empty(%dim) : tensor<?x2xi64>
  %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<?x2xi64>) -> tensor<?x2xi64>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%5 : tensor<?x5xi64>) outs(%7 : tensor<?x2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %17 = linalg.index 1 : index
    %18 = linalg.index 2 : index
    %19 = arith.index_cast %17 : index to i64
    %20 = arith.index_cast %18 : index to i64
    %21 = arith.cmpi eq, %in, %19 : i64
    %22 = arith.select %21, %20, %c0_i64 : i64
    %23 = arith.addi %out, %22 : i64
    linalg.yield %23 : i64
  } -> tensor<?x2xi64>
  %9 = tensor.empty(%dim) : tensor<?x2xf32>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<?x2xi64>) outs(%9 : tensor<?x2xf32>) {
  ^bb0(%in: i64, %out: f32):
    %17 = linalg.index 0 : index
    %18 = arith.index_cast %in : i64 to index
    %extracted = tensor.extract %arg0[%17, %18] : tensor<?x5xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x2xf32>
  %11 = tensor.empty(%dim) : tensor<?xf32>
  %12 = linalg.fill ins(%cst_0 : f32) outs(%11 : tensor<?xf32>) -> tensor<?xf32>
  %reduced = linalg.reduce ins(%10 : tensor<?x2xf32>) outs(%12 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.maximumf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_2 = linalg.broadcast ins(%reduced : tensor<?xf32>) outs(%9 : tensor<?x2xf32>) dimensions = [1] 
  %13 = arith.subf %10, %broadcasted_2 : tensor<?x2xf32>
  %14 = math.exp %13 : tensor<?x2xf32>
  %15 = linalg.fill ins(%cst : f32) outs(%11 : tensor<?xf32>) -> tensor<?xf32>
  %reduced_3 = linalg.reduce ins(%14 : tensor<?x2xf32>) outs(%15 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.addf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_4 = linalg.broadcast ins(%reduced_3 : tensor<?xf32>) outs(%9 : tensor<?x2xf32>) dimensions = [1] 
  %16 = arith.divf %14, %broadcasted_4 : tensor<?x2xf32>
  return %16, %8 : tensor<?x2xf32>, tensor<?x2xi64>
}

// A softmax over all logits, of which the chosen ones are taken.

// CHECK-LABEL: func.func @softmax_of_all
// CHECK: %[[W:.+]], %{{.+}} = moe.route softmax(%{{.+}}) {top_k = 2 : i64}
// CHECK: return %[[W]]
func.func @softmax_of_all(%arg0: tensor<?x5xf32> {moe.dims = ["tokens"]}) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %c4 = arith.constant 4 : index
  %c0_i64 = arith.constant 0 : i64
  %cst = arith.constant dense<0xFF800000> : tensor<f32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %cst_1 = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x5xf32>
  %0 = tensor.empty(%dim) : tensor<?xf32>
  %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
  %reduced = linalg.reduce ins(%arg0 : tensor<?x5xf32>) outs(%1 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.maximumf %in, %init : f32
      linalg.yield %17 : f32
    }
  %2 = tensor.empty(%dim) : tensor<?x5xf32>
  %broadcasted = linalg.broadcast ins(%reduced : tensor<?xf32>) outs(%2 : tensor<?x5xf32>) dimensions = [1] 
  %3 = arith.subf %arg0, %broadcasted : tensor<?x5xf32>
  %4 = math.exp %3 : tensor<?x5xf32>
  %5 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
  %reduced_2 = linalg.reduce ins(%4 : tensor<?x5xf32>) outs(%5 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.addf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_3 = linalg.broadcast ins(%reduced_2 : tensor<?xf32>) outs(%2 : tensor<?x5xf32>) dimensions = [1] 
  %6 = arith.divf %4, %broadcasted_3 : tensor<?x5xf32>
  %broadcasted_4 = linalg.broadcast ins(%cst : tensor<f32>) outs(%2 : tensor<?x5xf32>) dimensions = [0, 1] 
  %7 = arith.cmpf uno, %arg0, %arg0 : tensor<?x5xf32>
  %8 = arith.select %7, %broadcasted_4, %arg0 : tensor<?x5xi1>, tensor<?x5xf32>
  %9 = tensor.empty(%dim) : tensor<?x5xi64>
  %10 = linalg.fill ins(%c0_i64 : i64) outs(%9 : tensor<?x5xi64>) -> tensor<?x5xi64>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8, %8 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%10 : tensor<?x5xi64>) {
  ^bb0(%in: f32, %in_5: f32, %out: i64):
    %17 = arith.cmpf ogt, %in_5, %in : f32
    %18 = arith.cmpf oeq, %in_5, %in : f32
    %19 = linalg.index 1 : index
    %20 = linalg.index 2 : index
    %21 = arith.cmpi ult, %20, %19 : index
    %22 = arith.andi %18, %21 : i1
    %23 = arith.ori %17, %22 : i1
    %24 = arith.extui %23 : i1 to i64
    %25 = arith.addi %out, %24 : i64
    linalg.yield %25 : i64
  } -> tensor<?x5xi64>
  %12 = tensor.empty(%dim) : tensor<?x2xi64>
  %13 = linalg.fill ins(%c0_i64 : i64) outs(%12 : tensor<?x2xi64>) -> tensor<?x2xi64>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%11 : tensor<?x5xi64>) outs(%13 : tensor<?x2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %17 = linalg.index 1 : index
    %18 = linalg.index 2 : index
    %19 = arith.index_cast %17 : index to i64
    %20 = arith.index_cast %18 : index to i64
    %21 = arith.cmpi eq, %in, %19 : i64
    %22 = arith.select %21, %20, %c0_i64 : i64
    %23 = arith.addi %out, %22 : i64
    linalg.yield %23 : i64
  } -> tensor<?x2xi64>
  %15 = tensor.empty(%dim) : tensor<?x2xf32>
  %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<?x2xi64>) outs(%15 : tensor<?x2xf32>) {
  ^bb0(%in: i64, %out: f32):
    %17 = linalg.index 0 : index
    %18 = arith.index_cast %in : i64 to index
    %19 = arith.maxsi %18, %c0 : index
    %20 = arith.minsi %19, %c4 : index
    %extracted = tensor.extract %6[%17, %20] : tensor<?x5xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x2xf32>
  return %16, %14 : tensor<?x2xf32>, tensor<?x2xi64>
}

// The same, divided by their sum.

// CHECK-LABEL: func.func @renormalized
// CHECK: %[[W:.+]], %{{.+}} = moe.route softmax(%{{.+}}) {renormalize, top_k = 2 : i64}
// CHECK: return %[[W]]
func.func @renormalized(%arg0: tensor<?x5xf32> {moe.dims = ["tokens"]}) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %c4 = arith.constant 4 : index
  %c0_i64 = arith.constant 0 : i64
  %cst = arith.constant dense<0xFF800000> : tensor<f32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %cst_1 = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x5xf32>
  %0 = tensor.empty(%dim) : tensor<?xf32>
  %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
  %reduced = linalg.reduce ins(%arg0 : tensor<?x5xf32>) outs(%1 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %18 = arith.maximumf %in, %init : f32
      linalg.yield %18 : f32
    }
  %2 = tensor.empty(%dim) : tensor<?x5xf32>
  %broadcasted = linalg.broadcast ins(%reduced : tensor<?xf32>) outs(%2 : tensor<?x5xf32>) dimensions = [1] 
  %3 = arith.subf %arg0, %broadcasted : tensor<?x5xf32>
  %4 = math.exp %3 : tensor<?x5xf32>
  %5 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
  %reduced_2 = linalg.reduce ins(%4 : tensor<?x5xf32>) outs(%5 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %18 = arith.addf %in, %init : f32
      linalg.yield %18 : f32
    }
  %broadcasted_3 = linalg.broadcast ins(%reduced_2 : tensor<?xf32>) outs(%2 : tensor<?x5xf32>) dimensions = [1] 
  %6 = arith.divf %4, %broadcasted_3 : tensor<?x5xf32>
  %broadcasted_4 = linalg.broadcast ins(%cst : tensor<f32>) outs(%2 : tensor<?x5xf32>) dimensions = [0, 1] 
  %7 = arith.cmpf uno, %arg0, %arg0 : tensor<?x5xf32>
  %8 = arith.select %7, %broadcasted_4, %arg0 : tensor<?x5xi1>, tensor<?x5xf32>
  %9 = tensor.empty(%dim) : tensor<?x5xi64>
  %10 = linalg.fill ins(%c0_i64 : i64) outs(%9 : tensor<?x5xi64>) -> tensor<?x5xi64>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8, %8 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%10 : tensor<?x5xi64>) {
  ^bb0(%in: f32, %in_7: f32, %out: i64):
    %18 = arith.cmpf ogt, %in_7, %in : f32
    %19 = arith.cmpf oeq, %in_7, %in : f32
    %20 = linalg.index 1 : index
    %21 = linalg.index 2 : index
    %22 = arith.cmpi ult, %21, %20 : index
    %23 = arith.andi %19, %22 : i1
    %24 = arith.ori %18, %23 : i1
    %25 = arith.extui %24 : i1 to i64
    %26 = arith.addi %out, %25 : i64
    linalg.yield %26 : i64
  } -> tensor<?x5xi64>
  %12 = tensor.empty(%dim) : tensor<?x2xi64>
  %13 = linalg.fill ins(%c0_i64 : i64) outs(%12 : tensor<?x2xi64>) -> tensor<?x2xi64>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%11 : tensor<?x5xi64>) outs(%13 : tensor<?x2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %18 = linalg.index 1 : index
    %19 = linalg.index 2 : index
    %20 = arith.index_cast %18 : index to i64
    %21 = arith.index_cast %19 : index to i64
    %22 = arith.cmpi eq, %in, %20 : i64
    %23 = arith.select %22, %21, %c0_i64 : i64
    %24 = arith.addi %out, %23 : i64
    linalg.yield %24 : i64
  } -> tensor<?x2xi64>
  %15 = tensor.empty(%dim) : tensor<?x2xf32>
  %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<?x2xi64>) outs(%15 : tensor<?x2xf32>) {
  ^bb0(%in: i64, %out: f32):
    %18 = linalg.index 0 : index
    %19 = arith.index_cast %in : i64 to index
    %20 = arith.maxsi %19, %c0 : index
    %21 = arith.minsi %20, %c4 : index
    %extracted = tensor.extract %6[%18, %21] : tensor<?x5xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x2xf32>
  %reduced_5 = linalg.reduce ins(%16 : tensor<?x2xf32>) outs(%5 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %18 = arith.addf %in, %init : f32
      linalg.yield %18 : f32
    }
  %broadcasted_6 = linalg.broadcast ins(%reduced_5 : tensor<?xf32>) outs(%15 : tensor<?x2xf32>) dimensions = [1] 
  %17 = arith.divf %16, %broadcasted_6 : tensor<?x2xf32>
  return %17, %14 : tensor<?x2xf32>, tensor<?x2xi64>
}

// The smallest logits are no choice of experts.

// CHECK-LABEL: func.func @smallest
// CHECK-NOT: moe.route
// CHECK: return
func.func @smallest(%arg0: tensor<?x5xf32> {moe.dims = ["tokens"]}) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %c0_i64 = arith.constant 0 : i64
  %cst_1 = arith.constant dense<0x7F800000> : tensor<f32>
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x5xf32>
  %0 = tensor.empty(%dim) : tensor<?x5xf32>
  %broadcasted = linalg.broadcast ins(%cst_1 : tensor<f32>) outs(%0 : tensor<?x5xf32>) dimensions = [0, 1] 
  %1 = arith.cmpf uno, %arg0, %arg0 : tensor<?x5xf32>
  %2 = arith.select %1, %broadcasted, %arg0 : tensor<?x5xi1>, tensor<?x5xf32>
  %3 = tensor.empty(%dim) : tensor<?x5xi64>
  %4 = linalg.fill ins(%c0_i64 : i64) outs(%3 : tensor<?x5xi64>) -> tensor<?x5xi64>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%2, %2 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%4 : tensor<?x5xi64>) {
  ^bb0(%in: f32, %in_5: f32, %out: i64):
    %17 = arith.cmpf olt, %in_5, %in : f32
    %18 = arith.cmpf oeq, %in_5, %in : f32
    %19 = linalg.index 1 : index
    %20 = linalg.index 2 : index
    %21 = arith.cmpi ult, %20, %19 : index
    %22 = arith.andi %18, %21 : i1
    %23 = arith.ori %17, %22 : i1
    %24 = arith.extui %23 : i1 to i64
    %25 = arith.addi %out, %24 : i64
    linalg.yield %25 : i64
  } -> tensor<?x5xi64>
  %6 = tensor.empty(%dim) : tensor<?x2xi64>
  %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<?x2xi64>) -> tensor<?x2xi64>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%5 : tensor<?x5xi64>) outs(%7 : tensor<?x2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %17 = linalg.index 1 : index
    %18 = linalg.index 2 : index
    %19 = arith.index_cast %17 : index to i64
    %20 = arith.index_cast %18 : index to i64
    %21 = arith.cmpi eq, %in, %19 : i64
    %22 = arith.select %21, %20, %c0_i64 : i64
    %23 = arith.addi %out, %22 : i64
    linalg.yield %23 : i64
  } -> tensor<?x2xi64>
  %9 = tensor.empty(%dim) : tensor<?x2xf32>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<?x2xi64>) outs(%9 : tensor<?x2xf32>) {
  ^bb0(%in: i64, %out: f32):
    %17 = linalg.index 0 : index
    %18 = arith.index_cast %in : i64 to index
    %extracted = tensor.extract %arg0[%17, %18] : tensor<?x5xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x2xf32>
  %11 = tensor.empty(%dim) : tensor<?xf32>
  %12 = linalg.fill ins(%cst_0 : f32) outs(%11 : tensor<?xf32>) -> tensor<?xf32>
  %reduced = linalg.reduce ins(%10 : tensor<?x2xf32>) outs(%12 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.maximumf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_2 = linalg.broadcast ins(%reduced : tensor<?xf32>) outs(%9 : tensor<?x2xf32>) dimensions = [1] 
  %13 = arith.subf %10, %broadcasted_2 : tensor<?x2xf32>
  %14 = math.exp %13 : tensor<?x2xf32>
  %15 = linalg.fill ins(%cst : f32) outs(%11 : tensor<?xf32>) -> tensor<?xf32>
  %reduced_3 = linalg.reduce ins(%14 : tensor<?x2xf32>) outs(%15 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.addf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_4 = linalg.broadcast ins(%reduced_3 : tensor<?xf32>) outs(%9 : tensor<?x2xf32>) dimensions = [1] 
  %16 = arith.divf %14, %broadcasted_4 : tensor<?x2xf32>
  return %16, %8 : tensor<?x2xf32>, tensor<?x2xi64>
}

// The weights are those of other logits.

// CHECK-LABEL: func.func @other_logits
// CHECK-NOT: moe.route
// CHECK: return
func.func @other_logits(%arg0: tensor<?x5xf32> {moe.dims = ["tokens"]}, %arg1: tensor<?x5xf32> {moe.dims = ["tokens"]}) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %c4 = arith.constant 4 : index
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %c0_i64 = arith.constant 0 : i64
  %cst_1 = arith.constant dense<0xFF800000> : tensor<f32>
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x5xf32>
  %0 = tensor.empty(%dim) : tensor<?x5xf32>
  %broadcasted = linalg.broadcast ins(%cst_1 : tensor<f32>) outs(%0 : tensor<?x5xf32>) dimensions = [0, 1] 
  %1 = arith.cmpf uno, %arg0, %arg0 : tensor<?x5xf32>
  %2 = arith.select %1, %broadcasted, %arg0 : tensor<?x5xi1>, tensor<?x5xf32>
  %3 = tensor.empty(%dim) : tensor<?x5xi64>
  %4 = linalg.fill ins(%c0_i64 : i64) outs(%3 : tensor<?x5xi64>) -> tensor<?x5xi64>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%2, %2 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%4 : tensor<?x5xi64>) {
  ^bb0(%in: f32, %in_5: f32, %out: i64):
    %17 = arith.cmpf ogt, %in_5, %in : f32
    %18 = arith.cmpf oeq, %in_5, %in : f32
    %19 = linalg.index 1 : index
    %20 = linalg.index 2 : index
    %21 = arith.cmpi ult, %20, %19 : index
    %22 = arith.andi %18, %21 : i1
    %23 = arith.ori %17, %22 : i1
    %24 = arith.extui %23 : i1 to i64
    %25 = arith.addi %out, %24 : i64
    linalg.yield %25 : i64
  } -> tensor<?x5xi64>
  %6 = tensor.empty(%dim) : tensor<?x2xi64>
  %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<?x2xi64>) -> tensor<?x2xi64>
  %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%5 : tensor<?x5xi64>) outs(%7 : tensor<?x2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %17 = linalg.index 1 : index
    %18 = linalg.index 2 : index
    %19 = arith.index_cast %17 : index to i64
    %20 = arith.index_cast %18 : index to i64
    %21 = arith.cmpi eq, %in, %19 : i64
    %22 = arith.select %21, %20, %c0_i64 : i64
    %23 = arith.addi %out, %22 : i64
    linalg.yield %23 : i64
  } -> tensor<?x2xi64>
  %9 = tensor.empty(%dim) : tensor<?x2xf32>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<?x2xi64>) outs(%9 : tensor<?x2xf32>) {
  ^bb0(%in: i64, %out: f32):
    %17 = linalg.index 0 : index
    %18 = arith.index_cast %in : i64 to index
    %19 = arith.maxsi %18, %c0 : index
    %20 = arith.minsi %19, %c4 : index
    %extracted = tensor.extract %arg1[%17, %20] : tensor<?x5xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x2xf32>
  %11 = tensor.empty(%dim) : tensor<?xf32>
  %12 = linalg.fill ins(%cst_0 : f32) outs(%11 : tensor<?xf32>) -> tensor<?xf32>
  %reduced = linalg.reduce ins(%10 : tensor<?x2xf32>) outs(%12 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.maximumf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_2 = linalg.broadcast ins(%reduced : tensor<?xf32>) outs(%9 : tensor<?x2xf32>) dimensions = [1] 
  %13 = arith.subf %10, %broadcasted_2 : tensor<?x2xf32>
  %14 = math.exp %13 : tensor<?x2xf32>
  %15 = linalg.fill ins(%cst : f32) outs(%11 : tensor<?xf32>) -> tensor<?xf32>
  %reduced_3 = linalg.reduce ins(%14 : tensor<?x2xf32>) outs(%15 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.addf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_4 = linalg.broadcast ins(%reduced_3 : tensor<?xf32>) outs(%9 : tensor<?x2xf32>) dimensions = [1] 
  %16 = arith.divf %14, %broadcasted_4 : tensor<?x2xf32>
  return %16, %8 : tensor<?x2xf32>, tensor<?x2xi64>
}

// The same with a softmax over all.

// CHECK-LABEL: func.func @other_scores
// CHECK-NOT: moe.route
// CHECK: return
func.func @other_scores(%arg0: tensor<?x5xf32> {moe.dims = ["tokens"]}, %arg1: tensor<?x5xf32> {moe.dims = ["tokens"]}) -> (tensor<?x2xf32>, tensor<?x2xi64>) {
  %c4 = arith.constant 4 : index
  %c0_i64 = arith.constant 0 : i64
  %cst = arith.constant dense<0xFF800000> : tensor<f32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %cst_1 = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %dim = tensor.dim %arg0, %c0 : tensor<?x5xf32>
  %0 = tensor.empty(%dim) : tensor<?xf32>
  %1 = linalg.fill ins(%cst_1 : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
  %reduced = linalg.reduce ins(%arg1 : tensor<?x5xf32>) outs(%1 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.maximumf %in, %init : f32
      linalg.yield %17 : f32
    }
  %2 = tensor.empty(%dim) : tensor<?x5xf32>
  %broadcasted = linalg.broadcast ins(%reduced : tensor<?xf32>) outs(%2 : tensor<?x5xf32>) dimensions = [1] 
  %3 = arith.subf %arg1, %broadcasted : tensor<?x5xf32>
  %4 = math.exp %3 : tensor<?x5xf32>
  %5 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
  %reduced_2 = linalg.reduce ins(%4 : tensor<?x5xf32>) outs(%5 : tensor<?xf32>) dimensions = [1] 
    (%in: f32, %init: f32) {
      %17 = arith.addf %in, %init : f32
      linalg.yield %17 : f32
    }
  %broadcasted_3 = linalg.broadcast ins(%reduced_2 : tensor<?xf32>) outs(%2 : tensor<?x5xf32>) dimensions = [1] 
  %6 = arith.divf %4, %broadcasted_3 : tensor<?x5xf32>
  %broadcasted_4 = linalg.broadcast ins(%cst : tensor<f32>) outs(%2 : tensor<?x5xf32>) dimensions = [0, 1] 
  %7 = arith.cmpf uno, %arg0, %arg0 : tensor<?x5xf32>
  %8 = arith.select %7, %broadcasted_4, %arg0 : tensor<?x5xi1>, tensor<?x5xf32>
  %9 = tensor.empty(%dim) : tensor<?x5xi64>
  %10 = linalg.fill ins(%c0_i64 : i64) outs(%9 : tensor<?x5xi64>) -> tensor<?x5xi64>
  %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8, %8 : tensor<?x5xf32>, tensor<?x5xf32>) outs(%10 : tensor<?x5xi64>) {
  ^bb0(%in: f32, %in_5: f32, %out: i64):
    %17 = arith.cmpf ogt, %in_5, %in : f32
    %18 = arith.cmpf oeq, %in_5, %in : f32
    %19 = linalg.index 1 : index
    %20 = linalg.index 2 : index
    %21 = arith.cmpi ult, %20, %19 : index
    %22 = arith.andi %18, %21 : i1
    %23 = arith.ori %17, %22 : i1
    %24 = arith.extui %23 : i1 to i64
    %25 = arith.addi %out, %24 : i64
    linalg.yield %25 : i64
  } -> tensor<?x5xi64>
  %12 = tensor.empty(%dim) : tensor<?x2xi64>
  %13 = linalg.fill ins(%c0_i64 : i64) outs(%12 : tensor<?x2xi64>) -> tensor<?x2xi64>
  %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%11 : tensor<?x5xi64>) outs(%13 : tensor<?x2xi64>) {
  ^bb0(%in: i64, %out: i64):
    %17 = linalg.index 1 : index
    %18 = linalg.index 2 : index
    %19 = arith.index_cast %17 : index to i64
    %20 = arith.index_cast %18 : index to i64
    %21 = arith.cmpi eq, %in, %19 : i64
    %22 = arith.select %21, %20, %c0_i64 : i64
    %23 = arith.addi %out, %22 : i64
    linalg.yield %23 : i64
  } -> tensor<?x2xi64>
  %15 = tensor.empty(%dim) : tensor<?x2xf32>
  %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<?x2xi64>) outs(%15 : tensor<?x2xf32>) {
  ^bb0(%in: i64, %out: f32):
    %17 = linalg.index 0 : index
    %18 = arith.index_cast %in : i64 to index
    %19 = arith.maxsi %18, %c0 : index
    %20 = arith.minsi %19, %c4 : index
    %extracted = tensor.extract %6[%17, %20] : tensor<?x5xf32>
    linalg.yield %extracted : f32
  } -> tensor<?x2xf32>
  return %16, %14 : tensor<?x2xf32>, tensor<?x2xi64>
}
