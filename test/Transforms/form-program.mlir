// RUN: %moec-opt %s --moec-form-program --split-input-file --verify-diagnostics --mlir-print-local-scope | FileCheck %s

module attributes {moec.target = "cpu:x86-64-v3"} {
  // The kernel of an elementwise op: the constant is cloned into it, the reshape is another name of the buffer.
  // CHECK: func.func private @main_0_arith.addf(%[[A:.*]]: memref<?x4x8xf32>, %[[OUT:.*]]: memref<?x4x8xf32>, %{{.*}}: memref<?xi8>, %{{.*}}: index)
  // CHECK-SAME: plan.kernel, plan.tile_sizes = array<i64: 256>
  // CHECK: %[[T:.*]] = bufferization.to_tensor %[[A]] restrict
  // CHECK: %[[S:.*]] = arith.addf %[[T]]
  // CHECK: bufferization.materialize_in_destination %[[S]] in restrict writable %[[OUT]]

  // CHECK: plan.program @main symbols ["tokens"]
  // CHECK: %[[X:.*]] = plan.input "x" : tensor<?x32xf32> dims affine_map<()[s0] -> (s0, 32)>
  // CHECK: %[[Y:.*]] = plan.output "y" : tensor<?x4x8xf32> dims affine_map<()[s0] -> (s0, 4, 8)>
  // CHECK: plan.launch @main_0_arith.addf ins(%[[X]]) outs(%[[Y]]) dimensions affine_map<()[s0] -> (s0, s0)>
  // CHECK-SAME: workgroups affine_map<()[s0] -> (s0 ceildiv 256)> scratch affine_map<()[s0] -> (0)>
  // CHECK-SAME: bytes affine_map<()[s0] -> (s0 * 128, s0 * 128)> "arith.addf"
  func.func @main(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["tokens"]}) -> (tensor<?x4x8xf32> {moe.name = "y"}) attributes {moe.entry} {
    %c0 = arith.constant 0 : index
    %d = tensor.dim %x, %c0 : tensor<?x32xf32>
    %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [%d, 4, 8] : tensor<?x32xf32> into tensor<?x4x8xf32>
    %c = arith.constant dense<1.0> : tensor<4x8xf32>
    %y = arith.addf %e, %e : tensor<?x4x8xf32>
    return %y : tensor<?x4x8xf32>
  }
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
  // An input that is returned is copied; a value that is returned twice is computed once.
  // CHECK: plan.program @main
  // CHECK: %[[X:.*]] = plan.input "x"
  // CHECK-DAG: %[[A:.*]] = plan.output "result0"
  // CHECK-DAG: %[[B:.*]] = plan.output "result1"
  // CHECK-DAG: %[[C:.*]] = plan.output "result2"
  // CHECK: plan.launch {{.*}} outs(%[[B]])
  // CHECK: plan.copy %[[B]] to %[[C]]
  // CHECK: plan.copy %[[X]] to %[[A]] bytes affine_map<()[s0] -> (s0 * 4)>
  func.func @main(%x: tensor<?xf32> {moe.name = "x", moe.dims = ["n"]}) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) attributes {moe.entry} {
    %y = arith.addf %x, %x : tensor<?xf32>
    return %x, %y, %y : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  }
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
  // Sizes that are no multiple of 64 bytes count lines.
  // CHECK: plan.buffer scale affine_map<()[s0] -> ((s0 * 4) ceildiv 64)> bytes 64
  // CHECK: plan.buffer scale affine_map<()[s0] -> (s0)> bytes 64
  func.func @main(%x: tensor<?xf32> {moe.name = "x", moe.dims = ["n"]}, %z: tensor<?x16xf32> {moe.name = "z", moe.dims = ["n"]}) -> (tensor<?xf32>, tensor<?x16xf32>) attributes {moe.entry} {
    %y = arith.addf %x, %x : tensor<?xf32>
    %w = arith.mulf %y, %x : tensor<?xf32>
    %a = arith.addf %z, %z : tensor<?x16xf32>
    %b = arith.mulf %a, %z : tensor<?x16xf32>
    return %w, %b : tensor<?xf32>, tensor<?x16xf32>
  }
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
  // A slice is read where it lies: no launch copies it.
  // CHECK: func.func private @main_0_arith.addf(%[[A:.*]]: memref<?x32xf32>, %{{.*}}: memref<?x8xf32>
  // CHECK: tensor.extract_slice
  // CHECK-NOT: plan.launch @main_1
  func.func @main(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["n"]}) -> tensor<?x8xf32> attributes {moe.entry} {
    %c0 = arith.constant 0 : index
    %d = tensor.dim %x, %c0 : tensor<?x32xf32>
    %s = tensor.extract_slice %x[0, 8] [%d, 8] [1, 1] : tensor<?x32xf32> to tensor<?x8xf32>
    %y = arith.addf %s, %s : tensor<?x8xf32>
    return %y : tensor<?x8xf32>
  }
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
  // expected-error @below {{argument 'x': expects 'moe.dims' to name 1 dynamic dimensions, got 2}}
  func.func @main(%x: tensor<?x32xf32> {moe.name = "x", moe.dims = ["n", "m"]}) -> tensor<?x32xf32> attributes {moe.entry} {
    return %x : tensor<?x32xf32>
  }
}
