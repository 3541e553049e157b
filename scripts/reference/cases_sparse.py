"""Attention over rows that hold keys and values, and the choice of the keys that it looks at."""

import numpy as np

import formulas as f
from cases_attention import paged
from mlir_text import Case, Tensor


def steps_of(lengths, new):
    """(sequence, position) of the tokens before the step, and of the step's: the last new[s] of lengths[s]."""
    old = [n - m for n, m in zip(lengths, new)]
    return [[(s, p) for s in range(len(lengths)) for p in range(first[s], last[s])]
            for first, last in (([0] * len(lengths), old), (old, lengths))]


def fill(rng, lengths, new, keys, dtype, cache, block):
    """Inputs and ops that write keys[s] [length, 1, dim] into %cache, before the step and in it."""
    inputs, body = dict(table=Tensor("i32", paged(rng, lengths, block, 24))), ""
    for i, step in enumerate(steps_of(lengths, new)):
        inputs[f"k{i}"] = Tensor(dtype, np.array([keys[s][p] for s, p in step]).reshape(-1, *keys[0].shape[1:]))
        inputs[f"s{i}"], inputs[f"p{i}"] = Tensor("i32", [s for s, _ in step]), Tensor("i32", [p for _, p in step])
        body += f"moe.kv_append %k{i} into %cache at (%p{i}, %s{i}, %table) : {{k{i}}}, {cache}, {{p{i}}}, {{s{i}}}, {{table}}\n"
    return inputs, body


def select_case(rng, name, lengths, new, top_k, heads=3, dim=8, block=4, dtype="f32", edit=None, comment=""):
    """edit(keys, queries, weights) may change what is random."""
    keys = [rng.normal(size=(n, 1, dim)) for n in lengths]
    tokens = sum(new)
    queries, weights = rng.normal(size=(tokens, heads, dim)), rng.normal(size=(tokens, heads))
    if edit:
        edit(keys, queries, weights)
    keys = [Tensor(dtype, k).x for k in keys]
    cache = f"!moe.cache<kv_heads = 1, key_dim = {dim}, value_dim = 0, block = {block}, {dtype}, shared>"
    inputs, body = fill(rng, lengths, new, keys, dtype, cache, block)
    q, w = inputs["q"], inputs["w"] = Tensor(dtype, queries), Tensor("f32", weights)
    body += (f"%r0 = moe.select_keys %q weights(%w) over %cache at (%p1, %s1, %table) {{scale = 0.25, top_k = {top_k}}} : {{q}}, {{w}}, "
             f"{cache}, {{p1}}, {{s1}}, {{table}} -> {{result0}}")
    result = f.select_keys(q.x, w.x, [k[:, 0] for k in keys], inputs["p1"].x, inputs["s1"].x, 0.25, top_k)
    return Case(name, inputs, body, [("i32", result)], arguments=f"%cache: {cache}", comment=comment)


def selections(rng):
    def equal(keys, queries, weights):
        for k in keys:
            k[:] = 1.0

    def zeros(keys, queries, weights):
        # Products are below zero, so that every score is 0 or, of negative weights, -0.
        queries[:] = -1.0
        for k in keys:
            k[:] = np.abs(k)
        weights[::2], weights[1::2] = 1.0, -1.0

    def many_nan(keys, queries, weights):
        for k in keys:
            k[rng.random(len(k)) < 0.9] = np.nan

    def all_nan(keys, queries, weights):
        for k in keys:
            k[:] = np.nan

    def low(keys, queries, weights):
        queries[:], weights[:] = np.abs(queries), -1e5 * np.abs(weights)
        for k in keys:
            k[:] = np.abs(k)

    def infinite(keys, queries, weights):
        # Scores of -inf come before those that are NaN by their positions alone.
        queries[:], weights[:] = 1.0, -1.0
        for k in keys:
            k[:] = np.inf
            k[1::2] = np.nan
            k[4] = 1.0

    case = lambda name, *args, **options: select_case(rng, name, *args, **options)
    yield case("fewer_keys_than_wanted", [6], [6], 8, comment="T = 1 .. k: what is behind the last key is -1.")
    yield case("exactly_as_many", [8], [1], 8)
    yield case("one_more", [9], [1], 8)
    yield case("prefill", [40], [40], 8)
    yield case("one_key", [13], [13], 1)
    yield case("ragged", [30, 1, 12, 9], [2, 1, 12, 1], 4)
    yield case("no_tokens", [5], [0], 2)
    yield case("one_head", [21], [3], 5, heads=1)
    yield case("half_precision", [33], [33], 6, dtype="bf16")
    yield case("equal_scores", [20], [20], 7, edit=equal, comment="The lowest positions.")
    yield case("equal_zeros", [20], [20], 7, edit=zeros, comment="0 and -0 are equal.")
    yield case("nine_tenths_nan", [40], [40], 6, edit=many_nan)
    yield case("nan_alone", [12], [12], 5, edit=all_nan)
    yield case("low_scores", [30], [30], 6, edit=low, comment="Scores around -1e5, which half precision does not have.")
    yield case("infinite_scores", [11], [11], 3, edit=infinite)


def latent_case(rng, name, lengths, new, heads=3, key_dim=12, value_dim=8, block=4, dtype="f32", cache_type=None, index_width=0,
                window=0, comment=""):
    cache_type = cache_type or dtype
    keys = [Tensor(dtype, rng.normal(size=(n, 1, key_dim))).x for n in lengths]
    cache = f"!moe.cache<kv_heads = 1, key_dim = {key_dim}, value_dim = {value_dim}, block = {block}, {cache_type}, shared>"
    inputs, body = fill(rng, lengths, new, keys, dtype, cache, block)
    step = steps_of(lengths, new)[1]
    inputs["q"] = Tensor(dtype, rng.normal(size=(len(step), heads, key_dim)))
    operands, chosen = "", None
    if index_width:
        rows = [sorted(int(j) for j in rng.permutation(p + 1)[:index_width]) for _, p in step]
        rows = [row + [-1] * (index_width - len(row)) for row in rows]
        inputs["indices"] = Tensor("i32", np.array(rows).reshape(len(step), index_width))
        operands, chosen = " indices(%indices : {indices})", [set(row) for row in rows]
    extra = f", window = {window}" if window else ""
    body += (f"%r0 = moe.attention %q over %cache at (%p1, %s1, %table){operands} {{scale = 0.3{extra}}} : {{q}}, {cache}, {{p1}}, {{s1}}, "
             "{table} -> {result0}")
    stored = [f.round_to(cache_type, k) for k in keys]
    result = f.attention(inputs["q"].x, stored, [k[:, :, :value_dim] for k in stored], inputs["p1"].x, inputs["s1"].x, 0.3, window, 0.0,
                         None, chosen)
    return Case(name, inputs, body, [(dtype, result)], arguments=f"%cache: {cache}", comment=comment)


def latents(rng):
    case = lambda name, *args, **options: latent_case(rng, name, *args, **options)
    yield case("prefill", [7], [7])
    yield case("ragged", [9, 1, 6], [1, 1, 6])
    yield case("value_is_the_key", [6], [6], value_dim=12)
    yield case("window", [11], [4], window=3)
    yield case("indices", [13, 9], [13, 2], index_width=4)
    yield case("indices_and_window", [13], [13], index_width=6, window=5)
    yield case("narrow_cache", [6], [6], cache_type="bf16")
    yield case("half_precision", [9], [9], dtype="bf16", index_width=3)


def head_products(rng):
    for dtype, weight_type in (("f32", "f32"), ("bf16", "bf16"), ("f32", "bf16")):
        for transposed in (False, True):
            x, w = Tensor(dtype, rng.normal(size=(3, 4, 5))), Tensor(weight_type, rng.normal(size=(4, 5, 7) if transposed else (4, 7, 5)))
            result = np.einsum("thk,hkn->thn" if transposed else "thk,hnk->thn", x.x, w.x)
            yield Case(f"head_linear_{dtype}_{weight_type}{'_transposed' * transposed}", dict(x=x, w=w),
                       f"%r0 = moe.head_linear %x, %w {'{transposed} ' * transposed}: {{x}}, {{w}} -> {{result0}}", [(dtype, result)])
