// RUN: moec-interpret %s --check
// Made by scripts/reference/make_tests.py: the expected values come from numpy.

func.func @positions_bf16() -> tensor<15x5xbf16> {
  %g = arith.constant dense<"0x403E8A3E3A3FB8BFFF3DEE3FB93EA2BF76BF17C080BF4CBDCB3F053F91BDE13FBB3F703FB3BE153FCFBD1FBE2BBF81BF5DBE3FBF39BFD83FA53F983F76BF8A3EB23EF3BF8ABF82405D3FA33EC83DC83F173EBC3FD1BF2FBF9B3F8ABF92BF4FBF9B3F863FDC3D243FB2BE213E563FACBF363F2B3FCEBDF3BE"> : tensor<3x4x5xbf16>
  %r = arith.constant dense<[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]> : tensor<15xi32>
  %h = arith.constant dense<[5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]> : tensor<15xi32>
  %c = arith.constant dense<[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]> : tensor<15xi32>
  %w = arith.constant dense<[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]> : tensor<15xi32>
  %r0 = moe.interpolate_positions %g at (%r of %h, %c of %w) : tensor<3x4x5xbf16>, tensor<15xi32> -> tensor<15x5xbf16>
  return %r0 : tensor<15x5xbf16>
}
func.func @positions_bf16_expected() -> tensor<15x5xbf16> {
  %r0 = arith.constant dense<"0xEF3E923ECA3EAEBF94BEDC3E203E243E62BE9CBFA63F9B3F863F52BEF23E493E913D023E88BF2ABEABBD3A3B013F82BE35BF0440843F423F5EBE3C3F56BE80BE8DBE20BF943C5ABF68BE823F9CBE603D4E40443FA53E71BE903FF1BD053F81BFF1BE383F22BF76BE763D943E163F213F3A3FDB3E04BE973E69BD843FBFBFBCBE973FF8BE80BE14BF2F3F713F8DBF333FFF3E6CBD83BE"> : tensor<15x5xbf16>
  return %r0 : tensor<15x5xbf16>
}

func.func @positions_f16() -> tensor<15x5xf16> {
  %g = arith.constant dense<"0xE1BD373FBB3EC33FF8BFD13F0CBF03C0D8BFC9BF04BD713FCFBDF4BE523F753F39BE98BEF7BEB23FE33E23BF034006C010BE003FA93FABBF46408CBF4CBFED3EAFBEB83F553D5BBB80BFA6BEEABE9CBF2EBD6D3FD6BFF03EA03F16BF35BF103FF03E11C0253FD23CD0BE523F19BF2ABE1AC009C086BF1140"> : tensor<3x4x5xbf16>
  %r = arith.constant dense<[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]> : tensor<15xi32>
  %h = arith.constant dense<[5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]> : tensor<15xi32>
  %c = arith.constant dense<[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]> : tensor<15xi32>
  %w = arith.constant dense<[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]> : tensor<15xi32>
  %r0 = moe.interpolate_positions %g at (%r of %h, %c of %w) : tensor<3x4x5xbf16>, tensor<15xi32> -> tensor<15x5xf16>
  return %r0 : tensor<15x5xf16>
}
func.func @positions_f16_expected() -> tensor<15x5xf16> {
  %r0 = arith.constant dense<"0xC7310938B5A8E83B81BF673A50324CBC54BC00B6563A801E3AB4B4B72F3DA234B63192387C2EFBBCBC369A37D7BB1D34EFB6BD36C7B4A1B487B5FE353F37F8B4EF3DEBBCCBB4C0B0223BB6BA88402BB857B00DBA3CB585B007BC7B2E4A34F7B1BCB275345AA9DF309EB42C3D45BCA9AC03BEF8BCF7B75D3942B03B3933BD80375039802774B5002D2839BABDEBA700C068BFE3B9273F"> : tensor<15x5xf16>
  return %r0 : tensor<15x5xf16>
}

func.func @replace_bf16_by_f32() -> tensor<6x3xbf16> {
  %x = arith.constant dense<"0x743FC63E31BE6B3FAE3DCB3E3A3EBCBFCA3EA73F75BF9A3C5BBFBEBF8DBEDEBE2C3F2ABF"> : tensor<6x3xbf16>
  %n = arith.constant dense<"0xB4E8313F6C9EE6BD5444F43ED03926BF149F0B3F5F3AB73D"> : tensor<2x3xf32>
  %r = arith.constant dense<[-1, 0, 1, -9, 5, 0]> : tensor<6xi32>
  %r0 = moe.replace_rows %x with %n at %r : tensor<6x3xbf16>, tensor<2x3xf32>, tensor<6xi32>
  return %r0 : tensor<6x3xbf16>
}
func.func @replace_bf16_by_f32_expected() -> tensor<6x3xbf16> {
  %r0 = arith.constant dense<"0x743FC63E31BE323FE7BDF43E26BF0C3FB73DA73F75BF9A3C26BF0C3FB73D323FE7BDF43E"> : tensor<6x3xbf16>
  return %r0 : tensor<6x3xbf16>
}

func.func @replace_f16_by_f16() -> tensor<6x3xf16> {
  %x = arith.constant dense<"0x1EBCD9B75039D738303C77B4AE2FE031AC3DB7B7A2BD5D37ACBB1638FE382C3B8CBD5D3C"> : tensor<6x3xf16>
  %n = arith.constant dense<"0x06404DBC0EB70DBC59BA2D3E"> : tensor<2x3xf16>
  %r = arith.constant dense<[-1, 0, 1, -9, 5, 0]> : tensor<6xi32>
  %r0 = moe.replace_rows %x with %n at %r : tensor<6x3xf16>, tensor<2x3xf16>, tensor<6xi32>
  return %r0 : tensor<6x3xf16>
}
func.func @replace_f16_by_f16_expected() -> tensor<6x3xf16> {
  %r0 = arith.constant dense<"0x1EBCD9B7503906404DBC0EB70DBC59BA2D3EB7B7A2BD5D370DBC59BA2D3E06404DBC0EB7"> : tensor<6x3xf16>
  return %r0 : tensor<6x3xf16>
}
