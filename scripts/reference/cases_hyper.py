"""Hyper-connections."""

import numpy as np

import formulas as f
from mlir_text import Case, Tensor


def weights_case(rng, name, streams=4, features=6, iterations=20, head=False, dtype="f32", tokens=3, epsilon=1e-6, norm_epsilon=1e-6, size=1.0,
                 comment=""):
    columns = streams if head else streams * (streams + 2)
    p, x = Tensor("f32", rng.normal(size=(tokens, columns)) * 2 * size), Tensor(dtype, rng.normal(size=(tokens, streams, features)) * size)
    s, b = Tensor("f32", 1 + 0.3 * rng.normal(size=1 if head else 3)), Tensor("f32", rng.normal(size=columns))
    attributes = f"{{iterations = {iterations}, epsilon = {epsilon:.1e}, norm_epsilon = {norm_epsilon:.1e}}}"
    return Case(name, dict(p=p, x=x, s=s, b=b),
                f"%r0 = moe.hyper_weights %p of %x scale(%s : {{s}}) base(%b : {{b}}) {attributes} : {{p}}, {{x}} -> {{result0}}",
                [("f32", f.hyper_weights(p.x, x.x, s.x, b.x, iterations, epsilon, norm_epsilon))], comment=comment)


def hyper(rng):
    weights = lambda name, **options: weights_case(rng, "weights_" + name, **options)
    yield weights("of_four")
    yield weights("of_three", streams=3)
    yield weights("of_one_stream", streams=1)
    yield weights("one_iteration", iterations=1, comment="Columns only.")
    yield weights("two_iterations", iterations=2, comment="Rows come before columns from the second on.")
    yield weights("large_epsilon", iterations=3, epsilon=1e-1, comment="Where epsilon is added tells.")
    yield weights("head", head=True)
    yield weights("small", size=1e-3, comment="Epsilon as large as the mean square.")
    yield weights("bf16", dtype="bf16", features=16)
    yield weights("no_tokens", tokens=0)
    for dtype, result in (("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32")):
        x, w, y = Tensor(dtype, rng.normal(size=(3, 4, 5))), Tensor("f32", rng.normal(size=(3, 24))), Tensor("f32", rng.normal(size=(3, 5)))
        yield Case(f"collapse_{dtype}_{result}", dict(x=x, w=w), "%r0 = moe.hyper_collapse %x by %w : {x}, {w} -> {result0}",
                   [(result, f.hyper_collapse(x.x, w.x))])
        yield Case(f"expand_{dtype}_{result}", dict(x=x, w=w, y=y), "%r0 = moe.hyper_expand %y into %x by %w : {y}, {x}, {w}",
                   [(dtype, f.hyper_expand(y.x, x.x, w.x))], comment="Rows of the mix are of the streams that were.")
    x, w = Tensor("f32", rng.normal(size=(2, 3, 5))), Tensor("f32", rng.normal(size=(2, 3)))
    yield Case("collapse_of_head", dict(x=x, w=w), "%r0 = moe.hyper_collapse %x by %w : {x}, {w} -> {result0}", [("f32", f.hyper_collapse(x.x, w.x))])
