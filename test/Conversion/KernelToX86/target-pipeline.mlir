// RUN: %moec-opt %s --moec-target-pipeline | FileCheck %s

// The table is sorted by name, and only the query function is visible.
// CHECK-DAG: llvm.func internal @second(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK-DAG: llvm.func internal @first(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK-DAG: llvm.mlir.global internal constant @first.name("first\00")
// CHECK:     llvm.mlir.global internal constant @moert_kernel_entries()
// CHECK:       llvm.mlir.addressof @first.name
// CHECK:       llvm.mlir.addressof @first
// CHECK:       llvm.mlir.addressof @second.name
// CHECK:       llvm.mlir.addressof @second
// CHECK:     llvm.func @moert_kernel_query_v1() -> !llvm.ptr
module attributes {moec.target = "cpu:x86-64-v3"} {
func.func @second(%x: memref<?x8xf32>, %y: memref<8xbf16>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %a = vector.load %x[%workgroup, %c0] : memref<?x8xf32>, vector<8xf32>
  %b = arith.truncf %a : vector<8xf32> to vector<8xbf16>
  vector.store %b, %y[%c0] : memref<8xbf16>, vector<8xbf16>
  return
}
func.func @first(%x: memref<8xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  return
}
}
