// RUN: moec-interpret %s --check

// Values are exact: the ops round once, as these constants do.

//===--- arith ---===//

func.func @integers() -> tensor<12xi8> {
  %a = arith.constant -7 : i8
  %b = arith.constant 3 : i8
  %big = arith.constant 127 : i8
  %zero = arith.constant 0 : i8
  %0 = arith.addi %big, %b : i8
  %1 = arith.divsi %a, %b : i8
  %2 = arith.remsi %a, %b : i8
  %3 = arith.floordivsi %a, %b : i8
  %4 = arith.ceildivsi %a, %b : i8
  %5 = arith.divui %a, %b : i8
  %6 = arith.shrsi %a, %b : i8
  %7 = arith.shrui %a, %b : i8
  %8 = arith.shli %a, %b : i8
  %9 = arith.maxui %a, %b : i8
  %10 = arith.minsi %a, %b : i8
  %11 = arith.divsi %a, %zero : i8
  %r0 = tensor.from_elements %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11 : tensor<12xi8>
  return %r0 : tensor<12xi8>
}
func.func @integers_expected() -> tensor<12xi8> {
  %r0 = arith.constant dense<[-126, -2, -1, -3, -2, 83, -1, 31, -56, -7, -7, 0]> : tensor<12xi8>
  return %r0 : tensor<12xi8>
}

func.func @comparisons() -> tensor<8xi1> {
  %a = arith.constant -1 : i32
  %b = arith.constant 1 : i32
  %nan = arith.constant 0x7FC00000 : f32
  %one = arith.constant 1.0 : f32
  %0 = arith.cmpi slt, %a, %b : i32
  %1 = arith.cmpi ult, %a, %b : i32
  %2 = arith.cmpi ne, %a, %b : i32
  %3 = arith.cmpf oeq, %nan, %nan : f32
  %4 = arith.cmpf une, %nan, %nan : f32
  %5 = arith.cmpf ult, %nan, %one : f32
  %6 = arith.cmpf ord, %nan, %one : f32
  %7 = arith.cmpf oge, %one, %one : f32
  %r0 = tensor.from_elements %0, %1, %2, %3, %4, %5, %6, %7 : tensor<8xi1>
  return %r0 : tensor<8xi1>
}
func.func @comparisons_expected() -> tensor<8xi1> {
  %r0 = arith.constant dense<[true, false, true, false, true, true, false, true]> : tensor<8xi1>
  return %r0 : tensor<8xi1>
}

// 2^24 + 1 is no f32; 1 + 2^-8 lies halfway between two bf16.
func.func @rounding() -> (tensor<4xf32>, tensor<3xbf16>, tensor<2xf16>) {
  %big = arith.constant 16777216.0 : f32
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %0 = arith.addf %big, %one : f32
  %1 = arith.addf %big, %three : f32
  %2 = arith.divf %one, %three : f32
  %3 = math.fma %one, %one, %big : f32
  %r0 = tensor.from_elements %0, %1, %2, %3 : tensor<4xf32>
  %x = arith.constant 1.0 : bf16
  %half = arith.constant 0.00390625 : bf16
  %y = arith.constant 1.0078125 : bf16
  %4 = arith.addf %x, %half : bf16
  %5 = arith.addf %y, %half : bf16
  // Rounding to f32 first would make this a tie and give 1.
  %w = arith.constant 1.003906250000001 : f64
  %6 = arith.truncf %w : f64 to bf16
  %r1 = tensor.from_elements %4, %5, %6 : tensor<3xbf16>
  %v = arith.constant 65520.0 : f32
  %7 = arith.truncf %v : f32 to f16
  %u = arith.constant 3.0e-8 : f32
  %8 = arith.truncf %u : f32 to f16
  %r2 = tensor.from_elements %7, %8 : tensor<2xf16>
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<3xbf16>, tensor<2xf16>
}
func.func @rounding_expected() -> (tensor<4xf32>, tensor<3xbf16>, tensor<2xf16>) {
  %r0 = arith.constant dense<[1.6777216e+07, 1.677722e+07, 0x3EAAAAAB, 1.6777216e+07]> : tensor<4xf32>
  %r1 = arith.constant dense<[1.0, 1.015625, 1.0078125]> : tensor<3xbf16>
  %r2 = arith.constant dense<[0x7C00, 0x0001]> : tensor<2xf16>
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<3xbf16>, tensor<2xf16>
}

func.func @extremes() -> tensor<6xf32> {
  %nan = arith.constant 0x7FC00000 : f32
  %one = arith.constant 1.0 : f32
  %minus_zero = arith.constant -0.0 : f32
  %zero = arith.constant 0.0 : f32
  %0 = arith.maximumf %nan, %one : f32
  %1 = arith.maxnumf %nan, %one : f32
  %2 = arith.minimumf %one, %nan : f32
  %3 = arith.minnumf %one, %nan : f32
  %4 = arith.maximumf %minus_zero, %zero : f32
  %5 = arith.minimumf %zero, %minus_zero : f32
  %6 = arith.divf %one, %4 : f32
  %7 = arith.divf %one, %5 : f32
  %r0 = tensor.from_elements %0, %1, %2, %3, %6, %7 : tensor<6xf32>
  return %r0 : tensor<6xf32>
}
func.func @extremes_expected() -> tensor<6xf32> {
  %r0 = arith.constant dense<[0x7FC00000, 1.0, 0x7FC00000, 1.0, 0x7F800000, 0xFF800000]> : tensor<6xf32>
  return %r0 : tensor<6xf32>
}

func.func @conversions() -> (tensor<8xi32>, tensor<4xf32>) {
  %true = arith.constant true
  %m = arith.constant -1 : i8
  %f = arith.constant -3.7 : f32
  %huge = arith.constant 1.0e20 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %one = arith.constant 1.0 : f32
  %0 = arith.extsi %true : i1 to i32
  %1 = arith.extui %true : i1 to i32
  %2 = arith.extsi %m : i8 to i32
  %3 = arith.extui %m : i8 to i32
  %4 = arith.fptosi %f : f32 to i32
  %5 = arith.fptosi %huge : f32 to i32
  %6 = arith.fptosi %nan : f32 to i32
  %7 = arith.bitcast %one : f32 to i32
  %r0 = tensor.from_elements %0, %1, %2, %3, %4, %5, %6, %7 : tensor<8xi32>
  %8 = arith.sitofp %m : i8 to f32
  %9 = arith.uitofp %m : i8 to f32
  %10 = arith.uitofp %true : i1 to f32
  %11 = arith.bitcast %7 : i32 to f32
  %r1 = tensor.from_elements %8, %9, %10, %11 : tensor<4xf32>
  return %r0, %r1 : tensor<8xi32>, tensor<4xf32>
}
func.func @conversions_expected() -> (tensor<8xi32>, tensor<4xf32>) {
  %r0 = arith.constant dense<[-1, 1, -1, 255, -3, 2147483647, 0, 1065353216]> : tensor<8xi32>
  %r1 = arith.constant dense<[-1.0, 255.0, 1.0, 1.0]> : tensor<4xf32>
  return %r0, %r1 : tensor<8xi32>, tensor<4xf32>
}

func.func @elementwise_on_tensors() -> tensor<2x2xf32> {
  %a = arith.constant dense<[[1.0, -2.0], [3.0, -4.0]]> : tensor<2x2xf32>
  %zero = arith.constant dense<0.0> : tensor<2x2xf32>
  %0 = arith.cmpf olt, %a, %zero : tensor<2x2xf32>
  %1 = math.absf %a : tensor<2x2xf32>
  %2 = math.sqrt %1 : tensor<2x2xf32>
  %r0 = arith.select %0, %2, %a : tensor<2x2xi1>, tensor<2x2xf32>
  return %r0 : tensor<2x2xf32>
}
func.func @elementwise_on_tensors_expected() -> tensor<2x2xf32> {
  %r0 = arith.constant dense<[[1.0, 0x3FB504F3], [3.0, 2.0]]> : tensor<2x2xf32>
  return %r0 : tensor<2x2xf32>
}

func.func @math_functions() -> (tensor<9xf32>, tensor<4xi32>) {
  %half = arith.constant 0.5 : f32
  %minus = arith.constant -2.5 : f32
  %four = arith.constant 4.0 : f32
  %0 = math.roundeven %half : f32
  %1 = math.round %half : f32
  %2 = math.roundeven %minus : f32
  %3 = math.floor %minus : f32
  %4 = math.ceil %minus : f32
  %5 = math.rsqrt %four : f32
  %6 = math.exp2 %four : f32
  %7 = math.powf %minus, %four : f32
  %8 = math.copysign %four, %minus : f32
  %r0 = tensor.from_elements %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<9xf32>
  %i = arith.constant 40 : i32
  %three = arith.constant -3 : i32
  %9 = math.ctpop %i : i32
  %10 = math.ctlz %i : i32
  %11 = math.cttz %i : i32
  %12 = math.absi %three : i32
  %r1 = tensor.from_elements %9, %10, %11, %12 : tensor<4xi32>
  return %r0, %r1 : tensor<9xf32>, tensor<4xi32>
}
func.func @math_functions_expected() -> (tensor<9xf32>, tensor<4xi32>) {
  %r0 = arith.constant dense<[0.0, 1.0, -2.0, -3.0, -2.0, 0.5, 16.0, 39.0625, -4.0]> : tensor<9xf32>
  %r1 = arith.constant dense<[2, 26, 3, 3]> : tensor<4xi32>
  return %r0, %r1 : tensor<9xf32>, tensor<4xi32>
}

//===--- scf, func, affine ---===//

func.func @control_flow() -> tensor<3xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %zero) -> (i32) {
    %n = arith.index_cast %i : index to i32
    %odd = arith.andi %n, %one : i32
    %is_odd = arith.cmpi eq, %odd, %one : i32
    %next = scf.if %is_odd -> (i32) {
      %0 = arith.addi %s, %n : i32
      scf.yield %0 : i32
    } else {
      scf.yield %s : i32
    }
    scf.yield %next : i32
  }
  %limit = arith.constant 100 : i32
  %doubled = scf.while (%x = %one) : (i32) -> i32 {
    %more = arith.cmpi slt, %x, %limit : i32
    scf.condition(%more) %x : i32
  } do {
  ^bb0(%x: i32):
    %0 = func.call @double(%x) : (i32) -> i32
    scf.yield %0 : i32
  }
  %a = affine.apply affine_map<(d0)[s0] -> (d0 floordiv s0 + d0 mod 3)>(%c5)[%c1]
  %b = affine.min affine_map<(d0) -> (d0 ceildiv 2, d0 - 1)>(%a)
  %c = affine.max affine_map<(d0) -> (d0 * 2, 3)>(%b)
  %d = arith.index_cast %c : index to i32
  %r0 = tensor.from_elements %sum, %doubled, %d : tensor<3xi32>
  return %r0 : tensor<3xi32>
}
func.func @control_flow_expected() -> tensor<3xi32> {
  %r0 = arith.constant dense<[4, 128, 8]> : tensor<3xi32>
  return %r0 : tensor<3xi32>
}
func.func private @double(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}

//===--- tensor ---===//

func.func @shapes() -> (tensor<3x2xf32>, tensor<6xf32>, tensor<3xi32>) {
  %x = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %c1 = arith.constant 1 : index
  %size = tensor.dim %x, %c1 : tensor<2x3xf32>
  %rank = tensor.rank %x : tensor<2x3xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %r0 = tensor.expand_shape %flat [[0, 1]] output_shape [3, 2] : tensor<6xf32> into tensor<3x2xf32>
  %shape = arith.constant dense<6> : tensor<1xi32>
  %r1 = tensor.reshape %x(%shape) : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<6xf32>
  %0 = arith.index_cast %size : index to i32
  %1 = arith.index_cast %rank : index to i32
  %r2 = tensor.from_elements %0, %1, %0 : tensor<3xi32>
  return %r0, %r1, %r2 : tensor<3x2xf32>, tensor<6xf32>, tensor<3xi32>
}
func.func @shapes_expected() -> (tensor<3x2xf32>, tensor<6xf32>, tensor<3xi32>) {
  %r0 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %r1 = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %r2 = arith.constant dense<[3, 2, 3]> : tensor<3xi32>
  return %r0, %r1, %r2 : tensor<3x2xf32>, tensor<6xf32>, tensor<3xi32>
}

func.func @slices() -> (tensor<2xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<4xf32>) {
  %x = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %c1 = arith.constant 1 : index
  %r0 = tensor.extract_slice %x[1, 0] [1, 2] [1, 2] : tensor<2x4xf32> to tensor<2xf32>
  %r1 = tensor.extract_slice %x[0, 1] [2, 2] [1, 2] : tensor<2x4xf32> to tensor<2x2xf32>
  %row = tensor.extract_slice %x[0, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<1x4xf32>
  %r2 = tensor.concat dim(0) %x, %row : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %r3 = tensor.insert_slice %r0 into %x[0, %c1] [1, 2] [1, 1] : tensor<2xf32> into tensor<2x4xf32>
  %zero = arith.constant 9.0 : f32
  %r4 = tensor.pad %r0 low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<2xf32> to tensor<4xf32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<2xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<4xf32>
}
func.func @slices_expected() -> (tensor<2xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<4xf32>) {
  %r0 = arith.constant dense<[5.0, 7.0]> : tensor<2xf32>
  %r1 = arith.constant dense<[[2.0, 4.0], [6.0, 8.0]]> : tensor<2x2xf32>
  %r2 = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]]> : tensor<3x4xf32>
  %r3 = arith.constant dense<[[1.0, 5.0, 7.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %r4 = arith.constant dense<[9.0, 5.0, 7.0, 9.0]> : tensor<4xf32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<2xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<4xf32>
}

func.func @gather_and_scatter() -> (tensor<2x2xf32>, tensor<2x1x2xf32>, tensor<3x2xf32>, tensor<2xf32>) {
  %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %i = arith.constant dense<[[2], [0]]> : tensor<2x1xi32>
  %both = arith.constant dense<[[2, 1], [0, 0]]> : tensor<2x2xi32>
  %r0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<3x2xf32>, tensor<2x1xi32>) -> tensor<2x2xf32>
  %r1 = tensor.gather %x[%i] gather_dims([0]) : (tensor<3x2xf32>, tensor<2x1xi32>) -> tensor<2x1x2xf32>
  %r2 = tensor.scatter %r1 into %x[%i] scatter_dims([0]) unique : (tensor<2x1x2xf32>, tensor<3x2xf32>, tensor<2x1xi32>) -> tensor<3x2xf32>
  %r3 = tensor.gather %x[%both] gather_dims([0, 1]) : (tensor<3x2xf32>, tensor<2x2xi32>) -> tensor<2xf32>
  return %r0, %r1, %r2, %r3 : tensor<2x2xf32>, tensor<2x1x2xf32>, tensor<3x2xf32>, tensor<2xf32>
}
func.func @gather_and_scatter_expected() -> (tensor<2x2xf32>, tensor<2x1x2xf32>, tensor<3x2xf32>, tensor<2xf32>) {
  %r0 = arith.constant dense<[[5.0, 6.0], [1.0, 2.0]]> : tensor<2x2xf32>
  %r1 = arith.constant dense<[[[5.0, 6.0]], [[1.0, 2.0]]]> : tensor<2x1x2xf32>
  %r2 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %r3 = arith.constant dense<[6.0, 1.0]> : tensor<2xf32>
  return %r0, %r1, %r2, %r3 : tensor<2x2xf32>, tensor<2x1x2xf32>, tensor<3x2xf32>, tensor<2xf32>
}

func.func @elements() -> (tensor<2x2xi32>, tensor<2xf32>, tensor<3xf32>) {
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.generate %c2 {
  ^bb0(%i: index, %j: index):
    %a = arith.shli %i, %c2 : index
    %b = arith.addi %a, %j : index
    %c = arith.index_cast %b : index to i32
    tensor.yield %c : i32
  } : tensor<?x2xi32>
  %r0 = tensor.cast %0 : tensor<?x2xi32> to tensor<2x2xi32>
  %v = arith.constant 7.0 : f32
  %splat = tensor.splat %v : tensor<2xf32>
  %w = arith.constant 8.0 : f32
  %r1 = tensor.insert %w into %splat[%c1] : tensor<2xf32>
  // What nobody wrote is NaN.
  %r2 = tensor.empty() : tensor<3xf32>
  return %r0, %r1, %r2 : tensor<2x2xi32>, tensor<2xf32>, tensor<3xf32>
}
func.func @elements_expected() -> (tensor<2x2xi32>, tensor<2xf32>, tensor<3xf32>) {
  %r0 = arith.constant dense<[[0, 1], [4, 5]]> : tensor<2x2xi32>
  %r1 = arith.constant dense<[7.0, 8.0]> : tensor<2xf32>
  %r2 = arith.constant dense<0x7FC00000> : tensor<3xf32>
  return %r0, %r1, %r2 : tensor<2x2xi32>, tensor<2xf32>, tensor<3xf32>
}

func.func @constant_in_a_resource() -> tensor<2xf32> {
  %r0 = arith.constant dense_resource<two_floats> : tensor<2xf32>
  return %r0 : tensor<2xf32>
}
func.func @constant_in_a_resource_expected() -> tensor<2xf32> {
  %r0 = arith.constant dense<[1.0, -2.0]> : tensor<2xf32>
  return %r0 : tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      two_floats: "0x040000000000803F000000C0"
    }
  }
#-}
