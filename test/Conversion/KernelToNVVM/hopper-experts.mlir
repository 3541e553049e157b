// RUN: %moec-opt %s --moec-cuda-kernel-pipeline | FileCheck %s --check-prefix=KERNEL
// RUN: %moec-opt %s --moec-cuda-kernel-pipeline --moec-cuda-target-pipeline | FileCheck %s --check-prefix=TARGET

// Codes come in bulk, rows of tokens piece by piece; a product for each number of tokens has its left operand in registers.
// KERNEL-LABEL: func.func @experts
// KERNEL:       nvvm.mbarrier.init
// KERNEL:       nvvm.shfl.sync up
// KERNEL:       nvvm.redux.sync
// KERNEL:       nvvm.setmaxregister decrease 64
// KERNEL:       nvvm.cp.async.bulk.shared.cluster.global
// KERNEL:       nvvm.cp.async.shared.global
// KERNEL:       nvvm.cp.async.commit.group
// KERNEL:       nvvm.fence.proxy
// KERNEL:       nvvm.setmaxregister increase 104
// KERNEL:       scf.index_switch
// KERNEL-NEXT:  case 1 {
// KERNEL-COUNT-8: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
// KERNEL:       nvvm.wgmma.wait.group.sync.aligned 0
// KERNEL:       case 2 {
// KERNEL-COUNT-8: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16
// KERNEL:       nvvm.barrier id = {{.*}} number_of_threads
// KERNEL:       wgmma.mma_async.sync.aligned.m64n88k16.f32.bf16.bf16

// The kernel waits for the one before it, and says so.
// TARGET:       llvm.func @experts(
// TARGET-SAME:    nvvm.kernel, nvvm.maxntid = array<i32: 640, 1, 1>
// TARGET-SAME:    plan.overlap
// TARGET-NEXT:  nvvm.griddepcontrol launch_dependents
// TARGET-NEXT:  nvvm.griddepcontrol wait

// KERNEL-LABEL: func.func @pack
// KERNEL:       nvvm.barrier0
// KERNEL:       llvm.intr.fshl
// KERNEL:       llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
!plain = !moe.block_tensor<[4, 128, 96], mxfp4>
!packed = !moe.block_tensor<[4, 128, 96], mxfp4, <tile = [64, 64], order = [0, 1], swizzle = fragments>>
module attributes {moec.target = "cuda:sm_90a"} {
func.func @experts(%x: memref<?x96xbf16>, %offsets: memref<5xi32>, %pairs: memref<?xi32>, %w: memref<4x2x4608xi8>, %out: memref<?x128xf32>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.threads = 640} {
  %a = bufferization.to_tensor %x restrict : memref<?x96xbf16> to tensor<?x96xbf16>
  %o = bufferization.to_tensor %offsets restrict : memref<5xi32> to tensor<5xi32>
  %p = bufferization.to_tensor %pairs restrict : memref<?xi32> to tensor<?xi32>
  %b = builtin.unrealized_conversion_cast %w : memref<4x2x4608xi8> to !packed
  %y = moe.grouped_linear %a by %o, %p weight(%b : !packed) {scatter, top_k = 2 : i64, strategy = "cuda.grouped_linear.wgmma"} : tensor<?x96xbf16>, tensor<5xi32>, tensor<?xi32> -> tensor<?x128xf32>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x128xf32>, memref<?x128xf32>) -> ()
  return
}
func.func @pack(%in0: memref<4x128x48xi8>, %in1: memref<4x128x3xi8>, %out0: memref<4x2x4608xi8>, %scratch: memref<?xi8>, %workgroup: index)
    attributes {plan.kernel, plan.threads = 128} {
  %codes = bufferization.to_tensor %in0 restrict : memref<4x128x48xi8> to tensor<4x128x48xi8>
  %scales = bufferization.to_tensor %in1 restrict : memref<4x128x3xi8> to tensor<4x128x3xi8>
  %w = moe.assemble_blocks %codes, %scales : tensor<4x128x48xi8>, tensor<4x128x3xi8> -> !plain
  %r = moe.relayout %w {strategy = "cuda.relayout.fragments"} : !plain -> !packed
  plan.store %r to %out0 : !packed, memref<4x2x4608xi8>
  return
}
}
