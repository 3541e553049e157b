"""check_expert_split.py FOLDER: a mixture of experts in a latent space as one op, and as the sum of two ops that have half of the experts
each. Weights of all experts are one tensor; the halves are tensors of their own."""

import subprocess
import sys

import numpy as np

from differential_programs import Weights, encode, tensor

folder = sys.argv[1]
TOKENS, EXPERTS, CHOICES, LATENT, INNER, HIDDEN = 33, 8, 4, 96, 64, 160


def write(name, dtype, weight_type):
    """Results: the split mixture, the whole one, and the norms of the halves added, which is wrong."""
    rng, weights, lines = np.random.default_rng(4), Weights(f"{name}.safetensors"), []
    line = lambda text: lines.append("  " + text)

    def matrix(result, x, scales):
        if weight_type != "mxfp4":
            op, kind = weights.add(weight_type, x)
            line(f"%{result} = {op}")
            return kind
        parts = []
        for part, values in (("codes", x), ("scales", scales)):
            op, kind = weights.add("i8", values)
            line(f"%{result}_{part} = {op}")
            parts.append(kind)
        kind = f"!moe.block_tensor<[{x.shape[0]}, {x.shape[1]}, {2 * x.shape[2]}], mxfp4>"
        line(f"%{result} = moe.assemble_blocks %{result}_codes, %{result}_scales : {', '.join(parts)} -> {kind}")
        return kind

    def make(*shape):
        if weight_type != "mxfp4":
            return rng.normal(size=shape) / np.sqrt(shape[-1]), None
        return rng.integers(0, 256, size=(*shape[:-1], shape[-1] // 2)), rng.integers(120, 124, size=(*shape[:-1], shape[-1] // 32))

    up, down, half = make(EXPERTS, 2 * INNER, LATENT), make(EXPERTS, LATENT, INNER), EXPERTS // 2
    x, w, i = tensor(dtype, LATENT), tensor("f32", CHOICES), tensor("i32", CHOICES)
    for part, chosen in (("all", slice(None)), ("a", slice(0, half)), ("b", slice(half, None))):
        kinds = [matrix(f"{name}_{part}", *(None if each is None else each[chosen] for each in values)) for name, values in (("up", up), ("down", down))]
        line(f"%y_{part} = moe.experts %x to %i_{part}, %w gate_up(%up_{part} : {kinds[0]}) down(%down_{part} : {kinds[1]}) <silu> : {x}, {i}, {w} -> {x}")
    norm, norm_kind = weights.add("f32", 1 + 0.1 * rng.normal(size=LATENT))
    back, back_kind = weights.add("bf16", rng.normal(size=(HIDDEN, LATENT)) / np.sqrt(LATENT))
    y = tensor(dtype, HIDDEN)
    line(f"%n = {norm}")
    line(f"%m = {back}")
    line(f"%y_sum = arith.addf %y_a, %y_b : {x}")
    for part in ("all", "sum", "a", "b"):
        line(f"%l_{part} = moe.rms_norm %y_{part} weight(%n : {norm_kind}) {{epsilon = 1.0e-5}} : {x}")
        line(f"%z_{part} = moe.linear %l_{part}, %m : {y.replace(f'{HIDDEN}x', f'{LATENT}x')}, {back_kind} -> {y}")
    line(f"%z_wrong = arith.addf %z_a, %z_b : {y}")
    arguments = [("x", x), ("w", w), *((f"i_{part}", i) for part in ("all", "a", "b"))]
    text = ", ".join(f'%{argument}: {kind} {{moe.name = "{argument}", moe.dims = ["tokens"]}}' for argument, kind in arguments)
    results = ", ".join(f'{y} {{moe.name = "{result}"}}' for result in ("sum", "all", "wrong"))
    weights.write(folder)
    with open(f"{folder}/{name}.mlir", "w", encoding="utf-8") as file:
        file.write(f'module attributes {{moe.weight_root = "{folder}"}} {{\nfunc.func @step({text}) -> ({results}) attributes {{moe.entry}} {{\n'
                   + weights.place("\n".join(lines)) + f"\n  return %z_sum, %z_all, %z_wrong : {y}, {y}, {y}\n}}\n}}\n")

    choices = np.array([rng.permutation(EXPERTS)[:CHOICES] for _ in range(TOKENS)])
    choices[3] = [0, 1, 2, 3]  # nothing for the other half
    inputs = {"x": rng.normal(size=(TOKENS, LATENT)), "w": rng.uniform(0.1, 1, size=(TOKENS, CHOICES)), "i_all": choices,
              "i_a": np.where(choices < half, choices, -1), "i_b": np.where(choices < half, -1, choices - half)}
    for key, values in inputs.items():
        element = "i32" if key.startswith("i_") else "f32" if key == "w" else dtype
        values = encode(element, values)
        np.save(f"{folder}/{key}.npy", values.view("V2") if element == "bf16" else values)
    return [f"--input={key}={folder}/{key}.npy" for key in inputs]


def read(name, dtype):
    x = np.load(f"{folder}/out/{name}.npy")
    return (x.view("<u2").astype("<u4") << 16).view("<f4") if dtype == "bf16" else x


for dtype, weight_type in (("f32", "bf16"), ("f32", "mxfp4"), ("bf16", "mxfp4")):
    name = f"{dtype}_{weight_type}"
    inputs = write(name, dtype, weight_type)
    subprocess.run(["moec", "compile", f"{folder}/{name}.mlir", "-o", f"{folder}/{name}.moeb"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["moec", "run", f"{folder}/{name}.moeb", *inputs, "--outputs", f"{folder}/out"], check=True, stdout=subprocess.DEVNULL)
    split, whole, wrong = (read(each, dtype).astype(np.float64) for each in ("sum", "all", "wrong"))
    error, size = np.abs(split - whole).max(), np.abs(whole).max()
    # A half is rounded to the type before it is added.
    assert error <= size * (2e-6 if dtype == "f32" else 2.0**-6), (name, error, size)
    assert np.abs(wrong - whole).max() > 0.2 * size, "the order of norm and sum cannot be seen"
    print(f"{dtype} {weight_type}: split experts agree to {error / size:.2g}")
