"""Random programs of one or a few moe ops on plain tensors, a module each, with weights in one safetensors file."""

import json
import struct

import numpy as np

SIZES = {"f32": 4, "bf16": 2, "f16": 2, "i32": 4, "i8": 1}
FILE_TYPES = {"f32": "F32", "bf16": "BF16", "f16": "F16", "i32": "I32", "i8": "I8"}


def encode(dtype, x):
    """The bytes of numbers rounded to the type (towards zero for bf16: any bf16 number will do)."""
    x = np.asarray(x)
    if dtype == "bf16":
        return (x.astype("<f4").view("<u4") >> 16).astype("<u2")
    return x.astype({"f32": "<f4", "f16": "<f2", "i32": "<i4", "i8": "u1"}[dtype])


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


class Program:
    """One function. Inputs have a token count T in front, named alike in all of them."""

    def __init__(self, name, weights, rng):
        self.name, self.weights, self.rng = name, weights, rng
        self.arguments, self.lines, self.results, self.makers = [], [], [], {}
        self.roundings = 1  # how many kernels in a row round to 16 bits

    def input(self, name, dtype, shape, make):
        """make(tokens) -> array."""
        kind = "tensor<?x" + "".join(f"{n}x" for n in shape) + dtype + ">"
        dims = ", ".join(['"tokens"'] + [f'"{n}"' for n in shape])
        self.arguments.append(f'%{name}: {kind} {{moe.name = "{name}", moe.dims = ["tokens"]}}')
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

    def matrix(self, result, dtype, *shape):
        """A weight of the type, or 'mxfp4'. The numbers have a size that keeps products near 1."""
        if dtype != "mxfp4":
            return self.weight(result, dtype, self.rng.normal(size=shape) / np.sqrt(shape[-1]))
        rows = shape[:-1]
        codes = self.weight(result + "_codes", "i8", self.rng.integers(0, 256, size=(*rows, shape[-1] // 2)))
        scales = self.weight(result + "_scales", "i8", self.rng.integers(120, 127, size=(*rows, shape[-1] // 32)))
        kind = f"!moe.block_tensor<[{', '.join(map(str, shape))}], mxfp4>"
        self.line(f"%{result} = moe.assemble_blocks %{result}_codes, %{result}_scales : {codes}, {scales} -> {kind}")
        return kind

    def text(self):
        kinds = [kind for _, kind in self.results]
        named = [f'{kind} {{moe.name = "out{i}"}}' for i, kind in enumerate(kinds)]
        values = ", ".join(f"%{value}" for value, _ in self.results)
        return "\n".join([f"func.func @{self.name}({', '.join(self.arguments)}) -> ({', '.join(named)}) attributes {{moe.entry}} {{",
                          *self.lines, f"  return {values} : {', '.join(kinds)}", "}"]) + "\n"


def tensor(dtype, *shape):
    return "tensor<?x" + "".join(f"{n}x" for n in shape) + dtype + ">"


def linear(p, rng):
    dtype = rng.choice(["f32", "bf16"])
    weight_type = rng.choice(["f32", "bf16", "mxfp4"]) if dtype == "f32" else rng.choice(["bf16", "mxfp4"])
    k = int(rng.choice([32, 64, 96] if weight_type == "mxfp4" else [1, 5, 16, 33, 64, 100]))
    n = int(rng.choice([1, 7, 16, 31, 48, 130]))
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
    dtype, shape = rng.choice(["f32", "bf16"]), [[int(rng.choice([1, 7, 64, 100]))], [3, int(rng.choice([8, 33]))]][rng.integers(2)]
    x = p.normal("x", dtype, *shape)
    weight = f" weight(%w : {p.weight('w', 'f32', rng.normal(size=shape[-1]))})" if rng.random() < 0.8 else ""
    if rng.random() < 0.3:
        p.line(f"%y = moe.layer_norm %x{weight} {{epsilon = 1.0e-5}} : {x}")
    else:
        offset = ", unit_offset" if weight and rng.random() < 0.3 else ""
        p.line(f"%y = moe.rms_norm %x{weight} {{epsilon = 1.0e-5{offset}}} : {x}")
    p.results = [("y", x)]


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


def route_text(p, rng, experts, k):
    """Logits without ties; the op and the types of its results."""
    logits = p.normal("logits", "f32", experts)
    score = rng.choice(["softmax", "sigmoid", "sqrt_softplus"])
    attributes = [f"top_k = {k}"] + (["renormalize"] if rng.random() < 0.6 else []) + (["scale = 2.5"] if rng.random() < 0.3 else [])
    bias = f" bias(%bias : {p.weight('bias', 'f32', rng.normal(size=experts))})" if score != "softmax" and rng.random() < 0.5 else ""
    if score != "softmax" and experts % 4 == 0 and k <= experts // 2 and rng.random() < 0.5:
        attributes += ["groups = 4", "top_groups = 2"]
    w, i = tensor("f32", k), tensor("i32", k)
    p.line(f"%w, %i = moe.route {score}(%logits){bias} {{{', '.join(attributes)}}} : {logits} -> {w}, {i}")
    return w, i


def route(p, rng):
    experts = int(rng.choice([1, 4, 16, 40, 130]))
    w, i = route_text(p, rng, experts, int(rng.integers(1, min(experts, 8) + 1)))
    p.results = [("w", w), ("i", i)]


ACTIVATIONS = ["<silu>", "<gelu>", "<gelu_tanh>", "<relu>", "<silu, interleaved = true>", "<situ, alpha = 25.0, beta = 4.0>",
               "<swiglu, alpha = 1.702, beta = 1.0, limit = 7.0, interleaved = true>", "<swiglu, alpha = 1.702, beta = 1.0, limit = 1.0>"]


def experts(p, rng):
    dtype, weight_type = rng.choice(["f32", "bf16"]), rng.choice(["bf16", "mxfp4"])
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
    dtype, hidden, count = rng.choice(["f32", "bf16"]), 64, 4
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


FAMILIES = [linear, norm, rope, rows, route, experts, elementwise, products, layer, many_choices, gated_norm, decay]


def make(folder, seed, count):
    """Writes FOLDER/NAME.mlir for `count` programs and their weights; -> the programs."""
    rng = np.random.default_rng(seed)
    weights, programs = Weights("weights.safetensors"), []
    for i in range(count):
        family = FAMILIES[i % len(FAMILIES)]
        program = Program(f"{family.__name__}_{i}", weights, rng)
        family(program, rng)
        programs.append(program)
    weights.write(folder)
    for program in programs:
        with open(f"{folder}/{program.name}.mlir", "w", encoding="utf-8") as file:
            file.write(f'module attributes {{moe.weight_root = "{folder}"}} {{\n{weights.place(program.text())}}}\n')
    return programs
