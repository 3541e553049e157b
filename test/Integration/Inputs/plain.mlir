// A program on plain tensors: one symbol, two inputs, two outputs of different types.
module {
  func.func @main(%x: tensor<?x4xf32> {moe.name = "x", moe.dims = ["n"]}, %y: tensor<?x4xf32> {moe.name = "y", moe.dims = ["n"]})
      -> (tensor<?x4xf32> {moe.name = "sum"}, tensor<?x4xbf16> {moe.name = "half/product"}) attributes {moe.entry} {
    %sum = arith.addf %x, %y : tensor<?x4xf32>
    %product = arith.mulf %x, %y : tensor<?x4xf32>
    %half = arith.truncf %product : tensor<?x4xf32> to tensor<?x4xbf16>
    return %sum, %half : tensor<?x4xf32>, tensor<?x4xbf16>
  }
}
