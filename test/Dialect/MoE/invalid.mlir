// RUN: %moec-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expects tile sizes of at least 1, got 0}}
func.func private @layout_tile_zero() attributes {a = #moe.layout<tile = [0, 1], order = [0, 1], swizzle = none>}

// -----

// expected-error@+1 {{expects an order of 2 dimensions, got 1}}
func.func private @layout_order_rank() attributes {a = #moe.layout<tile = [16, 1], order = [0], swizzle = none>}

// -----

// expected-error@+1 {{expects the order to be a permutation of the tile dimensions}}
func.func private @layout_order_twice() attributes {a = #moe.layout<tile = [16, 1], order = [1, 1], swizzle = none>}

// -----

// expected-error@+1 {{expects a two-dimensional tile with an even last size for 'pairs'}}
func.func private @layout_pairs_odd() attributes {a = #moe.layout<tile = [16, 3], order = [0, 1], swizzle = pairs>}

// -----

// expected-error@+1 {{expects tile = [16, 32] and order = [0, 1] for 'nibble_words'}}
func.func private @layout_nibbles_tile() attributes {a = #moe.layout<tile = [16, 16], order = [0, 1], swizzle = nibble_words>}

// -----

// expected-error@+1 {{expects tile = [64, 64] and order = [0, 1] for 'fragments_of_halves'}}
func.func private @layout_fragments_tile() attributes {a = #moe.layout<tile = [64, 32], order = [0, 1], swizzle = fragments_of_halves>}

// -----

// expected-error@+2 {{expected ::mlir::moec::moe::Swizzle to be one of: none, pairs, nibble_words, fragments, fragments_of_halves}}
// expected-error@+1 {{failed to parse MoE_LayoutAttr parameter 'swizzle'}}
func.func private @layout_swizzle_unknown() attributes {a = #moe.layout<tile = [16, 16], order = [0, 1], swizzle = zigzag>}

// -----

// expected-error@+1 {{expects a limit of at least 0 (0: none), got -1.000000e+00}}
func.func private @activation_negative_limit() attributes {a = #moe.activation<swiglu, limit = -1.0>}

// -----

// expected-error@+1 {{expects a positive beta for 'situ', got 0.000000e+00}}
func.func private @activation_situ_beta() attributes {a = #moe.activation<situ, alpha = 25.0>}

// -----

// expected-error@+1 {{expected 'magnitude', 'offset' or 'interleaved', got 'scale'}}
func.func private @rotary_keyword() attributes {a = #moe.rotary<[1.0], scale = 2.0>}

// -----

// expected-error@+1 {{expects a shape of at least two dimensions, got 1}}
func.func private @blocks_rank(!moe.block_tensor<[32], mxfp4>)

// -----

// expected-error@+1 {{expects static dimensions, got -1}}
func.func private @blocks_negative(!moe.block_tensor<[-1, 32], mxfp4>)

// -----

// expected-error@+1 {{expects the last dimension to be a multiple of 32, got 48}}
func.func private @blocks_multiple(!moe.block_tensor<[4, 48], mxfp4>)

// -----

// expected-error@+1 {{expects a layout of at most 2 dimensions}}
func.func private @blocks_layout_rank(!moe.block_tensor<[4, 32], mxfp4, <tile = [1, 1, 1], order = [0, 1, 2], swizzle = none>>)

// -----

// expected-error@+1 {{expects positive kv_heads, key_dim and block, and value_dim >= 0}}
func.func private @cache_heads(!moe.cache<kv_heads = 0, key_dim = 8, value_dim = 8, block = 16, f32>)

// -----

// expected-error@+1 {{expects element type f32, bf16 or f16, got 'i8'}}
func.func private @cache_element(!moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 16, i8>)

// -----

func.func @weight_dynamic() {
  // expected-error@+1 {{expects a static shape of integers or floats, got 'tensor<?xf32>'}}
  %w = moe.weight "w" at <"a", 0, 4> : tensor<?xf32>
  return
}

// -----

func.func @weight_index() {
  // expected-error@+1 {{expects a static shape of integers or floats, got 'tensor<4xindex>'}}
  %w = moe.weight "w" at <"a", 0, 32> : tensor<4xindex>
  return
}

// -----

func.func @weight_bytes() {
  // expected-error@+1 {{'w' expects a reference to 16 bytes for 'tensor<4xf32>', got 15}}
  %w = moe.weight "w" at <"a", 0, 15> : tensor<4xf32>
  return
}

// -----

func.func @weight_stack_bytes() {
  // expected-error@+1 {{'w' expects a reference to 16 bytes for 'tensor<4xf32>', got 12}}
  %w = moe.weight "w" at <"a", 0, 8> and ["v"] at [#moe.weight_ref<"a", 8, 4>] : tensor<4xf32>
  return
}

// -----

func.func @weight_stack_names() {
  // expected-error@+1 {{'w' expects as many names as places}}
  %w = moe.weight "w" at <"a", 0, 8> and ["v", "u"] at [#moe.weight_ref<"a", 8, 8>] : tensor<4xf32>
  return
}

// -----

func.func @weight_overflow() {
  // expected-error@+1 {{'w': the size of 'tensor<4611686018427387904x16xf32>' overflows}}
  %w = moe.weight "w" at <"a", 0, 15> : tensor<4611686018427387904x16xf32>
  return
}

// -----

func.func @assemble_layout(%c: tensor<16x16xi8>, %s: tensor<16xi8>) {
  // expected-error@+1 {{expects a result without a layout}}
  %b = moe.assemble_blocks %c, %s : tensor<16x16xi8>, tensor<16xi8> -> !moe.block_tensor<[16, 32], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>
  return
}

// -----

func.func @assemble_codes(%c: tensor<16x15xi8>, %s: tensor<16xi8>) {
  // expected-error@+1 {{expects 256 bytes of codes for '!moe.block_tensor<[16, 32], mxfp4>', got 'tensor<16x15xi8>'}}
  %b = moe.assemble_blocks %c, %s : tensor<16x15xi8>, tensor<16xi8> -> !moe.block_tensor<[16, 32], mxfp4>
  return
}

// -----

func.func @assemble_scales(%c: tensor<16x16xi8>, %s: tensor<?xi8>) {
  // expected-error@+1 {{expects 16 bytes of scales for '!moe.block_tensor<[16, 32], mxfp4>', got 'tensor<?xi8>'}}
  %b = moe.assemble_blocks %c, %s : tensor<16x16xi8>, tensor<?xi8> -> !moe.block_tensor<[16, 32], mxfp4>
  return
}

// -----

func.func @dequantize_shape(%b: !moe.block_tensor<[16, 32], mxfp4>) {
  // expected-error@+1 {{expects a result of shape [16, 32], got [32, 16]}}
  %d = moe.dequantize %b : !moe.block_tensor<[16, 32], mxfp4> -> tensor<32x16xf32>
  return
}

// -----

func.func @dequantize_codes_format(%c: tensor<16x32xi8>, %s: tensor<1x1xf32>) {
  // expected-error@+1 {{expects codes in i32 words of eight for the format int4, got 'tensor<16x32xi8>'}}
  %d = moe.dequantize_codes int4 %c, %s blocks [16, 32] : tensor<16x32xi8>, tensor<1x1xf32> -> tensor<16x32xf32>
  return
}

// -----

func.func @dequantize_codes_block(%c: tensor<16x32xi8>, %s: tensor<1x1xf32>) {
  // expected-error@+1 {{expects the two sizes of a block, each at least 1, got [16, 0]}}
  %d = moe.dequantize_codes f8e4m3 %c, %s blocks [16, 0] : tensor<16x32xi8>, tensor<1x1xf32> -> tensor<16x32xf32>
  return
}

// -----

func.func @dequantize_codes_words(%c: tensor<16x4xi32>, %s: tensor<16x1xf32>) {
  // expected-error@+1 {{expects codes of shape [16, 5], got [16, 4]}}
  %d = moe.dequantize_codes int4 %c, %s blocks [1, 33] : tensor<16x4xi32>, tensor<16x1xf32> -> tensor<16x33xf32>
  return
}

// -----

func.func @dequantize_codes_scales(%c: tensor<80x128xi8>, %s: tensor<2x4xf32>) {
  // expected-error@+1 {{expects scales of shape [3, 4], got [2, 4]}}
  %d = moe.dequantize_codes f8e4m3 %c, %s blocks [32, 32] : tensor<80x128xi8>, tensor<2x4xf32> -> tensor<80x128xbf16>
  return
}

// -----

func.func @dequantize_codes_static(%c: tensor<?x128xi8>, %s: tensor<1x4xf32>) {
  // expected-error@+1 {{expects codes and scales of static shapes, got 'tensor<?x128xi8>' and 'tensor<1x4xf32>'}}
  %d = moe.dequantize_codes f8e5m2 %c, %s blocks [32, 32] : tensor<?x128xi8>, tensor<1x4xf32> -> tensor<32x128xbf16>
  return
}

// -----

func.func @dequantize_codes_vector(%c: tensor<128xi8>, %s: tensor<4xf32>) {
  // expected-error@+1 {{expects a result of a static shape [..., N, K], got 'tensor<128xbf16>'}}
  %d = moe.dequantize_codes f8e5m2 %c, %s blocks [1, 32] : tensor<128xi8>, tensor<4xf32> -> tensor<128xbf16>
  return
}

// -----

func.func @relayout_values(%x: tensor<16x32xf32>) {
  // expected-error@+1 {{expects source and result to differ in layout only, got 'tensor<16x32xf32>' and 'tensor<16x32xbf16>'}}
  %d = moe.relayout %x : tensor<16x32xf32> -> tensor<16x32xbf16>
  return
}

// -----

func.func @relayout_rank(%x: tensor<16xf32>) {
  // expected-error@+1 {{expects a layout of at most the rank of 'tensor<16xf32>'}}
  %d = moe.relayout %x : tensor<16xf32> -> tensor<16xf32, #moe.layout<tile = [16, 1], order = [0, 1], swizzle = none>>
  return
}

// -----

func.func @linear_weight_rank(%x: tensor<?x32xf32>, %w: tensor<64xf32>) {
  // expected-error@+1 {{expects a weight [N, K], got 'tensor<64xf32>'}}
  %y = moe.linear %x, %w : tensor<?x32xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @linear_input(%x: tensor<?x16xf32>, %w: tensor<64x32xf32>) {
  // expected-error@+1 {{expects input of shape [?, 32], got [?, 16]}}
  %y = moe.linear %x, %w : tensor<?x16xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @linear_result(%x: tensor<4x32xf32>, %w: tensor<64x32xf32>) {
  // expected-error@+1 {{expects result of shape [4, 64], got [4, 32]}}
  %y = moe.linear %x, %w : tensor<4x32xf32>, tensor<64x32xf32> -> tensor<4x32xf32>
  return
}

// -----

func.func @linear_bias(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) {
  // expected-error@+1 {{expects bias of shape [64], got [32]}}
  %y = moe.linear %x, %w bias(%b : tensor<32xf32>) : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @linear_residual(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>) {
  // expected-error@+1 {{expects residual of shape [?, 64], got [?, 32]}}
  %y = moe.linear %x, %w residual(%x : tensor<?x32xf32>) : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @linear_norm(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>, %n: tensor<64xf32>) {
  // expected-error@+1 {{expects norm weight of shape [32], got [64]}}
  %y = moe.linear %x, %w norm(%n : tensor<64xf32>) {epsilon = 0.0} : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @linear_epsilon_missing(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>, %n: tensor<32xf32>) {
  // expected-error@+1 {{expects 'epsilon' exactly when there is a norm weight}}
  %y = moe.linear %x, %w norm(%n : tensor<32xf32>) : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @linear_epsilon_alone(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>) {
  // expected-error@+1 {{expects 'epsilon' exactly when there is a norm weight}}
  %y = moe.linear %x, %w {epsilon = 0.0} : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @embedding_width(%i: tensor<?xi32>, %t: tensor<9x32xf32>) {
  // expected-error@+1 {{expects result of shape [?, 32], got [?, 16]}}
  %y = moe.embedding %i, %t : tensor<?xi32>, tensor<9x32xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @gather_rows_type(%x: tensor<?x32xf32>, %r: tensor<?xi32>) {
  // expected-error@+1 {{expects the result's element type to be the input's}}
  %y = moe.gather_rows %x, %r : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xbf16>
  return
}

// -----

func.func @gather_rows_width(%x: tensor<?x32xf32>, %r: tensor<3xi32>) {
  // expected-error@+1 {{expects result of shape [3, 32], got [4, 32]}}
  %y = moe.gather_rows %x, %r : tensor<?x32xf32>, tensor<3xi32> -> tensor<4x32xf32>
  return
}

// -----

func.func @norm_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{expects an input of at least one dimension}}
  %y = moe.rms_norm %x {epsilon = 0.0} : tensor<f32>
  return
}

// -----

func.func @norm_epsilon(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{expects an epsilon of at least 0}}
  %y = moe.rms_norm %x {epsilon = -1.0} : tensor<?x32xf32>
  return
}

// -----

func.func @norm_weight(%x: tensor<?x32xf32>, %w: tensor<16xf32>) {
  // expected-error@+1 {{expects weight of shape [32], got [16]}}
  %y = moe.rms_norm %x weight(%w : tensor<16xf32>) {epsilon = 0.0} : tensor<?x32xf32>
  return
}

// -----

func.func @norm_unit_offset(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{expects a weight with 'unit_offset'}}
  %y = moe.rms_norm %x {epsilon = 0.0, unit_offset} : tensor<?x32xf32>
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<?x32xf32>, %w: tensor<16xf32>) {
  // expected-error@+1 {{expects bias of shape [32], got [16]}}
  %y = moe.layer_norm %x bias(%w : tensor<16xf32>) {epsilon = 0.0} : tensor<?x32xf32>
  return
}

// -----

func.func @rope_positions(%x: tensor<4x2x8xf32>, %p: tensor<5xi32>) {
  // expected-error@+1 {{expects positions of shape [4], got [5]}}
  %y = moe.rope %x at %p <[1.0]> : tensor<4x2x8xf32>, tensor<5xi32>
  return
}

// -----

func.func @rope_range(%x: tensor<4x2x8xf32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects the rotation to lie within the head's 8 elements, got [6, 10)}}
  %y = moe.rope %x at %p <[1.0, 0.5], offset = 6> : tensor<4x2x8xf32>, tensor<4xi32>
  return
}

// -----

func.func @rope_no_frequencies(%x: tensor<4x2x8xf32>, %p: tensor<4xi32>) {
  // expected-error@+1 {{expects the rotation to lie within the head's 8 elements, got [0, 0)}}
  %y = moe.rope %x at %p <[]> : tensor<4x2x8xf32>, tensor<4xi32>
  return
}

// -----

func.func @append_key(%k: tensor<?x2x4xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects key of shape [?, 2, 8], got [?, 2, 4]}}
  moe.kv_append %k, %k into %c at (%p, %s, %b) : tensor<?x2x4xf32>, tensor<?x2x4xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  return
}

// -----

func.func @append_value(%k: tensor<?x2x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects value of shape [?, 2, 4], got [?, 2, 8]}}
  moe.kv_append %k, %k into %c at (%p, %s, %b) : tensor<?x2x8xf32>, tensor<?x2x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  return
}

// -----

func.func @append_sequences(%k: tensor<3x2x8xf32>, %v: tensor<3x2x4xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<3xi32>, %s: tensor<4xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects token_sequences of shape [3], got [4]}}
  moe.kv_append %k, %v into %c at (%p, %s, %b) : tensor<3x2x8xf32>, tensor<3x2x4xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<3xi32>, tensor<4xi32>, tensor<?x?xi32>
  return
}

// -----

func.func @append_rotary(%k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects the rotation to lie within the head's 8 elements, got [7, 9)}}
  moe.kv_append %k, %v into %c at (%p, %s, %b) {rotary = #moe.rotary<[1.0], offset = 7>} : tensor<?x2x8xf32>, tensor<?x2x4xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  return
}

// -----

func.func @attention_query(%q: tensor<?x6x4xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects query of shape [?, 6, 8], got [?, 6, 4]}}
  %y = moe.attention %q over %c at (%p, %s, %b) {scale = 1.0} : tensor<?x6x4xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x4xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<?x6x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects result of shape [?, 6, 4], got [?, 6, 8]}}
  %y = moe.attention %q over %c at (%p, %s, %b) {scale = 1.0} : tensor<?x6x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x8xf32>
  return
}

// -----

func.func @attention_heads(%q: tensor<?x5x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a number of heads that is a multiple of the cache's 2 kv_heads, got 5}}
  %y = moe.attention %q over %c at (%p, %s, %b) {scale = 1.0} : tensor<?x5x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x5x4xf32>
  return
}

// -----

func.func @attention_sinks(%q: tensor<?x6x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>, %k: tensor<2xf32>) {
  // expected-error@+1 {{expects sinks of shape [6], got [2]}}
  %y = moe.attention %q over %c at (%p, %s, %b) sinks(%k : tensor<2xf32>) {scale = 1.0} : tensor<?x6x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x4xf32>
  return
}

// -----

func.func @attention_indices(%q: tensor<4x6x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>, %i: tensor<3x8xi32>) {
  // expected-error@+1 {{expects indices of shape [4, ?], got [3, 8]}}
  %y = moe.attention %q over %c at (%p, %s, %b) indices(%i : tensor<3x8xi32>) {scale = 1.0} : tensor<4x6x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<4x6x4xf32>
  return
}

// -----

func.func @attention_window(%q: tensor<?x6x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a window of at least 0 (0: none), got -1}}
  %y = moe.attention %q over %c at (%p, %s, %b) {scale = 1.0, window = -1} : tensor<?x6x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x4xf32>
  return
}

// -----

func.func @attention_rotary(%q: tensor<?x6x8xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects the rotation to lie within the head's 8 elements, got [0, 10)}}
  %y = moe.attention %q over %c at (%p, %s, %b) {scale = 1.0, rotary = #moe.rotary<[1.0, 1.0, 1.0, 1.0, 1.0]>} : tensor<?x6x8xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x4xf32>
  return
}

// -----

func.func @route_dynamic_experts(%l: tensor<4x?xf32>) {
  // expected-error@+1 {{expects a static number of experts}}
  %w, %i = moe.route softmax(%l) {top_k = 1} : tensor<4x?xf32> -> tensor<4x1xf32>, tensor<4x1xi32>
  return
}

// -----

func.func @route_k_zero(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects top_k between 1 and the number of experts (16), got 0}}
  %w, %i = moe.route softmax(%l) {top_k = 0} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @topk_k_exceeds_experts(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects top_k between 1 and the number of experts (16), got 17}}
  %w, %i = moe.route softmax(%l) {top_k = 17} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_groups(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects the number of groups to divide the number of experts (16), got 3}}
  %w, %i = moe.route sigmoid(%l) {top_k = 4, groups = 3} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_top_groups(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects top_groups between 1 and groups (4), got 5}}
  %w, %i = moe.route sigmoid(%l) {top_k = 4, groups = 4, top_groups = 5} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_k_exceeds_groups(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects top_k of at most 8, the experts of 2 groups, got 9}}
  %w, %i = moe.route sigmoid(%l) {top_k = 9, groups = 4, top_groups = 2} : tensor<?x16xf32> -> tensor<?x9xf32>, tensor<?x9xi32>
  return
}

// -----

func.func @route_bias(%l: tensor<?x16xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{expects selection bias of shape [16], got [8]}}
  %w, %i = moe.route sigmoid(%l) bias(%b : tensor<8xf32>) {top_k = 4} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_weights(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects weights of shape [?, 2], got [?, 4]}}
  %w, %i = moe.route sigmoid(%l) {top_k = 2} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_indices(%l: tensor<?x16xf32>) {
  // expected-error@+1 {{expects indices of shape [?, 4], got [?, 2]}}
  %w, %i = moe.route sigmoid(%l) {top_k = 4} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @group_dynamic_choices(%i: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a static number of choices}}
  %o, %p = moe.group_tokens %i : tensor<?x?xi32> -> tensor<5xi32>, tensor<?xi32>
  return
}

// -----

func.func @group_offsets(%i: tensor<?x2xi32>) {
  // expected-error@+1 {{expects offsets of a static size of at least 2}}
  %o, %p = moe.group_tokens %i : tensor<?x2xi32> -> tensor<1xi32>, tensor<?xi32>
  return
}

// -----

func.func @group_pairs(%i: tensor<3x2xi32>) {
  // expected-error@+1 {{expects pairs of shape [6], got [7]}}
  %o, %p = moe.group_tokens %i : tensor<3x2xi32> -> tensor<5xi32>, tensor<7xi32>
  return
}

// -----

func.func @experts_gate_up_rank(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<64x32xf32>, %d: tensor<4x32x32xf32>) {
  // expected-error@+1 {{expects gate_up [experts, N, K], got 'tensor<64x32xf32>'}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<64x32xf32>) down(%d : tensor<4x32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_down_rank(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<32x32xf32>) {
  // expected-error@+1 {{expects down [experts, N, K], got 'tensor<32x32xf32>'}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_odd_rows(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x63x32xf32>, %d: tensor<4x32x32xf32>) {
  // expected-error@+1 {{expects an even number of gate_up rows, got 63}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x63x32xf32>) down(%d : tensor<4x32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_gate_up(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x16xf32>, %d: tensor<4x32x32xf32>) {
  // expected-error@+1 {{expects gate_up of shape [4, 64, 32], got [4, 64, 16]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x16xf32>) down(%d : tensor<4x32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_down(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<3x32x32xf32>) {
  // expected-error@+1 {{expects down of shape [4, 32, 32], got [3, 32, 32]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<3x32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_indices(%x: tensor<4x32xf32>, %i: tensor<5x2xi32>, %w: tensor<4x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<4x32x32xf32>) {
  // expected-error@+1 {{expects indices of shape [4, 2], got [5, 2]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<4x32x32xf32>) <silu> : tensor<4x32xf32>, tensor<5x2xi32>, tensor<4x2xf32> -> tensor<4x32xf32>
  return
}

// -----

func.func @experts_weights(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x3xf32>, %u: tensor<4x64x32xf32>, %d: tensor<4x32x32xf32>) {
  // expected-error@+1 {{expects weights of shape [?, 2], got [?, 3]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<4x32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x3xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_gate_up_bias(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<4x32x32xf32>, %b: tensor<4x32xf32>) {
  // expected-error@+1 {{expects gate_up_bias of shape [4, 64], got [4, 32]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<4x32x32xf32>) gate_up_bias(%b : tensor<4x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_down_bias(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<4x32x32xf32>, %b: tensor<4x64xf32>) {
  // expected-error@+1 {{expects down_bias of shape [4, 32], got [4, 64]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<4x32x32xf32>) down_bias(%b : tensor<4x64xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_residual(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<4x32x32xf32>, %b: tensor<?x64xf32>) {
  // expected-error@+1 {{expects residual of shape [?, 32], got [?, 64]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<4x32x32xf32>) residual(%b : tensor<?x64xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @experts_result(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %u: tensor<4x64x32xf32>, %d: tensor<4x32x32xf32>) {
  // expected-error@+1 {{expects result of shape [?, 32], got [?, 64]}}
  %y = moe.experts %x to %i, %w gate_up(%u : tensor<4x64x32xf32>) down(%d : tensor<4x32x32xf32>) <silu> : tensor<?x32xf32>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @grouped_weight_rank(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<64x32xf32>) {
  // expected-error@+1 {{expects weight [experts, N, K], got 'tensor<64x32xf32>'}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<64x32xf32>) {gather, top_k = 2} : tensor<3x32xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_top_k(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<4x64x32xf32>) {
  // expected-error@+1 {{expects top_k of at least 1, got -1}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) {gather, top_k = -1} : tensor<3x32xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_odd_rows(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<4x63x32xf32>) {
  // expected-error@+1 {{expects an even number of rows with an activation, got 63}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x63x32xf32>) {activation = #moe.activation<silu>, gather, top_k = 2} : tensor<3x32xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_input(%x: tensor<3x16xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<4x64x32xf32>) {
  // expected-error@+1 {{expects input of shape [3, 32], got [3, 16]}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) {gather, top_k = 2} : tensor<3x16xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_offsets(%x: tensor<3x32xf32>, %o: tensor<4xi32>, %p: tensor<6xi32>, %w: tensor<4x64x32xf32>) {
  // expected-error@+1 {{expects offsets of shape [5], got [4]}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) {gather, top_k = 2} : tensor<3x32xf32>, tensor<4xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_pairs(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<3xi32>, %w: tensor<4x64x32xf32>) {
  // expected-error@+1 {{expects pairs of shape [6], got [3]}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) {gather, top_k = 2} : tensor<3x32xf32>, tensor<5xi32>, tensor<3xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_pairs_without_gather(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<4x64x32xf32>) {
  // expected-error@+1 {{expects pairs of shape [3], got [6]}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) {top_k = 2} : tensor<3x32xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_bias(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<4x64x32xf32>, %b: tensor<4x32xf32>) {
  // expected-error@+1 {{expects bias of shape [4, 64], got [4, 32]}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) bias(%b : tensor<4x32xf32>) {gather, top_k = 2} : tensor<3x32xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @grouped_result(%x: tensor<3x32xf32>, %o: tensor<5xi32>, %p: tensor<6xi32>, %w: tensor<4x64x32xf32>) {
  // expected-error@+1 {{expects result of shape [6, 32], got [6, 64]}}
  %y = moe.grouped_linear %x by %o, %p weight(%w : tensor<4x64x32xf32>) {activation = #moe.activation<silu>, gather, top_k = 2} : tensor<3x32xf32>, tensor<5xi32>, tensor<6xi32> -> tensor<6x64xf32>
  return
}

// -----

func.func @combine_input(%x: tensor<5x8xf32>, %w: tensor<3x2xf32>, %i: tensor<3x2xi32>) {
  // expected-error@+1 {{expects input of shape [6, 8], got [5, 8]}}
  %y = moe.combine %x, %w, %i : tensor<5x8xf32>, tensor<3x2xf32>, tensor<3x2xi32> -> tensor<3x8xf32>
  return
}

// -----

func.func @combine_indices(%x: tensor<6x8xf32>, %w: tensor<3x2xf32>, %i: tensor<3x3xi32>) {
  // expected-error@+1 {{expects indices of shape [3, 2], got [3, 3]}}
  %y = moe.combine %x, %w, %i : tensor<6x8xf32>, tensor<3x2xf32>, tensor<3x3xi32> -> tensor<3x8xf32>
  return
}

// -----

func.func @combine_residual(%x: tensor<6x8xf32>, %w: tensor<3x2xf32>, %i: tensor<3x2xi32>, %r: tensor<2x8xf32>) {
  // expected-error@+1 {{expects residual of shape [3, 8], got [2, 8]}}
  %y = moe.combine %x, %w, %i residual(%r : tensor<2x8xf32>) : tensor<6x8xf32>, tensor<3x2xf32>, tensor<3x2xi32> -> tensor<3x8xf32>
  return
}

// -----

func.func @combine_result(%x: tensor<6x8xf32>, %w: tensor<3x2xf32>, %i: tensor<3x2xi32>) {
  // expected-error@+1 {{expects result of shape [3, 8], got [4, 8]}}
  %y = moe.combine %x, %w, %i : tensor<6x8xf32>, tensor<3x2xf32>, tensor<3x2xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @sample_dynamic_vocabulary(%x: tensor<?x?xf32>, %rows: tensor<2xi32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf64>, %q: tensor<2xf64>) {
  // expected-error@+1 {{expects logits of 1 to 4194304 columns, got 'tensor<?x?xf32>'}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x?xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf64>, tensor<2xf64> -> tensor<2xi32>
  return
}

// -----

func.func @sample_vocabulary_too_large(%x: tensor<?x4194305xf32>, %rows: tensor<2xi32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf64>, %q: tensor<2xf64>) {
  // expected-error@+1 {{expects logits of 1 to 4194304 columns, got 'tensor<?x4194305xf32>'}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x4194305xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf64>, tensor<2xf64> -> tensor<2xi32>
  return
}

// -----

func.func @sample_temperature(%x: tensor<?x32xf32>, %rows: tensor<2xi32>, %t: tensor<3xf32>, %k: tensor<2xi32>, %p: tensor<2xf64>, %q: tensor<2xf64>) {
  // expected-error@+1 {{expects temperature of shape [2], got [3]}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x32xf32>, tensor<2xi32>, tensor<3xf32>, tensor<2xi32>, tensor<2xf64>, tensor<2xf64> -> tensor<2xi32>
  return
}

// -----

func.func @sample_top_k(%x: tensor<?x32xf32>, %rows: tensor<2xi32>, %t: tensor<2xf32>, %k: tensor<3xi32>, %p: tensor<2xf64>, %q: tensor<2xf64>) {
  // expected-error@+1 {{expects top_k of shape [2], got [3]}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x32xf32>, tensor<2xi32>, tensor<2xf32>, tensor<3xi32>, tensor<2xf64>, tensor<2xf64> -> tensor<2xi32>
  return
}

// -----

func.func @sample_top_p(%x: tensor<?x32xf32>, %rows: tensor<2xi32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<3xf64>, %q: tensor<2xf64>) {
  // expected-error@+1 {{expects top_p of shape [2], got [3]}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x32xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32>, tensor<3xf64>, tensor<2xf64> -> tensor<2xi32>
  return
}

// -----

func.func @sample_random(%x: tensor<?x32xf32>, %rows: tensor<2xi32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf64>, %q: tensor<3xf64>) {
  // expected-error@+1 {{expects random of shape [2], got [3]}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x32xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf64>, tensor<3xf64> -> tensor<2xi32>
  return
}

// -----

func.func @sample_tokens(%x: tensor<?x32xf32>, %rows: tensor<2xi32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf64>, %q: tensor<2xf64>) {
  // expected-error@+1 {{expects tokens of shape [2], got [3]}}
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%q)
      : tensor<?x32xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf64>, tensor<2xf64> -> tensor<3xi32>
  return
}

// -----

// expected-error@+1 {{expects positive sizes whose product fits in 64 bits}}
func.func private @state_empty(!moe.state<[3, 0], f32>)

// -----

// expected-error@+1 {{expects positive sizes whose product fits in 64 bits}}
func.func private @state_too_large(!moe.state<[4294967296, 4294967296], f32>)

// -----

// expected-error@+1 {{expects element type f32, bf16 or f16, got 'i32'}}
func.func private @state_element(!moe.state<[3, 8], i32>)

// -----

func.func @conv_channels(%x: tensor<?x9xf32>, %w: tensor<8x4xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects input of shape [?, 8], got [?, 9]}}
  %y = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %s at (%p, %o, %z) : tensor<?x9xf32>, !moe.state<[3, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @conv_one_tap(%x: tensor<?x8xf32>, %w: tensor<8x1xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a weight of at least 2 taps, got 1}}
  %y = moe.causal_conv %x weight(%w : tensor<8x1xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[3, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @conv_dynamic_weight(%x: tensor<?x8xf32>, %w: tensor<8x?xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a weight of static shape, got 'tensor<8x?xf32>'}}
  %y = moe.causal_conv %x weight(%w : tensor<8x?xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[3, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @conv_state_shape(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %s: !moe.state<[8, 3], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a state of type '!moe.state<[3, 8], f32>', got '!moe.state<[8, 3], f32>'}}
  %y = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[8, 3], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @conv_state_element(%x: tensor<?x8xbf16>, %w: tensor<8x4xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a state of type '!moe.state<[3, 8], bf16>', got '!moe.state<[3, 8], f32>'}}
  %y = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %s at (%p, %o, %z) : tensor<?x8xbf16>, !moe.state<[3, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @conv_positions(%x: tensor<5x8xf32>, %w: tensor<8x4xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<4xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects positions of shape [5], got [4]}}
  %y = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %s at (%p, %o, %z) : tensor<5x8xf32>, !moe.state<[3, 8], f32>, tensor<4xi32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @conv_slots(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<?xi32>, %o: tensor<4xi32>, %z: tensor<4xi32>) {
  // expected-error@+1 {{expects state_slots of shape [3], got [4]}}
  %y = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[3, 8], f32>, tensor<?xi32>, tensor<4xi32>, tensor<4xi32>
  return
}

// -----

func.func @conv_no_offsets(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %s: !moe.state<[3, 8], f32>, %p: tensor<?xi32>, %o: tensor<0xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects at least one sequence offset}}
  %y = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[3, 8], f32>, tensor<?xi32>, tensor<0xi32>, tensor<?xi32>
  return
}

// -----

func.func @delta_heads(%q: tensor<?x3x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a number of heads that is a multiple of the 3 key heads, got 4}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x3x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_dynamic_heads(%q: tensor<?x?x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects static heads and dimensions, got 'tensor<?x?x4xf32>' and 'tensor<?x4x8xf32>'}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x?x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_key(%q: tensor<?x2x4xf32>, %k: tensor<?x2x5xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects key of shape [?, 2, 4], got [?, 2, 5]}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x5xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_decay_of_key_heads(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x2xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects decay of shape [?, 4], got [?, 2]}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x2xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_decay_channels(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x8xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects decay of shape [?, 4, 4], got [?, 4, 8]}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x8xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_beta(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x2xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects beta of shape [?, 4], got [?, 2]}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x2xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_result(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects result of shape [?, 4, 8], got [?, 4, 4]}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @delta_state_transposed(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 8, 4], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a state of type '!moe.state<[4, 4, 8], f32>', got '!moe.state<[4, 8, 4], f32>'}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 8, 4], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_state_narrow(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], bf16>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a state of type '!moe.state<[4, 4, 8], f32>', got '!moe.state<[4, 4, 8], bf16>'}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], bf16>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @delta_epsilon(%q: tensor<?x2x4xf32>, %k: tensor<?x2x4xf32>, %v: tensor<?x4x8xf32>, %g: tensor<?x4x4xf32>, %b: tensor<?x4xf32>, %s: !moe.state<[4, 4, 8], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a norm_epsilon of at least 0}}
  %y = moe.delta_rule %q, %k, %v decay(%g : tensor<?x4x4xf32>) beta(%b : tensor<?x4xf32>) over %s at (%p, %o, %z) {scale = 1.0, norm_epsilon = -1.0} : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x4x8xf32>, !moe.state<[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @decay_too_few_heads(%x: tensor<?x2x4xf32>, %a: tensor<1xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{expects an a_log of at least 2 heads, got 'tensor<1xf32>'}}
  %y = moe.decay_gate %x a_log(%a : tensor<1xf32>) bias(%b : tensor<2x4xf32>) : tensor<?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @decay_bias_flat(%x: tensor<?x2x4xf32>, %a: tensor<2xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{expects bias of shape [2, 4], got [8]}}
  %y = moe.decay_gate %x a_log(%a : tensor<2xf32>) bias(%b : tensor<8xf32>) : tensor<?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @decay_result(%x: tensor<?x2x4xf32>, %a: tensor<2xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{expects result of shape [?, 2, 4], got [?, 2, 2]}}
  %y = moe.decay_gate %x a_log(%a : tensor<2xf32>) bias(%b : tensor<2x4xf32>) : tensor<?x2x4xf32> -> tensor<?x2x2xf32>
  return
}

// -----

func.func @decay_bound(%x: tensor<?x2x4xf32>, %a: tensor<2xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{expects a lower_bound below 0, got 5.000000e+00}}
  %y = moe.decay_gate %x a_log(%a : tensor<2xf32>) bias(%b : tensor<2x4xf32>) {lower_bound = 5.0} : tensor<?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @decay_dynamic_heads(%x: tensor<?x?x4xf32>, %a: tensor<2xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{expects static heads and channels, got 'tensor<?x?x4xf32>'}}
  %y = moe.decay_gate %x a_log(%a : tensor<2xf32>) bias(%b : tensor<2x4xf32>) : tensor<?x?x4xf32> -> tensor<?x?x4xf32>
  return
}

// -----

func.func @gated_norm_gate(%x: tensor<?x8xf32>, %g: tensor<?x4xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects gate of shape [?, 8], got [?, 4]}}
  %y = moe.gated_rms_norm %x by silu(%g : tensor<?x4xf32>) weight(%w : tensor<8xf32>) {epsilon = 1.0e-5} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @gated_norm_weight(%x: tensor<?x8xf32>, %g: tensor<?x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{expects weight of shape [8], got [4]}}
  %y = moe.gated_rms_norm %x by silu(%g : tensor<?x8xf32>) weight(%w : tensor<4xf32>) {epsilon = 1.0e-5} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @gated_norm_result(%x: tensor<?x8xf32>, %g: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects result of shape [?, 8], got [?, 4]}}
  %y = moe.gated_rms_norm %x by silu(%g : tensor<?x8xf32>) weight(%w : tensor<8xf32>) {epsilon = 1.0e-5} : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @gate_up(%g: tensor<?x8xf32>, %u: tensor<?x4xf32>) {
  // expected-error@+1 {{expects up of shape [?, 8], got [?, 4]}}
  %h = moe.gate %g, %u <silu> : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @gate_interleaved(%g: tensor<?x8xf32>) {
  // expected-error@+1 {{expects an activation that is not interleaved}}
  %h = moe.gate %g, %g <silu, interleaved = true> : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @mix_candidate(%a: tensor<?x8xf32>, %b: tensor<?x4xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects candidate 1 of shape [?, 8], got [?, 4]}}
  %y = moe.mix_residuals %a, %b weight(%w : tensor<8xf32>) {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @mix_weight(%a: tensor<?x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{expects weight of shape [8], got [4]}}
  %y = moe.mix_residuals %a weight(%w : tensor<4xf32>) {epsilon = 1.0e-5} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @mix_epsilon(%a: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects an epsilon of at least 0}}
  %y = moe.mix_residuals %a weight(%w : tensor<8xf32>) {epsilon = -1.0} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @mix_nothing(%w: tensor<8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{expects at least one candidate}}
  %y = "moe.mix_residuals"(%w) {epsilon = 1.0e-5} : (tensor<8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// expected-error@+1 {{expects a value_dim of at most key_dim = 8 in a cache of form 'shared', got 9}}
func.func private @shared_value(!moe.cache<kv_heads = 1, key_dim = 8, value_dim = 9, block = 16, f32, shared>)

// -----

func.func @append_values_to_shared(%k: tensor<?x1x8xf32>, %v: tensor<?x1x4xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects no values for a cache of form 'shared'}}
  moe.kv_append %k, %v into %c at (%p, %s, %b) : tensor<?x1x8xf32>, tensor<?x1x4xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  return
}

// -----

func.func @append_without_values(%k: tensor<?x1x8xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects values for a cache of form 'split'}}
  moe.kv_append %k into %c at (%p, %s, %b) : tensor<?x1x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  return
}

// -----

func.func @select_split_cache(%q: tensor<?x3x8xf32>, %w: tensor<?x3xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a cache of form 'shared' with one kv_head, got '!moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32>'}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 5} : tensor<?x3x8xf32>, tensor<?x3xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x5xi32>
  return
}

// -----

func.func @select_two_heads(%q: tensor<?x3x8xf32>, %w: tensor<?x3xf32>, %c: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a cache of form 'shared' with one kv_head}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 5} : tensor<?x3x8xf32>, tensor<?x3xf32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x5xi32>
  return
}

// -----

func.func @select_no_keys(%q: tensor<?x3x8xf32>, %w: tensor<?x3xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects top_k of 1 to 4096, got 0}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 0} : tensor<?x3x8xf32>, tensor<?x3xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x0xi32>
  return
}

// -----

func.func @select_too_many(%q: tensor<?x3x8xf32>, %w: tensor<?x3xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects top_k of 1 to 4096, got 4097}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 4097} : tensor<?x3x8xf32>, tensor<?x3xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4097xi32>
  return
}

// -----

func.func @select_query(%q: tensor<?x3x6xf32>, %w: tensor<?x3xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects query of shape [?, 3, 8], got [?, 3, 6]}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 5} : tensor<?x3x6xf32>, tensor<?x3xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x5xi32>
  return
}

// -----

func.func @select_weights(%q: tensor<?x3x8xf32>, %w: tensor<?x2xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects weights of shape [?, 3], got [?, 2]}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 5} : tensor<?x3x8xf32>, tensor<?x2xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x5xi32>
  return
}

// -----

func.func @select_result(%q: tensor<?x3x8xf32>, %w: tensor<?x3xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects result of shape [?, 5], got [?, 4]}}
  %i = moe.select_keys %q weights(%w) over %c at (%p, %s, %b) {scale = 1.0, top_k = 5} : tensor<?x3x8xf32>, tensor<?x3xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4xi32>
  return
}

// -----

func.func @head_linear_input(%x: tensor<?x4x8xf32>, %w: tensor<4x3x7xf32>) {
  // expected-error@+1 {{expects input of shape [?, 4, 7], got [?, 4, 8]}}
  %y = moe.head_linear %x, %w : tensor<?x4x8xf32>, tensor<4x3x7xf32> -> tensor<?x4x3xf32>
  return
}

// -----

func.func @head_linear_transposed(%x: tensor<?x4x8xf32>, %w: tensor<4x3x8xf32>) {
  // expected-error@+1 {{expects input of shape [?, 4, 3], got [?, 4, 8]}}
  %y = moe.head_linear %x, %w {transposed} : tensor<?x4x8xf32>, tensor<4x3x8xf32> -> tensor<?x4x3xf32>
  return
}

// -----

func.func @head_linear_result(%x: tensor<?x4x8xf32>, %w: tensor<4x3x8xf32>) {
  // expected-error@+1 {{expects result of shape [?, 4, 3], got [?, 4, 2]}}
  %y = moe.head_linear %x, %w : tensor<?x4x8xf32>, tensor<4x3x8xf32> -> tensor<?x4x2xf32>
  return
}

// -----

func.func @attention_without_values(%q: tensor<?x3x8xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 0, block = 16, f32, shared>, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a cache with values, got '!moe.cache<kv_heads = 1, key_dim = 8, value_dim = 0, block = 16, f32, shared>'}}
  %y = moe.attention %q over %c at (%p, %s, %b) {scale = 1.0} : tensor<?x3x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 0, block = 16, f32, shared>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x3x0xf32>
  return
}

// -----

func.func @hyper_columns(%p: tensor<?x7xf32>, %x: tensor<?x2x8xf32>, %s: tensor<3xf32>, %b: tensor<7xf32>) {
  // expected-error@+1 {{expects products of 2 or 8 columns for 2 streams, got 7}}
  %w = moe.hyper_weights %p of %x scale(%s : tensor<3xf32>) base(%b : tensor<7xf32>) {epsilon = 1.0e-6, norm_epsilon = 1.0e-6} : tensor<?x7xf32>, tensor<?x2x8xf32> -> tensor<?x7xf32>
  return
}

// -----

func.func @hyper_scale_of_head(%p: tensor<?x2xf32>, %x: tensor<?x2x8xf32>, %s: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error@+1 {{expects scale of shape [1], got [3]}}
  %w = moe.hyper_weights %p of %x scale(%s : tensor<3xf32>) base(%b : tensor<2xf32>) {epsilon = 1.0e-6, norm_epsilon = 1.0e-6} : tensor<?x2xf32>, tensor<?x2x8xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @hyper_no_iteration(%p: tensor<?x8xf32>, %x: tensor<?x2x8xf32>, %s: tensor<3xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{expects at least 1 iteration, got 0}}
  %w = moe.hyper_weights %p of %x scale(%s : tensor<3xf32>) base(%b : tensor<8xf32>) {iterations = 0, epsilon = 1.0e-6, norm_epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<?x2x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @hyper_epsilon(%p: tensor<?x8xf32>, %x: tensor<?x2x8xf32>, %s: tensor<3xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{expects norm_epsilon of at least 0}}
  %w = moe.hyper_weights %p of %x scale(%s : tensor<3xf32>) base(%b : tensor<8xf32>) {epsilon = 1.0e-6, norm_epsilon = -1.0e-6} : tensor<?x8xf32>, tensor<?x2x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @hyper_collapse_weights(%x: tensor<?x4x8xf32>, %w: tensor<?x3xf32>) {
  // expected-error@+1 {{expects at least 4 weights for a token, got 'tensor<?x3xf32>'}}
  %y = moe.hyper_collapse %x by %w : tensor<?x4x8xf32>, tensor<?x3xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @hyper_collapse_streams(%x: tensor<?x?x8xf32>, %w: tensor<?x3xf32>) {
  // expected-error@+1 {{expects a static number of streams and of features, got 'tensor<?x?x8xf32>'}}
  %y = moe.hyper_collapse %x by %w : tensor<?x?x8xf32>, tensor<?x3xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @hyper_expand_weights(%y: tensor<?x8xf32>, %x: tensor<?x2x8xf32>, %w: tensor<?x4xf32>) {
  // expected-error@+1 {{expects weights of shape [?, 8], got [?, 4]}}
  %s = moe.hyper_expand %y into %x by %w : tensor<?x8xf32>, tensor<?x2x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @hash_route_softmax(%l: tensor<?x8xf32>, %t: tensor<?xi32>, %e: tensor<9x2xi64>) {
  // expected-error@+1 {{expects a score of one logit each, sigmoid or sqrt_softplus, got softmax}}
  %w, %i = moe.hash_route softmax(%l) of %t in %e : tensor<?x8xf32>, tensor<?xi32>, tensor<9x2xi64> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @hash_route_choices(%l: tensor<?x8xf32>, %t: tensor<?xi32>, %e: tensor<9x2xi64>) {
  // expected-error@+1 {{expects indices of shape [?, 2], got [?, 3]}}
  %w, %i = moe.hash_route sigmoid(%l) of %t in %e : tensor<?x8xf32>, tensor<?xi32>, tensor<9x2xi64> -> tensor<?x2xf32>, tensor<?x3xi32>
  return
}

// -----

func.func @hash_route_table(%l: tensor<?x8xf32>, %t: tensor<?xi32>, %e: tensor<?x2xi64>) {
  // expected-error@+1 {{expects a table of static shape with a row for each id, got 'tensor<?x2xi64>'}}
  %w, %i = moe.hash_route sigmoid(%l) of %t in %e : tensor<?x8xf32>, tensor<?xi32>, tensor<?x2xi64> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @compress_channels(%k: tensor<?x12xf32>, %b: tensor<4x12xf32>, %s: !moe.state<[3, 4], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects keys of as many channels as the result or, with overlap, twice as many, got 'tensor<?x12xf32>' for 'tensor<?x4xf32>'}}
  %e = moe.compress %k gates(%k : tensor<?x12xf32>) bias(%b : tensor<4x12xf32>) over %s at (%p, %o, %z) : tensor<?x12xf32>, !moe.state<[3, 4], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @compress_state(%k: tensor<?x8xf32>, %b: tensor<4x8xf32>, %s: !moe.state<[3, 4], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects a state of type '!moe.state<[6, 4], f32>', got '!moe.state<[3, 4], f32>'}}
  %e = moe.compress %k gates(%k : tensor<?x8xf32>) bias(%b : tensor<4x8xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[3, 4], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @compress_bias(%k: tensor<?x8xf32>, %b: tensor<4x4xf32>, %s: !moe.state<[6, 4], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) {
  // expected-error@+1 {{expects bias of shape [4, 8], got [4, 4]}}
  %e = moe.compress %k gates(%k : tensor<?x8xf32>) bias(%b : tensor<4x4xf32>) over %s at (%p, %o, %z) : tensor<?x8xf32>, !moe.state<[6, 4], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @select_entries_cache(%q: tensor<?x4x8xf32>, %g: tensor<?x4xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a cache of one head with values of 8 elements, got '!moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 4, f32>'}}
  %i = moe.select_entries %q weights(%g : tensor<?x4xf32>) over %c at (%p, %p, %t) {ratio = 4} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 4, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2xi32>
  return
}

// -----

func.func @select_entries_weights(%q: tensor<?x4x8xf32>, %g: tensor<?x8xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) {
  // expected-error@+1 {{expects weights of shape [?, 4], got [?, 8]}}
  %i = moe.select_entries %q weights(%g : tensor<?x8xf32>) over %c at (%p, %p, %t) {ratio = 4} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2xi32>
  return
}

// -----

func.func @select_entries_ratio(%q: tensor<?x4x8xf32>, %g: tensor<?x4xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a ratio of at least 1, got 0}}
  %i = moe.select_entries %q weights(%g : tensor<?x4xf32>) over %c at (%p, %p, %t) {ratio = 0} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2xi32>
  return
}

// -----

func.func @compressed_attention_window(%q: tensor<?x4x8xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a window of at least 1, got 0}}
  %o = moe.compressed_attention %q over %c and %c at (%p, %p, %t) {scale = 0.5, window = 0, ratio = 4} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @compressed_attention_entries(%q: tensor<?x4x8xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, %e: !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 8, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) {
  // expected-error@+1 {{expects entries of one head with values of 8 elements, got '!moe.cache<kv_heads = 2}}
  %o = moe.compressed_attention %q over %c and %e at (%p, %p, %t) {scale = 0.5, window = 2, ratio = 4} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @compressed_attention_stride(%q: tensor<?x4x8xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) {
  // expected-error@+1 {{expects a stride of at least 1, got -2}}
  %o = moe.compressed_attention %q over %c and %c at (%p, %p, %t) {scale = 0.5, window = 2, ratio = 4, stride = -2} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @replace_rows_none(%x: tensor<?x8xf32>, %n: tensor<0x8xf32>, %r: tensor<?xi32>) {
  // expected-error@+1 {{expects at least one row of replacements}}
  %y = moe.replace_rows %x with %n at %r : tensor<?x8xf32>, tensor<0x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @replace_rows_width(%x: tensor<?x8xf32>, %n: tensor<?x4xf32>, %r: tensor<?xi32>) {
  // expected-error@+1 {{expects replacements of shape [?, 8], got [?, 4]}}
  %y = moe.replace_rows %x with %n at %r : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @replace_rows_count(%x: tensor<5x8xf32>, %n: tensor<?x8xf32>, %r: tensor<4xi32>) {
  // expected-error@+1 {{expects rows of shape [5], got [4]}}
  %y = moe.replace_rows %x with %n at %r : tensor<5x8xf32>, tensor<?x8xf32>, tensor<4xi32>
  return
}

// -----

func.func @interpolate_positions_grid(%g: tensor<?x4x8xf32>, %r: tensor<?xi32>) {
  // expected-error@+1 {{expects a static grid of at least one row and one column, got 'tensor<?x4x8xf32>'}}
  %p = moe.interpolate_positions %g at (%r of %r, %r of %r) : tensor<?x4x8xf32>, tensor<?xi32> -> tensor<?x8xf32>
  return
}

// -----

func.func @interpolate_positions_width(%g: tensor<6x4x8xf32>, %r: tensor<?xi32>) {
  // expected-error@+1 {{expects result of shape [?, 8], got [?, 4]}}
  %p = moe.interpolate_positions %g at (%r of %r, %r of %r) : tensor<6x4x8xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return
}
