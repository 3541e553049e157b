// RUN: moec-interpret %s | FileCheck %s
// RUN: not moec-interpret %s --entry=nothing 2>&1 | FileCheck %s --check-prefix=NO-ENTRY
// RUN: not moec-interpret %s --entry=double 2>&1 | FileCheck %s --check-prefix=NO-INPUT
// RUN: not moec-interpret %s --check 2>&1 | FileCheck %s --check-prefix=NO-CHECKS
// RUN: moec-interpret %s --entry=numbers --output=0=%t.npy
// RUN: moec-interpret %s --entry=double --input=0=%t.npy | FileCheck %s --check-prefix=DOUBLE
// RUN: not moec-interpret %s --entry=halve --input=0=%t.npy 2>&1 | FileCheck %s --check-prefix=WRONG-TYPE

// NO-ENTRY: error: the file has no function 'nothing'
// NO-INPUT: argument 0 of 'double' needs --input=0=FILE.npy
// NO-CHECKS: 0 checks, 0 failures
// WRONG-TYPE: {{.*}}.npy: error: expected elements of i64, found <f4

// A value whose type has a layout is printed as it lies in memory.
// CHECK: result 0: f32 [2, 3, 1, 2]
// CHECK-NEXT:   [1.0e+00, 4.0e+00]
// CHECK-NEXT:   [2.0e+00, 5.0e+00]
// CHECK-NEXT:   [3.0e+00, 6.0e+00]
// CHECK-NEXT:   [7.0e+00, 0.0e+00]
// CHECK-NEXT:   [8.0e+00, 0.0e+00]
// CHECK-NEXT:   [9.0e+00, 0.0e+00]
// CHECK-NEXT: result 1: f32 [2, 1, 2, 2, 2]
// CHECK-NEXT:   [1.0e+00, 2.0e+00]
// CHECK-NEXT:   [4.0e+00, 5.0e+00]
// CHECK-NEXT:   [3.0e+00, 0.0e+00]
// CHECK-NEXT:   [6.0e+00, 0.0e+00]
// CHECK-NEXT:   [7.0e+00, 8.0e+00]
// CHECK-NEXT:   [0.0e+00, 0.0e+00]
// CHECK-NEXT:   [9.0e+00, 0.0e+00]
// CHECK-NEXT:   [0.0e+00, 0.0e+00]
// CHECK-NEXT: result 2: f32 [3, 3]
// CHECK-NEXT:   [1.0e+00, 2.0e+00, 3.0e+00]
// CHECK: result 3: i8 []
// CHECK-NEXT:   [-5]
// CHECK-NEXT: result 4: index 3
// CHECK-NEXT: result 5: bf16 [2]
// CHECK-NEXT:   [1.00097656e-01, nan]
func.func @main() -> (tensor<3x3xf32, #moe.layout<tile = [2, 1], order = [1, 0], swizzle = none>>,
                      tensor<3x3xf32, #moe.layout<tile = [2, 4], order = [0, 1], swizzle = pairs>>,
                      tensor<3x3xf32>, tensor<i8>, index, tensor<2xbf16>) {
  %x = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]> : tensor<3x3xf32>
  %0 = moe.relayout %x : tensor<3x3xf32> -> tensor<3x3xf32, #moe.layout<tile = [2, 1], order = [1, 0], swizzle = none>>
  %1 = moe.relayout %0 : tensor<3x3xf32, #moe.layout<tile = [2, 1], order = [1, 0], swizzle = none>> -> tensor<3x3xf32, #moe.layout<tile = [2, 4], order = [0, 1], swizzle = pairs>>
  %2 = moe.relayout %1 : tensor<3x3xf32, #moe.layout<tile = [2, 4], order = [0, 1], swizzle = pairs>> -> tensor<3x3xf32>
  %3 = arith.constant dense<-5> : tensor<i8>
  %4 = arith.constant 3 : index
  %5 = arith.constant dense<[0.1, 0x7FC0]> : tensor<2xbf16>
  return %0, %1, %2, %3, %4, %5 : tensor<3x3xf32, #moe.layout<tile = [2, 1], order = [1, 0], swizzle = none>>,
      tensor<3x3xf32, #moe.layout<tile = [2, 4], order = [0, 1], swizzle = pairs>>, tensor<3x3xf32>, tensor<i8>, index, tensor<2xbf16>
}

func.func @numbers() -> tensor<2xf32> {
  %0 = arith.constant dense<[1.5, -2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// DOUBLE: result 0: f32 [2]
// DOUBLE-NEXT:   [3.0e+00, -4.0e+00]
func.func @double(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @halve(%x: tensor<?xi64>) -> tensor<?xi64> {
  return %x : tensor<?xi64>
}
