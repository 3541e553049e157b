"""Norms, products, quantised blocks, rotary embeddings."""

import math

import numpy as np

import formulas as f
from mlir_text import Case, Tensor


def norms(rng):
    for dtype in ("f32", "bf16", "f16"):
        x, w, b = Tensor(dtype, rng.normal(size=(3, 2, 24))), Tensor("f32", rng.normal(size=24)), Tensor("bf16", rng.normal(size=24))
        yield Case(f"rms_{dtype}", dict(x=x, w=w),
                   "%r0 = moe.rms_norm %x weight(%w : {w}) {epsilon = 1.0e-5} : {x}",
                   [(dtype, f.rms_norm(x.x, w.x, 1e-5))])
        yield Case(f"rms_plain_{dtype}", dict(x=x), "%r0 = moe.rms_norm %x {epsilon = 1.0e-5} : {x}",
                   [(dtype, f.rms_norm(x.x, None, 1e-5))])
        yield Case(f"rms_unit_offset_{dtype}", dict(x=x, w=b),
                   "%r0 = moe.rms_norm %x weight(%w : {w}) {epsilon = 1.0e-5, unit_offset} : {x}",
                   [(dtype, f.rms_norm(x.x, b.x, 1e-5, True))])
        yield Case(f"layer_{dtype}", dict(x=x, w=w, b=b),
                   "%r0 = moe.layer_norm %x weight(%w : {w}) bias(%b : {b}) {epsilon = 1.0e-5} : {x}",
                   [(dtype, f.layer_norm(x.x, w.x, b.x, 1e-5))])
        yield Case(f"layer_plain_{dtype}", dict(x=x), "%r0 = moe.layer_norm %x {epsilon = 1.0e-5} : {x}",
                   [(dtype, f.layer_norm(x.x, None, None, 1e-5))])
    small = Tensor("f32", rng.normal(size=(2, 16)) * 1e-3)
    yield Case("rms_small", dict(x=small), "%r0 = moe.rms_norm %x {epsilon = 1.0e-6} : {x}", [("f32", f.rms_norm(small.x, None, 1e-6))],
               comment="Epsilon as large as the mean square: it is added to the mean, under the root.")
    zero = Tensor("f32", np.zeros((1, 4)))
    yield Case("rms_zero_row", dict(x=zero), "%r0 = moe.rms_norm %x {epsilon = 1.0e-5} : {x}", [("f32", zero.x)])
    yield Case("rms_zero_row_without_epsilon", dict(x=zero), "%r0 = moe.rms_norm %x {epsilon = 0.0} : {x}", [("f32", zero.x * math.nan)])
    empty = Tensor("f32", np.zeros((0, 8)))
    yield Case("rms_no_tokens", dict(x=empty), "%r0 = moe.rms_norm %x {epsilon = 1.0e-5} : {x}", [("f32", empty.x)])


ACTIVATIONS = {
    "silu": ("<silu>", dict(kind="silu")),
    "gelu": ("<gelu>", dict(kind="gelu")),
    "gelu_tanh": ("<gelu_tanh>", dict(kind="gelu_tanh")),
    "relu": ("<relu>", dict(kind="relu")),
    "swiglu": ("<swiglu, alpha = 1.702, beta = 1.0, limit = 1.0>", dict(kind="swiglu", alpha=1.702, beta=1.0, limit=1.0)),
    "situ": ("<situ, alpha = 25.0, beta = 4.0>", dict(kind="situ", alpha=25.0, beta=4.0)),
    "situ_plain_up": ("<situ, alpha = 0.0, beta = 4.0>", dict(kind="situ", alpha=0.0, beta=4.0)),
}


def gates(rng):
    for name, (text, parameters) in ACTIVATIONS.items():
        for dtype in ("f32", "bf16"):
            g, u = Tensor(dtype, 2 * rng.normal(size=(5, 12))), Tensor("f32", 2 * rng.normal(size=(5, 12)))
            yield Case(f"gate_{name}_{dtype}", dict(g=g, u=u), f"%r0 = moe.gate %g, %u {text} : {{g}}, {{u}} -> {{result0}}",
                       [(dtype, f.activation(gate=g.x, up=u.x, **parameters))])


def mix_case(rng, name, count, tokens=4, width=7, dtype="f32", weight_type="f32", scale=1.0, comment=""):
    inputs = {f"v{i}": Tensor(dtype, scale * rng.normal(size=(tokens, width))) for i in range(count)}
    w = Tensor(weight_type, rng.normal(size=width))
    names, kinds = ", ".join(f"%{v}" for v in inputs), ", ".join(f"{{{v}}}" for v in inputs)
    return Case(f"mix_{name}", inputs | dict(w=w),
                f"%r0 = moe.mix_residuals {names} weight(%w : {{w}}) {{epsilon = 1.0e-5}} : {kinds} -> {{result0}}",
                [(dtype, f.mix_residuals([v.x for v in inputs.values()], w.x, 1e-5))], comment=comment)


def mixes(rng):
    for count in (1, 2, 3, 9):
        yield mix_case(rng, f"of_{count}", count)
    yield mix_case(rng, "small", 3, scale=1e-3, comment="Squares near epsilon: it is added to their mean.")
    yield mix_case(rng, "large", 3, width=60, scale=1e6, comment="The sum takes candidates as they are.")
    for dtype in ("bf16", "f16"):
        yield mix_case(rng, dtype, 4, dtype=dtype)
    yield mix_case(rng, "narrow_weight", 2, dtype="bf16", weight_type="bf16")
    yield mix_case(rng, "no_tokens", 2, tokens=0)


def position_case(rng, name, grid, places, dtype="f32", grid_type="f32", comment=""):
    g = Tensor(grid_type, rng.normal(size=(*grid, 5)))
    r, h, c, w = (Tensor("i32", np.array(x)) for x in zip(*places)) if places else [Tensor("i32", np.zeros(0, int))] * 4
    return Case(f"positions_{name}", dict(g=g, r=r, h=h, c=c, w=w),
                "%r0 = moe.interpolate_positions %g at (%r of %h, %c of %w) : {g}, {r} -> {result0}",
                [(dtype, f.interpolate_positions(g.x, r.x, h.x, c.x, w.x))], comment=comment)


def vision(rng):
    frame = lambda rows, columns: [(y, rows, x, columns) for y in range(rows) for x in range(columns)]
    yield position_case(rng, "same_size", (3, 4), frame(3, 4), comment="The grid itself.")
    yield position_case(rng, "larger", (3, 4), frame(5, 7))
    yield position_case(rng, "smaller", (6, 5), frame(4, 2))
    yield position_case(rng, "one_patch", (6, 5), [(0, 1, 0, 1)])
    yield position_case(rng, "grid_of_one", (1, 1), frame(2, 3))
    yield position_case(rng, "outside", (3, 4), [(-7, 3, 9, 4), (100, 3, 2, 0), (1, -5, 3, 1000)], comment="Places outside are those at the border.")
    yield position_case(rng, "none", (3, 4), [])
    for dtype in ("bf16", "f16"):
        yield position_case(rng, dtype, (3, 4), frame(5, 3), dtype=dtype, grid_type="bf16")
    for dtype, other in (("f32", "f32"), ("bf16", "f32"), ("f32", "bf16"), ("f16", "f16")):
        x, n, r = Tensor(dtype, rng.normal(size=(6, 3))), Tensor(other, rng.normal(size=(2, 3))), Tensor("i32", np.array([-1, 0, 1, -9, 5, 0]))
        yield Case(f"replace_{dtype}_by_{other}", dict(x=x, n=n, r=r), "%r0 = moe.replace_rows %x with %n at %r : {x}, {n}, {r}",
                   [(dtype, f.replace_rows(x.x, n.x, r.x))])


def linears(rng):
    for dtype, weight_type in (("f32", "f32"), ("f32", "bf16"), ("bf16", "bf16"), ("f16", "f16"), ("f32", "f16")):
        x, w = Tensor(dtype, rng.normal(size=(3, 37))), Tensor(weight_type, rng.normal(size=(11, 37)))
        b, r, n = Tensor(weight_type, rng.normal(size=11)), Tensor(dtype, rng.normal(size=(3, 11))), Tensor("f32", rng.normal(size=37))
        name = f"{dtype}_{weight_type}"
        yield Case(f"plain_{name}", dict(x=x, w=w), "%r0 = moe.linear %x, %w : {x}, {w} -> {result0}", [(dtype, f.linear(x.x, w.x))])
        yield Case(f"bias_residual_{name}", dict(x=x, w=w, b=b, r=r),
                   "%r0 = moe.linear %x, %w bias(%b : {b}) residual(%r : {r}) : {x}, {w} -> {result0}",
                   [(dtype, f.linear(x.x, w.x, b.x, r.x))], comment="Everything is added before the one rounding.")
        normed = f.round_to(dtype, f.rms_norm(x.x, n.x, 1e-5))
        yield Case(f"norm_{name}", dict(x=x, w=w, n=n),
                   "%r0 = moe.linear %x, %w norm(%n : {n}) {epsilon = 1.0e-5} : {x}, {w} -> {result0}",
                   [(dtype, f.linear(normed, w.x))])
        yield Case(f"wider_result_{name}", dict(x=x, w=w), "%r0 = moe.linear %x, %w : {x}, {w} -> {result0}", [("f32", f.linear(x.x, w.x))])
    for tokens, n, k in ((0, 3, 4), (2, 3, 0), (1, 1, 1)):
        x, w = Tensor("f32", rng.normal(size=(tokens, k))), Tensor("f32", rng.normal(size=(n, k)))
        yield Case(f"sizes_{tokens}_{n}_{k}", dict(x=x, w=w), "%r0 = moe.linear %x, %w : {x}, {w} -> {result0}", [("f32", f.linear(x.x, w.x))])
    x, w = Tensor("f32", np.array([[1e8, 1.0, -1e8, 1.0]])), Tensor("f32", np.ones((1, 4)))
    yield Case("cancellation", dict(x=x, w=w), "%r0 = moe.linear %x, %w : {x}, {w} -> {result0}", [("f32", np.array([[2.0]]))],
               comment="Sums are wider than f32.")
    table, ids = Tensor("bf16", rng.normal(size=(9, 5))), Tensor("i32", [8, 0, 3, 3])
    yield Case("embedding", dict(ids=ids, table=table), "%r0 = moe.embedding %ids, %table : {ids}, {table} -> {result0}", [("f32", table.x[ids.x])])
    rows = Tensor("i32", [2, 2, -1, 100])
    x = Tensor("bf16", rng.normal(size=(4, 5)))
    yield Case("gather_rows", dict(x=x, rows=rows), "%r0 = moe.gather_rows %x, %rows : {x}, {rows} -> {result0}", [("bf16", x.x[[2, 2, 0, 3]])],
               comment="Rows are clamped to the input.")
    yield Case("gather_no_rows", dict(x=x, rows=Tensor("i32", [])), "%r0 = moe.gather_rows %x, %rows : {x}, {rows} -> {result0}", [("bf16", x.x[:0])])


def random_blocks(rng, shape, low=110, high=140):
    return rng.integers(0, 16, size=shape), rng.integers(low, high, size=(*shape[:-1], shape[-1] // 32))


def block_inputs(codes, scales, prefix=""):
    return {f"{prefix}c": Tensor("i8", f.pack_codes(codes)), f"{prefix}s": Tensor("i8", scales)}


def assemble(prefix, shape):
    kind = f"!moe.block_tensor<[{', '.join(map(str, shape))}], mxfp4>"
    return f"%{prefix}b = moe.assemble_blocks %{prefix}c, %{prefix}s : {{{prefix}c}}, {{{prefix}s}} -> {kind}", kind


def blocks(rng):
    # Every code under scale bytes at both ends, where bf16 and f32 have subnormal numbers, and NaN.
    scale_bytes = [0, 1, 2, 7, 104, 126, 127, 128, 200, 252, 255]
    codes = np.tile(np.arange(16), (len(scale_bytes), 2))
    scales = np.array(scale_bytes)[:, None]
    for dtype in ("f32", "bf16", "f16"):
        line, kind = assemble("", codes.shape)
        yield Case(f"every_code_{dtype}", block_inputs(codes, scales), line + f"\n%r0 = moe.dequantize %b : {kind} -> {{result0}}",
                   [(dtype, f.mxfp4(codes, scales))])
    codes, scales = random_blocks(rng, (2, 3, 64))
    line, kind = assemble("", codes.shape)
    inputs = block_inputs(codes, scales)
    inputs["c"] = Tensor("i8", inputs["c"].x.reshape(2, 3, 2, 16))
    yield Case("grouped_codes", inputs, line + f"\n%r0 = moe.dequantize %b : {kind} -> {{result0}}", [("f32", f.mxfp4(codes, scales))],
               comment="Codes as [.., K / 32, 16], as gpt-oss stores them.")
    for n, k in ((258, 32), (5, 320), (1, 1504)):
        codes, scales = random_blocks(rng, (n, k), 120, 132)
        line, kind = assemble("", codes.shape)
        x = Tensor("bf16", rng.normal(size=(1, k)))
        yield Case(f"linear_{n}_{k}", dict(x=x, **block_inputs(codes, scales)),
                   line + f"\n%r0 = moe.linear %x, %b : {{x}}, {kind} -> {{result0}}", [("f32", f.linear(x.x, f.mxfp4(codes, scales)))])
    codes, scales = random_blocks(rng, (2, 64))
    scales[1, 1] = 255
    x = Tensor("f32", np.zeros((1, 64)))
    line, kind = assemble("", codes.shape)
    yield Case("zero_times_nan_scale", dict(x=x, **block_inputs(codes, scales)),
               line + f"\n%r0 = moe.linear %x, %b : {{x}}, {kind} -> {{result0}}", [("f32", np.array([[0.0, math.nan]]))])


def code_case(name, format, codes, scales, block, numbers, dtype, comment=""):
    line = f"%r0 = moe.dequantize_codes {format} %c, %s blocks [{block[0]}, {block[1]}] : {{c}}, {{s}} -> {{result0}}"
    factors = f.e8m0(scales.x) if scales.dtype == "i8" else scales.x
    return Case(name, dict(c=codes, s=scales), line, [(dtype, f.scaled(numbers, factors, block))], comment=comment)


def dequantized_codes(rng):
    every = Tensor("i8", np.arange(256).reshape(4, 64))
    ones = Tensor("f32", np.ones((1, 1)))
    for format, exponent_bits in (("f8e4m3", 4), ("f8e5m2", 5)):
        for dtype in ("f32", "bf16", "f16"):
            yield code_case(f"{format}_every_code_{dtype}", format, every, ones, (4, 64), f.float8(every.x, exponent_bits), dtype)
        codes = Tensor("i8", np.repeat(np.arange(256)[:, None], 7, axis=1))
        bytes_ = Tensor("i8", np.array([[0, 1, 104, 126, 127, 200, 255]]))
        for dtype in ("f32", "bf16"):
            yield code_case(f"{format}_scale_bytes_{dtype}", format, codes, bytes_, (256, 1), f.float8(codes.x, exponent_bits), dtype,
                            "Every code under scales at both ends, where results are subnormal or infinite, and NaN.")
        codes = Tensor("i8", rng.integers(0, 126, size=(3, 7, 10)) | rng.integers(0, 2, size=(3, 7, 10)) << 7)
        for kind, block in (("f32", (3, 4)), ("bf16", (4, 5)), ("f16", (7, 1)), ("f32", (128, 128))):
            scales = Tensor(kind, np.exp2(rng.normal(size=(3, -(-7 // block[0]), -(-10 // block[1])))))
            for dtype in ("f32", "bf16"):
                yield code_case(f"{format}_{kind}_{block[0]}x{block[1]}_{dtype}", format, codes, scales, block,
                                f.float8(codes.x, exponent_bits), dtype, "Blocks that are cut short at the ends.")
    for columns, group in ((16, 4), (64, 32), (13, 13), (20, 5)):
        codes = rng.integers(0, 16, size=(2, 3, columns))
        codes[0, 0, :min(16, columns)] = np.arange(16)[:columns]
        padded = np.concatenate([codes, np.full((2, 3, -columns % 8), 15)], axis=-1).reshape(2, 3, -1, 8)
        words = (padded.astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))).sum(-1).astype(np.uint32).view(np.int32)
        scales = Tensor("bf16", rng.normal(size=(2, 3, columns // group)))
        for dtype in ("f32", "bf16"):
            yield code_case(f"int4_{columns}_by_{group}_{dtype}", "int4", Tensor("i32", words), scales, (1, group), codes - 8.0, dtype)


def yarn(theta, dim, factor, original, fast, slow):
    base = np.array([theta ** (-2 * i / dim) for i in range(dim // 2)])
    corner = lambda n: dim * math.log(original / (n * 2 * math.pi)) / (2 * math.log(theta))
    ramp = np.clip((np.arange(dim // 2) - corner(fast)) / (corner(slow) - corner(fast)), 0, 1)
    return (base / factor * ramp + base * (1 - ramp)).astype(np.float32)


def rotaries(rng):
    decimals = lambda values: ", ".join(repr(float(v)) if "." in repr(float(v)).split("e")[0] else repr(float(v)).replace("e", ".0e") for v in values)
    plain = np.array([10000.0 ** (-2 * i / 8) for i in range(4)], np.float32)
    positions = Tensor("i32", [0, 1, 17, 4095, 131071])
    for dtype in ("f32", "bf16"):
        x = Tensor(dtype, rng.normal(size=(5, 3, 12)))
        for name, offset, interleaved in (("half", 0, False), ("interleaved", 0, True), ("half_offset", 4, False), ("interleaved_offset", 3, True)):
            text = f"<[{decimals(plain)}]" + (f", offset = {offset}" if offset else "") + (", interleaved" if interleaved else "") + ">"
            yield Case(f"{name}_{dtype}", dict(x=x, p=positions), f"%r0 = moe.rope %x at %p {text} : {{x}}, {{p}}",
                       [(dtype, f.rope(x.x, positions.x, plain, 1.0, offset, interleaved))])
    x = Tensor("f32", rng.normal(size=(5, 2, 64)))
    scaled = yarn(150000.0, 64, 32, 4096, 32, 1)
    magnitude = 0.1 * math.log(32) + 1
    yield Case("yarn", dict(x=x, p=positions), f"%r0 = moe.rope %x at %p <[{decimals(scaled)}], magnitude = {magnitude!r}> : {{x}}, {{p}}",
               [("f32", f.rope(x.x, positions.x, scaled, magnitude))], comment="gpt-oss: corners not rounded, cosine and sine scaled.")
