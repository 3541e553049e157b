"""Windows of tokens that become entries."""

import numpy as np

import formulas as f
from cases_attention import paged
from cases_recurrent import Steps
from mlir_text import Case, Tensor


def compress_case(rng, name, steps, slots, ratio=4, overlaps=True, channels=5, dtype="f32", result_type="f32", spread=1.0, comment=""):
    steps, width = Steps(steps, slots), channels * (2 if overlaps else 1)
    keys = [Tensor(dtype, rng.normal(size=(n, width))).x for n in steps.lengths]
    gates = [Tensor(dtype, spread * rng.normal(size=(n, width))).x for n in steps.lengths]
    inputs, body, results = dict(b=Tensor("f32", rng.normal(size=(ratio, width)))), "", []
    state = f"!moe.state<[{6 if overlaps else 3}, {channels}], f32>"
    whole = [f.compress(k, g, inputs["b"].x, channels) for k, g in zip(keys, gates)]
    for i in range(len(steps.parts)):
        inputs[f"k{i}"], inputs[f"g{i}"] = Tensor(dtype, steps.cut(keys, i)), Tensor(dtype, steps.cut(gates, i))
        inputs.update(steps.inputs(i))
        body += (f"%r{i} = moe.compress %k{i} gates(%g{i} : {{g{i}}}) bias(%b : {{b}}) over %state at (%p{i}, %o{i}, %z{i}) : {{k{i}}}, {state}, "
                 f"{{p{i}}}, {{o{i}}}, {{z{i}}} -> {{result{i}}}\n")
        results.append((result_type, steps.cut(whole, i)))
    return Case(name, inputs, body, results, arguments=f"%state: {state}", comment=comment)


def compressions(rng):
    pieces = [[(0, 1)], [(0, 7)], [(0, 2), (1, 16)], [(1, 1), (0, 1)]]
    mix = [[(0, 5), (1, 1), (2, 0)], [(2, 3), (0, 1)], [(1, 2), (0, 4), (2, 1)]]
    compress = lambda name, *args, **options: compress_case(rng, "compress_" + name, *args, **options)
    yield compress("prefill", [[(0, 13)]], [2])
    yield compress("prefill_apart", [[(0, 13)]], [2], overlaps=False)
    yield compress("one_by_one", [[(0, 1)]] * 9, [1])
    yield compress("one_by_one_apart", [[(0, 1)]] * 9, [1], overlaps=False)
    yield compress("pieces", pieces, [3, 1])
    yield compress("ragged", mix, [2, 0, 3], ratio=3)
    yield compress("ragged_apart", mix, [2, 0, 3], ratio=2, overlaps=False)
    yield compress("windows_of_one", mix, [2, 0, 3], ratio=1)
    yield compress("slot_again", [[(0, 6)], [(1, 3)], [(1, 6)]], [1, 1], comment="The second sequence begins in the slot that the first one leaves.")
    yield compress("far_apart", [[(0, 9)]], [0], spread=60.0, comment="Weights beside the largest are lost.")
    yield compress("no_tokens", [[(0, 0)]], [1])
    yield compress("bf16", pieces, [0, 2], dtype="bf16", result_type="bf16")
    yield compress("wide_result", pieces, [0, 2], dtype="bf16")


def entries_case(rng, name, lengths, new, heads=3, dim=8, block=4, ratio=4, dtype="f32", cache_type=None, window=3, count=2, chooses=True,
                 sinks=False, comment=""):
    """Sequence s has lengths[s] tokens, the last new[s] of which are the step's. Rows and entries go into caches in two steps, then the
    best entries are chosen and attended to."""
    cache_type, blocks_of_window = cache_type or dtype, max(1, ratio // block)
    table = Tensor("i32", paged(rng, lengths, block, 24))
    old = [n - m for n, m in zip(lengths, new)]
    steps = [[(s, p) for s in range(len(lengths)) for p in range(first[s], last[s])]
             for first, last in ((([0] * len(lengths)), old), (old, lengths))]
    rows = [Tensor(dtype, rng.normal(size=(n, dim))).x for n in lengths]
    entries = [Tensor(dtype, rng.normal(size=(n // ratio, dim))).x for n in lengths]
    cache = f"!moe.cache<kv_heads = 1, key_dim = {dim}, value_dim = {dim}, block = {block}, {cache_type}>"
    compressed = f"!moe.cache<kv_heads = 1, key_dim = {dim}, value_dim = {dim}, block = {max(1, block // ratio)}, {cache_type}>"
    inputs, body = dict(table=table), ""
    for i, step in enumerate(steps):
        complete = [(s, p) for s, p in step if (p + 1) % ratio == 0]
        places = [(p + 1) // ratio * blocks_of_window - 1 if (p + 1) % ratio == 0 else -1 for _, p in step]
        made = {(s, p): entries[s][p // ratio] for s, p in complete}
        inputs[f"k{i}"] = Tensor(dtype, np.array([rows[s][p] for s, p in step]).reshape(-1, 1, dim))
        inputs[f"e{i}"] = Tensor(dtype, np.array([made.get(at, np.zeros(dim)) for at in step]).reshape(-1, 1, dim))
        inputs[f"s{i}"], inputs[f"p{i}"] = Tensor("i32", [s for s, _ in step]), Tensor("i32", [p for _, p in step])
        inputs[f"w{i}"] = Tensor("i32", places)
        body += (f"moe.kv_append %k{i}, %k{i} into %cache at (%p{i}, %s{i}, %table) : {{k{i}}}, {{k{i}}}, {cache}, {{p{i}}}, {{s{i}}}, {{table}}\n"
                 f"moe.kv_append %e{i}, %e{i} into %entries at (%w{i}, %s{i}, %table) : {{e{i}}}, {{e{i}}}, {compressed}, {{w{i}}}, {{s{i}}}, {{table}}\n")
    tokens = len(steps[1])
    query = inputs["q"] = Tensor(dtype, rng.normal(size=(tokens, heads, dim)))
    shared = f"ratio = {ratio}, stride = {blocks_of_window}"
    stored = [f.round_to(cache_type, x) for x in rows], [f.round_to(cache_type, x) for x in entries]
    positions, sequences, results, chosen, operands = inputs["p1"].x, inputs["s1"].x, [], None, ""
    if chooses:
        weights = inputs["g"] = Tensor("f32", rng.normal(size=(tokens, heads)))
        chosen = f.select_entries(query.x, weights.x, stored[1], positions, sequences, ratio, count)
        results.append(("i32", chosen))
        body += (f"%r0 = moe.select_entries %q weights(%g : {{g}}) over %entries at (%p1, %s1, %table) {{{shared}}} : {{q}}, {compressed}, "
                 "{p1}, {s1}, {table} -> {result0}\n")
        operands = " indices(%r0 : {result0})"
    if sinks:
        inputs["sinks"] = Tensor("bf16", rng.normal(size=heads))
        operands = " sinks(%sinks : {sinks})" + operands
    number = len(results)
    results.append((dtype, f.compressed_attention(query.x, *stored, positions, sequences, 0.3, window, ratio,
                                                  inputs["sinks"].x if sinks else None, chosen)))
    body += (f"%r{number} = moe.compressed_attention %q over %cache and %entries at (%p1, %s1, %table){operands} {{scale = 0.3, window = {window}, "
             f"{shared}}} : {{q}}, {cache}, {compressed}, {{p1}}, {{s1}}, {{table}} -> {{result{number}}}")
    return Case(name, inputs, body, results, arguments=f"%cache: {cache}, %entries: {compressed}", comment=comment)


def entries(rng):
    case = lambda name, *args, **options: entries_case(rng, "entries_" + name, *args, **options)
    yield case("prefill", [13], [13])
    yield case("all", [13], [13], chooses=False)
    yield case("decode", [21, 4, 3], [1, 1, 1])
    yield case("ragged", [9, 1, 17, 4], [3, 1, 0, 2], sinks=True)
    yield case("ragged_all", [9, 1, 17, 4], [3, 1, 0, 2], sinks=True, chooses=False)
    yield case("several_in_a_block", [18, 7], [4, 7], block=8, ratio=2)
    yield case("blocks_of_a_window", [35, 17], [3, 17], block=4, ratio=16, chooses=False, comment="An entry lies at the end of every fourth block.")
    yield case("chosen_of_long_windows", [41], [9], block=2, ratio=8, count=1)
    yield case("windows_of_one", [6], [6], block=4, ratio=1, count=3)
    yield case("more_than_there_are", [9], [9], count=7)
    yield case("one_token_window", [12], [5], window=1)
    yield case("narrow", [14], [6], dtype="bf16")
    yield case("narrow_cache", [14], [6], cache_type="bf16")
    yield case("no_tokens", [5], [0])
    yield ties()


def ties():
    cache = "!moe.cache<kv_heads = 1, key_dim = 2, value_dim = 2, block = 8, f32>"
    rows = Tensor("f32", np.array([[0, 1], [1, 0], [np.nan, 0], [1, 0], [-1, 0], [1, 0], [2, 0], [1, 0]]).reshape(8, 1, 2))
    inputs = dict(k=rows, p=Tensor("i32", range(8)), s=Tensor("i32", [0] * 8), table=Tensor("i32", [[0]]), q=Tensor("f32", [[[1.0, 0.0]]]),
                  g=Tensor("f32", [[1.0]]), last=Tensor("i32", [7]), first=Tensor("i32", [0]))
    body = (f"moe.kv_append %k, %k into %cache at (%p, %s, %table) : {{k}}, {{k}}, {cache}, {{p}}, {{s}}, {{table}}\n"
            f"%r0 = moe.select_entries %q weights(%g : {{g}}) over %cache at (%last, %first, %table) {{ratio = 1}} : {{q}}, {cache}, {{last}}, "
            "{first}, {table} -> {result0}")
    return Case("entries_ties", inputs, body, [("i32", np.array([[1, 3, 6]]))], arguments=f"%cache: {cache}",
                comment="Of equal scores the lower entries; a NaN comes last.")
