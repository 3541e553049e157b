// RUN: moec-interpret %s --check --cache-blocks=24
// Made by scripts/reference/make_tests.py: the expected values come from numpy.

func.func @entries_narrow(%cache: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, bf16>, %entries: !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 1, bf16>) -> (tensor<6x2xi32>, tensor<6x3x8xbf16>) {
  %table = arith.constant dense<[[12, 23, 2, 0]]> : tensor<1x4xi32>
  %k0 = arith.constant dense<"0x143EBC3FDBBFCEBE55BFAABE473EC3BD03BFC73E9CBFB13F10BEE73DEABF8B3E86BF373E463EE1BE4E3FB63ECA3DFD3D82BF94BF48BF113F20BF94BF8F3FB5BE34BFDE3DCBBE17BF72BF9CBF303F203E56BF4BBF8EBE413D72BFD3BD053DCFBE8F3FD9BF003FFE3E773D983D8DBE1EC01BBF49C01EBF8ABF3CBE593F1F3E8B3F"> : tensor<8x1x8xbf16>
  %e0 = arith.constant dense<"0x000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000863FDC3FF7BE863FAEBEA73D7E3F653F0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009CBE04BF9B3E87BFCE3F983F943F6B3F"> : tensor<8x1x8xbf16>
  %s0 = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0]> : tensor<8xi32>
  %p0 = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
  %w0 = arith.constant dense<[-1, -1, -1, 0, -1, -1, -1, 1]> : tensor<8xi32>
  %k1 = arith.constant dense<"0x08BE5A3E0840713F203FE23F193F843E25BF9D3FBBBCADBED73F1540A0BF473FED3F183E57BE94BE20BE0ABE483FE7BF67BF0A3F9CBE70BF18BDBB3E2FBFBEBD9D3FDA3E793FD3BEB73E353FCA3F913F0F3DC6BC653FB4BE1140E4BE69BFD03E"> : tensor<6x1x8xbf16>
  %e1 = arith.constant dense<"0x0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000008B3F953F0CBFFABDBC3D973A023EA6BF0000000000000000000000000000000000000000000000000000000000000000"> : tensor<6x1x8xbf16>
  %s1 = arith.constant dense<[0, 0, 0, 0, 0, 0]> : tensor<6xi32>
  %p1 = arith.constant dense<[8, 9, 10, 11, 12, 13]> : tensor<6xi32>
  %w1 = arith.constant dense<[-1, -1, -1, 2, -1, -1]> : tensor<6xi32>
  %q = arith.constant dense<"0x23BFB83EB43F8A3D9F3E24BF9B3D4F3E313E98BF5BBFA33DE7BE5DBFA93F72BF8ABE5A3E913FFCBFC93E21BE4040EDBED73F0FBE22BF9C3FD93E9C3F623F00BF083FC23F7F3FBF3EECBF783FD13DF93E9E3F583E7F3FFFBFB1BFBABE1F3FE9BE913DBDBEB63FF03DADBE66BC1A3E9CBFBBBF6E3F0C40ABBF933F22BF3C3FA73FD03F6B3FC03EA4BD33BF183FEA3E0040B2BFD0BEF73FE6BE10BF89BF353F4ABF203F1BBF0CC0A63E733EE83FECBF9ABFE2BFB53F273E87BE37BF96BEEBBD8C3F503F923D5DBE55BF363F0FBF973F4F3F3E3FD8BE0C3D413FCB3F2BBF993E21BF4ABFC3BF5BBEC5BF943FEE3FC23EA53EB93DFF3D74BF093DADBF8BBE10BF62BFB33F37BF01BF92BE163C453CEBBEB3BFB7BF7B3F42BD253FDE3D5E3E073F493F"> : tensor<6x3x8xbf16>
  %g = arith.constant dense<"0x07F418405F8719BC6385353FDA5396BF159EB83EC4E05E3EAEBCE6BE52E8AE3F95E114BF7FFF10BF112B10BE7426183F4544B13E252F81BE143ED83FEA291CBCAA466F3ECB680740"> : tensor<6x3xf32>
  moe.kv_append %k0, %k0 into %cache at (%p0, %s0, %table) : tensor<8x1x8xbf16>, tensor<8x1x8xbf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, bf16>, tensor<8xi32>, tensor<8xi32>, tensor<1x4xi32>
  moe.kv_append %e0, %e0 into %entries at (%w0, %s0, %table) : tensor<8x1x8xbf16>, tensor<8x1x8xbf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 1, bf16>, tensor<8xi32>, tensor<8xi32>, tensor<1x4xi32>
  moe.kv_append %k1, %k1 into %cache at (%p1, %s1, %table) : tensor<6x1x8xbf16>, tensor<6x1x8xbf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, bf16>, tensor<6xi32>, tensor<6xi32>, tensor<1x4xi32>
  moe.kv_append %e1, %e1 into %entries at (%w1, %s1, %table) : tensor<6x1x8xbf16>, tensor<6x1x8xbf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 1, bf16>, tensor<6xi32>, tensor<6xi32>, tensor<1x4xi32>
  %r0 = moe.select_entries %q weights(%g : tensor<6x3xf32>) over %entries at (%p1, %s1, %table) {ratio = 4, stride = 1} : tensor<6x3x8xbf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 1, bf16>, tensor<6xi32>, tensor<6xi32>, tensor<1x4xi32> -> tensor<6x2xi32>
  %r1 = moe.compressed_attention %q over %cache and %entries at (%p1, %s1, %table) indices(%r0 : tensor<6x2xi32>) {scale = 0.3, window = 3, ratio = 4, stride = 1} : tensor<6x3x8xbf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 4, bf16>, !moe.cache<kv_heads = 1, key_dim = 8, value_dim = 8, block = 1, bf16>, tensor<6xi32>, tensor<6xi32>, tensor<1x4xi32> -> tensor<6x3x8xbf16>
  return %r0, %r1 : tensor<6x2xi32>, tensor<6x3x8xbf16>
}
func.func @entries_narrow_expected() -> (tensor<6x2xi32>, tensor<6x3x8xbf16>) {
  %r0 = arith.constant dense<[[0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]> : tensor<6x2xi32>
  %r1 = arith.constant dense<"0x113E9BBE513F883E053F863F1E3F5E3EBB3EC4BFEB3D8BBD0E3E053F483E02BFA6BD11BFF43EC7BE703F893F523F103F123EEC3EB53E973E033F893F063F3D3F8B3E5C3FFD3E1D3FCD3E883F033F2C3F0CBDA7BE543EC7BD003F833F143F513F0E3FA93E363F473EFD3E783F1B3F61BE44BE6B3E373F20BE953FC03FEC3E213F043F783F193EE93EBA3E4B3F213F0A3F1A3EB03EEFBD0EBFF33E173F963E85BD52BD4B3FF3BDCABE5D3FA03FD6BEF23D57BE5A3F39BE9EBE193F743F2DBEE83E373FC03E833EB0BEEA3E123F883FFD3E633FB83E863D9EBE973EC63E693F82BDA7BD4BBE893E64BF923F733F743F333FBE3D3D3F03BD5DBE9A3E9B3E673EFC3E353ED23E9C3EBABE533FA33E973E1B3F893E103F183E63BE1A3FCC3E073F2D3F"> : tensor<6x3x8xbf16>
  return %r0, %r1 : tensor<6x2xi32>, tensor<6x3x8xbf16>
}

// Of equal scores the lower entries; a NaN comes last.
func.func @entries_ties(%cache: !moe.cache<kv_heads = 1, key_dim = 2, value_dim = 2, block = 8, f32>) -> tensor<1x3xi32> {
  %k = arith.constant dense<"0x000000000000803F0000803F000000000000C07F000000000000803F00000000000080BF000000000000803F0000000000000040000000000000803F00000000"> : tensor<8x1x2xf32>
  %p = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
  %s = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 0]> : tensor<8xi32>
  %table = arith.constant dense<[[0]]> : tensor<1x1xi32>
  %q = arith.constant dense<"0x0000803F00000000"> : tensor<1x1x2xf32>
  %g = arith.constant dense<"0x0000803F"> : tensor<1x1xf32>
  %last = arith.constant dense<[7]> : tensor<1xi32>
  %first = arith.constant dense<[0]> : tensor<1xi32>
  moe.kv_append %k, %k into %cache at (%p, %s, %table) : tensor<8x1x2xf32>, tensor<8x1x2xf32>, !moe.cache<kv_heads = 1, key_dim = 2, value_dim = 2, block = 8, f32>, tensor<8xi32>, tensor<8xi32>, tensor<1x1xi32>
  %r0 = moe.select_entries %q weights(%g : tensor<1x1xf32>) over %cache at (%last, %first, %table) {ratio = 1} : tensor<1x1x2xf32>, !moe.cache<kv_heads = 1, key_dim = 2, value_dim = 2, block = 8, f32>, tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32> -> tensor<1x3xi32>
  return %r0 : tensor<1x3xi32>
}
func.func @entries_ties_expected() -> tensor<1x3xi32> {
  %r0 = arith.constant dense<[[1, 3, 6]]> : tensor<1x3xi32>
  return %r0 : tensor<1x3xi32>
}
