"""Routing, grouping, experts."""

import math

import numpy as np

import formulas as f
from cases_dense import assemble, block_inputs, random_blocks
from mlir_text import Case, Tensor


def route_case(name, logits, k, score, bias=None, comment="", **options):
    inputs = dict(l=Tensor("f32", logits))
    if bias is not None:
        inputs["b"] = Tensor("f32", bias)
    weights, indices = f.route(inputs["l"].x, k, score, None if bias is None else inputs["b"].x, **options)
    attributes = [f"top_k = {k}"] + [key if value is True else f"{key} = {value}" for key, value in options.items()]
    text = f"moe.route {score}(%l)" + (" bias(%b : {b})" if bias is not None else "")
    return Case(name, inputs, f"%r0, %r1 = {text} {{{', '.join(attributes)}}} : {{l}} -> {{result0}}, {{result1}}",
                [("f32", weights), ("i32", indices)], comment=comment)


def routes(rng):
    logits = rng.normal(size=(4, 16))
    yield route_case("softmax", logits, 4, "softmax")
    yield route_case("softmax_renormalize", logits, 4, "softmax", renormalize=True)
    yield route_case("softmax_scale", logits, 4, "softmax", renormalize=True, scale=2.5)
    yield route_case("sigmoid", logits, 4, "sigmoid")
    yield route_case("sqrt_softplus", logits, 4, "sqrt_softplus", renormalize=True)
    for k in (1, 6, 18, 33):
        yield route_case(f"top_{k}", rng.normal(size=(2, 40)), k, "softmax", renormalize=True)
    yield route_case("all_experts", rng.normal(size=(2, 5)), 5, "softmax")
    yield route_case("many_experts", rng.normal(size=(1, 600)), 8, "sigmoid", renormalize=True)
    yield route_case("no_tokens", np.zeros((0, 8)), 2, "softmax")
    yield route_case("large_bias", logits, 4, "sigmoid", bias=np.where(np.arange(16) % 3 == 0, 10.0, -10.0), renormalize=True, scale=2.446,
                     comment="The bias chooses and leaves no trace in the weights; the scale comes after renormalising.")
    yield route_case("groups", logits, 4, "sigmoid", bias=rng.normal(size=16) * 0.1, groups=4, top_groups=2, renormalize=True)
    yield route_case("groups_of_negative_bias", logits, 4, "sigmoid", bias=np.full(16, -5.0), groups=4, top_groups=1,
                     comment="Experts outside the best groups count as -inf, not as 0.")
    yield route_case("groups_of_one_expert", logits, 2, "sigmoid", groups=16, top_groups=3)
    yield route_case("softmax_groups", logits, 4, "softmax", groups=2, top_groups=1)
    yield route_case("ties", np.array([[1.0, 3.0, 3.0, 1.0, 3.0, 1.0], [0.0] * 6]), 4, "softmax", renormalize=True,
                     comment="Of equal experts the lower one comes first.")
    yield route_case("tied_groups", np.zeros((1, 8)), 2, "sigmoid", groups=4, top_groups=1)
    yield route_case("saturated", np.array([[40.0, 50.0, 60.0, 20.0]]), 2, "sigmoid",
                     comment="In f32 the first three sigmoids are 1 and tie.")
    yield underflow()
    nan_logits = np.array([[math.nan, 1.0, math.nan, 3.0], [math.nan, -1.0, math.nan, math.nan], [math.nan] * 4])
    for score in ("softmax", "sigmoid", "sqrt_softplus"):
        for name, attributes in ((f"nan_{score}", {}), (f"nan_{score}_renormalize", dict(renormalize=True))):
            yield route_case(name, nan_logits, 2, score, **attributes,
                             comment="NaN counts as -inf; a row of nothing else chooses the first experts with weights of 0.")
    yield negative_infinity()


def underflow():
    logits = Tensor("f32", [[0.0, -200.0, -150.0, -300.0]])
    return Case("underflow", dict(l=logits), "%r0, %r1 = moe.route softmax(%l) {top_k = 4} : {l} -> {result0}, {result1}",
                [("f32", np.array([[1.0, math.exp(-150), math.exp(-200), math.exp(-300)]])), ("i32", np.array([[0, 2, 1, 3]]))],
                comment="Softmax scores that are 0 in f32 keep the order of their logits.")


def negative_infinity():
    logits = Tensor("f32", [[-math.inf, 2.0, -math.inf, -math.inf]])
    return Case("masked_logits", dict(l=logits), "%r0, %r1 = moe.route softmax(%l) {renormalize, top_k = 2} : {l} -> {result0}, {result1}",
                [("f32", np.array([[1.0, 0.0]])), ("i32", np.array([[1, 0]]))])


def hashes(rng):
    def case(name, tokens, table, table_type="i64", score="sqrt_softplus", experts=8, expected=None, comment="", **options):
        logits, ids = Tensor("f32", 2 * rng.normal(size=(len(tokens), experts))), Tensor("i32", tokens)
        table = Tensor(table_type, table)
        weights, indices = f.hash_route(logits.x, *(expected or (ids.x, table.x)), score, **options)
        attributes = ", ".join(key if value is True else f"{key} = {value}" for key, value in options.items())
        return Case(name, dict(l=logits, t=ids, e=table),
                    f"%r0, %r1 = moe.hash_route {score}(%l) of %t in %e {{{attributes}}} : {{l}}, {{t}}, {{e}} -> {{result0}}, {{result1}}",
                    [("f32", weights), ("i32", indices)], comment=comment)

    table = rng.integers(0, 8, size=(11, 3))
    yield case("hash_plain", [0, 10, 3, 3], table)
    yield case("hash_scaled", [1, 2, 7], table, renormalize=True, scale=1.5)
    yield case("hash_sigmoid", [5, 9], table, table_type="i32", score="sigmoid", renormalize=True)
    yield case("hash_one_choice", [4, 0], table[:, :1], renormalize=True)
    yield case("hash_no_tokens", [], table)
    outside = np.array([[0, -5], [9, 2]])
    yield case("hash_outside", [-1, 7], outside, expected=([0, 1], np.clip(outside, 0, 7)),
               comment="Ids beyond the table and experts that are not there are clamped.")


def groups(rng):
    def case(name, indices, experts, comment=""):
        i = Tensor("i32", indices)
        offsets, pairs = f.group_tokens(i.x, experts)
        undefined = np.full(i.x.size - len(pairs), -(2**31), np.int64)
        return Case(name, dict(i=i), "%r0, %r1 = moe.group_tokens %i : {i} -> {result0}, {result1}",
                    [("i32", offsets), ("i32", np.concatenate([pairs, undefined]))], comment=comment)

    yield case("some", rng.integers(0, 5, size=(7, 3)), 5)
    yield case("one_expert", np.zeros((3, 1), int), 1)
    yield case("unused_experts", [[3, 1], [1, 3]], 6)
    yield case("elsewhere", [[-1, 2], [0, -1], [-1, -1]], 3, "Choices of experts on other ranks are left out; what is undefined is marked.")
    yield case("nothing", np.zeros((0, 2), int), 3)


ACTIVATIONS = {
    "silu": ("<silu>", lambda g, u: f.activation("silu", g, u), False),
    "gelu": ("<gelu>", lambda g, u: f.activation("gelu", g, u), False),
    "gelu_tanh": ("<gelu_tanh>", lambda g, u: f.activation("gelu_tanh", g, u), False),
    "relu": ("<relu>", lambda g, u: f.activation("relu", g, u), False),
    "silu_interleaved": ("<silu, interleaved = true>", lambda g, u: f.activation("silu", g, u), True),
    "swiglu": ("<swiglu, alpha = 1.702, beta = 1.0, limit = 7.0, interleaved = true>",
               lambda g, u: f.activation("swiglu", g, u, 1.702, 1.0, 7.0), True),
    "swiglu_without_limit": ("<swiglu, alpha = 1.0>", lambda g, u: f.activation("swiglu", g, u), False),
    "situ": ("<situ, alpha = 25.0, beta = 4.0>", lambda g, u: f.activation("situ", g, u, 25.0, 4.0), False),
    "situ_without_bound": ("<situ, alpha = 0.0, beta = 4.0>", lambda g, u: f.activation("situ", g, u, 0.0, 4.0), False),
}


def expert_inputs(rng, dtype="f32", weight_type="f32", tokens=4, k=2, count=5, hidden=12, inner=9, spread=1.0):
    return dict(
        x=Tensor(dtype, rng.normal(size=(tokens, hidden)) * spread),
        i=Tensor("i32", np.array([rng.permutation(count)[:k] for _ in range(tokens)]).reshape(tokens, k)),
        w=Tensor("f32", rng.random(size=(tokens, k))),
        u=Tensor(weight_type, rng.normal(size=(count, 2 * inner, hidden))),
        d=Tensor(weight_type, rng.normal(size=(count, hidden, inner))),
        ub=Tensor(weight_type, rng.normal(size=(count, 2 * inner))),
        db=Tensor(weight_type, rng.normal(size=(count, hidden))),
        r=Tensor(dtype, rng.normal(size=(tokens, hidden))))


def expert_case(name, inputs, activation, optional=(), comment=""):
    text, function, interleaved = ACTIVATIONS[activation]
    options = dict(gate_up_bias="ub", down_bias="db", residual="r")
    inputs = {key: value for key, value in inputs.items() if key not in options.values() or key in optional}
    given = {argument: inputs[key].x for argument, key in options.items() if key in optional}
    operands = " ".join(f"{argument}(%{key} : {{{key}}})" for argument, key in options.items() if key in optional)
    dtype = inputs["x"].dtype
    result = f.experts(inputs["x"].x, inputs["i"].x, inputs["w"].x, inputs["u"].x, inputs["d"].x, function, interleaved,
                       input_type=dtype, **given)
    body = f"%r0 = moe.experts %x to %i, %w gate_up(%u : {{u}}) down(%d : {{d}}) {operands} {text} : {{x}}, {{i}}, {{w}} -> {{result0}}"
    return Case(name, inputs, body, [(dtype, result)], comment=comment)


def experts(rng):
    everything = ("ub", "db", "r")
    for name in ACTIVATIONS:
        yield expert_case(name, expert_inputs(rng, spread=3.0), name, everything)
    yield expert_case("without_biases", expert_inputs(rng), "swiglu")
    for dtype in ("bf16", "f16"):
        yield expert_case(f"rounding_{dtype}", expert_inputs(rng, dtype, dtype), "swiglu", everything,
                          comment="The activation and each expert's output are rounded.")
    yield expert_case("f32_with_bf16_weights", expert_inputs(rng, "f32", "bf16"), "swiglu", everything)
    elsewhere = expert_inputs(rng)
    elsewhere["i"] = Tensor("i32", [[-1, 2], [0, -1], [-1, -1], [4, 4]])
    yield expert_case("elsewhere", elsewhere, "silu", everything, comment="Negative experts are skipped, one chosen twice counts twice.")
    yield expert_case("no_tokens", expert_inputs(rng, tokens=0), "silu", everything)
    yield expert_case("top_6", expert_inputs(rng, k=6, count=7), "silu", everything)
    yield quantised(rng)


def quantised(rng):
    count, hidden, inner, tokens, k = 3, 64, 32, 3, 2
    up, down = random_blocks(rng, (count, 2 * inner, hidden), 122, 128), random_blocks(rng, (count, hidden, inner), 122, 128)
    inputs = expert_inputs(rng, "f32", "bf16", tokens, k, count, hidden, inner)
    text, function, interleaved = ACTIVATIONS["swiglu"]
    result = f.experts(inputs["x"].x, inputs["i"].x, inputs["w"].x, f.mxfp4(*up), f.mxfp4(*down), function, interleaved,
                       inputs["ub"].x, inputs["db"].x)
    up_line, up_type = assemble("u", (count, 2 * inner, hidden))
    down_line, down_type = assemble("d", (count, hidden, inner))
    kept = {key: inputs[key] for key in ("x", "i", "w", "ub", "db")}
    body = (f"{up_line}\n{down_line}\n%r0 = moe.experts %x to %i, %w gate_up(%ub_ : {up_type}) down(%db_ : {down_type}) "
            f"gate_up_bias(%ub : {{ub}}) down_bias(%db : {{db}}) {text} : {{x}}, {{i}}, {{w}} -> {{result0}}")
    body = body.replace("%ub = moe.assemble", "%ub_ = moe.assemble").replace("%db = moe.assemble", "%db_ = moe.assemble")
    return Case("mxfp4", dict(**kept, **block_inputs(*up, "u"), **block_inputs(*down, "d")), body, [("f32", result)])


def grouped(rng):
    """The three steps of the experts, and each alone."""
    for name in ("swiglu", "silu"):
        inputs = expert_inputs(rng)
        text, function, interleaved = ACTIVATIONS[name]
        k, hidden = 2, 12
        result = f.experts(inputs["x"].x, inputs["i"].x, inputs["w"].x, inputs["u"].x, inputs["d"].x, function, interleaved,
                           inputs["ub"].x, inputs["db"].x, inputs["r"].x)
        body = f"""
            %o, %p = moe.group_tokens %i : {{i}} -> tensor<6xi32>, tensor<8xi32>
            %h = moe.grouped_linear %x by %o, %p weight(%u : {{u}}) bias(%ub : {{ub}}) {{activation = #moe.activation{text}, gather, top_k = 2}} : {{x}}, tensor<6xi32>, tensor<8xi32> -> tensor<8x9xf32>
            %y = moe.grouped_linear %h by %o, %p weight(%d : {{d}}) bias(%db : {{db}}) {{scatter, top_k = 2}} : tensor<8x9xf32>, tensor<6xi32>, tensor<8xi32> -> tensor<8x12xf32>
            %r0 = moe.combine %y, %w, %i residual(%r : {{r}}) : tensor<8x12xf32>, {{w}}, {{i}} -> {{result0}}"""
        yield Case(f"three_steps_{name}", inputs, body, [("f32", result)])
    yield missing_pairs(rng)
    yield plain_grouped(rng)
    for dtype in ("f32", "bf16"):
        y, w, i = Tensor(dtype, rng.normal(size=(6, 5))), Tensor("f32", rng.random(size=(3, 2))), Tensor("i32", [[0, 1], [-1, 0], [-1, -1]])
        kept = np.where(i.x >= 0, w.x, 0.0)
        result = np.einsum("tj,tjh->th", kept, y.x.reshape(3, 2, 5))
        yield Case(f"combine_{dtype}", dict(y=y, w=w, i=i), "%r0 = moe.combine %y, %w, %i : {y}, {w}, {i} -> {result0}", [(dtype, result)])


def missing_pairs(rng):
    x, w = Tensor("f32", rng.normal(size=(2, 4))), Tensor("f32", rng.normal(size=(3, 5, 4)))
    offsets, pairs = Tensor("i32", [0, 0, 1, 2]), Tensor("i32", [2, 1, 77, -5])
    result = np.full((4, 5), math.nan)
    result[2], result[1] = w.x[1] @ x.x[1], w.x[2] @ x.x[0]
    return Case("missing_pairs", dict(x=x, o=offsets, p=pairs, w=w),
                "%r0 = moe.grouped_linear %x by %o, %p weight(%w : {w}) {gather, scatter, top_k = 2} : {x}, {o}, {p} -> {result0}",
                [("f32", result)], comment="Rows that no pair names are undefined, here NaN; pairs past the last offset are never read.")


def plain_grouped(rng):
    x, w = Tensor("bf16", rng.normal(size=(4, 6))), Tensor("bf16", rng.normal(size=(2, 3, 6)))
    offsets, pairs = Tensor("i32", [0, 3, 4]), Tensor("i32", [0, 1, 3, 2])
    result = np.stack([w.x[0] @ x.x[0], w.x[0] @ x.x[1], w.x[0] @ x.x[2], w.x[1] @ x.x[3]])
    return Case("rows_in_order", dict(x=x, o=offsets, p=pairs, w=w),
                "%r0 = moe.grouped_linear %x by %o, %p weight(%w : {w}) {top_k = 2} : {x}, {o}, {p} -> {result0}", [("bf16", result)],
                comment="Without gather and scatter pairs are rows.")
