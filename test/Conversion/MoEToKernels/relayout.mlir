// RUN: %moec-opt %s --moec-expand-strategies | FileCheck %s

!plain = !moe.block_tensor<[40, 64], mxfp4>
!packed = !moe.block_tensor<[40, 64], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>

module attributes {moec.target = "cpu:x86-64-v3"} {

// Codes and scales of a checkpoint go into one buffer.
// CHECK-LABEL: func.func @blocks
// CHECK-SAME:    %[[CODES:.*]]: memref<40x2x16xi8>, %[[SCALES:.*]]: memref<40x2xi8>, %[[OUT:.*]]: memref<3x2x272xi8>
// CHECK-DAG:     %[[FLAT_OUT:.*]] = memref.reinterpret_cast %[[OUT]] {{.*}} to memref<1632xi8>
// CHECK-DAG:     %[[FLAT_CODES:.*]] = memref.reinterpret_cast %[[CODES]] {{.*}} to memref<1280xi8>
// CHECK-DAG:     memref.reinterpret_cast %[[SCALES]] {{.*}} to memref<80xi8>
// CHECK:         vector.load %[[FLAT_CODES]]
// CHECK:         vector.store {{.*}}, %[[FLAT_OUT]]
// CHECK-NOT:     moe.
// CHECK:         return
func.func @blocks(%in0: memref<40x2x16xi8>, %in1: memref<40x2xi8>, %out0: memref<3x2x272xi8>, %scratch: memref<?xi8>,
                  %workgroup: index) attributes {plan.kernel} {
  %codes = bufferization.to_tensor %in0 restrict : memref<40x2x16xi8> to tensor<40x2x16xi8>
  %scales = bufferization.to_tensor %in1 restrict : memref<40x2xi8> to tensor<40x2xi8>
  %w = moe.assemble_blocks %codes, %scales : tensor<40x2x16xi8>, tensor<40x2xi8> -> !plain
  %r = moe.relayout %w {strategy = "cpu.relayout.blocks"} : !plain -> !packed
  plan.store %r to %out0 : !packed, memref<3x2x272xi8>
  return
}

// Neighbouring columns stay together; the last of an odd number has a zero beside it.
// CHECK-LABEL: func.func @pairs
// CHECK:         vector.load {{.*}} : memref<360xbf16>, vector<2xbf16>
// CHECK:         vector.load {{.*}} : memref<360xbf16>, vector<1xbf16>
// CHECK-NOT:     moe.
// CHECK:         return
func.func @pairs(%in0: memref<40x9xbf16>, %out0: memref<3x5x1x16x2xbf16>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel} {
  %w = bufferization.to_tensor %in0 restrict : memref<40x9xbf16> to tensor<40x9xbf16>
  %r = moe.relayout %w {strategy = "cpu.relayout.dense"} : tensor<40x9xbf16>
       -> tensor<40x9xbf16, #moe.layout<tile = [16, 2], order = [1, 0], swizzle = pairs>>
  plan.store %r to %out0 : tensor<40x9xbf16, #moe.layout<tile = [16, 2], order = [1, 0], swizzle = pairs>>,
                           memref<3x5x1x16x2xbf16>
  return
}

}
