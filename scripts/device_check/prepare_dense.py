"""prepare_dense.py FOLDER TARGET: dense bf16 products of large models' sizes, compiled for a device; time_dense.py times them there. Weights
are made on the device's machine: here a file without data stands for them."""

import os
import subprocess
import sys
import tempfile

SHAPES = [(8192, 8192), (12288, 7168), (7168, 12288), (7168, 2048), (2048, 7168)]  # rows of the weight, columns


def text(n, k, folder):
    x, w, y = f"tensor<?x{k}xbf16>", f"tensor<{n}x{k}xbf16>", f"tensor<?x{n}xbf16>"
    return (f'module attributes {{moe.weight_root = "{folder}"}} {{\n'
            f'func.func @product(%x: {x} {{moe.name = "x", moe.dims = ["tokens"]}}) -> ({y} {{moe.name = "y"}}) attributes {{moe.entry}} {{\n'
            f'  %w = moe.weight "w" at <"{n}x{k}.bin", 0, {2 * n * k}> : {w}\n  %y = moe.linear %x, %w : {x}, {w} -> {y}\n  return %y : {y}\n}}\n}}\n')


if __name__ == "__main__":
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder, target = os.path.abspath(sys.argv[1]), sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as weights:
        for n, k in SHAPES:
            with open(f"{weights}/{n}x{k}.bin", "wb") as file:
                file.truncate(2 * n * k)
            with open(f"{weights}/{n}x{k}.mlir", "w", encoding="utf-8") as file:
                file.write(text(n, k, weights))
            subprocess.run([f"{root}/build/bin/moec", "compile", f"{weights}/{n}x{k}.mlir", "-o", f"{folder}/{n}x{k}.moeb", f"--target={target}"],
                           check=True, stdout=subprocess.DEVNULL)
    print(f"{len(SHAPES)} dense products")
