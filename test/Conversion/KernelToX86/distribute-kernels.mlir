// RUN: %moec-opt %s --split-input-file --moec-fuse-kernels --moec-distribute-kernels --canonicalize --cse | FileCheck %s

// The workgroup's rows, one after the other, each with all that leads to it.
// CHECK-LABEL: func.func @rows
// CHECK-SAME:    %[[X:.*]]: memref<?x40xf32>, %[[OUT:.*]]: memref<?x40xf32>, %{{.*}}: memref<?xi8>, %[[W:.*]]: index) attributes {plan.kernel}
// CHECK:       %[[ALL:.*]] = bufferization.to_tensor %[[X]]
// CHECK:       scf.for %[[ROW:.*]] =
// CHECK-DAG:     %[[TO:.*]] = memref.subview %[[OUT]][%[[ROW]], 0] [1, 40] [1, 1]
// CHECK-DAG:     %[[FROM:.*]] = tensor.extract_slice %[[ALL]][%[[ROW]], 0] [1, 40] [1, 1]
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[FROM]] : tensor<1x40xf32>)
// CHECK:           math.exp
// CHECK:           arith.negf
// CHECK:         bufferization.materialize_in_destination %[[Y]] in restrict writable %[[TO]]
func.func @rows(%x: memref<?x40xf32>, %out: memref<?x40xf32>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 4>} {
  %a = bufferization.to_tensor %x restrict : memref<?x40xf32> to tensor<?x40xf32>
  %e = math.exp %a : tensor<?x40xf32>
  %n = arith.negf %e : tensor<?x40xf32>
  bufferization.materialize_in_destination %n in restrict writable %out : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
  return
}

// -----

// What two results share is computed once.
// CHECK-LABEL: func.func @shared
// CHECK:       math.exp
// CHECK-NOT:   math.exp
// CHECK:       return
func.func @shared(%x: memref<?x40xf32>, %out0: memref<?x40xf32>, %out1: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.tile_sizes = array<i64: 1>} {
  %a = bufferization.to_tensor %x restrict : memref<?x40xf32> to tensor<?x40xf32>
  %e = math.exp %a : tensor<?x40xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %a, %c0 : tensor<?x40xf32>
  %i = tensor.empty(%d) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%e : tensor<?x40xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  bufferization.materialize_in_destination %e in restrict writable %out0 : (tensor<?x40xf32>, memref<?x40xf32>) -> ()
  bufferization.materialize_in_destination %s in restrict writable %out1 : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----

// A concatenation is written part by part, without a buffer of its own.
// CHECK-LABEL: func.func @concatenation
// CHECK-NOT:   tensor.concat
// CHECK-DAG:   memref.subview %{{.*}}[0, 0] [3, 2] [1, 1]
// CHECK-DAG:   memref.subview %{{.*}}[0, 2] [3, 5] [1, 1]
// CHECK-NOT:   tensor.empty
// CHECK:       return
func.func @concatenation(%x: memref<3x2xf32>, %y: memref<3x5xf32>, %out: memref<3x7xf32>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel} {
  %a = bufferization.to_tensor %x restrict : memref<3x2xf32> to tensor<3x2xf32>
  %b = bufferization.to_tensor %y restrict : memref<3x5xf32> to tensor<3x5xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<3x2xf32>, tensor<3x5xf32>) -> tensor<3x7xf32>
  bufferization.materialize_in_destination %c in restrict writable %out : (tensor<3x7xf32>, memref<3x7xf32>) -> ()
  return
}

// -----

// Functions that are no kernels stay as they are.
// CHECK-LABEL: func.func @other
// CHECK:         math.exp %{{.*}} : tensor<?x40xf32>
func.func @other(%x: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %e = math.exp %x : tensor<?x40xf32>
  return %e : tensor<?x40xf32>
}
