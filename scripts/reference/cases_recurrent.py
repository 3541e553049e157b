"""Linear attention: sequences in several steps over one state, whose slots hold anything at first."""

import numpy as np

import formulas as f
from mlir_text import Case, Tensor


class Steps:
    """Each step is a list of (sequence, tokens). `slots` of the sequences; the inputs of a step's tokens are cut from whole sequences."""

    def __init__(self, steps, slots):
        self.slots, self.parts = slots, []
        done = [0] * len(slots)
        for step in steps:
            self.parts.append([(s, done[s], done[s] + count) for s, count in step])
            for s, count in step:
                done[s] += count
        self.lengths = done

    def inputs(self, i):
        """positions, sequence offsets and slots of step i."""
        parts = self.parts[i]
        positions = [p for _, first, end in parts for p in range(first, end)]
        offsets = np.cumsum([0] + [end - first for _, first, end in parts])
        return {f"p{i}": Tensor("i32", positions), f"o{i}": Tensor("i32", offsets), f"z{i}": Tensor("i32", [self.slots[s] for s, _, _ in parts])}

    def cut(self, whole, i):
        """The rows of step i, from one array for each sequence."""
        return np.concatenate([whole[s][first:end] for s, first, end in self.parts[i]])


def conv_case(rng, name, steps, slots, channels=5, size=4, dtype="f32", weight_type="f32", silu=False, comment=""):
    steps = Steps(steps, slots)
    rows = [Tensor(dtype, rng.normal(size=(n, channels))).x for n in steps.lengths]
    inputs, body, results = dict(w=Tensor(weight_type, rng.normal(size=(channels, size)))), "", []
    state, attributes = f"!moe.state<[{size - 1}, {channels}], {dtype}>", " {silu}" if silu else ""
    whole = [f.causal_conv(x, inputs["w"].x, silu) for x in rows]
    for i in range(len(steps.parts)):
        inputs[f"x{i}"] = Tensor(dtype, steps.cut(rows, i))
        inputs.update(steps.inputs(i))
        body += (f"%r{i} = moe.causal_conv %x{i} weight(%w : {{w}}) over %state at (%p{i}, %o{i}, %z{i}){attributes} : {{x{i}}}, {state}, "
                 f"{{p{i}}}, {{o{i}}}, {{z{i}}}\n")
        results.append((dtype, steps.cut(whole, i)))
    return Case(name, inputs, body, results, arguments=f"%state: {state}", comment=comment)


def delta_case(rng, name, steps, slots, key_heads=2, heads=2, key_dim=4, value_dim=3, dtype="f32", result_type="f32", per_channel=True,
               epsilon=1e-6, decay_of=lambda rng, shape: -5 * f.sigmoid(rng.normal(size=shape)), comment=""):
    steps = Steps(steps, slots)
    tensors = {name: [] for name in "qkvgb"}
    for n in steps.lengths:
        tensors["q"].append(Tensor(dtype, rng.normal(size=(n, key_heads, key_dim))).x)
        tensors["k"].append(Tensor(dtype, rng.normal(size=(n, key_heads, key_dim))).x)
        tensors["v"].append(Tensor(dtype, rng.normal(size=(n, heads, value_dim))).x)
        tensors["g"].append(Tensor("f32", decay_of(rng, (n, heads, key_dim) if per_channel else (n, heads))).x)
        tensors["b"].append(Tensor("f32", f.sigmoid(rng.normal(size=(n, heads)))).x)
    scale = key_dim**-0.5
    state_type = f"!moe.state<[{heads}, {key_dim}, {value_dim}], f32>"
    attributes = f"scale = {scale!r}" + ("" if epsilon is None else f", norm_epsilon = {epsilon:.1e}")
    state = np.zeros((len(slots), heads, key_dim, value_dim))
    inputs, body, results = {}, "", []
    for i, parts in enumerate(steps.parts):
        for letter, whole in tensors.items():
            inputs[f"{letter}{i}"] = Tensor("f32" if letter in "gb" else dtype, steps.cut(whole, i))
        inputs.update(steps.inputs(i))
        body += (f"%r{i} = moe.delta_rule %q{i}, %k{i}, %v{i} decay(%g{i} : {{g{i}}}) beta(%b{i} : {{b{i}}}) over %state at (%p{i}, %o{i}, %z{i}) "
                 f"{{{attributes}}} : {{q{i}}}, {{k{i}}}, {{v{i}}}, {state_type}, {{p{i}}}, {{o{i}}}, {{z{i}}} -> {{result{i}}}\n")
        expected = []
        for s, first, end in parts:
            part = np.zeros((end - first, heads, value_dim))
            for h in range(heads):
                kh = h // (heads // key_heads)
                q, k = tensors["q"][s][first:end, kh], tensors["k"][s][first:end, kh]
                v, g, b = (tensors[letter][s][first:end, h] for letter in "vgb")
                part[:, h], after = f.delta_rule(state[s, h], q, k, v, g, b, scale, epsilon)
                state[s, h] = f.round_to("f32", after)
            expected.append(part)
        results.append((result_type, np.concatenate(expected)))
    return Case(name, inputs, body, results, arguments=f"%state: {state_type}", comment=comment)


def gate_case(rng, name, heads=3, channels=None, padding=0, lower_bound=None, dtype="f32", result_type="f32", x=None, comment=""):
    row = (heads,) if channels is None else (heads, channels)
    x = Tensor(dtype, rng.normal(size=(4, *row)) * 3 if x is None else x)
    a_log = Tensor("f32", np.concatenate([rng.uniform(-1, 1, size=heads), np.zeros(padding)]))
    bias = Tensor("f32", rng.normal(size=row))
    attributes = "" if lower_bound is None else f" {{lower_bound = {lower_bound}}}"
    return Case(name, dict(x=x, a=a_log, b=bias), f"%r0 = moe.decay_gate %x a_log(%a : {{a}}) bias(%b : {{b}}){attributes} : {{x}} -> {{result0}}",
                [(result_type, f.decay_gate(x.x, a_log.x, bias.x, lower_bound))], comment=comment)


def norm_case(rng, name, function, dtype="f32", result_type="f32", weight=True, shape=(3, 2, 5)):
    x, g, w = Tensor(dtype, rng.normal(size=shape)), Tensor("bf16", rng.normal(size=shape) * 3), Tensor("f32", rng.normal(size=shape[-1]))
    text = " weight(%w : {w})" if weight else ""
    expected = f.rms_norm(x.x, w.x if weight else None, 1e-5) * f.gate(function, g.x)
    return Case(name, dict(x=x, g=g, w=w), f"%r0 = moe.gated_rms_norm %x by {function}(%g : {{g}}){text} {{epsilon = 1.0e-5}} : {{x}} -> {{result0}}",
                [(result_type, expected)])


def recurrences(rng):
    pieces = [[(0, 1)], [(0, 7)], [(0, 2), (1, 16)], [(1, 1), (0, 1)]]
    mix = [[(0, 5), (1, 1), (2, 0)], [(2, 3), (0, 1)], [(1, 2), (0, 4), (2, 1)]]
    reuse = "The second sequence begins in the slot that the first one leaves."
    conv = lambda name, *args, **options: conv_case(rng, "conv_" + name, *args, **options)
    yield conv("prefill", [[(0, 9)]], [2])
    yield conv("one_token", [[(0, 1)]], [0])
    yield conv("one_by_one", [[(0, 1)]] * 6, [1], comment="Steps shorter than the window.")
    yield conv("pieces", pieces, [3, 1], silu=True)
    yield conv("ragged", mix, [2, 0, 3], size=3)
    yield conv("two_taps", mix, [2, 0, 3], size=2)
    yield conv("slot_again", [[(0, 5)], [(1, 1)], [(1, 4)]], [1, 1], comment=reuse)
    yield conv("no_tokens", [[(0, 0)]], [1])
    for dtype in ("bf16", "f16"):
        yield conv(dtype, pieces, [0, 2], dtype=dtype, silu=True)
    yield conv("narrow_weight", [[(0, 4)]], [0], dtype="bf16", weight_type="bf16")

    delta = lambda name, *args, **options: delta_case(rng, "delta_" + name, *args, **options)
    yield delta("prefill", [[(0, 9)]], [2])
    yield delta("one_token", [[(0, 1)]], [0])
    yield delta("pieces", pieces, [3, 1])
    yield delta("ragged", mix, [2, 0, 3])
    yield delta("decay_per_head", mix, [2, 0, 3], per_channel=False)
    yield delta("groups_of_heads", pieces, [0, 1], key_heads=2, heads=6, per_channel=False)
    yield delta("plain_keys", [[(0, 4)], [(0, 2)]], [0], epsilon=None)
    yield delta("slot_again", [[(0, 5)], [(1, 1)], [(1, 4)]], [1, 1], comment=reuse)
    yield delta("forgets", [[(0, 20)], [(0, 1)]], [0], decay_of=lambda rng, shape: np.full(shape, -5.0))
    yield delta("keeps", [[(0, 20)], [(0, 1)]], [0], decay_of=lambda rng, shape: np.zeros(shape))
    yield delta("no_tokens", [[(0, 0)]], [1])
    yield delta("bf16", pieces, [0, 1], dtype="bf16", result_type="bf16")
    yield delta("wide_result", pieces, [0, 1], dtype="f16")

    gate = lambda name, **options: gate_case(rng, "gate_" + name, **options)
    yield gate("per_channel", channels=5, comment="-exp(a_log) * softplus(x + bias).")
    yield gate("per_head")
    yield gate("bounded", channels=5, lower_bound=-5.0)
    yield gate("bounded_is_no_clamp", channels=7, lower_bound=-5.0, x=np.tile(np.linspace(-3, 3, 7), (1, 3, 1)))
    yield gate("padded", channels=4, padding=5, lower_bound=-5.0, comment="More numbers in a_log than heads; as many as channels come last.")
    yield gate("padded_per_head", padding=2)
    yield gate("narrow", channels=5, dtype="bf16", result_type="bf16")
    yield gate("far", channels=2, x=np.array([80.0, -80.0] * 3).reshape(1, 3, 2), comment="exp(x) is large or lost beside 1.")

    for function in ("sigmoid", "silu"):
        yield norm_case(rng, f"norm_{function}", function)
        yield norm_case(rng, f"norm_{function}_narrow", function, dtype="bf16", result_type="bf16")
    yield norm_case(rng, "norm_plain", "sigmoid", weight=False)
    yield norm_case(rng, "norm_narrows", "silu", result_type="bf16", shape=(4, 7))
