// RUN: moec-interpret %s --check --relative-tolerance=1e-6 --absolute-tolerance=1e-7
// Made by scripts/reference/make_tests.py: the expected values come from numpy.

func.func @hash_plain() -> (tensor<4x3xf32>, tensor<4x3xi32>) {
  %l = arith.constant dense<"0xA056E8BF573C77BEA1C8A13F2D3DCBBF5F322EBF555D5640B23E3D3D6D272AC0D479833E78A4874032C02240318C24C0584C223FCA275CBFEB20F3BED3B829403FDA32BFE8B5B33F9031FA3FBADEC7BEAC9D383E6126AF4034496940D0D29040F77E644020EABD3F7D21ED3F9672943E62DE2F40AD67853F110BC83FC60FCEBD"> : tensor<4x8xf32>
  %t = arith.constant dense<[0, 10, 3, 3]> : tensor<4xi32>
  %e = arith.constant dense<[[4, 7, 2], [2, 6, 7], [3, 6, 3], [4, 7, 2], [4, 2, 1], [2, 3, 4], [4, 5, 7], [2, 5, 4], [5, 1, 5], [4, 2, 4], [0, 1, 1]]> : tensor<11x3xi64>
  %r0, %r1 = moe.hash_route sqrt_softplus(%l) of %t in %e {} : tensor<4x8xf32>, tensor<4xi32>, tensor<11x3xi64> -> tensor<4x3xf32>, tensor<4x3xi32>
  return %r0, %r1 : tensor<4x3xf32>, tensor<4x3xi32>
}
func.func @hash_plain_expected() -> (tensor<4x3xf32>, tensor<4x3xi32>) {
  %r0 = arith.constant dense<"0xD8DC233F7437853E036F9D3F9031693FFDFC0340FDFC0340DD27633F6450084012EBB83F8F91D63FA2744D3FE5F0B43F"> : tensor<4x3xf32>
  %r1 = arith.constant dense<[[4, 7, 2], [0, 1, 1], [4, 7, 2], [4, 7, 2]]> : tensor<4x3xi32>
  return %r0, %r1 : tensor<4x3xf32>, tensor<4x3xi32>
}

func.func @hash_scaled() -> (tensor<3x3xf32>, tensor<3x3xi32>) {
  %l = arith.constant dense<"0x3404EABF837F88BFB730A1C0E910B8BE6E46EB3F82B31CC01B18A63DC596303E0F6F92C062FB5FBFD7EA8C3FB202F7BF6DF2D7BF11B71F4071D62BC083CD3840C9E5C7BE6397E2BE09B7C03E633002C0816FF33E4AB617C0E65711C090FA9DC0"> : tensor<3x8xf32>
  %t = arith.constant dense<[1, 2, 7]> : tensor<3xi32>
  %e = arith.constant dense<[[4, 7, 2], [2, 6, 7], [3, 6, 3], [4, 7, 2], [4, 2, 1], [2, 3, 4], [4, 5, 7], [2, 5, 4], [5, 1, 5], [4, 2, 4], [0, 1, 1]]> : tensor<11x3xi64>
  %r0, %r1 = moe.hash_route sqrt_softplus(%l) of %t in %e {renormalize, scale = 1.5} : tensor<3x8xf32>, tensor<3xi32>, tensor<11x3xi64> -> tensor<3x3xf32>, tensor<3x3xi32>
  return %r0, %r1 : tensor<3x3xf32>, tensor<3x3xi32>
}
func.func @hash_scaled_expected() -> (tensor<3x3xf32>, tensor<3x3xi32>) {
  %r0 = arith.constant dense<"0xA499873D7496343F58763A3F6F570E3F45A2C63E6F570E3FEC8A233F2E354E3EC8E7283F"> : tensor<3x3xf32>
  %r1 = arith.constant dense<[[2, 6, 7], [3, 6, 3], [2, 5, 4]]> : tensor<3x3xi32>
  return %r0, %r1 : tensor<3x3xf32>, tensor<3x3xi32>
}

func.func @hash_sigmoid() -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %l = arith.constant dense<"0x142F4C40377A86BFEF4740C0AF5E9ABD5EE914BF874B333EA48DC03FDAF98FC0A740843FDA2D66BF38B5CD3F09A78A3F54A4EC3E9AEAC3BFE78B56BFAD2FFDBF"> : tensor<2x8xf32>
  %t = arith.constant dense<[5, 9]> : tensor<2xi32>
  %e = arith.constant dense<[[4, 7, 2], [2, 6, 7], [3, 6, 3], [4, 7, 2], [4, 2, 1], [2, 3, 4], [4, 5, 7], [2, 5, 4], [5, 1, 5], [4, 2, 4], [0, 1, 1]]> : tensor<11x3xi32>
  %r0, %r1 = moe.hash_route sigmoid(%l) of %t in %e {renormalize} : tensor<2x8xf32>, tensor<2xi32>, tensor<11x3xi32> -> tensor<2x3xf32>, tensor<2x3xi32>
  return %r0, %r1 : tensor<2x3xf32>, tensor<2x3xi32>
}
func.func @hash_sigmoid_expected() -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %r0 = arith.constant dense<"0xE31A5A3D60E10A3FE4F9CE3E027C983EFB07CF3E027C983E"> : tensor<2x3xf32>
  %r1 = arith.constant dense<[[2, 3, 4], [4, 2, 4]]> : tensor<2x3xi32>
  return %r0, %r1 : tensor<2x3xf32>, tensor<2x3xi32>
}

func.func @hash_one_choice() -> (tensor<2x1xf32>, tensor<2x1xi32>) {
  %l = arith.constant dense<"0x69C4E93FED07163F60038B3FAB384CBE5BF3FA3F534D473F6E065E3F3540D53F5D7428401F0E87BECAA8A33EB41D00403D697D40DAF9444015DAB13FE8138D3D"> : tensor<2x8xf32>
  %t = arith.constant dense<[4, 0]> : tensor<2xi32>
  %e = arith.constant dense<[[4], [2], [3], [4], [4], [2], [4], [2], [5], [4], [0]]> : tensor<11x1xi64>
  %r0, %r1 = moe.hash_route sqrt_softplus(%l) of %t in %e {renormalize} : tensor<2x8xf32>, tensor<2xi32>, tensor<11x1xi64> -> tensor<2x1xf32>, tensor<2x1xi32>
  return %r0, %r1 : tensor<2x1xf32>, tensor<2x1xi32>
}
func.func @hash_one_choice_expected() -> (tensor<2x1xf32>, tensor<2x1xi32>) {
  %r0 = arith.constant dense<"0x0000803F0000803F"> : tensor<2x1xf32>
  %r1 = arith.constant dense<[[4], [4]]> : tensor<2x1xi32>
  return %r0, %r1 : tensor<2x1xf32>, tensor<2x1xi32>
}

func.func @hash_no_tokens() -> (tensor<0x3xf32>, tensor<0x3xi32>) {
  %l = arith.constant dense<> : tensor<0x8xf32>
  %t = arith.constant dense<> : tensor<0xi32>
  %e = arith.constant dense<[[4, 7, 2], [2, 6, 7], [3, 6, 3], [4, 7, 2], [4, 2, 1], [2, 3, 4], [4, 5, 7], [2, 5, 4], [5, 1, 5], [4, 2, 4], [0, 1, 1]]> : tensor<11x3xi64>
  %r0, %r1 = moe.hash_route sqrt_softplus(%l) of %t in %e {} : tensor<0x8xf32>, tensor<0xi32>, tensor<11x3xi64> -> tensor<0x3xf32>, tensor<0x3xi32>
  return %r0, %r1 : tensor<0x3xf32>, tensor<0x3xi32>
}
func.func @hash_no_tokens_expected() -> (tensor<0x3xf32>, tensor<0x3xi32>) {
  %r0 = arith.constant dense<> : tensor<0x3xf32>
  %r1 = arith.constant dense<> : tensor<0x3xi32>
  return %r0, %r1 : tensor<0x3xf32>, tensor<0x3xi32>
}

// Ids beyond the table and experts that are not there are clamped.
func.func @hash_outside() -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %l = arith.constant dense<"0x9DA75F406A187540436086BF600249C00FD018C00F45553EB9E43E40F535E9BC72478EBF805569BFFB7721401DD68A3F4232CD3DFB8583BE9D50EABFBF4FC3BF"> : tensor<2x8xf32>
  %t = arith.constant dense<[-1, 7]> : tensor<2xi32>
  %e = arith.constant dense<[[0, -5], [9, 2]]> : tensor<2x2xi64>
  %r0, %r1 = moe.hash_route sqrt_softplus(%l) of %t in %e {} : tensor<2x8xf32>, tensor<2xi32>, tensor<2x2xi64> -> tensor<2x2xf32>, tensor<2x2xi32>
  return %r0, %r1 : tensor<2x2xf32>, tensor<2x2xi32>
}
func.func @hash_outside_expected() -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %r0 = arith.constant dense<"0xA04DF03FA04DF03FFC19E33EFC65CE3F"> : tensor<2x2xf32>
  %r1 = arith.constant dense<[[0, 0], [7, 2]]> : tensor<2x2xi32>
  return %r0, %r1 : tensor<2x2xf32>, tensor<2x2xi32>
}
