// RUN: %moec-opt %s --moec-select-strategies | FileCheck %s

// Hopper's copies read rows that begin at 16 bytes: other slices of larger tensors go to the strategies for any GPU.
module attributes {moec.target = "cuda:sm_90a"} {
// CHECK-LABEL: func.func @whole
// CHECK:       moe.linear{{.*}}"cuda.linear.wgmma"
func.func @whole(%x: tensor<?x64xbf16> {moe.name = "x", moe.dims = ["tokens"]}, %w: tensor<32x64xbf16>) -> tensor<?x32xbf16> attributes {moe.entry} {
  %y = moe.linear %x, %w : tensor<?x64xbf16>, tensor<32x64xbf16> -> tensor<?x32xbf16>
  return %y : tensor<?x32xbf16>
}

// CHECK-LABEL: func.func @slice
// CHECK:       moe.linear{{.*}}"cuda.linear.wgmma"
// CHECK:       moe.grouped_linear{{.*}}"cuda.grouped_linear.wgmma"
// CHECK:       moe.grouped_linear{{.*}}"cuda.grouped_linear.tiles"
// CHECK:       moe.linear{{.*}}"cuda.linear.tiles"
func.func @slice(%x: tensor<?x96xbf16> {moe.name = "x", moe.dims = ["tokens"]}, %w: tensor<32x64xbf16>, %experts: !moe.block_tensor<[4, 32, 64], mxfp4>,
                 %offsets: tensor<5xi32>, %pairs: tensor<?xi32>) -> (tensor<?x32xbf16>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xbf16>) attributes {moe.entry} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x96xbf16>
  %part = tensor.extract_slice %x[0, 32] [%n, 64] [1, 1] : tensor<?x96xbf16> to tensor<?x64xbf16>
  %y = moe.linear %part, %w : tensor<?x64xbf16>, tensor<32x64xbf16> -> tensor<?x32xbf16>
  %z = moe.grouped_linear %part by %offsets, %pairs weight(%experts : !moe.block_tensor<[4, 32, 64], mxfp4>) {gather, top_k = 2 : i64} : tensor<?x64xbf16>, tensor<5xi32>, tensor<?xi32> -> tensor<?x32xf32>
  %other = tensor.extract_slice %x[0, 28] [%n, 64] [1, 1] : tensor<?x96xbf16> to tensor<?x64xbf16>
  %u = moe.grouped_linear %other by %offsets, %pairs weight(%experts : !moe.block_tensor<[4, 32, 64], mxfp4>) {gather, top_k = 2 : i64} : tensor<?x64xbf16>, tensor<5xi32>, tensor<?xi32> -> tensor<?x32xf32>
  %v = moe.linear %other, %w : tensor<?x64xbf16>, tensor<32x64xbf16> -> tensor<?x32xbf16>
  return %y, %z, %u, %v : tensor<?x32xbf16>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xbf16>
}
}
