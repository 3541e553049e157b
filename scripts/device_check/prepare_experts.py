"""prepare_experts.py FOLDER TARGET: compiles the programs of experts_programs.py. Weights are made on the device's machine: here a
file without data stands for them."""

import os
import subprocess
import sys
import tempfile

from experts_programs import SHAPES, parts, text

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
folder, target = os.path.abspath(sys.argv[1]), sys.argv[2]
os.makedirs(folder, exist_ok=True)
with tempfile.TemporaryDirectory() as weights:
    for name in SHAPES:
        with open(f"{weights}/{name}.bin", "wb") as file:
            file.truncate(sum(size for _, _, size in parts(name)))
        with open(f"{weights}/{name}.mlir", "w", encoding="utf-8") as file:
            file.write(text(name, weights))
        subprocess.run([f"{root}/build/bin/moec", "compile", f"{weights}/{name}.mlir", "-o", f"{folder}/{name}.moeb",
                        f"--target={target}"], check=True, stdout=subprocess.DEVNULL)
print(f"{len(SHAPES)} layers of experts")
