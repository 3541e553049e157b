// RUN: %moec-opt %s --split-input-file --verify-diagnostics

plan.program @step symbols [] {
  // expected-error @below {{is not allowed in a plan.program: expects plan ops only}}
  %c = arith.constant 1 : index
}

// -----

plan.program @step symbols [] {
  // expected-error @below {{expects a moe.global called @nothing}}
  %g = plan.global @nothing
}

// -----

#zero = affine_map<() -> (0)>
plan.program @step symbols [] {
  %b = plan.buffer scale affine_map<() -> (1)> bytes 64
  // expected-error @below {{expects a size for each of 1 bindings, got 2}}
  plan.launch @k ins(%b) outs() dimensions affine_map<() -> ()> workgroups #zero scratch #zero bytes affine_map<() -> (0, 0)> "op"
}

// -----

#zero = affine_map<() -> (0)>
func.func private @k(%in: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel}
plan.program @step symbols [] {
  %b = plan.buffer scale affine_map<() -> (1)> bytes 64
  // expected-error @below {{expects 1 dimensions for @k, got 0}}
  plan.launch @k ins(%b) outs() dimensions affine_map<() -> ()> workgroups #zero scratch #zero bytes #zero "op"
}

// -----

#zero = affine_map<() -> (0)>
func.func private @k(%in: memref<4xf32>, %out: memref<4xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel}
plan.program @step symbols [] {
  %b = plan.buffer scale affine_map<() -> (1)> bytes 64
  // expected-error @below {{expects kernel @k to take 1 bindings, scratch and workgroup, got 4 arguments}}
  plan.launch @k ins(%b) outs() dimensions affine_map<() -> ()> workgroups #zero scratch #zero bytes #zero "op"
}
