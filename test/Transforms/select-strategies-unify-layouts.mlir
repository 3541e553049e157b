// RUN: %moec-opt %s --moec-select-strategies --moec-unify-layouts --canonicalize | FileCheck %s

module attributes {moec.target = "cpu:x86-64-v3"} {
  // Two products with one weight share one relayout; the strategies ask for the same layout.
  // CHECK-LABEL: @shared_weight
  func.func @shared_weight(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    // CHECK: %[[W:.*]] = moe.weight
    // CHECK: %[[P:.*]] = moe.relayout %[[W]] {strategy = "cpu.relayout.{{.*}}"} : tensor<64x32xbf16> -> tensor<64x32xbf16, #moe.layout<
    // CHECK-NOT: moe.relayout
    // CHECK: moe.linear %{{.*}}, %[[P]] {strategy = "cpu.linear.
    // CHECK: moe.linear %{{.*}}, %[[P]] {strategy = "cpu.linear.
    %w = moe.weight "w" at <"m.safetensors", 0, 4096> : tensor<64x32xbf16>
    %a = moe.linear %x, %w : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
    %b = moe.linear %y, %w : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
    return %a, %b : tensor<?x64xf32>, tensor<?x64xf32>
  }

  // CHECK-LABEL: @ops_without_strategies_stay
  func.func @ops_without_strategies_stay(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    // CHECK-NOT: strategy
    %y = arith.addf %x, %x : tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}
