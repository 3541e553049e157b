// RUN: %moec-opt %s --split-input-file --verify-diagnostics --moec-place-temporaries | FileCheck %s

// CHECK-LABEL: func.func @hoists_to_the_entry
// CHECK-NEXT:    memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK:         scf.for
// CHECK-NOT:     memref.alloc
func.func @hoists_to_the_entry(%x: memref<64xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %t = memref.alloc() : memref<64xf32>
    memref.copy %x, %t : memref<64xf32> to memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @bounded_size
// CHECK:         memref.alloca() {alignment = 64 : i64} : memref<256xi8>
// CHECK:         memref.view
func.func @bounded_size(%x: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %d = memref.dim %x, %c0 : memref<?xf32>
  %n = affine.min affine_map<()[s0] -> (64, s0)>()[%d]
  %t = memref.alloc(%n) : memref<?xf32>

  return
}

// -----

func.func @unbounded_size(%x: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %d = memref.dim %x, %c0 : memref<?xf32>
  // expected-error@+1 {{kernel 'unbounded_size' needs a temporary 'memref<?xf32>' whose size is not bounded}}
  %t = memref.alloc(%d) : memref<?xf32>
  return
}

// -----

func.func @too_large(%x: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  // expected-error@+1 {{needs a temporary 'memref<1048576xf32>' and so more than 1048576 bytes of stack}}
  %t = memref.alloc() : memref<1048576xf32>
  return
}
