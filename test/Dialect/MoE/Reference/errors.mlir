// RUN: moec-interpret %s --verify-diagnostics --cache-blocks=4

!cache = !moe.cache<kv_heads = 1, key_dim = 2, value_dim = 2, block = 2, f32>
!window = !moe.state<[1, 2], f32>

func.func @embedding_id_too_large() {
  %ids = arith.constant dense<[0, 4]> : tensor<2xi32>
  %table = arith.constant dense<1.0> : tensor<4x2xf32>
  // expected-error@+1 {{while interpreting: id 4 of token 1 is not below the table's 4 rows}}
  %0 = moe.embedding %ids, %table : tensor<2xi32>, tensor<4x2xf32> -> tensor<2x2xf32>
  return
}

func.func @embedding_id_negative() {
  %ids = arith.constant dense<-1> : tensor<1xi32>
  %table = arith.constant dense<1.0> : tensor<4x2xf32>
  // expected-error@+1 {{while interpreting: id -1 of token 0 is not below the table's 4 rows}}
  %0 = moe.embedding %ids, %table : tensor<1xi32>, tensor<4x2xf32> -> tensor<1x2xf32>
  return
}

func.func @gather_rows_of_nothing() {
  %x = arith.constant dense<> : tensor<0x2xf32>
  %rows = arith.constant dense<0> : tensor<1xi32>
  // expected-error@+1 {{while interpreting: cannot take rows of an empty input}}
  %0 = moe.gather_rows %x, %rows : tensor<0x2xf32>, tensor<1xi32> -> tensor<1x2xf32>
  return
}

func.func @experts_id_too_large() {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %i = arith.constant dense<[[0], [3]]> : tensor<2x1xi32>
  %w = arith.constant dense<1.0> : tensor<2x1xf32>
  %u = arith.constant dense<1.0> : tensor<3x4x2xf32>
  %d = arith.constant dense<1.0> : tensor<3x2x2xf32>
  // expected-error@+1 {{while interpreting: choice 0 of token 1 is expert 3, but there are 3}}
  %0 = moe.experts %x to %i, %w gate_up(%u : tensor<3x4x2xf32>) down(%d : tensor<3x2x2xf32>) <silu>
      : tensor<2x2xf32>, tensor<2x1xi32>, tensor<2x1xf32> -> tensor<2x2xf32>
  return
}

func.func @sample_row_too_large() {
  %x = arith.constant dense<1.0> : tensor<2x3xf32>
  %rows = arith.constant dense<[1, 2]> : tensor<2xi32>
  %t = arith.constant dense<0.0> : tensor<2xf32>
  %p = arith.constant dense<0.5> : tensor<2xf64>
  // expected-error@+1 {{while interpreting: token 1 is chosen from row 2, but there are 2}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%rows) top_p(%p) random(%p)
      : tensor<2x3xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf64>, tensor<2xf64> -> tensor<2xi32>
  return
}

func.func @sample_random_too_large() {
  %x = arith.constant dense<1.0> : tensor<2x3xf32>
  %rows = arith.constant dense<0> : tensor<1xi32>
  %t = arith.constant dense<0.0> : tensor<1xf32>
  %p = arith.constant dense<1.0> : tensor<1xf64>
  // expected-error@+1 {{while interpreting: token 0 has the random number 1.000000e+00, which is not in [0, 1)}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%rows) top_p(%p) random(%p)
      : tensor<2x3xf32>, tensor<1xi32>, tensor<1xf32>, tensor<1xi32>, tensor<1xf64>, tensor<1xf64> -> tensor<1xi32>
  return
}

func.func @group_tokens_id_too_large() {
  %i = arith.constant dense<[[0, 2]]> : tensor<1x2xi32>
  // expected-error@+1 {{while interpreting: pair 1 names expert 2, but there are 2}}
  %o, %p = moe.group_tokens %i : tensor<1x2xi32> -> tensor<3xi32>, tensor<2xi32>
  return
}

func.func @grouped_offsets_descend() {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %o = arith.constant dense<[0, 2, 1]> : tensor<3xi32>
  %p = arith.constant dense<[0, 1]> : tensor<2xi32>
  %w = arith.constant dense<1.0> : tensor<2x2x2xf32>
  // expected-error@+1 {{while interpreting: offsets must ascend from 0 to at most 2, entry 2 is 1}}
  %0 = moe.grouped_linear %x by %o, %p weight(%w : tensor<2x2x2xf32>) {top_k = 1} : tensor<2x2xf32>, tensor<3xi32>, tensor<2xi32> -> tensor<2x2xf32>
  return
}

func.func @grouped_pair_twice() {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %o = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %p = arith.constant dense<[1, 1]> : tensor<2xi32>
  %w = arith.constant dense<1.0> : tensor<2x2x2xf32>
  // expected-error@+1 {{while interpreting: pairs must be different numbers below 2, entry 1 is 1}}
  %0 = moe.grouped_linear %x by %o, %p weight(%w : tensor<2x2x2xf32>) {scatter, top_k = 1} : tensor<2x2xf32>, tensor<3xi32>, tensor<2xi32> -> tensor<2x2xf32>
  return
}

func.func @dynamic_sizes_differ() {
  %a = arith.constant dense<1.0> : tensor<2x2xf32>
  %b = arith.constant dense<1.0> : tensor<3x4xf32>
  %x = tensor.cast %a : tensor<2x2xf32> to tensor<?x2xf32>
  %r = tensor.cast %b : tensor<3x4xf32> to tensor<?x4xf32>
  %w = arith.constant dense<1.0> : tensor<4x2xf32>
  // expected-error@+1 {{while interpreting: expects residual of shape [2, 4], got [3, 4]}}
  %0 = moe.linear %x, %w residual(%r : tensor<?x4xf32>) : tensor<?x2xf32>, tensor<4x2xf32> -> tensor<?x4xf32>
  return
}

func.func @append_past_the_table(%cache: !cache) {
  %k = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %p = arith.constant dense<2> : tensor<1xi32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %t = arith.constant dense<0> : tensor<1x1xi32>
  // expected-error@+1 {{while interpreting: token 0 has position 2, but the block table covers 2 positions}}
  moe.kv_append %k, %k into %cache at (%p, %s, %t) : tensor<1x1x2xf32>, tensor<1x1x2xf32>, !cache, tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32>
  return
}

func.func @append_unknown_sequence(%cache: !cache) {
  %k = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %p = arith.constant dense<0> : tensor<1xi32>
  %s = arith.constant dense<1> : tensor<1xi32>
  %t = arith.constant dense<0> : tensor<1x1xi32>
  // expected-error@+1 {{while interpreting: token 0 belongs to sequence 1, but the block table has 1}}
  moe.kv_append %k, %k into %cache at (%p, %s, %t) : tensor<1x1x2xf32>, tensor<1x1x2xf32>, !cache, tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32>
  return
}

func.func @append_outside_the_pool(%cache: !cache) {
  %k = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %p = arith.constant dense<2> : tensor<1xi32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %t = arith.constant dense<[[0, 4]]> : tensor<1x2xi32>
  // expected-error@+1 {{while interpreting: entry [0, 1] of the block table is 4, but the pool has 4 blocks}}
  moe.kv_append %k, %k into %cache at (%p, %s, %t) : tensor<1x1x2xf32>, tensor<1x1x2xf32>, !cache, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>
  return
}

func.func @attention_index_twice(%cache: !cache) {
  %q = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %t = arith.constant dense<0> : tensor<1x1xi32>
  %i = arith.constant dense<[[1, -1, 1]]> : tensor<1x3xi32>
  // expected-error@+1 {{while interpreting: position 1 is twice among the indices of token 0}}
  %0 = moe.attention %q over %cache at (%p, %s, %t) indices(%i : tensor<1x3xi32>) {scale = 1.0}
      : tensor<1x1x2xf32>, !cache, tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32> -> tensor<1x1x2xf32>
  return
}

func.func @attention_index_negative(%cache: !cache) {
  %q = arith.constant dense<1.0> : tensor<1x1x2xf32>
  %p = arith.constant dense<1> : tensor<1xi32>
  %s = arith.constant dense<0> : tensor<1xi32>
  %t = arith.constant dense<0> : tensor<1x1xi32>
  %i = arith.constant dense<-2> : tensor<1x1xi32>
  // expected-error@+1 {{while interpreting: index -2 of token 0 is neither a position nor -1}}
  %0 = moe.attention %q over %cache at (%p, %s, %t) indices(%i : tensor<1x1xi32>) {scale = 1.0}
      : tensor<1x1x2xf32>, !cache, tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32> -> tensor<1x1x2xf32>
  return
}

moe.global @never : tensor<2xf32>
moe.global @twice : tensor<2xf32>

func.func @global_never_stored() {
  // expected-error@+1 {{while interpreting: global 'never' was never stored; run the load program first}}
  %0 = moe.global_load @never : tensor<2xf32>
  return
}

func.func @global_stored_twice() {
  %x = arith.constant dense<1.0> : tensor<2xf32>
  moe.global_store %x, @twice : tensor<2xf32>
  // expected-error@+1 {{while interpreting: global 'twice' is stored a second time}}
  moe.global_store %x, @twice : tensor<2xf32>
  return
}

func.func @weight_without_folder() {
  // expected-error@+1 {{while interpreting: the bytes of weight 'w' are needed, but no folder of weights was given}}
  %w = moe.weight "w" at <"a.safetensors", 0, 4> : tensor<1xf32>
  return
}

func.func @extract_out_of_bounds() {
  %x = arith.constant dense<1.0> : tensor<2xf32>
  %i = arith.constant 2 : index
  // expected-error@+1 {{while interpreting: index 2 is out of bounds of a dimension of size 2}}
  %0 = tensor.extract %x[%i] : tensor<2xf32>
  return
}

func.func @slice_out_of_bounds() {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  %n = arith.constant 3 : index
  // expected-error@+1 {{while interpreting: the slice at [2] of [3] with strides [1] is out of bounds of [4]}}
  %0 = tensor.extract_slice %x[2] [%n] [1] : tensor<4xf32> to tensor<?xf32>
  return
}

func.func @cast_to_another_size() {
  %x = arith.constant dense<1.0> : tensor<2xf32>
  %0 = tensor.cast %x : tensor<2xf32> to tensor<?xf32>
  // expected-error@+1 {{while interpreting: expected tensor<3xf32>, got a tensor of f32 [2]}}
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<3xf32>
  return
}

func.func @too_large() {
  %n = arith.constant 1099511627776 : index
  // expected-error@+1 {{while interpreting: cannot make a tensor of 'f32' [1099511627776]: a size is negative or it needs more than 8 GiB}}
  %0 = tensor.empty(%n) : tensor<?xf32>
  return
}

func.func @endless_recursion() {
  // expected-error@-1 {{while interpreting: more than 64 calls within each other}}
  func.call @endless_recursion() : () -> ()
  return
}

func.func @slot_too_large(%state: !window) {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %w = arith.constant dense<1.0> : tensor<2x2xf32>
  %p = arith.constant dense<[0, 0]> : tensor<2xi32>
  %o = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %z = arith.constant dense<[0, 4]> : tensor<2xi32>
  // expected-error@+1 {{while interpreting: sequence 1 has slot 4, but the state has 4}}
  %0 = moe.causal_conv %x weight(%w : tensor<2x2xf32>) over %state at (%p, %o, %z) : tensor<2x2xf32>, !window, tensor<2xi32>, tensor<3xi32>, tensor<2xi32>
  return
}

func.func @slot_negative(%state: !window) {
  %x = arith.constant dense<1.0> : tensor<1x2xf32>
  %w = arith.constant dense<1.0> : tensor<2x2xf32>
  %p = arith.constant dense<[0]> : tensor<1xi32>
  %o = arith.constant dense<[0, 1]> : tensor<2xi32>
  %z = arith.constant dense<[-1]> : tensor<1xi32>
  // expected-error@+1 {{while interpreting: sequence 0 has slot -1, but the state has 4}}
  %0 = moe.causal_conv %x weight(%w : tensor<2x2xf32>) over %state at (%p, %o, %z) : tensor<1x2xf32>, !window, tensor<1xi32>, tensor<2xi32>, tensor<1xi32>
  return
}

func.func @slot_twice(%state: !window) {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %w = arith.constant dense<1.0> : tensor<2x2xf32>
  %p = arith.constant dense<[0, 0]> : tensor<2xi32>
  %o = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  %z = arith.constant dense<[3, 3]> : tensor<2xi32>
  // expected-error@+1 {{while interpreting: sequence 1 has slot 3, as one before it}}
  %0 = moe.causal_conv %x weight(%w : tensor<2x2xf32>) over %state at (%p, %o, %z) : tensor<2x2xf32>, !window, tensor<2xi32>, tensor<3xi32>, tensor<2xi32>
  return
}

func.func @offsets_too_short(%state: !window) {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %w = arith.constant dense<1.0> : tensor<2x2xf32>
  %p = arith.constant dense<[0, 1]> : tensor<2xi32>
  %o = arith.constant dense<[0, 1]> : tensor<2xi32>
  %z = arith.constant dense<[0]> : tensor<1xi32>
  // expected-error@+1 {{while interpreting: offsets must ascend from 0 to the step's 2 tokens, got 0 to 1}}
  %0 = moe.causal_conv %x weight(%w : tensor<2x2xf32>) over %state at (%p, %o, %z) : tensor<2x2xf32>, !window, tensor<2xi32>, tensor<2xi32>, tensor<1xi32>
  return
}

func.func @sequence_offsets_descend(%state: !window) {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %w = arith.constant dense<1.0> : tensor<2x2xf32>
  %p = arith.constant dense<[0, 1]> : tensor<2xi32>
  %o = arith.constant dense<[0, 2, 1, 2]> : tensor<4xi32>
  %z = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  // expected-error@+1 {{while interpreting: offsets must ascend, entry 2 is 1 after 2}}
  %0 = moe.causal_conv %x weight(%w : tensor<2x2xf32>) over %state at (%p, %o, %z) : tensor<2x2xf32>, !window, tensor<2xi32>, tensor<4xi32>, tensor<3xi32>
  return
}

func.func @positions_with_a_gap(%state: !window) {
  %x = arith.constant dense<1.0> : tensor<2x2xf32>
  %w = arith.constant dense<1.0> : tensor<2x2xf32>
  %p = arith.constant dense<[0, 2]> : tensor<2xi32>
  %o = arith.constant dense<[0, 2]> : tensor<2xi32>
  %z = arith.constant dense<[0]> : tensor<1xi32>
  // expected-error@+1 {{while interpreting: token 1 has position 2 after position 0 of the same sequence}}
  %0 = moe.causal_conv %x weight(%w : tensor<2x2xf32>) over %state at (%p, %o, %z) : tensor<2x2xf32>, !window, tensor<2xi32>, tensor<2xi32>, tensor<1xi32>
  return
}

// Everything that is not known is in one error.
// expected-error@+1 {{the reference interpreter does not know 3 of the operations in 'unknown_ops'}}
func.func @unknown_ops() {
  %x = arith.constant dense<1.0> : tensor<2xf32>
  // expected-note@+1 {{'arith.constant' with a value of type i128}}
  %0 = arith.constant 1 : i128
  %1 = arith.constant 1 : i32
  // expected-note@+1 {{'arith.mulsi_extended'}}
  %low, %high = arith.mulsi_extended %1, %1 : i32
  func.call @called() : () -> ()
  return
}
// expected-error@+1 {{the reference interpreter does not know 1 of the operations in 'called'}}
func.func @called() {
  %c = arith.constant 1 : i32
  // expected-note@+1 {{'arith.addui_extended'}}
  %s, %o = arith.addui_extended %c, %c : i32, i1
  return
}
