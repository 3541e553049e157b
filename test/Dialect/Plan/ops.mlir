// RUN: %moec-opt %s | %moec-opt | FileCheck %s

#n = affine_map<()[s0] -> (s0)>
#zero = affine_map<()[s0] -> (0)>
#least = affine_map<()[s0] -> (s0 * 4, 16)>
#bytes = affine_map<()[s0] -> (0, 0)>
// CHECK: moe.global @packed
moe.global @packed : tensor<4xf32>
func.func private @k(%in: memref<?x4xf32>, %out: memref<?x4xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel}
// CHECK: plan.program @step symbols ["n"] {
plan.program @step symbols ["n"] {
  // CHECK: plan.input "x" : tensor<?x4xf32> dims
  %x = plan.input "x" : tensor<?x4xf32> dims affine_map<()[s0] -> (s0, 4)>
  // CHECK: plan.output "y" : tensor<?x4xf32> dims
  %y = plan.output "y" : tensor<?x4xf32> dims affine_map<()[s0] -> (s0, 4)>
  // CHECK: plan.state "kv" : !moe.cache<{{.*}}> pool 0
  %s = plan.state "kv" : !moe.cache<kv_heads = 1, key_dim = 4, value_dim = 4, block = 16, f32> pool 0
  // CHECK: plan.weight "w" at <"m.safetensors", 0, 16> : tensor<4xf32>
  %w = plan.weight "w" at <"m.safetensors", 0, 16> : tensor<4xf32>
  // CHECK: plan.global @packed
  %g = plan.global @packed
  // CHECK: plan.arena 0 scale {{.*}} bytes 64
  plan.arena 0 scale #n bytes 64
  // CHECK: plan.buffer scale {{.*}} bytes 64 at <arena = 0, offset = 0, first = 0, last = 1>
  %b = plan.buffer scale #n bytes 64 at <arena = 0, offset = 0, first = 0, last = 1>
  // CHECK: plan.launch @k ins(%{{.*}}) outs(%{{.*}}) dimensions {{.*}} workgroups {{.*}} scratch {{.*}} bytes {{.*}} "op"
  plan.launch @k ins(%x) outs(%b) dimensions affine_map<()[s0] -> (s0, s0)> workgroups #least scratch #zero bytes #bytes "op"
  // CHECK: plan.copy %{{.*}} to %{{.*}} bytes
  plan.copy %b to %y bytes #n
}
// CHECK: plan.program load @load symbols []
plan.program load @load symbols [] {
}
