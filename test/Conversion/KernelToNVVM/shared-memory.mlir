// RUN: %moec-opt %s --moec-share-temporaries --split-input-file --verify-diagnostics | FileCheck %s

module attributes {moec.target = "cuda:sm_80"} {

// CHECK: memref.global "private" @small_shared_0 : memref<1024xi8, 3> = uninitialized
// CHECK-LABEL: func.func @small
// CHECK:       memref.get_global @small_shared_0
// CHECK:       memref.view
// CHECK-NOT:   memref.alloc
func.func @small(%x: memref<256xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %temporary = memref.alloc() : memref<256xf32>
  %value = memref.load %x[%c0] : memref<256xf32>
  memref.store %value, %temporary[%c0] : memref<256xf32>
  return
}

}

// -----

module attributes {moec.target = "cuda:sm_80"} {
func.func @large(%x: memref<256xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  // expected-error@+1 {{kernel 'large' needs a temporary 'memref<16384xf32>' and so more than 49152 bytes of shared memory}}
  %temporary = memref.alloc() : memref<16384xf32>
  return
}
}
