"""check_weight_parts.py FOLDER: a weight of many tensors, large enough that several threads read it in pieces, arrives in order."""

import subprocess
import sys

import numpy as np

folder = sys.argv[1]
rng = np.random.default_rng()
COLUMNS = 96
sizes = rng.integers(1, 4000, 40)  # rows of each tensor; about 30 MB in all
rows = int(sizes.sum())
table = rng.integers(-1000, 1000, (rows, COLUMNS)).astype(np.float32)
ends = np.cumsum(sizes)
places = []
for i, (end, size) in enumerate(zip(ends, sizes)):
    table[end - size:end].tofile(f"{folder}/{i}.bin")
    places.append((f'"w{i}"', f'<"{i}.bin", 0, {size * COLUMNS * 4}>'))
kind, x, y = f"tensor<{rows}x{COLUMNS}xf32>", "tensor<?xi32>", f"tensor<?x{COLUMNS}xf32>"
more = f'and [{", ".join(name for name, _ in places[1:])}] at [{", ".join("#moe.weight_ref" + place for _, place in places[1:])}]'
with open(f"{folder}/model.mlir", "w", encoding="utf-8") as file:
    file.write(f'module attributes {{moe.weight_root = "{folder}"}} {{\n'
               f'func.func @rows(%x: {x} {{moe.name = "x", moe.dims = ["tokens"]}}) -> ({y} {{moe.name = "y"}}) attributes {{moe.entry}} {{\n'
               f'  %w = moe.weight {places[0][0]} at {places[0][1]} {more} : {kind}\n'
               f'  %y = moe.embedding %x, %w : {x}, {kind} -> {y}\n  return %y : {y}\n}}\n}}\n')
subprocess.run(["moec", "compile", f"{folder}/model.mlir", "-o", f"{folder}/model.moeb"], check=True)
np.save(f"{folder}/x.npy", np.arange(rows, dtype=np.int32))
for repetition in range(5):
    subprocess.run(["moec", "run", f"{folder}/model.moeb", f"--input=x={folder}/x.npy", "--outputs", f"{folder}/out", "--threads=4"],
                   check=True, stdout=subprocess.DEVNULL)
    different = int((np.load(f"{folder}/out/y.npy") != table).any(1).sum())
    if different:
        sys.exit(f"{different} of {rows} rows differ")
print("all rows are in order")
