// RUN: moec-interpret %s --check
// Made by scripts/reference/make_tests.py: the expected values come from numpy.

func.func @some() -> (tensor<6xi32>, tensor<21xi32>) {
  %i = arith.constant dense<[[0, 0, 0], [0, 3, 4], [1, 3, 2], [4, 4, 4], [0, 4, 0], [3, 1, 0], [3, 3, 3]]> : tensor<7x3xi32>
  %r0, %r1 = moe.group_tokens %i : tensor<7x3xi32> -> tensor<6xi32>, tensor<21xi32>
  return %r0, %r1 : tensor<6xi32>, tensor<21xi32>
}
func.func @some_expected() -> (tensor<6xi32>, tensor<21xi32>) {
  %r0 = arith.constant dense<[0, 7, 9, 10, 16, 21]> : tensor<6xi32>
  %r1 = arith.constant dense<[0, 1, 2, 3, 12, 14, 17, 6, 16, 8, 4, 7, 15, 18, 19, 20, 5, 9, 10, 11, 13]> : tensor<21xi32>
  return %r0, %r1 : tensor<6xi32>, tensor<21xi32>
}

func.func @one_expert() -> (tensor<2xi32>, tensor<3xi32>) {
  %i = arith.constant dense<[[0], [0], [0]]> : tensor<3x1xi32>
  %r0, %r1 = moe.group_tokens %i : tensor<3x1xi32> -> tensor<2xi32>, tensor<3xi32>
  return %r0, %r1 : tensor<2xi32>, tensor<3xi32>
}
func.func @one_expert_expected() -> (tensor<2xi32>, tensor<3xi32>) {
  %r0 = arith.constant dense<[0, 3]> : tensor<2xi32>
  %r1 = arith.constant dense<[0, 1, 2]> : tensor<3xi32>
  return %r0, %r1 : tensor<2xi32>, tensor<3xi32>
}

func.func @unused_experts() -> (tensor<7xi32>, tensor<4xi32>) {
  %i = arith.constant dense<[[3, 1], [1, 3]]> : tensor<2x2xi32>
  %r0, %r1 = moe.group_tokens %i : tensor<2x2xi32> -> tensor<7xi32>, tensor<4xi32>
  return %r0, %r1 : tensor<7xi32>, tensor<4xi32>
}
func.func @unused_experts_expected() -> (tensor<7xi32>, tensor<4xi32>) {
  %r0 = arith.constant dense<[0, 0, 2, 2, 4, 4, 4]> : tensor<7xi32>
  %r1 = arith.constant dense<[1, 2, 0, 3]> : tensor<4xi32>
  return %r0, %r1 : tensor<7xi32>, tensor<4xi32>
}

// Choices of experts on other ranks are left out; what is undefined is marked.
func.func @elsewhere() -> (tensor<4xi32>, tensor<6xi32>) {
  %i = arith.constant dense<[[-1, 2], [0, -1], [-1, -1]]> : tensor<3x2xi32>
  %r0, %r1 = moe.group_tokens %i : tensor<3x2xi32> -> tensor<4xi32>, tensor<6xi32>
  return %r0, %r1 : tensor<4xi32>, tensor<6xi32>
}
func.func @elsewhere_expected() -> (tensor<4xi32>, tensor<6xi32>) {
  %r0 = arith.constant dense<[0, 1, 1, 2]> : tensor<4xi32>
  %r1 = arith.constant dense<[2, 1, -2147483648, -2147483648, -2147483648, -2147483648]> : tensor<6xi32>
  return %r0, %r1 : tensor<4xi32>, tensor<6xi32>
}

func.func @nothing() -> (tensor<4xi32>, tensor<0xi32>) {
  %i = arith.constant dense<> : tensor<0x2xi32>
  %r0, %r1 = moe.group_tokens %i : tensor<0x2xi32> -> tensor<4xi32>, tensor<0xi32>
  return %r0, %r1 : tensor<4xi32>, tensor<0xi32>
}
func.func @nothing_expected() -> (tensor<4xi32>, tensor<0xi32>) {
  %r0 = arith.constant dense<[0, 0, 0, 0]> : tensor<4xi32>
  %r1 = arith.constant dense<> : tensor<0xi32>
  return %r0, %r1 : tensor<4xi32>, tensor<0xi32>
}
