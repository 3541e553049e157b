"""Random programs of one or a few moe ops on plain tensors, a module each, with weights in one safetensors file."""

import json
import struct

import numpy as np

FILE_TYPES = {"f32": "F32", "bf16": "BF16", "f16": "F16", "i32": "I32", "i64": "I64", "i8": "I8"}


def encode(dtype, x):
    """The bytes of numbers rounded to the type (towards zero for bf16: any bf16 number will do)."""
    x = np.asarray(x)
    if dtype == "bf16":
        return (x.astype("<f4").view("<u4") >> 16).astype("<u2")
    return x.astype({"f32": "<f4", "f16": "<f2", "f64": "<f8", "i32": "<i4", "i64": "<i8", "i8": "u1"}[dtype])


class Weights:
    def __init__(self, name):
        self.name, self.entries, self.data = name, {}, b""

    def add(self, dtype, x):
        """The op that gives the weight, as 'moe.weight ...' without its result, with offsets filled in at the end."""
        x = np.asarray(x)
        key, raw = f"w{len(self.entries)}", encode(dtype, x).tobytes()
        kind = "tensor<" + "".join(f"{n}x" for n in x.shape) + dtype + ">"
        self.entries[key] = {"dtype": FILE_TYPES[dtype], "shape": list(x.shape), "data_offsets": [len(self.data), len(self.data) + len(raw)]}
        self.data += raw
        return f'moe.weight "{key}" at <"{self.name}", OFFSET{key}END, {len(raw)}> : {kind}', kind

    def write(self, folder):
        header = json.dumps(self.entries).encode()
        header += b" " * (-len(header) % 8)
        with open(f"{folder}/{self.name}", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + self.data)
        self.base = 8 + len(header)

    def place(self, text):
        for key, entry in self.entries.items():
            text = text.replace(f"OFFSET{key}END", str(self.base + entry["data_offsets"][0]))
        return text


# The smallest and the largest scale byte of a row of MXFP4 weights. Hopper's kernels are exact where a row spans at most 133 octaves.
ALL_SCALES = (0, 254)
HOPPER_SCALES = [(0, 126), (121, 254)]


class Program:
    """One function. Inputs have a token count T in front, named alike in all of them, or what `sizes` names."""

    def __init__(self, name, weights, rng, scale_ranges):
        self.name, self.weights, self.rng, self.scale_ranges = name, weights, rng, scale_ranges
        self.arguments, self.caches, self.lines, self.results, self.makers = [], [], [], [], {}
        self.roundings = 1  # how many kernels in a row round to 16 bits

    def input(self, name, dtype, shape, make, sizes=("tokens",)):
        """make(tokens) -> array."""
        kind = "tensor<" + "?x" * len(sizes) + "".join(f"{n}x" for n in shape) + dtype + ">"
        dims = ", ".join(f'"{each}"' for each in sizes)
        self.arguments.append(f'%{name}: {kind} {{moe.name = "{name}", moe.dims = [{dims}]}}')
        self.makers[name] = (dtype, make)
        return kind

    def normal(self, name, dtype, *shape):
        return self.input(name, dtype, shape, lambda tokens: self.rng.normal(size=(tokens, *shape)))

    def line(self, text):
        self.lines.append("  " + text)

    def weight(self, result, dtype, x):
        op, kind = self.weights.add(dtype, x)
        self.line(f"%{result} = {op}")
        return kind

    def matrix(self, result, dtype, *shape, edit=None):
        """A weight of the type, or 'mxfp4'. The numbers have a size that keeps products near 1. `edit` may change codes and scales."""
        if dtype != "mxfp4":
            return self.weight(result, dtype, self.rng.normal(size=shape) / np.sqrt(shape[-1]))
        rows = shape[:-1]
        codes = self.rng.integers(0, 256, size=(*rows, shape[-1] // 2))
        scales = self.rng.integers(120, 127, size=(*rows, shape[-1] // 32))
        if edit:
            edit(codes, scales)
        codes, scales = self.weight(result + "_codes", "i8", codes), self.weight(result + "_scales", "i8", scales)
        kind = f"!moe.block_tensor<[{', '.join(map(str, shape))}], mxfp4>"
        self.line(f"%{result} = moe.assemble_blocks %{result}_codes, %{result}_scales : {codes}, {scales} -> {kind}")
        return kind

    def text(self):
        kinds = [kind for _, kind in self.results]
        named = [f'{kind} {{moe.name = "out{i}"}}' for i, kind in enumerate(kinds)]
        values = ", ".join(f"%{value}" for value, _ in self.results)
        return "\n".join([f"func.func @{self.name}({', '.join(self.arguments + self.caches)}) -> ({', '.join(named)}) attributes {{moe.entry}} {{",
                          *self.lines, f"  return {values} : {', '.join(kinds)}", "}"]) + "\n"


def tensor(dtype, *shape):
    return "tensor<?x" + "".join(f"{n}x" for n in shape) + dtype + ">"


def linear(p, rng):
    dtype = rng.choice(["f32", "bf16", "f16"])
    weight_type = rng.choice(["f32", "bf16", "f16", "mxfp4"] if dtype == "f32" else [dtype, "bf16", "mxfp4"])
    k = int(rng.choice([32, 64, 96, 160] if weight_type == "mxfp4" else [1, 5, 16, 33, 64, 100, 160]))
    n = int(rng.choice([1, 7, 16, 31, 48, 130, 258, 320]))
    x, w, y = p.normal("x", dtype, k), p.matrix("w", weight_type, n, k), tensor(dtype, n)
    plain_type = "bf16" if weight_type == "mxfp4" else weight_type
    optional = ""
    if rng.random() < 0.5:
        optional += f" bias(%b : {p.weight('b', plain_type, rng.normal(size=n))})"
    if rng.random() < 0.4:
        optional += f" residual(%r : {p.normal('r', dtype, n)})"
    attributes = ""
    if rng.random() < 0.4:
        optional += f" norm(%n : {p.weight('n', plain_type, rng.normal(size=k))})"
        attributes = " {epsilon = 1.0e-5}"
    p.line(f"%y = moe.linear %x, %w{optional}{attributes} : {x}, {w} -> {y}")
    p.results = [("y", y)]


def norm(p, rng):
    dtype, shape = rng.choice(["f32", "bf16", "f16"]), [[int(rng.choice([1, 7, 64, 100]))], [3, int(rng.choice([8, 33]))]][rng.integers(2)]
    x = p.normal("x", dtype, *shape)
    weight = f" weight(%w : {p.weight('w', 'f32', rng.normal(size=shape[-1]))})" if rng.random() < 0.8 else ""
    if rng.random() < 0.3:
        bias = f" bias(%b : {p.weight('b', 'bf16', rng.normal(size=shape[-1]))})" if rng.random() < 0.5 else ""
        p.line(f"%y = moe.layer_norm %x{weight}{bias} {{epsilon = 1.0e-5}} : {x}")
    else:
        offset = ", unit_offset" if weight and rng.random() < 0.3 else ""
        p.line(f"%y = moe.rms_norm %x{weight} {{epsilon = 1.0e-5{offset}}} : {x}")
    p.results = [("y", x)]


def gate(p, rng):
    dtype, width = rng.choice(["f32", "bf16"]), int(rng.choice([1, 16, 37]))
    g, u = p.normal("g", dtype, width), p.normal("u", dtype, width)
    activation = rng.choice([text for text in ACTIVATIONS if "interleaved" not in text])
    p.line(f"%y = moe.gate %g, %u {activation} : {g}, {u} -> {g}")
    p.results = [("y", g)]


def mix_residuals(p, rng):
    dtype, width, count = rng.choice(["f32", "bf16", "f16"]), int(rng.choice([1, 33, 64, 256])), int(rng.choice([1, 2, 5, 9]))
    kinds = [p.normal(f"v{i}", dtype, width) for i in range(count)]
    weight = p.weight("w", rng.choice(["f32", "bf16"]), rng.normal(size=width))
    p.line(f"%y = moe.mix_residuals {', '.join(f'%v{i}' for i in range(count))} weight(%w : {weight}) {{epsilon = 1.0e-5}} : {', '.join(kinds)} -> {kinds[0]}")
    p.results = [("y", kinds[0])]


def residual_stack(p, rng):
    """A prefix sum that is a candidate of mixes, the residual of a product and what the next sum begins with: it has to stay as it is
    until its last reader is done."""
    dtype, width = rng.choice(["f32", "bf16"]), 256  # wide: one row has to average over roundings
    p.roundings = 11
    x = p.normal("x", dtype, width)
    for name in ("w0", "w1", "w2"):
        matrix = p.matrix(name, "bf16", width, width)
    for name in ("m0", "m1", "m2"):
        weight = p.weight(name, "bf16", rng.normal(size=width) / np.sqrt(width))  # large scores would make much of each rounding
    p.weight("n", "bf16", rng.normal(size=width))
    mix = lambda result, candidates, m: p.line(
        f"%{result} = moe.mix_residuals {', '.join('%' + c for c in candidates)} weight(%{m} : {weight}) {{epsilon = 1.0e-5}} : "
        f"{', '.join([x] * len(candidates))} -> {x}")
    norm = lambda result, of: p.line(f"%{result} = moe.rms_norm %{of} weight(%n : {weight}) {{epsilon = 1.0e-5}} : {x}")
    product = lambda result, of, w: p.line(f"%{result} = moe.linear %{of}, %{w} : {x}, {matrix} -> {x}")
    norm("h0", "x")
    product("p0", "h0", "w0")  # the sum begins anew behind the snapshot x
    mix("y0", ["x", "p0"], "m0")
    norm("h1", "y0")
    product("f0", "h1", "w1")
    p.line(f"%p1 = arith.addf %p0, %f0 : {x}")
    mix("y1", ["x", "p1"], "m1")
    norm("h2", "y1")
    product("f1", "h2", "w2")
    p.line(f"%p2 = arith.addf %p1, %f1 : {x}")
    mix("z", ["x", "p2"], "m2")
    p.results = [("z", x), ("p2", x)]


def gated_norm(p, rng):
    dtype, result, shape = rng.choice(["f32", "bf16"]), rng.choice(["f32", "bf16"]), [[int(rng.choice([1, 33, 64]))], [3, int(rng.choice([8, 33]))]][rng.integers(2)]
    x, g, y = p.normal("x", dtype, *shape), p.normal("g", "bf16", *shape), tensor(result, *shape)
    weight = f" weight(%w : {p.weight('w', 'f32', rng.normal(size=shape[-1]))})" if rng.random() < 0.7 else ""
    p.line(f"%y = moe.gated_rms_norm %x by {rng.choice(['sigmoid', 'silu'])}(%g : {g}){weight} {{epsilon = 1.0e-5}} : {x} -> {y}")
    p.results = [("y", y)]


def decay(p, rng):
    heads, padding = int(rng.choice([1, 3, 16])), int(rng.choice([0, 5]))
    row = [[heads], [heads, int(rng.choice([1, 8, 33]))]][rng.integers(2)]
    x, g = p.normal("x", rng.choice(["f32", "bf16"]), *row), tensor("f32", *row)
    a = p.weight("a", "f32", np.concatenate([rng.uniform(-1, 1, size=heads), np.zeros(padding)]))
    b, bound = p.weight("b", "f32", rng.normal(size=row)), rng.choice(["", " {lower_bound = -5.0}"])
    p.line(f"%g = moe.decay_gate %x a_log(%a : {a}) bias(%b : {b}){bound} : {x} -> {g}")
    p.results = [("g", g)]


def rope(p, rng):
    dtype, dim = rng.choice(["f32", "bf16"]), int(rng.choice([8, 12, 64]))
    count, offset = (dim // 4, int(rng.choice([0, dim // 4])))
    frequencies = ", ".join(f"{0.7 ** i:.6f}" for i in range(count))
    x = p.normal("x", dtype, int(rng.choice([1, 3])), dim)
    positions = p.input("positions", "i32", (), lambda tokens: rng.integers(0, 5000, size=tokens))
    extra = (f", offset = {offset}" if offset else "") + (", interleaved" if rng.random() < 0.5 else "")
    p.line(f"%y = moe.rope %x at %positions <[{frequencies}], magnitude = 1.25{extra}> : {x}, {positions}")
    p.results = [("y", x)]


def rows(p, rng):
    width, count, dtype = int(rng.choice([1, 16, 37])), 19, rng.choice(["f32", "bf16"])
    ids = p.input("ids", "i32", (), lambda tokens: rng.integers(0, count, size=tokens))
    table, y = p.weight("table", "bf16", rng.normal(size=(count, width))), tensor(dtype, width)
    p.line(f"%e = moe.embedding %ids, %table : {ids}, {table} -> {y}")
    which = p.input("rows", "i32", (), lambda tokens: rng.integers(-2, tokens + 2, size=tokens))
    p.line(f"%y = moe.gather_rows %e, %rows : {y}, {which} -> {y}")
    p.results = [("y", y)]


def images(p, rng):
    """Positions of patches, and rows of one tensor in another."""
    grid, width, dtype, other = [int(rng.choice([1, 4, 6])) for _ in range(2)], int(rng.choice([1, 16, 37])), *rng.choice(["f32", "bf16"], size=2)
    table, y = p.weight("grid", rng.choice(["f32", "bf16"]), rng.normal(size=(*grid, width))), tensor(dtype, width)
    sides = [p.input(name, "i32", (), lambda tokens: rng.integers(-1, 12, size=tokens)) for name in ("r", "h", "c", "w")]
    p.line(f"%p = moe.interpolate_positions %grid at (%r of %h, %c of %w) : {table}, {sides[0]} -> {y}")
    n = p.input("n", other, (width,), lambda tokens: rng.normal(size=(3, width)), ("replacements",))
    which = p.input("rows", "i32", (), lambda tokens: rng.integers(-3, 5, size=tokens))
    p.line(f"%y = moe.replace_rows %p with %n at %rows : {y}, {n}, {which}")
    p.results = [("p", y), ("y", y)]


def item_attention(p, rng):
    """Tokens that all see all: their keys lie in the cache in any order, and each looks from behind the last one."""
    heads, dim, dtype, block = int(rng.choice([1, 2, 3])), int(rng.choice([16, 32, 72])), rng.choice(["f32", "bf16"]), 16
    cache = f"!moe.cache<kv_heads = {heads}, key_dim = {dim}, value_dim = {dim}, block = {block}, {dtype}>"
    p.caches.append(f'%cache: {cache} {{moe.name = "cache"}}')
    table = p.input("table", "i32", (), lambda tokens: np.arange(-(-tokens // block))[None], ("items", "cache_blocks"))
    keys = p.input("keys", "i32", (), lambda tokens: rng.permutation(tokens))
    p.input("last", "i32", (), lambda tokens: np.full(tokens, tokens - 1))
    p.input("items", "i32", (), lambda tokens: np.zeros(tokens))
    q, _, _ = (p.normal(name, dtype, heads, dim) for name in ("q", "k", "v"))
    p.line(f"moe.kv_append %k, %v into %cache at (%keys, %items, %table) : {q}, {q}, {cache}, {keys}, {keys}, {table}")
    p.line(f"%y = moe.attention %q over %cache at (%last, %items, %table) {{scale = {dim**-0.5:.6f}}} : {q}, {cache}, {keys}, {keys}, {table} -> {q}")
    p.results = [("y", q)]


def route_text(p, rng, experts, k):
    """The op and the types of its results. Some rows have ties, some have logits that are no number or infinite."""
    def make(tokens):
        logits = rng.normal(size=(tokens, experts))
        tied, odd = rng.random(tokens) < 0.2, rng.random(tokens) < 0.1
        logits[tied] = np.round(logits[tied])
        logits[odd[:, None] & (rng.random((tokens, experts)) < 0.3)] = np.nan
        logits[odd[:, None] & (rng.random((tokens, experts)) < 0.2)] = -np.inf
        return logits

    logits = p.input("logits", "f32", (experts,), make)
    score = rng.choice(["softmax", "sigmoid", "sqrt_softplus"])
    attributes = [f"top_k = {k}"] + (["renormalize"] if rng.random() < 0.6 else []) + (["scale = 2.5"] if rng.random() < 0.3 else [])
    bias = f" bias(%bias : {p.weight('bias', 'f32', rng.normal(size=experts))})" if score != "softmax" and rng.random() < 0.5 else ""
    groups, top = [(4, 2), (4, 3), (8, 1), (2, 1), (3, 2)][rng.integers(5)]
    if score != "softmax" and experts % groups == 0 and k <= experts // groups * top and rng.random() < 0.7:
        attributes += [f"groups = {groups}", f"top_groups = {top}"]
    w, i = tensor("f32", k), tensor("i32", k)
    p.line(f"%w, %i = moe.route {score}(%logits){bias} {{{', '.join(attributes)}}} : {logits} -> {w}, {i}")
    return w, i


def route(p, rng):
    experts = int(rng.choice([1, 4, 16, 24, 40, 130, 256]))
    w, i = route_text(p, rng, experts, int(rng.integers(1, min(experts, 8) + 1)))
    p.results = [("w", w), ("i", i)]


ACTIVATIONS = ["<silu>", "<gelu>", "<gelu_tanh>", "<relu>", "<silu, interleaved = true>", "<situ, alpha = 25.0, beta = 4.0>",
               "<situ, alpha = 0.0, beta = 3.0, interleaved = true>", "<relu, interleaved = true>", "<gelu, interleaved = true>",
               "<swiglu, alpha = 1.702, beta = 1.0, limit = 7.0, interleaved = true>", "<swiglu, alpha = 1.702, beta = 1.0, limit = 1.0>"]


def experts(p, rng):
    dtype = rng.choice(["f32", "bf16", "f16"])
    weight_type = rng.choice(["bf16", "mxfp4", "f16" if dtype == "f16" else "bf16"])
    step = 32 if weight_type == "mxfp4" else 1
    hidden, inner = step * int(rng.choice([1, 2, 3])), step * int(rng.choice([1, 2, 3]))
    if step == 1:
        hidden, inner = int(rng.choice([5, 16, 33])), int(rng.choice([3, 16, 20]))
    count = int(rng.choice([2, 5, 8]))
    k = int(rng.integers(1, count + 1))
    x = p.normal("x", dtype, hidden)
    w, i = route_text(p, rng, count, k)
    up, down = p.matrix("up", weight_type, count, 2 * inner, hidden), p.matrix("down", weight_type, count, hidden, inner)
    optional = ""
    if rng.random() < 0.6:
        optional += f" gate_up_bias(%ub : {p.weight('ub', 'bf16', rng.normal(size=(count, 2 * inner)))})"
        optional += f" down_bias(%db : {p.weight('db', 'bf16', rng.normal(size=(count, hidden)))})"
    if rng.random() < 0.5:
        optional += f" residual(%r : {p.normal('r', dtype, hidden)})"
    p.line(f"%y = moe.experts %x to %i, %w gate_up(%up : {up}) down(%down : {down}){optional} {rng.choice(ACTIVATIONS)} : {x}, {i}, {w} -> {x}")
    p.results = [("y", x)]


def columns_of_wider(p, rng):
    """Products and experts whose input is some columns of a wider tensor, as where products were merged."""
    dtype, k, rest = rng.choice(["f32", "bf16", "bf16"]), 64, int(rng.choice([8, 24, 64, 5]))
    first, n, count = int(rng.choice([0, 8, 16, 4])), int(rng.choice([32, 130])), 4
    p.roundings = 2
    wide = p.normal("x", dtype, first + k + rest)
    x, c = tensor(dtype, k), tensor("f32", n)
    p.line("%c0 = arith.constant 0 : index")
    p.line(f"%t = tensor.dim %x, %c0 : {wide}")
    p.line(f"%part = tensor.extract_slice %x[0, {first}] [%t, {k}] [1, 1] : {wide} to {x}")
    p.line(f"%y = moe.linear %part, %lw : {x}, {p.matrix('lw', 'bf16', n, k)} -> {c}")
    w, i = route_text(p, rng, count, 2)
    up, down = p.matrix("up", "mxfp4", count, 64, k), p.matrix("down", "mxfp4", count, k, 32)
    p.line(f"%z = moe.experts %part to %i, %w gate_up(%up : {up}) down(%down : {down}) <silu> : {x}, {i}, {w} -> {x}")
    p.results = [("y", c), ("z", x)]


def concatenation(p, rng):
    """Parts of different sizes, along the last dimension or heads."""
    dtype, heads, dim = rng.choice(["f32", "bf16"]), int(rng.choice([1, 3, 96])), int(rng.integers(1, 3))
    sizes = [int(n) for n in rng.choice([1, 5, 64, 130], size=int(rng.integers(2, 4)))]
    parts = [p.normal(f"x{i}", dtype, *([heads, n] if dim == 2 else [n, 16])) for i, n in enumerate(sizes)]
    y = tensor(dtype, *([heads, sum(sizes)] if dim == 2 else [sum(sizes), 16]))
    p.line(f"%y = tensor.concat dim({dim}) {', '.join(f'%x{i}' for i in range(len(parts)))} : ({', '.join(parts)}) -> {y}")
    # Rows of weights, when they are loaded: of so many columns that workgroups share them.
    rows, columns = [int(n) for n in rng.choice([1, 3, 40, 7], size=3)], 1100
    weights = [p.matrix(f"w{i}", "bf16", n, columns) for i, n in enumerate(rows)]
    whole, x, z = f"tensor<{sum(rows)}x{columns}xbf16>", p.normal("x", "f32", columns), tensor("f32", sum(rows))
    p.line(f"%w = tensor.concat dim(0) {', '.join(f'%w{i}' for i in range(3))} : ({', '.join(weights)}) -> {whole}")
    p.line(f"%z = moe.linear %x, %w : {x}, {whole} -> {z}")
    p.results = [("y", y), ("z", z)]


def chosen_experts(p, rng):
    """Experts with choices that are given: some are -1, some experts have no token, and some tokens no expert. Blocks of weights with
    very small and very large scales meet inputs that keep products near 1; one expert of one result has no number."""
    dtype, activation = rng.choice(["f32", "bf16"]), rng.choice(ACTIVATIONS)
    hidden, inner, result = int(rng.choice([64, 160, 320])), int(rng.choice([96, 128, 160])), int(rng.choice([64, 258, 320]))
    count, k = int(rng.choice([1, 4, 9])), int(rng.choice([1, 3, 6]))
    tiny, huge = map(int, rng.choice(p.scale_ranges))
    none = 255
    extreme = rng.permutation(hidden // 32)[:2]  # the blocks of the smallest and of the largest scale

    def make_input(tokens):
        x = rng.normal(size=(tokens, hidden)).reshape(tokens, hidden // 32, 32)
        x[:, extreme[0]] *= 2.0**min(123 - tiny, 116)  # sums of products with codes, before they are scaled, stay below 2^127
        x[:, extreme[1]] = rng.choice([-1, 1], size=(tokens, 32)) * rng.uniform(1, 2, size=(tokens, 32)) * 2.0**(128 - huge)
        return x.reshape(tokens, hidden)

    def make_choices(tokens):
        used = rng.permutation(count)[:max(1, count // 2)]
        choices = rng.choice(np.append(used, -1), size=(tokens, k))
        choices[rng.random(tokens) < 0.1] = -1
        return choices

    def edit_up(codes, scales):
        np.maximum(scales, tiny, out=scales)
        scales[..., extreme[0]], scales[..., extreme[1]] = tiny, huge
        codes.reshape(*scales.shape, 16)[..., extreme[1], :] &= 0xBB  # at most 1.5: larger ones would be infinite

    def edit_down(codes, scales):
        scales[0, 1, 1] = none

    x, y = p.input("x", dtype, (hidden,), make_input), tensor(dtype, result)
    w, i = p.normal("w", "f32", k), p.input("i", "i32", (k,), make_choices)
    up = p.matrix("up", "mxfp4", count, 2 * inner, hidden, edit=edit_up)
    down = p.matrix("down", "mxfp4", count, result, inner, edit=edit_down)
    bias = f" gate_up_bias(%ub : {p.weight('ub', 'bf16', rng.normal(size=(count, 2 * inner)))})" if rng.random() < 0.5 else ""
    p.line(f"%y = moe.experts %x to %i, %w gate_up(%up : {up}) down(%down : {down}){bias} {activation} : {x}, {i}, {w} -> {y}")
    p.results = [("y", y)]


def dequantize(p, rng):
    """Every code with every scale, those that are no number included."""
    dtype, rows = rng.choice(["f32", "bf16"]), 256
    codes = np.tile(np.arange(256, dtype=np.uint8).reshape(8, 32), (rows // 8, 1))
    scales = np.repeat(np.arange(rows), 2).reshape(rows, 2)
    codes, scales = p.weight("codes", "i8", codes), p.weight("scales", "i8", scales)
    blocks, y, x = f"!moe.block_tensor<[{rows}, 64], mxfp4>", f"tensor<{rows}x64x{dtype}>", p.normal("x", "f32", 1)
    p.line(f"%b = moe.assemble_blocks %codes, %scales : {codes}, {scales} -> {blocks}")
    p.line(f"%y = moe.dequantize %b : {blocks} -> {y}")
    p.line(f"%z = arith.addf %x, %x : {x}")
    p.results = [("y", y), ("z", x)]


def dequantize_codes(p, rng):
    """Every code of 8 bits with all kinds of scales, or words of eight codes of 4 bits; blocks cut short at the ends."""
    dtype, format, scale_type = rng.choice(["f32", "bf16"]), rng.choice(["f8e4m3", "f8e5m2", "int4"]), rng.choice(["f32", "bf16", "f16", "i8"])
    experts, rows, columns = int(rng.integers(1, 4)), int(rng.choice([4, 17, 40])), int(rng.choice([64, 72, 130]))
    block = (int(rng.choice([1, 3, 16, 32])), int(rng.choice([1, 5, 32, 128])))
    if format == "int4":
        codes = p.weight("codes", "i32", rng.integers(-2**31, 2**31, size=(experts, rows, -(-columns // 8))))
    else:
        codes = np.arange(experts * rows * columns) % 256
        codes = p.weight("codes", "i8", codes.reshape(experts, rows, columns))
    shape = (experts, -(-rows // block[0]), -(-columns // block[1]))
    values = rng.integers(100, 256, size=shape) if scale_type == "i8" else rng.normal(size=shape)
    is_small = columns == 64  # all scales below the normal numbers of their type; bytes are powers of two, of f32
    if is_small:
        most, unit = {"i8": (3, 1), "f16": (1024, 2.0**-24), "bf16": (128, 2.0**-133), "f32": (2**20, 2.0**-149)}[scale_type]
        values = rng.integers(0 if scale_type == "i8" else 1, most, size=shape) * unit
    scales = p.weight("scales", scale_type, values)
    y, x = f"tensor<{experts}x{rows}x{columns}x{dtype}>", p.normal("x", "f32", 1)
    p.line(f"%y = moe.dequantize_codes {format} %codes, %scales blocks [{block[0]}, {block[1]}] : {codes}, {scales} -> {y}")
    p.line(f"%z = arith.addf %x, %x : {x}")
    p.results = [("y", y), ("z", x)]
    if is_small:  # large enough to be compared
        p.line(f"%large = arith.constant dense<{2.0**100}> : {y}")
        p.line(f"%y_large = arith.mulf %y, %large : {y}")
        p.results.append(("y_large", y))


class Step:
    """Sequences that have a past and get tokens: shuffled blocks, some shared by two sequences, some with tokens behind the sequence's
    end that do not belong to it any more."""

    def __init__(self, rng, tokens, block):
        count = min(int(rng.integers(1, 7)), max(tokens, 1))
        cuts = np.sort(rng.permutation(np.arange(1, tokens))[:count - 1]) if count > 1 else []
        new = np.diff([0, *cuts, tokens]).astype(int)
        past, tables, free = [], [], 0
        self.past, self.new = [], []  # (sequence, position)
        for sequence in range(count):
            length, shared = int(rng.choice([0, 1, block - 1, block, block + 3, 70, 150])), []
            if sequence > 0 and rng.random() < 0.4:  # a fork, cut to whole blocks
                length = past[-1] // block * block
                shared = tables[-1][:length // block]
            end = length + max(new[sequence], int(rng.integers(0, 2 * block)))
            own = -(-end // block) - len(shared)
            self.past += [(sequence, position) for position in range(len(shared) * block, end)]
            self.new += [(sequence, length + i) for i in range(new[sequence])]
            tables.append([*shared, *range(free, free + own)])
            free += own
            past.append(length)
        self.pool = free + int(rng.integers(1, 4))
        places = rng.permutation(self.pool)
        self.table = np.full((count, max(map(len, tables)) + int(rng.integers(1, 3))), -1)
        for row, table in zip(self.table, tables):
            row[:len(table)] = places[table]

    def sequences(self, which):
        return np.array([sequence for sequence, _ in which], np.int32)

    def positions(self, which):
        return np.array([position for _, position in which], np.int32)


def attention(p, rng):
    """A cache is filled, gets the step's tokens, and is attended to."""
    heads, block = int(rng.choice([1, 2, 3])), int(rng.choice([4, 8, 16, 32, 64]))
    queries, key_dim, value_dim = heads * int(rng.choice([1, 2, 3, 5, 8])), int(rng.choice([8, 20, 24, 64, 128])), int(rng.choice([8, 24, 64, 128]))
    dtype = rng.choice(["f32", "bf16", "f16"])
    element, steps = rng.choice(["f32", dtype]), {}

    def step(tokens):
        if tokens not in steps:
            steps[tokens] = Step(rng, tokens, block)
        return steps[tokens]

    def past_rows(*shape):
        return lambda tokens: rng.normal(size=(len(step(tokens).past), *shape))

    cache = f"!moe.cache<kv_heads = {heads}, key_dim = {key_dim}, value_dim = {value_dim}, block = {block}, {element}>"
    p.caches.append(f'%cache: {cache} {{moe.name = "cache"}}')
    table = p.input("table", "i32", (), lambda tokens: step(tokens).table, ("sequences", "blocks"))
    p.input("pool", "i32", (), lambda tokens: np.zeros(step(tokens).pool), ("cache_blocks",))
    old = p.input("old_positions", "i32", (), lambda tokens: step(tokens).positions(step(tokens).past), ("past",))
    p.input("old_sequences", "i32", (), lambda tokens: step(tokens).sequences(step(tokens).past), ("past",))
    old_keys = p.input("old_keys", dtype, (heads, key_dim), past_rows(heads, key_dim), ("past",))
    old_values = p.input("old_values", dtype, (heads, value_dim), past_rows(heads, value_dim), ("past",))
    new = p.input("positions", "i32", (), lambda tokens: step(tokens).positions(step(tokens).new))
    p.input("sequences", "i32", (), lambda tokens: step(tokens).sequences(step(tokens).new))
    keys, values = p.normal("keys", dtype, heads, key_dim), p.normal("values", dtype, heads, value_dim)
    query, y = p.normal("query", dtype, queries, key_dim), tensor(dtype, queries, value_dim)

    # Rotated rows are rounded by the interpreter, not by kernels.
    rotary = ""
    if dtype == "f32" and rng.random() < 0.6:
        frequencies = ", ".join(f"{0.7 ** i:.6f}" for i in range(key_dim // 2 - int(rng.integers(2))))
        rotary = f"rotary = #moe.rotary<[{frequencies}], magnitude = 1.25{rng.choice(['', ', interleaved'])}>"
    for k, v, at, of, kinds in (("old_keys", "old_values", "old_positions", "old_sequences", (old_keys, old_values, cache, old, old, table)),
                                ("keys", "values", "positions", "sequences", (keys, values, cache, new, new, table))):
        p.line(f"moe.kv_append %{k}, %{v} into %cache at (%{at}, %{of}, %table) {{{rotary}}} : {', '.join(kinds)}")
    attributes = [f"scale = {1 / np.sqrt(key_dim):.6f}"] + [rotary] * bool(rotary)
    window, softcap = int(rng.choice([0, 1, 6, 17, 70, 1000])), float(rng.choice([0, 1.5, 20]))
    attributes += [f"window = {window}"] * bool(window) + [f"softcap = {softcap:.1f}"] * bool(softcap)
    sinks = f" sinks(%sinks : {p.weight('sinks', 'bf16', rng.normal(size=queries))})" if rng.random() < 0.5 else ""
    p.line(f"%y = moe.attention %query over %cache at (%positions, %sequences, %table){sinks} {{{', '.join(attributes)}}} : "
           f"{query}, {cache}, {new}, {new}, {table} -> {y}")
    p.results = [("y", y)]


class PagedInputs:
    """Inputs of a step over a paged cache, and the cache after its past."""

    def __init__(self, p, rng, block, cache):
        self.p, self.rng, self.block, self.cache, self.known = p, rng, block, cache, {}
        p.caches.append(f'%cache: {cache} {{moe.name = "cache"}}')
        self.table = p.input("table", "i32", (), lambda tokens: self.step(tokens).table, ("sequences", "blocks"))
        p.input("pool", "i32", (), lambda tokens: np.zeros(self.step(tokens).pool), ("cache_blocks",))
        self.old = p.input("old_positions", "i32", (), lambda tokens: self.step(tokens).positions(self.step(tokens).past), ("past",))
        p.input("old_sequences", "i32", (), lambda tokens: self.step(tokens).sequences(self.step(tokens).past), ("past",))
        self.new = p.input("positions", "i32", (), lambda tokens: self.step(tokens).positions(self.step(tokens).new))
        p.input("sequences", "i32", (), lambda tokens: self.step(tokens).sequences(self.step(tokens).new))

    def step(self, tokens):
        if tokens not in self.known:
            self.known[tokens] = Step(self.rng, tokens, self.block)
        return self.known[tokens]

    def append(self, dtype, heads, dims, make):
        """Appends keys and, with two `dims`, values. make(*shape) -> numbers."""
        for past, at, kind, sizes in (("old_", "old_positions", self.old, ("past",)), ("", "positions", self.new, ("tokens",))):
            names, kinds = [], []
            for name, dim in zip(("keys", "values"), dims):
                count = (lambda tokens: len(self.step(tokens).past)) if past else (lambda tokens: tokens)
                kinds.append(self.p.input(past + name, dtype, (heads, dim), lambda tokens, count=count, dim=dim: make(count(tokens), heads, dim), sizes))
                names.append(f"%{past}{name}")
            self.p.line(f"moe.kv_append {', '.join(names)} into %cache at (%{at}, %{past}sequences, %table) : "
                        f"{', '.join([*kinds, self.cache, kind, kind, self.table])}")

    def indices(self, width):
        """Positions that each token may look at, in any order, with -1 among them and with positions behind the token."""
        def make(tokens):
            rows = np.full((tokens, width), -1)
            for row, position in zip(rows, self.step(tokens).positions(self.step(tokens).new)):
                chosen = self.rng.permutation(position + 3)[:int(self.rng.integers(0, width + 1))]
                row[self.rng.permutation(width)[:len(chosen)]] = chosen
            return rows

        return self.p.input("indices", "i32", (width,), make)

    at = "(%positions, %sequences, %table)"

    def kinds(self):
        return f"{self.cache}, {self.new}, {self.new}, {self.table}"


def sparse_attention(p, rng):
    """Over keys that hold the values, or with a list of positions, or both."""
    shared, listed = [(True, False), (True, True), (False, True)][rng.integers(3)]
    dtype, block = rng.choice(["f32", "bf16", "f16"]), int(rng.choice([4, 16, 20, 64]))
    heads = 1 if shared and rng.random() < 0.7 else int(rng.choice([1, 2, 3]))
    queries = heads * int(rng.choice([1, 2, 3, 8, 20, 24]))
    key_dim = int(rng.choice([5, 24, 80, 128, 576]))
    value_dim = int(rng.choice([key_dim, key_dim // 2 + 1])) if shared else int(rng.choice([8, 21, 64]))
    inputs = PagedInputs(p, rng, block, f"!moe.cache<kv_heads = {heads}, key_dim = {key_dim}, value_dim = {value_dim}, block = {block}, "
                                        f"{rng.choice(['f32', dtype])}{', shared' * shared}>")
    inputs.append(dtype, heads, (key_dim,) if shared else (key_dim, value_dim), lambda *shape: rng.normal(size=shape))
    query, y = p.normal("query", dtype, queries, key_dim), tensor(dtype, queries, value_dim)
    attributes, operands = [f"scale = {1 / np.sqrt(key_dim):.6f}"], ""
    window, softcap = int(rng.choice([0, 0, 1, 17, 1000])), float(rng.choice([0, 0, 1.5]))
    attributes += [f"window = {window}"] * bool(window) + [f"softcap = {softcap:.1f}"] * bool(softcap)
    if dtype == "f32" and rng.random() < 0.4 and key_dim > 8:
        attributes.append(f"rotary = #moe.rotary<[1.0, 0.25, 0.0625], offset = {rng.choice([0, 2])}{rng.choice(['', ', interleaved'])}>")
    if rng.random() < 0.4:
        operands += f" sinks(%sinks : {p.weight('sinks', 'bf16', rng.normal(size=queries))})"
    if listed:
        operands += f" indices(%indices : {inputs.indices(int(rng.choice([1, 8, 40, 70])))})"
    p.line(f"%y = moe.attention %query over %cache at {inputs.at}{operands} {{{', '.join(attributes)}}} : {query}, {inputs.kinds()} -> {y}")
    p.results = [("y", y)]


def select_keys(p, rng):
    """Small integers, of which every sum is exact: equal scores are equal everywhere. Some keys and queries are no numbers."""
    dtype, block, heads, dim = rng.choice(["f32", "bf16"]), int(rng.choice([4, 16, 64])), int(rng.choice([1, 3, 4, 9])), int(rng.choice([3, 16, 40, 64]))
    top_k, spread, odd = int(rng.choice([1, 2, 7, 16, 33, 100])), int(rng.choice([1, 3, 9])), rng.random() < 0.4

    def make(*shape):
        x = rng.integers(-spread, spread + 1, size=shape).astype(np.float64)
        if odd:
            x[rng.random(shape[0]) < 0.3] = np.nan
            x[rng.random(shape[0]) < 0.1] = 0
        return x

    inputs = PagedInputs(p, rng, block, f"!moe.cache<kv_heads = 1, key_dim = {dim}, value_dim = 0, block = {block}, {dtype}, shared>")
    inputs.append(dtype, 1, (dim,), make)
    query = p.input("query", dtype, (heads, dim), lambda tokens: make(tokens, heads, dim))
    weights = p.input("weights", "f32", (heads,), lambda tokens: rng.integers(-4, 5, size=(tokens, heads)) * rng.choice([0.5, 65536]))
    y = tensor("i32", top_k)
    p.line(f"%y = moe.select_keys %query weights(%weights) over %cache at {inputs.at} {{scale = 0.25, top_k = {top_k}}} : {query}, {weights}, "
           f"{inputs.kinds()} -> {y}")
    p.results = [("y", y)]


def head_linear(p, rng):
    dtype, heads, n, k = rng.choice(["f32", "bf16", "f16"]), int(rng.choice([1, 3, 5])), int(rng.choice([1, 33, 3000])), int(rng.choice([1, 5, 24, 64]))
    transposed = rng.random() < 0.5
    x, y = p.normal("x", dtype, heads, k), tensor(dtype, heads, n)
    w = p.weight("w", rng.choice(["f32", "bf16"]), rng.normal(size=(heads, k, n) if transposed else (heads, n, k)) / np.sqrt(k))
    p.line(f"%y = moe.head_linear %x, %w {'{transposed} ' * transposed}: {x}, {w} -> {y}")
    p.results = [("y", y)]


def sample(p, rng):
    """Rows with ties, infinities and numbers that are none; options within and beyond what they can be."""
    width = int(rng.choice([1, 2, 31, 32, 33, 1000, 8193, 20011]))

    def count_rows(tokens):
        return min(max(tokens, 1), 20)

    def make_logits(tokens):
        tokens = count_rows(tokens)
        logits = (rng.normal(size=(tokens, width)) * rng.choice([0.1, 1, 4, 30], size=(tokens, 1))).astype(np.float32)
        some = rng.random((tokens, width))
        for row, kind in enumerate(rng.integers(0, 12, size=tokens)):
            if kind == 0:
                logits[row] = np.round(logits[row])
            elif kind == 1:
                logits[row] = -0.0
                logits[row, some[row] < 0.5] = 0.0
            elif kind in (2, 3):
                logits[row, some[row] < 0.5] = np.nan
                logits[row, some[row] > 0.5 * kind / 2] = -np.inf
            elif kind == 4:
                logits[row, some[row] == some[row].max()] = np.inf
            elif kind == 5:
                logits[row] = np.where(some[row] < 0.5, -3e38, 3e38)
            elif kind == 6:
                logits[row] *= 1e-40
            elif kind == 7:
                logits[row] = np.where(some[row] < 0.5, np.nan, -np.inf)
        return logits

    def pick(*choices):
        return lambda tokens: rng.choice(choices, size=tokens)

    logits = p.input("logits", "f32", (width,), make_logits, ("rows",))
    rows = p.input("rows", "i32", (), lambda tokens: rng.integers(0, count_rows(tokens), size=tokens))
    temperature = p.input("temperature", "f32", (), pick(0, 1e-42, 1e-30, 0.3, 0.8, 1, 1, 5, 3e38))
    top_k = p.input("top_k", "i32", (), pick(-1, 0, 0, 1, 2, 5, 50, width // 2, width - 1, width, width + 1, 2**31 - 1))
    top_p = p.input("top_p", "f64", (), pick(-1, 0, 1e-9, 0.1, 0.5, 0.9, 0.95, 0.999999, 1, 1, 2, np.nan))
    random = p.input("random", "f64", (), lambda tokens: np.where(rng.random(tokens) < 0.1, rng.choice([0, 1 - 2.0**-53], size=tokens),
                                                                  rng.random(tokens)))
    p.line(f"%y = moe.sample %logits rows(%rows) temperature(%temperature) top_k(%top_k) top_p(%top_p) random(%random) : "
           f"{logits}, {rows}, {temperature}, {top_k}, {top_p}, {random} -> {tensor('i32')}")
    p.results = [("y", tensor("i32"))]


def elementwise(p, rng):
    """A chain of upstream ops on tensors, as importers write them."""
    dtype, width = rng.choice(["f32", "bf16"]), int(rng.choice([1, 16, 37]))
    x, y = p.normal("x", dtype, width), p.normal("z", dtype, width)
    value = "x"
    for i, op in enumerate(rng.choice(["arith.addf", "arith.mulf", "arith.subf", "arith.maximumf", "math.tanh", "math.exp", "math.absf"], size=4)):
        operands = f"%{value}" if op.startswith("math") else f"%{value}, %z"
        p.line(f"%v{i} = {op} {operands} : {x}")
        if op == "math.exp":  # keeps the numbers small
            p.line(f"%v{i}s = math.tanh %v{i} : {x}")
            value = f"v{i}s"
        else:
            value = f"v{i}"
    p.results = [(value, x)]


def products(p, rng):
    """softmax(x W) as linalg, with a dynamic number of rows."""
    k, n = int(rng.choice([3, 16, 33])), int(rng.choice([5, 16, 40]))
    x, w = p.normal("x", "f32", k), p.matrix("w", "f32", k, n)
    full, row = tensor("f32", n), "tensor<?xf32>"
    maps = "affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>"
    p.line("%c0 = arith.constant 0 : index")
    p.line("%zero = arith.constant 0.0 : f32")
    p.line("%least = arith.constant 0xFF800000 : f32")
    p.line(f"%t = tensor.dim %x, %c0 : {x}")
    p.line(f"%e = tensor.empty(%t) : {full}")
    p.line(f"%er = tensor.empty(%t) : {row}")
    p.line(f"%e0 = linalg.fill ins(%zero : f32) outs(%e : {full}) -> {full}")
    p.line(f"%m = linalg.matmul ins(%x, %w : {x}, {w}) outs(%e0 : {full}) -> {full}")
    p.line(f"%l0 = linalg.fill ins(%least : f32) outs(%er : {row}) -> {row}")
    p.line(f"%l = linalg.reduce {{ arith.maximumf }} ins(%m : {full}) outs(%l0 : {row}) dimensions = [1]")
    p.line(f'%p = linalg.generic {{indexing_maps = [{maps}, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}} '
           f"ins(%m, %l : {full}, {row}) outs(%e : {full}) {{\n  ^bb0(%a: f32, %b: f32, %o: f32):\n    %0 = arith.subf %a, %b : f32\n"
           f"    %1 = math.exp %0 : f32\n    linalg.yield %1 : f32\n  }} -> {full}")
    p.line(f"%s0 = linalg.fill ins(%zero : f32) outs(%er : {row}) -> {row}")
    p.line(f"%s = linalg.reduce {{ arith.addf }} ins(%p : {full}) outs(%s0 : {row}) dimensions = [1]")
    p.line(f'%y = linalg.generic {{indexing_maps = [{maps}, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}} '
           f"ins(%p, %s : {full}, {row}) outs(%e : {full}) {{\n  ^bb0(%a: f32, %b: f32, %o: f32):\n    %0 = arith.divf %a, %b : f32\n"
           f"    linalg.yield %0 : f32\n  }} -> {full}")
    p.results = [("y", full), ("m", full)]


def layer(p, rng):
    """norm, router, experts, residual: what passes fuse."""
    dtype, hidden, count = rng.choice(["f32", "bf16"]), 256, 4  # wide: one row has to average over roundings
    p.roundings = 3
    x, plain = p.normal("x", dtype, hidden), "bf16"
    p.line(f"%h = moe.rms_norm %x weight(%n : {p.weight('n', plain, rng.normal(size=hidden))}) {{epsilon = 1.0e-5}} : {x}")
    router, logits, w, i = p.matrix("rw", plain, count, hidden), tensor("f32", count), tensor("f32", 2), tensor("i32", 2)
    p.line(f"%logits = moe.linear %h, %rw : {x}, {router} -> {logits}")
    p.line(f"%w, %i = moe.route softmax(%logits) {{renormalize, top_k = 2}} : {logits} -> {w}, {i}")
    up, down = p.matrix("up", "mxfp4", count, 64, hidden), p.matrix("down", "mxfp4", count, hidden, 32)
    p.line(f"%y = moe.experts %h to %i, %w gate_up(%up : {up}) down(%down : {down}) <silu> : {x}, {i}, {w} -> {x}")
    p.line(f"%z = arith.addf %x, %y : {x}")
    p.results = [("z", x)]


def many_choices(p, rng):
    """Experts for more choices than a vector has lanes."""
    x = p.normal("x", "f32", 32)
    for k in (6, 18, 33):
        count = k + 7
        logits, w, i = p.normal(f"logits{k}", "f32", count), tensor("f32", k), tensor("i32", k)
        p.line(f"%w{k}, %i{k} = moe.route softmax(%logits{k}) {{renormalize, top_k = {k}}} : {logits} -> {w}, {i}")
        up, down = p.matrix(f"up{k}", "mxfp4", count, 64, 32), p.matrix(f"down{k}", "mxfp4", count, 32, 32)
        p.line(f"%y{k} = moe.experts %x to %i{k}, %w{k} gate_up(%up{k} : {up}) down(%down{k} : {down}) <silu> : {x}, {i}, {w} -> {x}")
        p.results += [(f"y{k}", x), (f"i{k}", i)]




def hyper_connections(p, rng):
    """Streams through a branch that doubles, or to the end of a model."""
    dtype, n, width = rng.choice(["f32", "bf16"]), int(rng.choice([1, 2, 4, 5])), int(rng.choice([1, 16, 37, 130]))
    head = rng.random() < 0.3
    columns = n if head else n * (n + 2)
    products, x, y = p.normal("p", "f32", columns), p.normal("x", dtype, n, width), tensor(dtype, width)
    scale, base = p.weight("s", "f32", rng.normal(size=1 if head else 3)), p.weight("b", "bf16", rng.normal(size=columns))
    iterations = int(rng.choice([1, 2, 20]))
    p.line(f"%w = moe.hyper_weights %p of %x scale(%s : {scale}) base(%b : {base}) {{iterations = {iterations}, epsilon = 1.0e-6, "
           f"norm_epsilon = 1.0e-6}} : {products}, {x} -> {products}")
    p.line(f"%y = moe.hyper_collapse %x by %w : {x}, {products} -> {y}")
    p.results = [("w", products), ("y", y)]
    if not head:
        p.line(f"%z = moe.hyper_expand %y into %x by %w : {y}, {x}, {products}")
        p.roundings = 2
        p.results.append(("z", x))


def hash_route(p, rng):
    experts, k, ids, table_type = int(rng.choice([1, 8, 33])), int(rng.choice([1, 2, 6])), int(rng.choice([1, 40])), rng.choice(["i32", "i64"])
    logits, w, i = p.normal("l", "f32", experts), tensor("f32", k), tensor("i32", k)
    tokens = p.input("t", "i32", (), lambda tokens: rng.integers(0, ids, size=tokens))
    table = p.weight("e", table_type, rng.integers(0, experts, size=(ids, k)))
    attributes = rng.choice(["", "{renormalize, scale = 1.5}"])
    p.line(f"%w, %i = moe.hash_route {rng.choice(['sigmoid', 'sqrt_softplus'])}(%l) of %t in %e {attributes} : {logits}, {tokens}, {table} -> {w}, {i}")
    p.results = [("w", w), ("i", i)]
def compressed_attention(p, rng):
    """Caches of rows and of compressed entries are filled, get the step's, and are attended to: all entries, or those that are chosen."""
    block, ratio = [(4, 4), (8, 4), (16, 4), (4, 8), (4, 16), (8, 2), (16, 1)][rng.integers(7)]
    heads, dim, index_dim = int(rng.choice([1, 3, 4, 5, 11, 16])), int(rng.choice([8, 20, 64, 100])), int(rng.choice([8, 20, 64]))
    dtype = rng.choice(["f32", "bf16", "f16"])
    element, stride, steps = rng.choice(["f32", dtype]), max(1, ratio // block), {}

    def step(tokens):
        if tokens not in steps:
            steps[tokens] = Step(rng, tokens, block)
        return steps[tokens]

    def past_rows(*shape):
        return lambda tokens: rng.normal(size=(len(step(tokens).past), *shape))

    def places(which):
        return np.array([(at + 1) // ratio * stride - 1 if (at + 1) % ratio == 0 else -1 for _, at in which], np.int32)

    def cache(name, width, size):
        kind = f"!moe.cache<kv_heads = 1, key_dim = {width}, value_dim = {width}, block = {size}, {element}>"
        p.caches.append(f'%{name}: {kind} {{moe.name = "{name}"}}')
        return kind

    rows, entries = cache("rows", dim, block), cache("entries", dim, max(1, block // ratio))
    table = p.input("table", "i32", (), lambda tokens: step(tokens).table, ("sequences", "blocks"))
    p.input("pool", "i32", (), lambda tokens: np.zeros(step(tokens).pool), ("cache_blocks",))
    past = p.input("old_positions", "i32", (), lambda tokens: step(tokens).positions(step(tokens).past), ("past",))
    p.input("old_places", "i32", (), lambda tokens: places(step(tokens).past), ("past",))
    p.input("old_sequences", "i32", (), lambda tokens: step(tokens).sequences(step(tokens).past), ("past",))
    old = p.input("old_rows", dtype, (1, dim), past_rows(1, dim), ("past",))
    new = p.input("positions", "i32", (), lambda tokens: step(tokens).positions(step(tokens).new))
    p.input("places", "i32", (), lambda tokens: places(step(tokens).new))
    p.input("sequences", "i32", (), lambda tokens: step(tokens).sequences(step(tokens).new))
    fresh, query = p.normal("new_rows", dtype, 1, dim), p.normal("query", dtype, heads, dim)

    def append(of, values, name, kind, at):
        prefix, types = ("old_", (past, past)) if of == "past" else ("", (new, new))
        p.line(f"moe.kv_append %{values[0]}, %{values[0]} into %{name} at (%{prefix}{at}, %{prefix}sequences, %table) : {values[1]}, {values[1]}, {kind}, "
               f"{', '.join(types)}, {table}")

    append("past", ("old_rows", old), "rows", rows, "positions")
    append("past", ("old_rows", old), "entries", entries, "places")
    append("new", ("new_rows", fresh), "rows", rows, "positions")
    append("new", ("new_rows", fresh), "entries", entries, "places")
    operands, shared = "", f"ratio = {ratio}, stride = {stride}"
    if rng.random() < 0.5:
        operands += f" sinks(%sinks : {p.weight('sinks', 'bf16', rng.normal(size=heads))})"
    if rng.random() < 0.7:
        keys = cache("keys", index_dim, max(1, block // ratio))
        index_heads, chosen = int(rng.choice([1, 4, 33])), tensor("i32", int(rng.choice([1, 2, 5, 60])))
        index_query, weights = p.normal("index_query", dtype, index_heads, index_dim), p.normal("weights", "f32", index_heads)
        old_keys, new_keys = p.input("old_keys", dtype, (1, index_dim), past_rows(1, index_dim), ("past",)), p.normal("new_keys", dtype, 1, index_dim)
        append("past", ("old_keys", old_keys), "keys", keys, "places")
        append("new", ("new_keys", new_keys), "keys", keys, "places")
        p.line(f"%chosen = moe.select_entries %index_query weights(%weights : {weights}) over %keys at (%positions, %sequences, %table) {{{shared}}} : "
               f"{index_query}, {keys}, {new}, {new}, {table} -> {chosen}")
        operands += f" indices(%chosen : {chosen})"
        p.results.append(("chosen", chosen))
    p.line(f"%y = moe.compressed_attention %query over %rows and %entries at (%positions, %sequences, %table){operands} "
           f"{{scale = {1 / np.sqrt(dim):.6f}, window = {int(rng.choice([1, 6, 17, 128]))}, {shared}}} : {query}, {rows}, {entries}, {new}, {new}, {table} "
           f"-> {query}")
    p.results.append(("y", query))


def sliced_weights(p, rng):
    """Products with some rows and columns of a weight, plain and as codes and scales."""
    dtype, k, n = rng.choice(["f32", "bf16"]), 32 * int(rng.choice([1, 2, 3])), int(rng.choice([1, 16, 37]))
    x, y = p.normal("x", dtype, k), tensor(dtype, n)
    for name, first, column in (("rows", 3, 0), ("columns", 0, 5), ("both", 2, 16)):
        wide, element = k + column, rng.choice(["f32", "bf16"])
        whole = p.matrix(name, element, n + first + 1, wide)
        part = f"tensor<{n}x{k}x{element}>"
        p.line(f"%{name}_part = tensor.extract_slice %{name}[{first}, {column}] [{n}, {k}] [1, 1] : {whole} to {part}")
        p.line(f"%{name}_y = moe.linear %x, %{name}_part : {x}, {part} -> {y}")
        p.results.append((f"{name}_y", y))
    codes = p.weight("codes", "i8", rng.integers(0, 256, size=(n + 4, k // 2)))
    scales = p.weight("scales", "i8", rng.integers(120, 127, size=(n + 4, k // 32 + 1)))
    parts = f"tensor<{n}x{k // 2}xi8>", f"tensor<{n}x{k // 32}xi8>"
    p.line(f"%codes_part = tensor.extract_slice %codes[3, 0] [{n}, {k // 2}] [1, 1] : {codes} to {parts[0]}")
    p.line(f"%scales_part = tensor.extract_slice %scales[2, 1] [{n}, {k // 32}] [1, 1] : {scales} to {parts[1]}")
    blocks = f"!moe.block_tensor<[{n}, {k}], mxfp4>"
    p.line(f"%blocks = moe.assemble_blocks %codes_part, %scales_part : {', '.join(parts)} -> {blocks}")
    p.line(f"%blocks_y = moe.linear %x, %blocks : {x}, {blocks} -> {y}")
    p.results.append(("blocks_y", y))


FAMILIES = [linear, norm, rope, rows, route, experts, elementwise, products, layer, many_choices, chosen_experts, attention, sample,
            dequantize, gated_norm, decay, gate, sparse_attention, select_keys, head_linear, dequantize_codes, mix_residuals, residual_stack,
            hyper_connections, hash_route, compressed_attention, columns_of_wider, concatenation,
            sliced_weights, images, item_attention]


def make(folder, seed, rounds, scale_ranges=(ALL_SCALES, *HOPPER_SCALES)):
    """Writes FOLDER/NAME.mlir for `rounds` programs of each kind, and their weights; -> the programs."""
    rng = np.random.default_rng(seed)
    weights, programs = Weights("weights.safetensors"), []
    for i in range(rounds * len(FAMILIES)):
        family = FAMILIES[i % len(FAMILIES)]
        program = Program(f"{family.__name__}_{i}", weights, rng, scale_ranges)
        family(program, rng)
        programs.append(program)
    weights.write(folder)
    for program in programs:
        with open(f"{folder}/{program.name}.mlir", "w", encoding="utf-8") as file:
            file.write(f'module attributes {{moe.weight_root = "{folder}"}} {{\n{weights.place(program.text())}}}\n')
    return programs
