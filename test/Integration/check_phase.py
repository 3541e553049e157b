"""check_phase.py PROGRAM.mlir REFERENCE.safetensors: a language model's step in the interpreter against recorded logits."""

import os
import subprocess
import sys

import numpy as np

from common import expect_close, safetensors

program, reference_path = sys.argv[1:]
reference = safetensors(reference_path)
file = os.path.join(os.path.dirname(os.path.abspath(program)), "logits.npy")
for name, chunk in (("one go", 0), ("chunks of 7", 7)):
    ids = ",".join(map(str, reference["tokens"]))
    subprocess.run(["moec-interpret", program, f"--ids={ids}", f"--chunk={chunk}", f"--logits={file}"], check=True)
    expect_close(name, np.load(file), reference["logits"], 1e-5)
print("agrees")
