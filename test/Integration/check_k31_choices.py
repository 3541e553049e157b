"""check_k31_choices.py FOLDER MODEL: what the small trained K3.1 does within, compiled in f32, against its reference: the positions that
indexers choose, the experts that routers choose, and the prefix sum behind each layer.

The program is changed before it is compiled: in the place of logits it returns these numbers."""

import re
import subprocess
import sys

import numpy as np
from common import expect_close, logits, safetensors, without_locations

folder, model = sys.argv[1:]
subprocess.run(["moec", "compile", model, "--precision=f32", "--to=moe", "-o", f"{folder}/plain.mlir"], check=True)
with open(f"{folder}/plain.mlir", encoding="utf-8") as file:
    text = without_locations(file.read())
choices = re.findall(r"(%\w+) = moe\.select_keys .*-> (tensor<\?x64xi32>)\n", text)
experts = [(f"{name}#1", kind) for name, kind in re.findall(r"(%\w+):2 = moe\.route .*, (tensor<\?x4xi32>)\n", text)]
experts += re.findall(r"%\w+, (%\w+) = moe\.route .*, (tensor<\?x4xi32>)\n", text)
# The last candidate of a mix is the sum so far; those in front of attention, every other one, come behind a whole layer. The last mix
# of all, behind the last layer, has the rows of logits only.
mixes = re.findall(r"= moe\.mix_residuals (.*) weight", text)
sums = [mix.split(", ")[-1] for mix in mixes[1:-1:2]]
assert len(choices) == 4 and len(experts) == 8 and len(sums) == 8, (choices, experts, sums)

rows = re.search(r"(%\w+): tensor<\?xi32> {[^}]*\"logit_rows\"", text).group(1)
lines, parts = [], []
for i, (value, kind) in enumerate(choices + experts + [(value, "tensor<?x256xf32>") for value in sums]):
    wide = kind.replace("i32", "f32")
    if kind != wide:
        lines.append(f"%wide{i} = arith.sitofp {value} : {kind} to {wide}")
        value = f"%wide{i}"
    lines.append(f"%part{i} = moe.gather_rows {value}, {rows} : {wide}, tensor<?xi32> -> {wide}")
    parts.append((f"%part{i}", wide))
width = 4 * 64 + 8 * 4 + 8 * 256
lines.append(f"%seen = tensor.concat dim(1) {', '.join(name for name, _ in parts)} : ({', '.join(kind for _, kind in parts)}) -> tensor<?x{width}xf32>")
lines.append(f"return %seen : tensor<?x{width}xf32>")
text = re.sub(r"return %\w+ : tensor<\?x2048xf32>", lambda _: "\n    ".join(lines), text)
text = text.replace('-> (tensor<?x2048xf32> {moe.name = "logits"})', f'-> (tensor<?x{width}xf32> {{moe.name = "logits"}})')
text = text.replace("vocabulary = 2048 : i64", f"vocabulary = {width} : i64")
with open(f"{folder}/seen.mlir", "w", encoding="utf-8") as file:
    file.write(text)
subprocess.run(["moec", "compile", f"{folder}/seen.mlir", "-o", f"{folder}/seen.moeb"], check=True, stdout=subprocess.DEVNULL)

reference = safetensors(model + "/reference.safetensors")
for prompt in ("short", "long"):
    seen = logits(f"{folder}/seen.moeb", reference[prompt + ".tokens"])
    positions, routes, residuals = np.split(seen, [256, 288], axis=1)
    routes = routes.reshape(len(seen), 8, 4).transpose(1, 0, 2)
    assert np.array_equal(routes, reference[prompt + ".router_indices"]), f"{prompt}: experts differ"
    if prompt == "long":
        positions = positions.reshape(len(seen), 4, 64).transpose(1, 0, 2)
        expected = reference["long.dsa_indices"]
        assert np.array_equal(positions, expected), f"{(positions != expected).any(-1).sum()} rows of positions differ"
    else:
        expect_close("sums", residuals.reshape(len(seen), 8, 256).transpose(1, 0, 2), np.stack([reference[f"short.layers.{n}"] for n in range(8)]), 1e-4)
print("choices agree")
