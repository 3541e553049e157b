"""Paged attention: each case writes its past into a cache in chunks, block tables shuffled, and attends."""

import math

import numpy as np

import formulas as f
from mlir_text import Case, Tensor


def paged(rng, lengths, block, pool):
    """A block table whose blocks lie anywhere in the pool; entries that no position needs are -1."""
    width = max(1, max(-(-n // block) for n in lengths))
    free = list(rng.permutation(pool))
    return np.array([[free.pop() if b * block < n else -1 for b in range(width)] for n in lengths])


def attention_case(rng, name, lengths, new, heads=4, kv_heads=2, key_dim=8, value_dim=8, block=4, dtype="f32", cache_type=None,
                   window=0, softcap=0.0, sinks=False, index_width=0, rotary=False, comment=""):
    """Sequence s has lengths[s] tokens, the last new[s] of which are the step's; those before come in steps of their own."""
    cache_type = cache_type or dtype
    frequencies = np.array([1.0, 0.25, 0.0625], np.float32)
    rotary_text = "#moe.rotary<[1.0, 0.25, 0.0625], offset = 1>"
    keys = [Tensor(dtype, rng.normal(size=(n, kv_heads, key_dim))).x for n in lengths]
    values = [Tensor(dtype, rng.normal(size=(n, kv_heads, value_dim))).x for n in lengths]
    table = Tensor("i32", paged(rng, lengths, block, 24))
    old = [n - m for n, m in zip(lengths, new)]
    steps = [[(s, p) for s in range(len(lengths)) for p in range(first[s], last[s])]
             for first, last in ((([0] * len(lengths)), old), (old, lengths))]
    cache = f"!moe.cache<kv_heads = {kv_heads}, key_dim = {key_dim}, value_dim = {value_dim}, block = {block}, {cache_type}>"

    inputs, body = dict(table=table), ""
    extra = f" {{rotary = {rotary_text}}}" if rotary else ""
    for i, step in enumerate(steps):
        inputs[f"k{i}"] = Tensor(dtype, np.array([keys[s][p] for s, p in step]).reshape(-1, kv_heads, key_dim))
        inputs[f"v{i}"] = Tensor(dtype, np.array([values[s][p] for s, p in step]).reshape(-1, kv_heads, value_dim))
        inputs[f"s{i}"] = Tensor("i32", [s for s, _ in step])
        inputs[f"p{i}"] = Tensor("i32", [p for _, p in step])
        body += (f"moe.kv_append %k{i}, %v{i} into %cache at (%p{i}, %s{i}, %table){extra} : {{k{i}}}, {{v{i}}}, {cache}, {{p{i}}}, "
                 f"{{s{i}}}, {{table}}\n")
    tokens = len(steps[1])
    query = inputs["q"] = Tensor(dtype, rng.normal(size=(tokens, heads, key_dim)))
    attributes, operands = [f"scale = {0.3}"], ""
    if sinks:
        inputs["sinks"] = Tensor("bf16", rng.normal(size=heads))
        operands += " sinks(%sinks : {sinks})"
    chosen = None
    if index_width:
        rows = []
        for _, p in steps[1]:
            row = [-1] * index_width
            places = rng.permutation(index_width)[: min(index_width, p + 1)]
            for place, j in zip(places, rng.permutation(p + 1)):
                row[place] = int(j)
            rows.append(row)
        inputs["indices"] = Tensor("i32", np.array(rows).reshape(tokens, index_width))
        operands += " indices(%indices : {indices})"
        chosen = [set(row) for row in rows]
    attributes += [f"window = {window}"] if window else []
    attributes += [f"softcap = {softcap}"] if softcap else []
    attributes += [f"rotary = {rotary_text}"] if rotary else []
    body += (f"%r0 = moe.attention %q over %cache at (%p1, %s1, %table){operands} {{{', '.join(attributes)}}} : {{q}}, {cache}, "
             "{p1}, {s1}, {table} -> {result0}")

    rotate = lambda x, positions: f.round_to(dtype, f.rope(x, positions, frequencies, offset=1)) if rotary else x
    stored_keys = [f.round_to(cache_type, rotate(k, range(len(k)))) for k in keys]
    stored_values = [f.round_to(cache_type, v) for v in values]
    result = f.attention(rotate(query.x, inputs["p1"].x), stored_keys, stored_values, inputs["p1"].x, inputs["s1"].x, 0.3, window, softcap,
                         inputs["sinks"].x if sinks else None, chosen)
    return Case(name, inputs, body, [(dtype, result)], arguments=f"%cache: {cache}", comment=comment)


def fully_masked(rng):
    cache = "!moe.cache<kv_heads = 1, key_dim = 4, value_dim = 4, block = 4, f32>"
    k, q = Tensor("f32", rng.normal(size=(3, 1, 4))), Tensor("f32", rng.normal(size=(3, 2, 4)))
    indices = Tensor("i32", [[-1, -1], [2, -1], [-1, 0]])
    positions, sequences, table = Tensor("i32", [0, 1, 2]), Tensor("i32", [0, 0, 0]), Tensor("i32", [[5]])
    expected = np.zeros((3, 2, 4))
    expected[2] = k.x[0, 0]
    return Case("rows_that_see_nothing", dict(k=k, q=q, i=indices, p=positions, s=sequences, t=table),
                f"moe.kv_append %k, %k into %cache at (%p, %s, %t) : {{k}}, {{k}}, {cache}, {{p}}, {{s}}, {{t}}\n"
                f"%r0 = moe.attention %q over %cache at (%p, %s, %t) indices(%i : {{i}}) {{scale = 1.0}} : {{q}}, {cache}, {{p}}, {{s}}, {{t}} -> {{result0}}",
                [("f32", expected)], arguments=f"%cache: {cache}",
                comment="Token 0 has no index, token 1 only one that lies in its future: zeros. Token 2 sees one position.")


def sinks_alone(rng):
    cache = "!moe.cache<kv_heads = 1, key_dim = 4, value_dim = 4, block = 4, f32>"
    q, i = Tensor("f32", rng.normal(size=(1, 2, 4))), Tensor("i32", [[-1]])
    zero, table, sinks = Tensor("i32", [0]), Tensor("i32", [[0]]), Tensor("f32", [1.0, -1.0])
    return Case("sinks_alone", dict(q=q, i=i, z=zero, t=table, k=sinks),
                f"%r0 = moe.attention %q over %cache at (%z, %z, %t) sinks(%k : {{k}}) indices(%i : {{i}}) {{scale = 1.0}} : {{q}}, {cache}, {{z}}, {{z}}, {{t}} -> {{result0}}",
                [("f32", np.zeros((1, 2, 4)))], arguments=f"%cache: {cache}")


def large_scores(rng):
    cache = "!moe.cache<kv_heads = 1, key_dim = 1, value_dim = 2, block = 2, f32>"
    k = Tensor("f32", np.array([-1e5, -1e5, -2e5]).reshape(3, 1, 1))
    v = Tensor("f32", rng.normal(size=(3, 1, 2)))
    q, one = Tensor("f32", np.array([[[1.0]]])), Tensor("i32", [0])
    p, s, t, last = Tensor("i32", [0, 1, 2]), Tensor("i32", [0, 0, 0]), Tensor("i32", [[3, 1]]), Tensor("i32", [2])
    expected = (v.x[0, 0] + v.x[1, 0]) / 2
    return Case("scores_below_half_precision", dict(k=k, v=v, q=q, p=p, s=s, t=t, last=last, one=one),
                f"moe.kv_append %k, %v into %cache at (%p, %s, %t) : {{k}}, {{v}}, {cache}, {{p}}, {{s}}, {{t}}\n"
                f"%r0 = moe.attention %q over %cache at (%last, %one, %t) {{scale = 1.0}} : {{q}}, {cache}, {{last}}, {{one}}, {{t}} -> {{result0}}",
                [("f32", expected.reshape(1, 1, 2))], arguments=f"%cache: {cache}", comment="All scores are -1e5 or less, two of them equal.")


def attentions(rng):
    case = lambda name, *args, **options: attention_case(rng, name, *args, **options)
    yield case("prefill", [7], [7])
    yield case("decode", [9], [1])
    for length in (3, 4, 5, 8):
        yield case(f"block_border_{length}", [length], [1], comment="Blocks of four tokens.")
    yield case("ragged", [5, 1, 12, 4], [2, 1, 12, 1])
    yield case("empty_sequence", [5, 0, 3], [2, 0, 3])
    yield case("no_tokens", [2], [0])
    yield case("window", [11], [11], window=3)
    yield case("window_of_one", [5], [5], window=1)
    yield case("window_with_sinks", [11, 6], [4, 6], window=4, sinks=True)
    yield case("window_passed", [40], [2], window=8, block=16, comment="Longer than the window by far.")
    yield case("sinks", [6], [6], sinks=True)
    yield case("softcap", [6], [6], softcap=2.5)
    yield case("softcap_with_sinks", [6], [6], softcap=2.5, sinks=True)
    yield case("one_kv_head", [6], [6], heads=6, kv_heads=1)
    yield case("no_groups", [6], [6], heads=3, kv_heads=3)
    yield case("values_of_another_size", [6], [3], key_dim=8, value_dim=5)
    yield case("rotary", [6, 9], [2, 3], rotary=True)
    yield case("indices", [13], [13], index_width=5)
    yield case("indices_wider_than_context", [3], [3], index_width=8)
    yield case("indices_window_sinks", [13, 9], [6, 2], index_width=6, window=5, sinks=True)
    for dtype in ("bf16", "f16"):
        yield case(f"everything_{dtype}", [9, 6], [3, 6], dtype=dtype, window=6, sinks=True, rotary=True)
    yield case("narrow_cache", [6], [6], dtype="f32", cache_type="bf16", rotary=True, comment="Keys and values are rounded when they are stored.")
    yield fully_masked(rng)
    yield sinks_alone(rng)
    yield large_scores(rng)
