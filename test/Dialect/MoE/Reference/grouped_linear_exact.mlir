// RUN: moec-interpret %s --check
// Made by scripts/reference/make_tests.py: the expected values come from numpy.

// Without gather and scatter pairs are rows.
func.func @rows_in_order() -> tensor<4x3xbf16> {
  %x = arith.constant dense<"0xE1BF4CBF093F293F483F2D3F273F893FB13F983E333EA4BF7B3F973F933FEEBF09BF4B3F82BEBE3F333FD3BF063FD2BE"> : tensor<4x6xbf16>
  %o = arith.constant dense<[0, 3, 4]> : tensor<3xi32>
  %p = arith.constant dense<[0, 1, 3, 2]> : tensor<4xi32>
  %w = arith.constant dense<"0xA03FD5BF8C3E2EBF2F3F8ABF3EBFCF3E55BFB4BE4CBF4ABF683FA0BF47BF8ABEBCBD0CBF26BFBDBF1FBFAFBE23BE0FBF92BF9F3D8A3FFE3DB2BE2F3FD93D30BF7ABE4ABF09C04E3E"> : tensor<2x3x6xbf16>
  %r0 = moe.grouped_linear %x by %o, %p weight(%w : tensor<2x3x6xbf16>) {top_k = 2} : tensor<4x6xbf16>, tensor<3xi32>, tensor<4xi32> -> tensor<4x3xbf16>
  return %r0 : tensor<4x3xbf16>
}
func.func @rows_in_order_expected() -> tensor<4x3xbf16> {
  %r0 = arith.constant dense<"0xAFBF5ABFD1BF363FDFBE9CBFC3BE40BFAEBFE0BFFC3E8FBF"> : tensor<4x3xbf16>
  return %r0 : tensor<4x3xbf16>
}

func.func @combine_bf16() -> tensor<3x5xbf16> {
  %y = arith.constant dense<"0xA0BF86BF023FFFBD5CBF32BECD3F4ABFD4BF523F85BF323FBCBDA2BD6C3FB0BFA73F75BE9A3E0DBFBE3E00BF1F4029BEF1BFAC3F9ABE6C3F683FBABD"> : tensor<6x5xbf16>
  %w = arith.constant dense<"0xCF757A3FB14F1D3CAC455E3F63705E3FA0FA023F0A92023F"> : tensor<3x2xf32>
  %i = arith.constant dense<[[0, 1], [-1, 0], [-1, -1]]> : tensor<3x2xi32>
  %r0 = moe.combine %y, %w, %i : tensor<6x5xbf16>, tensor<3x2xf32>, tensor<3x2xi32> -> tensor<3x5xbf16>
  return %r0 : tensor<3x5xbf16>
}
func.func @combine_bf16_expected() -> tensor<3x5xbf16> {
  %r0 = arith.constant dense<"0x9DBF81BFFA3E0DBE55BF99BF913F55BE863EF5BE00000000000000000000"> : tensor<3x5xbf16>
  return %r0 : tensor<3x5xbf16>
}
