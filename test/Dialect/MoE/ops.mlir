// RUN: %moec-opt %s | %moec-opt | FileCheck %s
// RUN: %moec-opt %s --mlir-print-op-generic | %moec-opt | FileCheck %s

!cache = !moe.cache<kv_heads = 2, key_dim = 8, value_dim = 4, block = 16, bf16>
!state = !moe.state<[4, 8], f32>
!blocks = !moe.block_tensor<[4, 64, 32], mxfp4>
!panels = !moe.block_tensor<[4, 64, 32], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>

// CHECK-LABEL: func.func @weights
func.func @weights() -> (tensor<4x8xf32>, !blocks) {
  // CHECK: moe.weight "model.norm.weight" at <"model-00001.safetensors", 8192, 128> : tensor<4x8xf32>
  %w = moe.weight "model.norm.weight" at <"model-00001.safetensors", 8192, 128> : tensor<4x8xf32>
  // CHECK: moe.weight "experts.0" at <"a.safetensors", 0, 64> and ["experts.1"] at [#moe.weight_ref<"b.safetensors", 512, 64>] : tensor<2x4x4xf32>
  %stacked = moe.weight "experts.0" at <"a.safetensors", 0, 64> and ["experts.1"] at [#moe.weight_ref<"b.safetensors", 512, 64>] : tensor<2x4x4xf32>
  %codes = moe.weight "codes" at <"a.safetensors", 0, 4096> : tensor<4x64x1x16xi8>
  %scales = moe.weight "scales" at <"a.safetensors", 4096, 256> : tensor<4x64x1xi8>
  // CHECK: moe.assemble_blocks %{{.*}}, %{{.*}} : tensor<4x64x1x16xi8>, tensor<4x64x1xi8> -> <[4, 64, 32], mxfp4>
  %b = moe.assemble_blocks %codes, %scales : tensor<4x64x1x16xi8>, tensor<4x64x1xi8> -> !blocks
  return %w, %b : tensor<4x8xf32>, !blocks
}

// CHECK: moe.global @packed : !moe.block_tensor<[4, 64, 32], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>
moe.global @packed : !panels

// CHECK-LABEL: func.func @globals
func.func @globals(%b: !blocks) -> tensor<4x64x32xbf16> {
  // CHECK: moe.relayout %{{.*}} : !moe.block_tensor<[4, 64, 32], mxfp4> -> !moe.block_tensor<[4, 64, 32], mxfp4, <tile = [16, 32], order = [0, 1], swizzle = nibble_words>>
  %p = moe.relayout %b : !blocks -> !panels
  // CHECK: moe.global_store %{{.*}}, @packed : !moe.block_tensor
  moe.global_store %p, @packed : !panels
  // CHECK: moe.global_load @packed : !moe.block_tensor
  %q = moe.global_load @packed : !panels
  %r = moe.relayout %q : !panels -> !blocks
  // CHECK: moe.dequantize %{{.*}} : <[4, 64, 32], mxfp4> -> tensor<4x64x32xbf16>
  %d = moe.dequantize %r : !blocks -> tensor<4x64x32xbf16>
  return %d : tensor<4x64x32xbf16>
}

// CHECK-LABEL: func.func @dequantize_codes
func.func @dequantize_codes(%c: tensor<80x128xi8>, %s: tensor<1x1xf32>, %w: tensor<2x4x8xi32>, %g: tensor<2x4x2xbf16>) {
  // CHECK: moe.dequantize_codes f8e4m3 %{{.*}}, %{{.*}} blocks [128, 128] : tensor<80x128xi8>, tensor<1x1xf32> -> tensor<80x128xbf16>
  %d = moe.dequantize_codes f8e4m3 %c, %s blocks [128, 128] : tensor<80x128xi8>, tensor<1x1xf32> -> tensor<80x128xbf16>
  // CHECK: moe.dequantize_codes int4 %{{.*}}, %{{.*}} blocks [1, 32] : tensor<2x4x8xi32>, tensor<2x4x2xbf16> -> tensor<2x4x64xf32>
  %e = moe.dequantize_codes int4 %w, %g blocks [1, 32] : tensor<2x4x8xi32>, tensor<2x4x2xbf16> -> tensor<2x4x64xf32>
  return
}

// CHECK-LABEL: func.func @layouts
// CHECK-SAME: tensor<33x7xf32, #moe.layout<tile = [16, 1], order = [1, 0], swizzle = none>>
// CHECK-SAME: tensor<4x33x7xbf16, #moe.layout<tile = [16, 2], order = [0, 1], swizzle = pairs>>
func.func @layouts(%a: tensor<33x7xf32, #moe.layout<tile = [16, 1], order = [1, 0], swizzle = none>>,
                   %b: tensor<4x33x7xbf16, #moe.layout<tile = [16, 2], order = [0, 1], swizzle = pairs>>) {
  return
}

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<?x32xf32>, %w: tensor<64x32xbf16>, %b: tensor<64xbf16>, %r: tensor<?x64xf32>, %n: tensor<32xf32>)
    -> tensor<?x64xf32> {
  // CHECK: moe.linear %{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  %0 = moe.linear %x, %w : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  // CHECK: moe.linear %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<64xbf16>) residual(%{{.*}} : tensor<?x64xf32>) norm(%{{.*}} : tensor<32xf32>) {epsilon = 1.000000e-05 : f64, strategy = "vector"}
  %1 = moe.linear %x, %w bias(%b : tensor<64xbf16>) residual(%r : tensor<?x64xf32>) norm(%n : tensor<32xf32>)
      {epsilon = 1.0e-5 : f64, strategy = "vector"} : tensor<?x32xf32>, tensor<64x32xbf16> -> tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @rows
func.func @rows(%ids: tensor<?xi32>, %table: tensor<100x32xbf16>, %rows: tensor<?xi32>) -> tensor<?x32xf32> {
  // CHECK: moe.embedding %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<100x32xbf16> -> tensor<?x32xf32>
  %0 = moe.embedding %ids, %table : tensor<?xi32>, tensor<100x32xbf16> -> tensor<?x32xf32>
  // CHECK: moe.gather_rows %{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  %1 = moe.gather_rows %0, %rows : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<?x4x32xbf16>, %w: tensor<32xf32>, %b: tensor<32xf32>) {
  // CHECK: moe.rms_norm %{{.*}} {epsilon = 0.000000e+00 : f64} : tensor<?x4x32xbf16>
  %0 = moe.rms_norm %x {epsilon = 0.0} : tensor<?x4x32xbf16>
  // CHECK: moe.rms_norm %{{.*}} weight(%{{.*}} : tensor<32xf32>) {epsilon = 1.000000e-05 : f64, unit_offset} : tensor<?x4x32xbf16>
  %1 = moe.rms_norm %x weight(%w : tensor<32xf32>) {epsilon = 1.0e-5, unit_offset} : tensor<?x4x32xbf16>
  // CHECK: moe.layer_norm %{{.*}} {epsilon = 1.000000e-05 : f64} : tensor<?x4x32xbf16>
  %2 = moe.layer_norm %x {epsilon = 1.0e-5} : tensor<?x4x32xbf16>
  // CHECK: moe.layer_norm %{{.*}} weight(%{{.*}} : tensor<32xf32>) bias(%{{.*}} : tensor<32xf32>) {epsilon = 1.000000e-05 : f64} : tensor<?x4x32xbf16>
  %3 = moe.layer_norm %x weight(%w : tensor<32xf32>) bias(%b : tensor<32xf32>) {epsilon = 1.0e-5} : tensor<?x4x32xbf16>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %cache: !cache, %state: !state,
                     %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %table: tensor<?x?xi32>,
                     %sinks: tensor<6xbf16>, %indices: tensor<?x16xi32>) -> tensor<?x6x4xf32> {
  // CHECK: moe.rope %{{.*}} at %{{.*}} <[1.0e+00, 1.0e-01, 1.0e-02], magnitude = 1.346573590279973e+00, offset = 2> : tensor<?x6x8xf32>, tensor<?xi32>
  %0 = moe.rope %q at %positions <[1.0, 0.1, 0.01], magnitude = 1.346573590279973, offset = 2> : tensor<?x6x8xf32>, tensor<?xi32>
  // CHECK: moe.rope %{{.*}} at %{{.*}} <[1.0e+00], interleaved>
  %1 = moe.rope %q at %positions <[1.0], interleaved> : tensor<?x6x8xf32>, tensor<?xi32>
  // CHECK: moe.kv_append %{{.*}}, %{{.*}} into %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) :
  moe.kv_append %k, %v into %cache at (%positions, %sequences, %table)
      : tensor<?x2x8xf32>, tensor<?x2x4xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  // CHECK: moe.kv_append {{.*}} {rotary = #moe.rotary<[1.0e+00, 5.0e-01]>} :
  moe.kv_append %k, %v into %cache at (%positions, %sequences, %table) {rotary = #moe.rotary<[1.0, 0.5]>}
      : tensor<?x2x8xf32>, tensor<?x2x4xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  // CHECK: moe.attention %{{.*}} over %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) {scale = 1.250000e-01 : f64} :
  %2 = moe.attention %0 over %cache at (%positions, %sequences, %table) {scale = 0.125}
      : tensor<?x6x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x4xf32>
  // CHECK: moe.attention {{.*}} sinks(%{{.*}} : tensor<6xbf16>) indices(%{{.*}} : tensor<?x16xi32>)
  // CHECK-SAME: rotary = #moe.rotary<[1.0e+00, 5.0e-01]>, scale = 1.250000e-01 : f64, softcap = 5.000000e+01 : f64, strategy = "rows", window = 128 : i64
  %3 = moe.attention %q over %cache at (%positions, %sequences, %table) sinks(%sinks : tensor<6xbf16>) indices(%indices : tensor<?x16xi32>)
      {rotary = #moe.rotary<[1.0, 0.5]>, scale = 0.125, softcap = 50.0, strategy = "rows", window = 128 : i64}
      : tensor<?x6x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x4xf32>
  return %3 : tensor<?x6x4xf32>
}

// CHECK-LABEL: func.func @recurrent
func.func @recurrent(%x: tensor<?x8xbf16>, %w: tensor<8x4xf32>, %window: !moe.state<[3, 8], bf16>,
                     %q: tensor<?x2x4xbf16>, %v: tensor<?x4x8xbf16>, %z: tensor<?x4x4xbf16>, %beta: tensor<?x4xf32>,
                     %a: tensor<16xf32>, %b: tensor<4x4xf32>, %n: tensor<8xf32>, %matrices: !moe.state<[4, 4, 8], f32>,
                     %positions: tensor<?xi32>, %offsets: tensor<?xi32>, %slots: tensor<?xi32>) -> tensor<?x4x8xbf16> {
  // CHECK: moe.causal_conv %{{.*}} weight(%{{.*}} : tensor<8x4xf32>) over %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) {silu} :
  // CHECK-SAME: tensor<?x8xbf16>, <[3, 8], bf16>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  %0 = moe.causal_conv %x weight(%w : tensor<8x4xf32>) over %window at (%positions, %offsets, %slots) {silu}
      : tensor<?x8xbf16>, !moe.state<[3, 8], bf16>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  // CHECK: moe.decay_gate %{{.*}} a_log(%{{.*}} : tensor<16xf32>) bias(%{{.*}} : tensor<4x4xf32>) {lower_bound = -5.000000e+00 : f64} :
  // CHECK-SAME: tensor<?x4x4xbf16> -> tensor<?x4x4xf32>
  %g = moe.decay_gate %z a_log(%a : tensor<16xf32>) bias(%b : tensor<4x4xf32>) {lower_bound = -5.0} : tensor<?x4x4xbf16> -> tensor<?x4x4xf32>
  // CHECK: moe.decay_gate %{{.*}} a_log(%{{.*}} : tensor<16xf32>) bias(%{{.*}} : tensor<4xf32>) : tensor<?x4xf32> -> tensor<?x4xf32>
  %h = tensor.extract_slice %a[0] [4] [1] : tensor<16xf32> to tensor<4xf32>
  %g1 = moe.decay_gate %beta a_log(%a : tensor<16xf32>) bias(%h : tensor<4xf32>) : tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK: moe.delta_rule %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}} : tensor<?x4x4xf32>) beta(%{{.*}} : tensor<?x4xf32>) over %{{.*}} at
  // CHECK-SAME: {norm_epsilon = 9.9999999999999995E-7 : f64, scale = 5.000000e-01 : f64} : tensor<?x2x4xbf16>, tensor<?x2x4xbf16>, tensor<?x4x8xbf16>,
  // CHECK-SAME: <[4, 4, 8], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  %o = moe.delta_rule %q, %q, %v decay(%g : tensor<?x4x4xf32>) beta(%beta : tensor<?x4xf32>) over %matrices at (%positions, %offsets, %slots)
      {scale = 0.5, norm_epsilon = 1.0e-6} : tensor<?x2x4xbf16>, tensor<?x2x4xbf16>, tensor<?x4x8xbf16>, !moe.state<[4, 4, 8], f32>,
      tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xf32>
  // CHECK: moe.delta_rule {{.*}} decay(%{{.*}} : tensor<?x4xf32>) {{.*}} {scale = 1.000000e+00 : f64}
  %o1 = moe.delta_rule %q, %q, %v decay(%g1 : tensor<?x4xf32>) beta(%beta : tensor<?x4xf32>) over %matrices at (%positions, %offsets, %slots)
      {scale = 1.0} : tensor<?x2x4xbf16>, tensor<?x2x4xbf16>, tensor<?x4x8xbf16>, !moe.state<[4, 4, 8], f32>,
      tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4x8xbf16>
  // CHECK: moe.gated_rms_norm %{{.*}} by sigmoid(%{{.*}} : tensor<?x4x8xbf16>) weight(%{{.*}} : tensor<8xf32>) {epsilon = 1.000000e-05 : f64} :
  // CHECK-SAME: tensor<?x4x8xf32> -> tensor<?x4x8xbf16>
  %y = moe.gated_rms_norm %o by sigmoid(%v : tensor<?x4x8xbf16>) weight(%n : tensor<8xf32>) {epsilon = 1.0e-5} : tensor<?x4x8xf32> -> tensor<?x4x8xbf16>
  // CHECK: moe.gated_rms_norm %{{.*}} by silu(%{{.*}} : tensor<?x4x8xbf16>) {epsilon = 1.000000e-05 : f64} :
  %y1 = moe.gated_rms_norm %y by silu(%o1 : tensor<?x4x8xbf16>) {epsilon = 1.0e-5} : tensor<?x4x8xbf16> -> tensor<?x4x8xbf16>
  return %y1 : tensor<?x4x8xbf16>
}

// CHECK-LABEL: func.func @routing
func.func @routing(%logits: tensor<?x16xf32>, %bias: tensor<16xf32>) -> (tensor<17xi32>, tensor<?xi32>) {
  // CHECK: moe.route softmax(%{{.*}}) {renormalize, top_k = 4 : i64} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  %w, %i = moe.route softmax(%logits) {renormalize, top_k = 4} : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  // CHECK: moe.route sigmoid(%{{.*}}) bias(%{{.*}} : tensor<16xf32>) {groups = 4 : i64, scale = 2.500000e+00 : f64, top_groups = 2 : i64, top_k = 4 : i64}
  %w1, %i1 = moe.route sigmoid(%logits) bias(%bias : tensor<16xf32>) {groups = 4, scale = 2.5, top_groups = 2, top_k = 4}
      : tensor<?x16xf32> -> tensor<?x4xf32>, tensor<?x4xi32>
  // CHECK: moe.route sqrt_softplus(
  %w2, %i2 = moe.route sqrt_softplus(%logits) {top_k = 1} : tensor<?x16xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  // CHECK: moe.group_tokens %{{.*}} : tensor<?x4xi32> -> tensor<17xi32>, tensor<?xi32>
  %offsets, %pairs = moe.group_tokens %i : tensor<?x4xi32> -> tensor<17xi32>, tensor<?xi32>
  return %offsets, %pairs : tensor<17xi32>, tensor<?xi32>
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<?x32xbf16>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %up: !blocks, %down: tensor<4x32x32xf16>,
                   %upBias: tensor<4x64xbf16>, %downBias: tensor<4x32xbf16>, %r: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
  // CHECK: moe.experts %{{.*}} to %{{.*}}, %{{.*}} gate_up(%{{.*}} : !moe.block_tensor<[4, 64, 32], mxfp4>) down(%{{.*}} : tensor<4x32x32xf16>) <silu> :
  %0 = moe.experts %x to %i, %w gate_up(%up : !blocks) down(%down : tensor<4x32x32xf16>) <silu>
      : tensor<?x32xbf16>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xbf16>
  // CHECK: moe.experts {{.*}} gate_up_bias(%{{.*}} : tensor<4x64xbf16>) down_bias(%{{.*}} : tensor<4x32xbf16>) residual(%{{.*}} : tensor<?x32xbf16>) <swiglu, alpha = 1.702e+00, beta = 1.0e+00, limit = 7.0e+00, interleaved = true>
  %1 = moe.experts %x to %i, %w gate_up(%up : !blocks) down(%down : tensor<4x32x32xf16>)
      gate_up_bias(%upBias : tensor<4x64xbf16>) down_bias(%downBias : tensor<4x32xbf16>) residual(%r : tensor<?x32xbf16>)
      <swiglu, alpha = 1.702, beta = 1.0, limit = 7.0, interleaved = true>
      : tensor<?x32xbf16>, tensor<?x2xi32>, tensor<?x2xf32> -> tensor<?x32xbf16>
  return %1 : tensor<?x32xbf16>
}

// CHECK-LABEL: func.func @grouped
func.func @grouped(%x: tensor<?x32xf32>, %i: tensor<?x2xi32>, %w: tensor<?x2xf32>, %offsets: tensor<5xi32>, %pairs: tensor<?xi32>,
                   %up: !panels, %bias: tensor<4x64xf32>, %r: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK: moe.grouped_linear %{{.*}} by %{{.*}}, %{{.*}} weight(%{{.*}} : !moe.block_tensor<{{.*}}>) bias(%{{.*}} : tensor<4x64xf32>) {activation = #moe.activation<gelu_tanh>, gather, strategy = "panels", top_k = 2 : i64}
  %0 = moe.grouped_linear %x by %offsets, %pairs weight(%up : !panels) bias(%bias : tensor<4x64xf32>)
      {activation = #moe.activation<gelu_tanh>, gather, strategy = "panels", top_k = 2}
      : tensor<?x32xf32>, tensor<5xi32>, tensor<?xi32> -> tensor<?x32xf32>
  // CHECK: moe.grouped_linear %{{.*}} by %{{.*}}, %{{.*}} weight(%{{.*}}) {scatter, top_k = 2 : i64}
  %1 = moe.grouped_linear %0 by %offsets, %pairs weight(%up : !panels) {scatter, top_k = 2}
      : tensor<?x32xf32>, tensor<5xi32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: moe.combine %{{.*}}, %{{.*}}, %{{.*}} residual(%{{.*}} : tensor<?x32xf32>) : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32> -> tensor<?x32xf32>
  %2 = moe.combine %0, %w, %i residual(%r : tensor<?x32xf32>) : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32> -> tensor<?x32xf32>
  return %2 : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @sample
func.func @sample(%x: tensor<?x32xf32>, %rows: tensor<?xi32>, %t: tensor<?xf32>, %p: tensor<?xf64>) -> tensor<?xi32> {
  // CHECK: moe.sample %{{.*}} rows(%{{.*}}) temperature(%{{.*}}) top_k(%{{.*}}) top_p(%{{.*}}) random(%{{.*}}) : tensor<?x32xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf64>, tensor<?xf64> -> tensor<?xi32>
  %0 = moe.sample %x rows(%rows) temperature(%t) top_k(%rows) top_p(%p) random(%p)
      : tensor<?x32xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf64>, tensor<?xf64> -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// Every number that is not short in decimal reads back the same.
// CHECK-LABEL: func.func @activations
// CHECK-SAME: #moe.activation<situ, alpha = 2.5e+01, beta = 4.0e+00>
// CHECK-SAME: #moe.activation<relu>
// CHECK-SAME: #moe.activation<gelu, alpha = 3.333333333333333e-01>
func.func @activations() attributes {
    a = #moe.activation<situ, alpha = 25.0, beta = 4.0>, b = #moe.activation<relu>,
    c = #moe.activation<gelu, alpha = 0.3333333333333333>} {
  return
}

// CHECK-LABEL: func.func @gates
func.func @gates(%g: tensor<?x8xbf16>, %u: tensor<?x8xf32>) -> tensor<?x8xbf16> {
  // CHECK: moe.gate %{{.*}}, %{{.*}} <swiglu, alpha = 1.702e+00, beta = 1.0e+00, limit = 7.0e+00> : tensor<?x8xbf16>, tensor<?x8xf32> -> tensor<?x8xbf16>
  %h = moe.gate %g, %u <swiglu, alpha = 1.702, beta = 1.0, limit = 7.0> : tensor<?x8xbf16>, tensor<?x8xf32> -> tensor<?x8xbf16>
  return %h : tensor<?x8xbf16>
}

// CHECK-LABEL: func.func @residuals
func.func @residuals(%a: tensor<?x8xbf16>, %b: tensor<?x8xbf16>, %w: tensor<8xf32>) -> tensor<?x8xbf16> {
  // CHECK: moe.mix_residuals %{{.*}}, %{{.*}} weight(%{{.*}} : tensor<8xf32>) {epsilon = 1.000000e-05 : f64} : tensor<?x8xbf16>, tensor<?x8xbf16> -> tensor<?x8xbf16>
  %y = moe.mix_residuals %a, %b weight(%w : tensor<8xf32>) {epsilon = 1.0e-5} : tensor<?x8xbf16>, tensor<?x8xbf16> -> tensor<?x8xbf16>
  return %y : tensor<?x8xbf16>
}

!latents = !moe.cache<kv_heads = 1, key_dim = 12, value_dim = 8, block = 16, bf16, shared>
!index_keys = !moe.cache<kv_heads = 1, key_dim = 4, value_dim = 0, block = 16, f32, shared>

// CHECK-LABEL: func.func @sparse_attention
// CHECK-SAME: !moe.cache<kv_heads = 1, key_dim = 12, value_dim = 8, block = 16, bf16, shared>
func.func @sparse_attention(%q: tensor<?x6x12xf32>, %k: tensor<?x1x12xf32>, %iq: tensor<?x3x4xf32>, %ik: tensor<?x1x4xf32>, %w: tensor<?x3xf32>,
    %latents: !latents, %keys: !index_keys, %p: tensor<?xi32>, %s: tensor<?xi32>, %b: tensor<?x?xi32>) -> tensor<?x6x8xf32> {
  // CHECK: moe.kv_append %{{.*}} into %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<?x1x12xf32>, !moe.cache<kv_heads = 1, key_dim = 12,
  moe.kv_append %k into %latents at (%p, %s, %b) : tensor<?x1x12xf32>, !latents, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  moe.kv_append %ik into %keys at (%p, %s, %b) : tensor<?x1x4xf32>, !index_keys, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>
  // CHECK: moe.select_keys %{{.*}} weights(%{{.*}}) over %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) {scale = 5.000000e-01 : f64, top_k = 7 : i64} :
  // CHECK-SAME: -> tensor<?x7xi32>
  %i = moe.select_keys %iq weights(%w) over %keys at (%p, %s, %b) {scale = 0.5, top_k = 7}
      : tensor<?x3x4xf32>, tensor<?x3xf32>, !index_keys, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x7xi32>
  %y = moe.attention %q over %latents at (%p, %s, %b) indices(%i : tensor<?x7xi32>) {scale = 0.25}
      : tensor<?x6x12xf32>, !latents, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x6x8xf32>
  return %y : tensor<?x6x8xf32>
}

// CHECK-LABEL: func.func @head_products
func.func @head_products(%x: tensor<?x4x8xbf16>, %w: tensor<4x3x8xbf16>) -> tensor<?x4x8xbf16> {
  // CHECK: moe.head_linear %{{.*}}, %{{.*}} : tensor<?x4x8xbf16>, tensor<4x3x8xbf16> -> tensor<?x4x3xbf16>
  %y = moe.head_linear %x, %w : tensor<?x4x8xbf16>, tensor<4x3x8xbf16> -> tensor<?x4x3xbf16>
  // CHECK: moe.head_linear %{{.*}}, %{{.*}} {transposed} :
  %z = moe.head_linear %y, %w {transposed} : tensor<?x4x3xbf16>, tensor<4x3x8xbf16> -> tensor<?x4x8xbf16>
  return %z : tensor<?x4x8xbf16>
}

// CHECK-LABEL: func.func @hyper_connections
func.func @hyper_connections(%p: tensor<?x24xf32>, %x: tensor<?x4x8xbf16>, %s: tensor<3xf32>, %b: tensor<24xf32>) -> tensor<?x4x8xbf16> {
  // CHECK: moe.hyper_weights %{{.*}} of %{{.*}} scale(%{{.*}} : tensor<3xf32>) base(%{{.*}} : tensor<24xf32>) {epsilon = 9.9999999999999995E-7 : f64, iterations = 20 : i64, norm_epsilon = 1.000000e-05 : f64} : tensor<?x24xf32>, tensor<?x4x8xbf16> -> tensor<?x24xf32>
  %w = moe.hyper_weights %p of %x scale(%s : tensor<3xf32>) base(%b : tensor<24xf32>) {iterations = 20, epsilon = 1.0e-6, norm_epsilon = 1.0e-5} : tensor<?x24xf32>, tensor<?x4x8xbf16> -> tensor<?x24xf32>
  // CHECK: moe.hyper_collapse %{{.*}} by %{{.*}} : tensor<?x4x8xbf16>, tensor<?x24xf32> -> tensor<?x8xbf16>
  %y = moe.hyper_collapse %x by %w : tensor<?x4x8xbf16>, tensor<?x24xf32> -> tensor<?x8xbf16>
  // CHECK: moe.hyper_expand %{{.*}} into %{{.*}} by %{{.*}} : tensor<?x8xbf16>, tensor<?x4x8xbf16>, tensor<?x24xf32>
  %z = moe.hyper_expand %y into %x by %w : tensor<?x8xbf16>, tensor<?x4x8xbf16>, tensor<?x24xf32>
  return %z : tensor<?x4x8xbf16>
}

// CHECK-LABEL: func.func @hash_route
func.func @hash_route(%l: tensor<?x8xf32>, %t: tensor<?xi32>, %e: tensor<9x2xi64>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  // CHECK: moe.hash_route sqrt_softplus(%{{.*}}) of %{{.*}} in %{{.*}} {renormalize, scale = 1.500000e+00 : f64} : tensor<?x8xf32>, tensor<?xi32>, tensor<9x2xi64> -> tensor<?x2xf32>, tensor<?x2xi32>
  %w, %i = moe.hash_route sqrt_softplus(%l) of %t in %e {renormalize, scale = 1.5} : tensor<?x8xf32>, tensor<?xi32>, tensor<9x2xi64> -> tensor<?x2xf32>, tensor<?x2xi32>
  return %w, %i : tensor<?x2xf32>, tensor<?x2xi32>
}

// CHECK-LABEL: func.func @compress
func.func @compress(%k: tensor<?x8xbf16>, %g: tensor<?x8xf32>, %b: tensor<4x8xf32>, %s: !moe.state<[6, 4], f32>, %p: tensor<?xi32>, %o: tensor<?xi32>, %z: tensor<?xi32>) -> tensor<?x4xf32> {
  // CHECK: moe.compress %{{.*}} gates(%{{.*}} : tensor<?x8xf32>) bias(%{{.*}} : tensor<4x8xf32>) over %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<?x8xbf16>, <[6, 4], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4xf32>
  %e = moe.compress %k gates(%g : tensor<?x8xf32>) bias(%b : tensor<4x8xf32>) over %s at (%p, %o, %z) : tensor<?x8xbf16>, !moe.state<[6, 4], f32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x4xf32>
  return %e : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @entries
func.func @entries(%q: tensor<?x4x8xf32>, %g: tensor<?x4xf32>, %s: tensor<4xf32>, %c: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, %p: tensor<?xi32>, %t: tensor<?x?xi32>) -> tensor<?x4x8xf32> {
  // CHECK: moe.select_entries %{{.*}} weights(%{{.*}} : tensor<?x4xf32>) over %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) {ratio = 4 : i64} : tensor<?x4x8xf32>, <kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2xi32>
  %i = moe.select_entries %q weights(%g : tensor<?x4xf32>) over %c at (%p, %p, %t) {ratio = 4} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x2xi32>
  // CHECK: moe.compressed_attention %{{.*}} over %{{.*}} and %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) sinks(%{{.*}} : tensor<4xf32>) indices(%{{.*}} : tensor<?x2xi32>) {ratio = 4 : i64, scale = 5.000000e-01 : f64, stride = 2 : i64, window = 8 : i64} : tensor<?x4x8xf32>
  %o = moe.compressed_attention %q over %c and %c at (%p, %p, %t) sinks(%s : tensor<4xf32>) indices(%i : tensor<?x2xi32>) {scale = 0.5, window = 8, ratio = 4, stride = 2} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  // CHECK: moe.compressed_attention %{{.*}} over %{{.*}} and %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}) {ratio = 4 : i64, scale = 5.000000e-01 : f64, window = 8 : i64} :
  %u = moe.compressed_attention %o over %c and %c at (%p, %p, %t) {scale = 0.5, window = 8, ratio = 4} : tensor<?x4x8xf32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, f32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> -> tensor<?x4x8xf32>
  return %u : tensor<?x4x8xf32>
}

// CHECK-LABEL: func.func @vision
func.func @vision(%x: tensor<?x8xbf16>, %n: tensor<?x8xf32>, %r: tensor<?xi32>, %g: tensor<6x4x8xbf16>) -> tensor<?x8xbf16> {
  // CHECK: moe.replace_rows %{{.*}} with %{{.*}} at %{{.*}} : tensor<?x8xbf16>, tensor<?x8xf32>, tensor<?xi32>
  %y = moe.replace_rows %x with %n at %r : tensor<?x8xbf16>, tensor<?x8xf32>, tensor<?xi32>
  // CHECK: moe.interpolate_positions %{{.*}} at(%{{.*}} of %{{.*}}, %{{.*}} of %{{.*}}) : tensor<6x4x8xbf16>, tensor<?xi32> -> tensor<?x8xbf16>
  %p = moe.interpolate_positions %g at (%r of %r, %r of %r) : tensor<6x4x8xbf16>, tensor<?xi32> -> tensor<?x8xbf16>
  %z = arith.addf %y, %p : tensor<?x8xbf16>
  return %z : tensor<?x8xbf16>
}
