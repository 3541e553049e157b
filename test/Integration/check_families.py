"""check_families.py MODELS FOLDER: compiles each family's small checkpoint and compares logits with its library's, whole and in
chunks; prints a line for each family with the errors. Files of a family: checkpoint/ and reference.safetensors."""

import os
import subprocess
import sys

import numpy as np
from common import logits, safetensors

models, folder = sys.argv[1:]
print(f"{'family':28} {'logits':>9} {'chunk 1':>9} {'chunk 7':>9} {'bf16 rms':>9}")
for name in sorted(os.listdir(models)):
    reference = safetensors(f"{models}/{name}/reference.safetensors")
    tokens, expected = reference["tokens"], reference["logits"]
    bundles = {}
    for precision in ("f32", "bf16"):
        bundles[precision] = f"{folder}/{name}-{precision}.moeb"
        subprocess.run(["moec", "compile", f"{models}/{name}/checkpoint", "-o", bundles[precision], f"--precision={precision}"],
                       check=True, stdout=subprocess.DEVNULL)
    whole = logits(bundles["f32"], tokens)
    errors = [np.abs(whole - expected).max()]
    errors += [np.abs(logits(bundles["f32"], tokens, "--chunk", chunk) - whole).max() for chunk in (1, 7)]
    rough = logits(bundles["bf16"], tokens)
    rms = np.sqrt(((rough - expected)**2).mean()) / expected.std()
    # Where two experts or entries are near, computations in bf16 take the one or the other: such rows may be as wrong as the library's
    # are by its own account, not much more, and most rows are none of them.
    rows = np.sqrt(((rough - expected)**2).mean(1)) / expected.std()
    agrees = max(errors) <= 1e-4 and rms <= max(0.05, 1.5 * float(reference.get("bf16_error", [0])[0])) and np.median(rows) <= 0.05
    print(f"{name:28} {errors[0]:9.2g} {errors[1]:9.2g} {errors[2]:9.2g} {rms:9.2%} {'agrees' if agrees else 'differs'}")
    if not agrees:
        sys.exit(f"{name} differs from its library")
