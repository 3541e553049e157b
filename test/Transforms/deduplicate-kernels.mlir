// RUN: %moec-opt %s --moec-form-program --moec-deduplicate-kernels | FileCheck %s

module attributes {moec.target = "cpu:x86-64-v3"} {
  // CHECK: func.func private @main_0_arith.addf
  // CHECK-NOT: @main_1_arith.addf(
  // CHECK: func.func private @main_2_arith.mulf
  // CHECK: plan.launch @main_0_arith.addf
  // CHECK: plan.launch @main_0_arith.addf
  // CHECK: plan.launch @main_2_arith.mulf
  func.func @main(%x: tensor<?x32xf32> {moe.dims = ["n"]}) -> tensor<?x32xf32> attributes {moe.entry} {
    %a = arith.addf %x, %x : tensor<?x32xf32>
    %b = arith.addf %a, %a : tensor<?x32xf32>
    %c = arith.mulf %b, %b : tensor<?x32xf32>
    return %c : tensor<?x32xf32>
  }
}
