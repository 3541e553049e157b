// RUN: %moec-opt %s --moec-form-program --split-input-file --mlir-print-local-scope | FileCheck %s

// A product reads its input and its weight and writes its result.
// CHECK: plan.launch @main_0_moe.linear
// CHECK-SAME: bytes_moved = affine_map<()[s0] -> (s0 * 384 + 8192)>
// CHECK-SAME: flops = affine_map<()[s0] -> (s0 * 4096)>
module attributes {moec.target = "cpu:x86-64-v3"} {
  func.func @main(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["tokens"]}, %w: tensor<64x32xf32> {moe.name = "w"})
      -> (tensor<?x64xf32> {moe.name = "y"}) attributes {moe.entry} {
    %y = moe.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
}

// -----

// Of the experts as many count as there are pairs, at most all; codes and scales are two buffers. On a GPU a launch says how many
// threads a block has.
// CHECK: plan.launch @main_0_cuda_grouped_linear_tiles
// CHECK-SAME: bytes_moved = affine_map<()[s0, s1] -> (s0 * 128 + s1 * 4 + s1 * 256 + 4372, s0 * 128 + s1 * 4 + s1 * 256 + s1 * 1088 + 20)>
// CHECK-SAME: flops = affine_map<()[s0, s1] -> (s1 * 4096)>
// CHECK-SAME: threads = 256 : i64
module attributes {moec.target = "cuda:sm_80"} {
  func.func @main(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["tokens"]}, %o: tensor<5xi32> {moe.name = "o"},
                  %p: tensor<?xi32> {moe.name = "p", moe.dims = ["pairs"]},
                  %c: tensor<4x64x1x16xi8> {moe.name = "c"}, %s: tensor<4x64x1xi8> {moe.name = "s"})
      -> (tensor<?x64xf32> {moe.name = "y"}) attributes {moe.entry} {
    %w = moe.assemble_blocks %c, %s : tensor<4x64x1x16xi8>, tensor<4x64x1xi8> -> !moe.block_tensor<[4, 64, 32], mxfp4>
    %y = moe.grouped_linear %x by %o, %p weight(%w : !moe.block_tensor<[4, 64, 32], mxfp4>)
        {top_k = 2 : i64, gather, strategy = "cuda.grouped_linear.tiles"}
        : tensor<?x32xf32>, tensor<5xi32>, tensor<?xi32> -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
}

// -----

// The slots of a step's sequences are read and written once, however many tokens there are.
// CHECK: plan.launch @main_0_cpu.delta_rule
// CHECK-SAME: bytes_moved = affine_map<()[s0, s1, s2] -> (s0 * 108 + (s2 + 1) * 4 + s2 * 4 + s0 * 64 + s2 * 1024)>
// CHECK-SAME: flops = affine_map<()[s0, s1, s2] -> (s0 * 896)>
module attributes {moec.target = "cpu:x86-64-v3"} {
  func.func @main(%q: tensor<?x1x8xf32> {moe.name = "q", moe.dims = ["tokens"]}, %v: tensor<?x2x8xf32> {moe.name = "v", moe.dims = ["tokens"]},
                  %g: tensor<?x2xf32> {moe.name = "g", moe.dims = ["tokens"]}, %s: !moe.state<[2, 8, 8], f32> {moe.name = "s"},
                  %p: tensor<?xi32> {moe.name = "p", moe.dims = ["tokens"]}, %o: tensor<?xi32> {moe.name = "o", moe.dims = ["sequences + 1"]},
                  %z: tensor<?xi32> {moe.name = "z", moe.dims = ["sequences"]}) -> (tensor<?x2x8xf32> {moe.name = "y"}) attributes {moe.entry} {
    %y = moe.delta_rule %q, %q, %v decay(%g : tensor<?x2xf32>) beta(%g : tensor<?x2xf32>) over %s at (%p, %o, %z)
        {scale = 1.0, strategy = "cpu.delta_rule"} : tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x2x8xf32>, !moe.state<[2, 8, 8], f32>,
        tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x2x8xf32>
    return %y : tensor<?x2x8xf32>
  }
}
