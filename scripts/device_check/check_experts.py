"""MXFP4 experts of true size: error against numpy in float64, the same bits every time, time against the machine's own ceilings."""

import json
import math
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import moert
from experts_programs import SHAPES, parts

COUNTS = (1, 8, 32, 128, 512, 2048, 8192)
MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
CODES = np.concatenate([MAGNITUDES, -MAGNITUDES])


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Layer:
    """Random weights in a file, and what the experts make of a token."""

    def __init__(self, name, folder, rng):
        self.name, self.weights, self.known = name, {}, {}
        self.hidden, self.inner, self.experts, self.choices, self.activation = SHAPES[name]
        with open(f"{folder}/{name}.bin", "wb") as file:
            for weight, shape, size in parts(name):
                if weight.endswith("codes"):
                    data = np.frombuffer(rng.bytes(size), np.uint8)
                elif weight.endswith("scales"):
                    data = rng.integers(118, 126, size, dtype=np.uint8)
                else:
                    data = to_bf16(rng.normal(size=size // 2))
                file.write(data.tobytes())
                self.weights[weight] = data.reshape(shape)

    def matrix(self, weight, expert):
        key = weight, expert
        if key not in self.known:
            if len(self.known) > 24:
                self.known.clear()
            codes, scales = self.weights[f"{weight}_codes"][expert], self.weights[f"{weight}_scales"][expert]
            values = np.stack([CODES[codes & 15], CODES[codes >> 4]], axis=-1).reshape(len(codes), -1, 32)
            self.known[key] = (values * np.exp2(scales.astype(np.float64) - 127)[:, :, None]).reshape(len(codes), -1)
        return self.known[key]

    def activate(self, a):
        if "swiglu" in self.activation:
            gate, up = np.minimum(a[0::2], 7), np.clip(a[1::2], -7, 7)
            return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
        gate, up = a[:self.inner], a[self.inner:]
        return 4 * np.tanh(gate / 4) / (1 + np.exp(-gate)) * (25 * np.tanh(up / 25))

    def expected(self, x, experts, weights):
        y = np.zeros(self.hidden)
        for expert, weight in zip(experts, weights):
            a = self.matrix("up", expert) @ x + from_bf16(self.weights["up_bias"][expert])
            y += weight * (self.matrix("down", expert) @ self.activate(a) + from_bf16(self.weights["down_bias"][expert]))
        return y

    def floor(self, indices, bandwidth, rate):
        """Seconds: each weight of the chosen experts, each row of inputs and outputs once; or the operations."""
        pairs, chosen = indices.size, len(np.unique(indices))
        elements = 3 * self.inner * self.hidden
        rows = 2 * pairs * (self.hidden + 2 * self.inner + self.inner + self.hidden)
        return max((chosen * elements * 17 / 32 + rows) / bandwidth, 2 * pairs * elements / rate)


def ceilings():
    """Bytes a second of a copy and operations a second of a large bf16 product, if PyTorch is there to measure them."""
    try:
        import torch
    except ImportError:
        return None

    def seconds(run, count):
        run()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count
    n = 8192
    x, y = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    rate = 2 * n**3 / seconds(lambda: x @ y, 20)
    a = torch.ones(2 << 30, device="cuda", dtype=torch.uint8)
    b = torch.empty_like(a)
    return 2 * a.numel() / seconds(lambda: b.copy_(a), 10), rate


def time_layer(here, bundle, weights, tokens, device):
    command = [f"{here}/moert", "bench", bundle, "--device", device, "--dimension", f"tokens={tokens}", "--weights", weights, "--json"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    launches = {}
    for launch in result["launches"]:
        launches[launch["op"]] = launches.get(launch["op"], []) + [launch["seconds"]]
    return {"all": result["seconds"], "launches": launches}


def check_tokens(model, layer, tokens, rng):
    """Inputs, what the device makes of them, and its relative error for a few tokens."""
    inputs = {"logits": ("f32", rng.normal(size=(tokens, layer.experts)).astype(np.float32)),
              "x": ("bf16", to_bf16(0.1 * rng.normal(size=(tokens, layer.hidden))))}
    outputs = model.run(inputs)
    error = total = 0.0
    for token in sorted({0, tokens - 1, int(rng.integers(tokens))}):
        expected = layer.expected(from_bf16(inputs["x"][1][token]), outputs["i"][token], outputs["w"][token].astype(np.float64))
        error += ((from_bf16(outputs["y"][token]) - expected)**2).sum()
        total += (expected**2).sum()
    finite = bool(np.isfinite(from_bf16(outputs["y"])).all())
    return inputs, outputs, math.sqrt(error / total) if finite else math.inf


def describe(row):
    share = f", {100 * row['floor'] / row['all']:.0f} % of the floor {1e6 * row['floor']:.1f}" if "floor" in row else ""
    launches = ", ".join(f"{op} {' + '.join(f'{1e6 * s:.1f}' for s in each)}" for op, each in row["launches"].items())
    return (f"{row['layer']:14} {row['tokens']:5} tokens: error {row['error']:.2e}, {row['different']} of {row['repetitions']} differ, "
            f"{1e6 * row['all']:.1f} us{share}: {launches}")


def count_different(models, inputs, expected, repetitions):
    """How many of the repetitions differ in a bit. Models take turns on the device while others copy inputs and results."""
    def count(number):
        runs = range(number, repetitions, len(models))
        return sum(not np.array_equal(expected, models[number].run(inputs)["y"]) for _ in runs)

    with ThreadPoolExecutor(len(models)) as threads:
        return sum(threads.map(count, range(len(models))))


def check_layer(library, here, name, device, repetitions, limits, rng):
    with tempfile.TemporaryDirectory() as folder:
        layer, bundle = Layer(name, folder, rng), f"{here}/experts/{name}.moeb"
        models = [library.load(bundle, device, weights=folder) for _ in range(6)]
        for tokens in COUNTS:
            inputs, first, error = check_tokens(models[0], layer, tokens, rng)
            different = count_different(models, inputs, first["y"], repetitions)
            row = {"layer": name, "tokens": tokens, "error": error, "repetitions": repetitions, "different": different}
            if limits:
                row["floor"] = layer.floor(first["i"], *limits)
            row |= time_layer(here, bundle, folder, tokens, device)
            print(describe(row), flush=True)
            yield row
        for model in models:
            model.close()


def check_experts(library, here, device, repetitions):
    """Prints a line for each layer and number of tokens."""
    rng, limits = np.random.default_rng(), ceilings()
    rows = [row for name in SHAPES for row in check_layer(library, here, name, device, repetitions, limits, rng)]
    return {"ceilings": limits, "layers": rows, "wrong": sum(row["error"] > 2.5e-3 or row["different"] > 0 for row in rows)}
