// RUN: %moec-opt %s --moec-cuda-kernel-pipeline | FileCheck %s --check-prefix=KERNEL
// RUN: %moec-opt %s --moec-cuda-kernel-pipeline --moec-cuda-target-pipeline | FileCheck %s --check-prefix=TARGET

// One warpgroup copies, two multiply; registers move to those that multiply. Few rows: pairs of blocks share k.
// KERNEL-LABEL: func.func @product
// KERNEL-SAME:    plan.cluster = 2
// KERNEL-DAG:   plan.tensor_map %arg0 box [64, 16] : memref<?x7168xbf16>
// KERNEL-DAG:   plan.tensor_map %arg1 box [64, 32] : memref<2048x7168xbf16>
// KERNEL-DAG:   plan.tensor_map %arg0 box [64, 64] : memref<?x7168xbf16>
// KERNEL-DAG:   plan.tensor_map %arg1 box [64, 128] : memref<2048x7168xbf16>
// KERNEL-DAG:   plan.tensor_map %arg2 box [64, 64] : memref<?x2048xbf16>
// KERNEL:       nvvm.mbarrier.init
// KERNEL:       nvvm.fence.mbarrier.init
// KERNEL:       nvvm.cluster.arrive
// KERNEL:       nvvm.setmaxregister decrease 40
// KERNEL:       nvvm.elect.sync
// KERNEL:       nvvm.mbarrier.arrive.expect_tx
// KERNEL:       nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}isCTAOnly = true
// Many rows: blocks below each other copy halves of the weight for both.
// KERNEL:       nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}multicast_mask
// KERNEL:       nvvm.setmaxregister increase 232
// KERNEL:       nvvm.wgmma.fence.aligned
// KERNEL-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 32, k = 16>
// KERNEL:       nvvm.wgmma.commit.group.sync.aligned
// KERNEL:       nvvm.cluster.wait
// KERNEL:       nvvm.mapa
// KERNEL:       nvvm.cluster.arrive
// KERNEL-NEXT:  nvvm.cluster.wait
// KERNEL-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 256, k = 16>
// KERNEL-COUNT-16: nvvm.stmatrix
// KERNEL:       nvvm.fence.proxy {{.*}}async.shared
// KERNEL:       nvvm.cp.async.bulk.tensor.global.shared.cta
// KERNEL:       nvvm.cp.async.bulk.commit.group

// Pointers, then the token count, then the maps by value; what the runtime needs to make them stands at the function.
// TARGET:       llvm.mlir.global external @moec_dynamic_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// TARGET:       llvm.func @product(
// TARGET-SAME:    !llvm.ptr {llvm.noalias}
// TARGET-SAME:    i64, %arg4: i64
// TARGET-SAME:    llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
// TARGET-SAME:    nvvm.cluster_dim = array<i32: 2, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32
// TARGET-SAME:    {binding = 0 : i64, box = array<i64: 64, 64>, dimensions = array<i64: 0, -1>, element = bf16, sizes = array<i64: 0, 7168>}
// TARGET:       llvm.inline_asm
// TARGET-NOT:   nvvm.wgmma.mma_async
module attributes {moec.target = "cuda:sm_90a"} {
func.func @product(%x: memref<?x7168xbf16>, %w: memref<2048x7168xbf16>, %out: memref<?x2048xbf16>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.threads = 384} {
  %a = bufferization.to_tensor %x restrict : memref<?x7168xbf16> to tensor<?x7168xbf16>
  %b = bufferization.to_tensor %w restrict : memref<2048x7168xbf16> to tensor<2048x7168xbf16>
  %y = moe.linear %a, %b {strategy = "cuda.linear.wgmma"} : tensor<?x7168xbf16>, tensor<2048x7168xbf16> -> tensor<?x2048xbf16>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x2048xbf16>, memref<?x2048xbf16>) -> ()
  return
}
}
