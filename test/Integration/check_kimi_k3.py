"""check_kimi_k3.py FOLDER [VARIANT ...]: random checkpoints of Kimi K3 and K3.1, compiled in f32, against numpy in f64.

Each layer is compared with the reference's inputs, which are every sum that a layer keeps of earlier ones: to 1e-5, relative root mean
square. Attention residuals make much of rounding where weights are random: logits from end to end may be off by 1e-4, or by three times
what the same numpy in f32 is off by, whichever is more."""

import json
import subprocess
import sys

import numpy as np
from common import TARGET, logits, table_head, table_line, write_safetensors
from kimi_k3_checkpoint import VARIANTS, make
from kimi_k3_model import Model

folder, names = sys.argv[1], sys.argv[2:] or list(VARIANTS)
tokens = np.random.default_rng(3).integers(0, 512, size=70)


def check_choices(model):
    """The checkpoint is one that can tell mistakes: a bias decides for many tokens, an indexer neither sees all nor only the last."""
    k = model.config["num_experts_per_token"]
    for indices, (scores, _) in zip(model.seen["router"], model.seen["router_selection"]):
        unbiased = np.sort(np.argsort(-scores, -1)[:, :k], -1)
        assert (np.sort(indices, -1) != unbiased).any(-1).mean() > 0.3
    for rows in model.seen["dsa"]:
        long = np.arange(20, len(rows))
        assert (rows[long] >= 0).all() and (rows[long] != long[:, None] - np.arange(rows.shape[1])[::-1]).any(-1).all()


def verify_layers(bundle, folder, model, prompt):
    """The worst error of a layer with the reference's inputs."""
    expected = model.run(prompt)
    tensors = {"tokens": prompt.astype(np.int32), "logits": expected, "embedding": model.get("model.embed_tokens.weight")[prompt]}
    tensors |= {f"layers.{n}": rows for n, rows in enumerate(model.seen["residual"])}
    write_safetensors(f"{folder}/reference.safetensors", tensors)
    result = subprocess.run(["moec", "verify", bundle, "--against", f"{folder}/reference.safetensors", "--json"], stdout=subprocess.PIPE,
                            text=True, check=False)
    report = json.loads(result.stdout.splitlines()[-1])
    compared = [each for segment in report["segments"] for each in segment.get("with_file", [])]
    assert len(compared) == model.config["num_hidden_layers"] + 1
    # The logits of the report are those from end to end, which have their own limit below.
    if any(not segment["agrees"] for segment in report["segments"]):
        sys.exit(f"{bundle}: {report['first_difference']}")
    return max(each["relative_rms"] for each in compared)


print(table_head())
for variant in names:
    checkpoint, bundle, wrong = f"{folder}/{variant}", f"{folder}/{variant}.moeb", []
    make(variant, checkpoint)
    subprocess.run(["moec", "compile", checkpoint, "-o", bundle, "--precision=f32", *TARGET], check=True, stdout=subprocess.DEVNULL)
    model = Model.read(checkpoint)

    def note(what, error, allowed):
        if not error <= allowed:
            wrong.append(f"{what}: {error:.3g}, allowed {allowed:.3g}")
        return error

    layers = note("layers", verify_layers(bundle, checkpoint, model, tokens[:40]), 1e-5)
    errors, owns = [], []
    for length in (6, 8, 9, 40, 300) if variant == "k31" else (len(tokens),):
        prompt = np.resize(tokens, length) if length <= len(tokens) else np.random.default_rng(5).integers(0, 512, size=length)
        expected = model.run(prompt)
        if length >= 40:
            check_choices(model)
        owns.append(np.abs(model.run(prompt, np.float32) - expected).max())
        error = np.abs(logits(bundle, prompt) - expected).max()
        errors.append(note(f"logits of {length} tokens", error, max(1e-4, 3 * owns[-1])))
    whole = logits(bundle, tokens)
    sizes = (1, 7, 16, 64) if variant in ("k3", "k31") else (7,)
    chunks = max(note(f"chunks of {size}", np.abs(logits(bundle, tokens, "--chunk", size) - whole).max(), 1e-4) for size in sizes)
    print(table_line(variant, layers, max(errors), None, max(owns), chunks, None, None, not wrong, "numpy, float64"), flush=True)
    if wrong:
        sys.exit(f"{variant}: {'; '.join(wrong)}")
print("kimi agrees")
