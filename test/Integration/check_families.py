"""check_families.py MODELS FOLDER: compiles each family's small checkpoint and compares logits with its library's, whole and in
chunks; prints a line for each family with the errors. Files of a family: checkpoint/ and reference.safetensors.

What indexers choose is compared, too: exactly. In bf16 a model that chooses keys chooses some others, which is not an error of its numbers: there it is to choose all of them, which is
compared with what its library then computes."""

import os
import re
import subprocess
import sys

import numpy as np
from common import logits, safetensors, without_locations

models, folder = sys.argv[1:]


def run_indexers(checkpoint, tokens):
    """What each moe.select_keys of the model gives, compiled as further outputs of the step."""
    text = without_locations(subprocess.run(["moec", "compile", checkpoint, "--to=moe", "--precision=f32", "-o", "-"], check=True,
                                            capture_output=True, text=True).stdout)
    chosen = re.findall(r"^ *(%\S+) = moe\.select_keys .* -> (\S+) *$", text, re.M)
    text = re.sub(r"moe\.language_model = \{[^}]*\}, ", "", text)
    outputs = "".join(f', {kind} {{moe.name = "chosen.{i}"}}' for i, (_, kind) in enumerate(chosen))
    text = text.replace('{moe.name = "logits"})', '{moe.name = "logits"}' + outputs + ")")
    text = text.replace("func.func @step(", 'func.func @step(%pool: tensor<?xi32> {moe.name = "pool", moe.dims = ["cache_blocks"]}, ')
    text = re.sub(r"return (%\S+) : (\S+)", lambda match: "return " + ", ".join([match[1], *(value for value, _ in chosen)]) + " : " +
                  ", ".join([match[2], *(kind for _, kind in chosen)]), text)
    with open(f"{folder}/indexers.mlir", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["moec", "compile", f"{folder}/indexers.mlir", "-o", f"{folder}/indexers.moeb"], check=True)
    count, block = len(tokens), 16
    blocks = np.random.default_rng(1).permutation(-(-count // block))
    inputs = {"pool": np.zeros(len(blocks)), "tokens": tokens, "positions": np.arange(count), "token_sequences": np.zeros(count),
              "sequence_offsets": np.array([0, count]), "block_table": blocks[None], "logit_rows": np.array([count - 1])}
    for key, x in inputs.items():
        np.save(f"{folder}/{key}.npy", x.astype(np.int32))
    subprocess.run(["moec", "run", f"{folder}/indexers.moeb", *(f"--input={key}={folder}/{key}.npy" for key in inputs), "--outputs",
                    f"{folder}/outputs"], check=True, stdout=subprocess.DEVNULL)
    return [np.load(f"{folder}/outputs/chosen.{i}.npy") for i in range(len(chosen))]


print(f"{'family':28} {'logits':>9} {'chunk 1':>9} {'chunk 7':>9} {'bf16 rms':>9}")
for name in sorted(os.listdir(models)):
    reference = safetensors(f"{models}/{name}/reference.safetensors")
    tokens, expected = reference["tokens"], reference["logits"]
    bundles = {}
    for precision in ("f32", "bf16"):
        bundles[precision] = f"{folder}/{name}-{precision}.moeb"
        all_keys = [f"--set=index_topk={len(tokens)}"] if precision == "bf16" and "dense_logits" in reference else []
        subprocess.run(["moec", "compile", f"{models}/{name}/checkpoint", "-o", bundles[precision], f"--precision={precision}", *all_keys],
                       check=True, stdout=subprocess.DEVNULL)
    whole = logits(bundles["f32"], tokens)
    errors = [np.abs(whole - expected).max()]
    errors += [np.abs(logits(bundles["f32"], tokens, "--chunk", chunk) - whole).max() for chunk in (1, 7)]
    rough = logits(bundles["bf16"], tokens)
    dense = reference.get("dense_logits", expected)
    rms = np.sqrt(((rough - dense)**2).mean()) / dense.std()
    # Where two experts or entries are near, computations in bf16 take the one or the other: such rows may be as wrong as the library's
    # are by its own account, not much more, and most rows are none of them.
    rows = np.sqrt(((rough - dense)**2).mean(1)) / dense.std()
    is_near = rms <= max(0.05, 1.2 * float(reference.get("bf16_error", [0])[0])) and np.median(rows) <= 0.05
    wanted = [reference[f"chosen.{i}"] for i in range(sum(key.startswith("chosen.") for key in reference))]
    chosen = run_indexers(f"{models}/{name}/checkpoint", tokens) if wanted else []
    agrees = max(errors) <= 1e-4 and is_near and len(chosen) == len(wanted) and all(map(np.array_equal, chosen, wanted))
    print(f"{name:28} {errors[0]:9.2g} {errors[1]:9.2g} {errors[2]:9.2g} {rms:9.2%} {'agrees' if agrees else 'differs'}")
    if not agrees:
        sys.exit(f"{name} differs from its library")
