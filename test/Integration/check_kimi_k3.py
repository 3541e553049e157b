"""check_kimi_k3.py FOLDER [VARIANT ...]: random checkpoints of Kimi K3 and K3.1, compiled in f32, against numpy in f64.

Attention residuals make much of rounding where weights are random: logits may be off by 1e-4, or by three times what the same numpy
in f32 is off by, whichever is more."""

import subprocess
import sys

import numpy as np
from common import expect_close, logits
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


for variant in names:
    checkpoint, bundle = f"{folder}/{variant}", f"{folder}/{variant}.moeb"
    make(variant, checkpoint)
    subprocess.run(["moec", "compile", checkpoint, "-o", bundle, "--precision=f32"], check=True, stdout=subprocess.DEVNULL)
    model = Model.read(checkpoint)
    lengths = [6, 8, 9, 40, 300] if variant == "k31" else [len(tokens)]
    for length in lengths:
        prompt = np.resize(tokens, length) if length <= len(tokens) else np.random.default_rng(5).integers(0, 512, size=length)
        expected = model.run(prompt)
        if length >= 40:
            check_choices(model)
        own = np.abs(model.run(prompt, np.float32) - expected).max()
        expect_close(f"{variant}, {length} tokens", logits(bundle, prompt), expected, max(1e-4, 3 * own))
    whole = logits(bundle, tokens)
    for chunk in (1, 7, 16, 64) if variant in ("k3", "k31") else (7,):
        expect_close(f"{variant} in chunks of {chunk}", logits(bundle, tokens, "--chunk", chunk), whole, 1e-4)
print("kimi agrees")
