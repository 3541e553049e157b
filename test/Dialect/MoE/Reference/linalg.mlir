// RUN: moec-interpret %s --check

func.func @named() -> (tensor<2x2xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<2x3xf32>) {
  %a = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = arith.constant dense<[[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]> : tensor<3x2xf32>
  %init = arith.constant dense<10.0> : tensor<2x2xf32>
  %r0 = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%init : tensor<2x2xf32>) -> tensor<2x2xf32>
  %five = arith.constant 5.0 : f32
  %e0 = tensor.empty() : tensor<2x3xf32>
  %r1 = linalg.fill ins(%five : f32) outs(%e0 : tensor<2x3xf32>) -> tensor<2x3xf32>
  %e1 = tensor.empty() : tensor<3x2xf32>
  %r2 = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e1 : tensor<3x2xf32>) permutation = [1, 0]
  %zero = arith.constant dense<0.0> : tensor<2xf32>
  %r3 = linalg.reduce { arith.maximumf } ins(%a : tensor<2x3xf32>) outs(%zero : tensor<2xf32>) dimensions = [1]
  %r4 = linalg.broadcast ins(%r3 : tensor<2xf32>) outs(%e0 : tensor<2x3xf32>) dimensions = [1]
  return %r0, %r1, %r2, %r3, %r4 : tensor<2x2xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<2x3xf32>
}
func.func @named_expected() -> (tensor<2x2xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<2x3xf32>) {
  %r0 = arith.constant dense<[[17.0, 18.0], [26.0, 27.0]]> : tensor<2x2xf32>
  %r1 = arith.constant dense<5.0> : tensor<2x3xf32>
  %r2 = arith.constant dense<[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]> : tensor<3x2xf32>
  %r3 = arith.constant dense<[3.0, 6.0]> : tensor<2xf32>
  %r4 = arith.constant dense<[[3.0, 3.0, 3.0], [6.0, 6.0, 6.0]]> : tensor<2x3xf32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<2x2xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<2x3xf32>
}

func.func @map_and_batch() -> (tensor<2xf32>, tensor<2x1x1xf32>) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %r0 = linalg.map { arith.addf } ins(%a, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>)
  %x = arith.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %y = arith.constant dense<[[[1.0], [1.0]], [[2.0], [0.5]]]> : tensor<2x2x1xf32>
  %zero = arith.constant dense<0.0> : tensor<2x1x1xf32>
  %r1 = linalg.batch_matmul ins(%x, %y : tensor<2x1x2xf32>, tensor<2x2x1xf32>) outs(%zero : tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  return %r0, %r1 : tensor<2xf32>, tensor<2x1x1xf32>
}
func.func @map_and_batch_expected() -> (tensor<2xf32>, tensor<2x1x1xf32>) {
  %r0 = arith.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %r1 = arith.constant dense<[[[3.0]], [[8.0]]]> : tensor<2x1x1xf32>
  return %r0, %r1 : tensor<2xf32>, tensor<2x1x1xf32>
}

// Sums are wide and rounded once: with f32 or bf16 sums the ones would be lost.
func.func @sums_are_wide() -> (tensor<f32>, tensor<1x1xbf16>, tensor<f32>) {
  %a = arith.constant dense<[1.0e8, 1.0, 1.0, 1.0, -1.0e8]> : tensor<5xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %r0 = linalg.reduce { arith.addf } ins(%a : tensor<5xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  %x = arith.constant dense<[[1024.0, 1.0, -1024.0]]> : tensor<1x3xbf16>
  %y = arith.constant dense<1.0> : tensor<3x1xbf16>
  %z = arith.constant dense<0.0> : tensor<1x1xbf16>
  %r1 = linalg.matmul ins(%x, %y : tensor<1x3xbf16>, tensor<3x1xbf16>) outs(%z : tensor<1x1xbf16>) -> tensor<1x1xbf16>
  // What is not the sum is rounded as the body says.
  %r2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%a : tensor<5xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %0 = arith.addf %in, %one : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %r0, %r1, %r2 : tensor<f32>, tensor<1x1xbf16>, tensor<f32>
}
func.func @sums_are_wide_expected() -> (tensor<f32>, tensor<1x1xbf16>, tensor<f32>) {
  %r0 = arith.constant dense<3.0> : tensor<f32>
  %r1 = arith.constant dense<1.0> : tensor<1x1xbf16>
  %r2 = arith.constant dense<6.0> : tensor<f32>
  return %r0, %r1, %r2 : tensor<f32>, tensor<1x1xbf16>, tensor<f32>
}

// Mixed precision products, as importers write them.
func.func @widened_product() -> tensor<1x1xf32> {
  %a = arith.constant dense<[[1.0, 3.0]]> : tensor<1x2xbf16>
  %b = arith.constant dense<[[0.5, 0.25]]> : tensor<1x2xbf16>
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %r0 = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x2xbf16>, tensor<1x2xbf16>) outs(%zero : tensor<1x1xf32>) {
  ^bb0(%x: bf16, %y: bf16, %out: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.extf %y : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %2, %out : f32
    linalg.yield %3 : f32
  } -> tensor<1x1xf32>
  return %r0 : tensor<1x1xf32>
}
func.func @widened_product_expected() -> tensor<1x1xf32> {
  %r0 = arith.constant dense<1.25> : tensor<1x1xf32>
  return %r0 : tensor<1x1xf32>
}

// Indices, constants, values from outside, extraction, several results, maps that are no plain dimensions.
func.func @generic() -> (tensor<3xi32>, tensor<3xf32>, tensor<4xf32>) {
  %table = arith.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>
  %ids = arith.constant dense<[2, 0, 1]> : tensor<3xi32>
  %e0 = tensor.empty() : tensor<3xi32>
  %e1 = tensor.empty() : tensor<3xf32>
  %outside = arith.constant 100 : i32
  %r0, %r1 = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<3xi32>) outs(%e0, %e1 : tensor<3xi32>, tensor<3xf32>) {
  ^bb0(%id: i32, %out0: i32, %out1: f32):
    %i = linalg.index 0 : index
    %0 = arith.index_cast %i : index to i32
    %1 = arith.addi %0, %outside : i32
    %2 = arith.index_cast %id : i32 to index
    %3 = tensor.extract %table[%2] : tensor<3xf32>
    linalg.yield %1, %3 : i32, f32
  } -> (tensor<3xi32>, tensor<3xf32>)
  %x = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %w = arith.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %r2 = linalg.conv_1d ins(%x, %w : tensor<5xf32>, tensor<2xf32>) outs(%zero : tensor<4xf32>) -> tensor<4xf32>
  return %r0, %r1, %r2 : tensor<3xi32>, tensor<3xf32>, tensor<4xf32>
}
func.func @generic_expected() -> (tensor<3xi32>, tensor<3xf32>, tensor<4xf32>) {
  %r0 = arith.constant dense<[100, 101, 102]> : tensor<3xi32>
  %r1 = arith.constant dense<[30.0, 10.0, 20.0]> : tensor<3xf32>
  %r2 = arith.constant dense<-1.0> : tensor<4xf32>
  return %r0, %r1, %r2 : tensor<3xi32>, tensor<3xf32>, tensor<4xf32>
}

// A map with a division, and control flow in the body.
func.func @unusual() -> (tensor<4xf32>, tensor<3xi32>) {
  %x = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 floordiv 2)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  %ids = arith.constant dense<[5, -1, 7]> : tensor<3xi32>
  %e1 = tensor.empty() : tensor<3xi32>
  %r1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<3xi32>) outs(%e1 : tensor<3xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %i = linalg.index 0 : index
    %negative = arith.cmpi slt, %in, %zero : i32
    %0 = scf.if %negative -> (i32) {
      %1 = arith.index_cast %i : index to i32
      scf.yield %1 : i32
    } else {
      scf.yield %in : i32
    }
    linalg.yield %0 : i32
  } -> tensor<3xi32>
  return %r0, %r1 : tensor<4xf32>, tensor<3xi32>
}
func.func @unusual_expected() -> (tensor<4xf32>, tensor<3xi32>) {
  %r0 = arith.constant dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>
  %r1 = arith.constant dense<[5, 1, 7]> : tensor<3xi32>
  return %r0, %r1 : tensor<4xf32>, tensor<3xi32>
}

// Nothing to do leaves the output as it is.
func.func @empty() -> (tensor<2x2xf32>, tensor<0xf32>) {
  %a = arith.constant dense<> : tensor<2x0xf32>
  %b = arith.constant dense<> : tensor<0x2xf32>
  %init = arith.constant dense<3.0> : tensor<2x2xf32>
  %r0 = linalg.matmul ins(%a, %b : tensor<2x0xf32>, tensor<0x2xf32>) outs(%init : tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = arith.constant dense<> : tensor<0xf32>
  %r1 = linalg.map { math.exp } ins(%e : tensor<0xf32>) outs(%e : tensor<0xf32>)
  return %r0, %r1 : tensor<2x2xf32>, tensor<0xf32>
}
func.func @empty_expected() -> (tensor<2x2xf32>, tensor<0xf32>) {
  %r0 = arith.constant dense<3.0> : tensor<2x2xf32>
  %r1 = arith.constant dense<> : tensor<0xf32>
  return %r0, %r1 : tensor<2x2xf32>, tensor<0xf32>
}
