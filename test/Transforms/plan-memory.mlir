// RUN: %moec-opt %s --moec-plan-memory --moec-verify-plan | FileCheck %s
// RUN: %moec-opt %s --moec-plan-memory=reuse=false --moec-verify-plan | FileCheck %s --check-prefix=SEPARATE

#one = affine_map<()[s0] -> (s0)>
#zero = affine_map<()[s0] -> (0)>
#none = affine_map<()[s0] -> ()>
#two = affine_map<()[s0] -> (0, 0)>

// A chain of three temporaries: the third takes the place of the first.
// CHECK: plan.arena 0 scale #{{.*}} bytes 192
// CHECK: plan.buffer scale {{.*}} bytes 128 at <arena = 0, offset = 0, first = 0, last = 1>
// CHECK: plan.buffer scale {{.*}} bytes 64 at <arena = 0, offset = 128, first = 1, last = 2>
// CHECK: plan.buffer scale {{.*}} bytes 128 at <arena = 0, offset = 0, first = 2, last = 3>
// SEPARATE: plan.arena 0 scale #{{.*}} bytes 320
func.func private @k(%in: memref<64xi8>, %out: memref<64xi8>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel}
plan.program @main symbols ["n"] {
  %x = plan.input "x" : tensor<?xf32> dims #one
  %y = plan.output "y" : tensor<?xf32> dims #one
  %a = plan.buffer scale #one bytes 128
  %b = plan.buffer scale #one bytes 64
  %c = plan.buffer scale #one bytes 128
  %unused = plan.buffer scale #one bytes 4096
  plan.launch @k ins(%x) outs(%a) dimensions #none workgroups #one scratch #zero bytes #two "k"
  plan.launch @k ins(%a) outs(%b) dimensions #none workgroups #one scratch #zero bytes #two "k"
  plan.launch @k ins(%b) outs(%c) dimensions #none workgroups #one scratch #zero bytes #two "k"
  plan.launch @k ins(%c) outs(%y) dimensions #none workgroups #one scratch #zero bytes #two "k"
}
