// RUN: %moec-opt %s --split-input-file --verify-diagnostics --moec-kernel-pipeline

// expected-error@+1 {{expected the attribute 'moec.target' with the name of a target}}
module {
}

// -----

// expected-error@+1 {{target 'cpu:pentium9': unknown micro-architecture 'pentium9'}}
module attributes {moec.target = "cpu:pentium9"} {
}

// -----

// expected-error@+1 {{unknown feature 'avx9'}}
module attributes {moec.target = "cpu:x86-64-v3,+avx9"} {
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
func.func @unknown(%x: memref<?x8xf32>, %out: memref<?x8xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %a = bufferization.to_tensor %x restrict : memref<?x8xf32> to tensor<?x8xf32>
  // expected-error@+1 {{kernel 'unknown' names the unknown strategy 'cpu.none'}}
  %y = moe.rms_norm %a {epsilon = 1.0e-5 : f64, strategy = "cpu.none"} : tensor<?x8xf32>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
  return
}
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
func.func @signature(%x: memref<?x8xf32>, %workgroup: index) attributes {plan.kernel} { // expected-error {{kernel 'signature' must end its arguments with 'memref<?xi8>' (scratch) and index (workgroup)}}
  return
}
}

// -----

module attributes {moec.target = "cpu:x86-64-v3"} {
func.func @unsupported(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {
  %a = bufferization.to_tensor %x restrict : memref<?x?xf32> to tensor<?x?xf32>
  // expected-error@+1 {{'moe.rms_norm' in kernel 'unsupported' has no code}}
  %y = moe.rms_norm %a {epsilon = 1.0e-5 : f64} : tensor<?x?xf32>
  bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}
}
