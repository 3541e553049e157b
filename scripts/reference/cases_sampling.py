"""Choosing tokens."""

import math

import numpy as np

import formulas as f
from mlir_text import Case, Tensor


def case(name, logits, choices, comment=""):
    """choices: (row, temperature, top_k, top_p, random)."""
    row, temperature, top_k, top_p, random = zip(*choices)
    inputs = dict(l=Tensor("f32", logits), rows=Tensor("i32", row), t=Tensor("f32", temperature), k=Tensor("i32", top_k),
                  p=Tensor("f64", top_p), u=Tensor("f64", random))
    tokens = [f.sample(inputs["l"].x[r], t, k, p, u) for r, t, k, p, u in
              zip(row, inputs["t"].x, top_k, top_p, random)]
    text = ("%r0 = moe.sample %l rows(%rows) temperature(%t) top_k(%k) top_p(%p) random(%u) : "
            "{l}, {rows}, {t}, {k}, {p}, {u} -> {result0}")
    return Case(name, inputs, text, [("i32", np.array(tokens))], comment=comment)


def samples(rng):
    logits = rng.normal(size=(3, 50)) * 3
    several = [(r, t, k, p, u) for r in range(3) for t, k, p in ((1.0, 0, 1.0), (0.7, 10, 1.0), (1.3, 0, 0.9), (1.0, 20, 0.5))
               for u in rng.random(4)]
    yield case("everything", logits, several)
    yield case("greedy", logits, [(2, 0.0, 0, 1.0, 0.9), (0, 1.0, 1, 1.0, 0.9), (1, 1e-40, 0, 1.0, 0.9), (1, math.nan, 0, 1.0, 0.9)],
               comment="No temperature, one candidate, or next to no temperature.")
    yield case("ties", np.array([[1.0, 3.0, 3.0, 1.0, 3.0], [0.0, -0.0, 0.0, -0.0, 0.0]]),
               [(0, 0.0, 0, 1.0, 0.0), (1, 0.0, 0, 1.0, 0.0)] + [(1, 1.0, 3, 1.0, u) for u in (0.0, 0.34, 0.67, 0.99)]
               + [(1, 1.0, 0, 0.4, u) for u in (0.0, 0.49, 0.51, 0.99)], comment="Of equal columns the lower ones stay.")
    nan, inf = math.nan, math.inf
    odd = np.array([[nan, inf, -inf, 1.0, inf], [-inf, -inf, nan, -inf, nan], [nan, -inf, 1.0, 1.0, nan], [-3e38, 3e38, 0, -3e38, 3e38]])
    yield case("odd_logits", odd, [(r, t, k, 1.0, u) for r in range(4) for t in (0.0, 1.0, 3e38) for k in (0, 4) for u in (0.0, 0.6, 0.999)],
               comment="NaN counts as -inf, which is never drawn; an infinite logit takes all.")
    last = 1 - 2.0**-53
    yield case("edges", logits, [(0, 1.0, k, p, u) for k in (-1, 49, 50, 51, 2**31 - 1) for p in (-1.0, 0.0, 1e-9, 1.0, 2.0, nan)
                                 for u in (0.0, last)])
    yield case("probabilities", np.log(np.array([[0.1, 0.2, 0.3, 0.4]])), [(0, 1.0, 0, p, u) for p in (0.3, 0.5, 0.75, 1.0)
                                                                           for u in (0.05, 0.25, 0.45, 0.65, 0.85)],
               comment="0.4 reaches 0.3; 0.4 + 0.3 reaches 0.5.")
    yield case("one_column", np.array([[5.0]]), [(0, 1.0, 0, 0.5, 0.5)])
    yield case("underflow", np.array([[0.0, -1000.0, -20.0]]), [(0, 1.0, 0, 1.0, 0.0), (0, 1.0, 0, 1.0, last)])
