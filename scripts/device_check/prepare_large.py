"""prepare_large.py FOLDER TARGET [PERIODS]: ops whose tensors have more than 2^31 elements, where 32 bits of an index would overflow,
compiled for a device. Runs where the compiler is; check_large.py runs on the device's machine."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{root}/test/Integration")
from differential_programs import Program, Weights, tensor

SEQUENCES, LENGTH, BLOCK = 8, 509, 16
PERIOD = SEQUENCES * LENGTH  # tokens after which inputs repeat: no power of two divides it beyond 8, so that a wrapped index meets others
TABLE = -(-LENGTH // BLOCK)  # blocks of a sequence

folder, target = os.path.abspath(sys.argv[1]), sys.argv[2]
periods = int(sys.argv[3]) if len(sys.argv) > 3 else None  # instead of what is large: to try the programs on a small machine
os.makedirs(folder, exist_ok=True)


class Large(Program):
    """A program and how many periods make its largest tensor `elements` long, where a token has `width` of them."""

    def __init__(self, name, weights, rng, width, elements=2**31):
        super().__init__(name, weights, rng, None)
        self.width, self.periods = width, periods or elements // width // PERIOD + 1
        self.inputs = {}

    def given(self, name, dtype, *shape, kind="normal", sizes=("tokens",)):
        """An input whose rows check_large.py makes."""
        self.inputs[name] = {"type": dtype, "shape": shape, "kind": kind}
        return self.input(name, dtype, shape, None, sizes)

    def steps(self):
        """What tells where a token stands in its sequence."""
        self.given("positions", "i32", kind="positions")
        self.given("sequences", "i32", kind="sequences")
        self.given("table", "i32", kind="table", sizes=("sequences", "blocks"))
        self.given("pool", "i32", kind="blocks", sizes=("cache_blocks",))
        return "tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>"

    def state(self, name, shape, dtype):
        kind = f"!moe.state<{list(shape)}, {dtype}>"
        self.caches.append(f'%{name}: {kind} {{moe.name = "{name}"}}')
        if "offsets" not in self.inputs:
            self.given("positions", "i32", kind="positions")
            self.given("offsets", "i32", kind="offsets", sizes=("sequences + 1",))
            self.given("slots", "i32", kind="slots", sizes=("sequences",))
            self.given("pool", "i32", kind="slots", sizes=("state_slots_total",))
        return kind


weights, rng, programs = Weights("large.safetensors"), np.random.default_rng(), []


def program(name, width, elements=2**31):
    programs.append(Large(name, weights, rng, width, elements))
    return programs[-1]


def add_products():
    for name, dtype, k, n in (("many_columns", "bf16", 64, 8192), ("many_inputs", "bf16", 8192, 64), ("many_columns_f32", "f32", 64, 8192)):
        p = program(name, 8192, 2**31 if dtype == "f32" else 2**32)
        x, w, y = p.given("x", dtype, k), p.matrix("w", dtype, n, k), tensor(dtype, n)
        p.line(f"%y = moe.linear %x, %w : {x}, {w} -> {y}")
        p.results = [("y", y)]
    p = program("heads", 32 * 512)
    x, y = p.given("x", "bf16", 32, 16), tensor("bf16", 32, 512)
    w = p.weight("w", "bf16", rng.normal(size=(32, 512, 16)) / 4)
    p.line(f"%y = moe.head_linear %x, %w : {x}, {w} -> {y}")
    p.results = [("y", y)]


def add_experts():
    for name, hidden, inner in (("experts_hidden", 4096, 128), ("experts_inner", 128, 2048)):
        k, count = 2, 2
        p = program(name, k * 4096, 2**32)
        x, w, i = p.given("x", "bf16", hidden), p.given("w", "f32", k), p.given("i", "i32", k, kind="choices")
        up, down = p.matrix("up", "mxfp4", count, 2 * inner, hidden), p.matrix("down", "mxfp4", count, hidden, inner)
        p.line(f"%y = moe.experts %x to %i, %w gate_up(%up : {up}) down(%down : {down}) <silu> : {x}, {i}, {w} -> {x}")
        p.results = [("y", x)]
    p = program("router", 896)
    logits, w, i = p.given("logits", "f32", 896), tensor("f32", 16), tensor("i32", 16)
    p.line(f"%w, %i = moe.route sigmoid(%logits) {{renormalize, top_k = 16}} : {logits} -> {w}, {i}")
    p.results = [("w", w), ("i", i)]


def add_rows():
    p = program("norm", 8192, 2**32)
    x = p.given("x", "bf16", 8192)
    p.line(f"%y = moe.rms_norm %x weight(%w : {p.weight('w', 'bf16', rng.normal(size=8192))}) {{epsilon = 1.0e-5}} : {x}")
    p.results = [("y", x)]
    p = program("gate", 8192)
    x = p.given("x", "bf16", 8192)
    p.given("z", "bf16", 8192)
    p.line(f"%y = moe.gate %x, %z <silu> : {x}, {x} -> {x}")
    p.results = [("y", x)]
    p = program("mix", 7168)
    x = p.given("x", "bf16", 7168)
    p.given("z", "bf16", 7168)
    w = p.weight("w", "bf16", rng.normal(size=7168))
    p.line(f"%y = moe.mix_residuals %x, %z weight(%w : {w}) {{epsilon = 1.0e-5}} : {x}, {x} -> {x}")
    p.results = [("y", x)]
    p = program("rope", 96 * 128)
    x, positions = p.given("x", "bf16", 96, 128), p.given("positions", "i32", kind="positions")
    frequencies = ", ".join(f"{0.9 ** i:.6f}" for i in range(64))
    p.line(f"%y = moe.rope %x at %positions <[{frequencies}], magnitude = 1.0> : {x}, {positions}")
    p.results = [("y", x)]
    p = program("embedding", 8192)
    ids, y = p.given("ids", "i32", kind="ids"), tensor("bf16", 8192)
    p.line(f"%y = moe.embedding %ids, %table : {ids}, {p.weight('table', 'bf16', rng.normal(size=(16, 8192)))} -> {y}")
    p.results = [("y", y)]


def add_attention():
    at = "(%positions, %sequences, %table)"
    for name, key_dim, value_dim, heads, shared in (("attention", 128, 128, 96, ""), ("latent_attention", 576, 512, 1, ", shared")):
        p = program(name, 96 * value_dim)
        cache = f"!moe.cache<kv_heads = {heads}, key_dim = {key_dim}, value_dim = {value_dim}, block = {BLOCK}, bf16{shared}>"
        p.caches.append(f'%cache: {cache} {{moe.name = "cache"}}')
        kinds = f"{cache}, {p.steps()}"
        query, y = p.given("query", "bf16", 96, key_dim), tensor("bf16", 96, value_dim)
        keys = p.given("keys", "bf16", heads, key_dim)
        values = "" if shared else ", " + p.given("values", "bf16", heads, value_dim)
        p.line(f"moe.kv_append %keys{'' if shared else ', %values'} into %cache at {at} : {keys}{values}, {kinds}")
        p.line(f"%y = moe.attention %query over %cache at {at} {{scale = {key_dim**-0.5:.6f}}} : {query}, {kinds} -> {y}")
        p.results = [("y", y)]
    p = program("indexer", 64 * 128)
    cache = f"!moe.cache<kv_heads = 1, key_dim = 128, value_dim = 0, block = {BLOCK}, bf16, shared>"
    p.caches.append(f'%cache: {cache} {{moe.name = "cache"}}')
    kinds = f"{cache}, {p.steps()}"
    query, keys, w = p.given("query", "bf16", 64, 128), p.given("keys", "bf16", 1, 128), p.given("w", "f32", 64)
    p.line(f"moe.kv_append %keys into %cache at {at} : {keys}, {kinds}")
    p.line(f"%y = moe.select_keys %query weights(%w) over %cache at {at} {{scale = 0.25, top_k = 64}} : {query}, {w}, {kinds} -> {tensor('i32', 64)}")
    p.results = [("y", tensor("i32", 64))]


def add_recurrent():
    steps, at = "tensor<?xi32>, tensor<?xi32>, tensor<?xi32>", "(%positions, %offsets, %slots)"
    width = 3 * 96 * 128
    p = program("convolution", width)
    x = p.given("x", "bf16", width)
    w, window = p.weight("w", "f32", rng.normal(size=(width, 4)) / 2), p.state("window", (3, width), "bf16")
    p.line(f"%y = moe.causal_conv %x weight(%w : {w}) over %window at {at} {{silu}} : {x}, {window}, {steps}")
    p.results = [("y", x)]
    p = program("delta_rule", 96 * 128)
    q, g, beta, y = p.given("q", "bf16", 96, 128), p.given("g", "f32", 96, 128, kind="decay"), p.given("beta", "f32", 96, kind="share"), tensor("f32", 96, 128)
    p.given("k", "bf16", 96, 128)
    p.given("v", "bf16", 96, 128)
    memory = p.state("memory", (96, 128, 128), "f32")
    p.line(f"%y = moe.delta_rule %q, %k, %v decay(%g : {g}) beta(%beta : {beta}) over %memory at {at} {{scale = 0.088388, norm_epsilon = 1.0e-6}} : "
           f"{q}, {q}, {q}, {memory}, {steps} -> {y}")
    p.results = [("y", y)]


for add in (add_products, add_experts, add_rows, add_attention, add_recurrent):
    add()
cases, failures = [], 0
with tempfile.TemporaryDirectory() as sources:
    weights.write(sources)
    for p in programs:
        with open(f"{sources}/{p.name}.mlir", "w", encoding="utf-8") as file:
            file.write(f'module attributes {{moe.weight_root = "{sources}"}} {{\n{weights.place(p.text())}}}\n')
        command = [f"{root}/build/bin/moec", "compile", f"{sources}/{p.name}.mlir", "-o", f"{folder}/{p.name}.moeb", f"--target={target}", "--copy-weights"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            failures += 1
            print(p.name, result.stderr.strip())
        cases.append({"name": p.name, "width": p.width, "periods": p.periods, "inputs": p.inputs, "results": [kind.split("x")[-1].rstrip(">") for _, kind in p.results]})
with open(f"{folder}/cases.json", "w", encoding="utf-8") as file:
    json.dump({"sequences": SEQUENCES, "length": LENGTH, "blocks": TABLE, "cases": cases}, file)
print(f"{len(cases)} programs, {failures} not compiled")
