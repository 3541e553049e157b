// No target has code for powers of f64.
func.func @main(%x: tensor<?xf64> {moe.name = "x", moe.dims = ["n"]}) -> (tensor<?xf64> {moe.name = "y"}) attributes {moe.entry} {
  %y = math.powf %x, %x : tensor<?xf64>
  return %y : tensor<?xf64>
}
