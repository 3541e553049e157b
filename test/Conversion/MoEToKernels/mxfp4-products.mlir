// The instructions that turn MXFP4 codes into numbers, by target, and the matrix unit where there is one.
//
// RUN: sed s/TARGET/x86-64-v2/ %s | %moec-opt --moec-expand-strategies | FileCheck %s --check-prefixes=CHECK,V2
// RUN: sed s/TARGET/x86-64-v3/ %s | %moec-opt --moec-expand-strategies | FileCheck %s --check-prefixes=CHECK,V3
// RUN: sed -e s/TARGET/x86-64-v3/ -e 's/} {/, moec.batch_invariant} {/' %s | %moec-opt --moec-expand-strategies | FileCheck %s --check-prefixes=CHECK,INVARIANT
// RUN: sed s/TARGET/x86-64-v4/ %s | %moec-opt --moec-expand-strategies | FileCheck %s --check-prefixes=CHECK,V4
// RUN: sed -e s/TARGET/sapphirerapids/ -e s/linear.vector/linear.amx/ %s | %moec-opt --moec-expand-strategies | FileCheck %s --check-prefixes=CHECK,AMX
// RUN: sed -e s/TARGET/x86-64-v4/ -e s/linear.vector/linear.amx/ %s | not %moec-opt --moec-expand-strategies 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: strategy 'cpu.grouped_linear.amx' cannot build this 'moe.grouped_linear' for cpu:x86-64-v4

!weight = !moe.block_tensor<[4, 64, 64], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>

module attributes {moec.target = "cpu:TARGET"} {

// CHECK-LABEL: func.func @experts
// V2-NOT:        llvm.call_intrinsic
// V3:            llvm.x86.avx2.pshuf.b
// V3:            llvm.x86.avx2.pmadd.ub.sw
// V3:            llvm.x86.avx2.permps
// INVARIANT-NOT: llvm.x86.avx2.pmadd
// INVARIANT:     llvm.x86.avx2.permps
// INVARIANT-NOT: llvm.x86.avx2.pmadd
// V4:            llvm.x86.avx512.permvar.sf.512
// AMX:           llvm.x86.avx512.permvar.sf.512
// AMX:           llvm.x86.avx512.permvar.hi.512
// AMX:           amx.tile_mulf
// CHECK-NOT:     moe.
// CHECK:         return
func.func @experts(%in0: memref<?x64xbf16>, %in1: memref<5xi32>, %in2: memref<?xi32>, %in3: memref<4x4x2x272xi8>,
                   %out0: memref<?x32xbf16>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %x = bufferization.to_tensor %in0 restrict : memref<?x64xbf16> to tensor<?x64xbf16>
  %offsets = bufferization.to_tensor %in1 restrict : memref<5xi32> to tensor<5xi32>
  %pairs = bufferization.to_tensor %in2 restrict : memref<?xi32> to tensor<?xi32>
  %w = builtin.unrealized_conversion_cast %in3 : memref<4x4x2x272xi8> to !weight
  %y = moe.grouped_linear %x by %offsets, %pairs weight(%w : !weight)
       {strategy = "cpu.grouped_linear.vector", top_k = 2 : i64, gather,
        activation = #moe.activation<swiglu, alpha = 1.702, beta = 1.0, limit = 7.0, interleaved = true>}
       : tensor<?x64xbf16>, tensor<5xi32>, tensor<?xi32> -> tensor<?x32xbf16>
  bufferization.materialize_in_destination %y in restrict writable %out0 : (tensor<?x32xbf16>, memref<?x32xbf16>) -> ()
  return
}

}
