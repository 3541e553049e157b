#!/usr/bin/env python3
"""Writes test/Dialect/MoE/Reference/*.mlir. Needs numpy. Run it after changing a formula or a case:

    scripts/reference/make_tests.py test/Dialect/MoE/Reference"""

import pathlib
import sys

import numpy as np

import cases_attention
import cases_compression
import cases_dense
import cases_hyper
import cases_recurrent
import cases_routing
import cases_sampling
import cases_sparse
from mlir_text import write

# Numbers of 16 bits are rounded once on both sides and must be equal; for f32 the mathematical functions of two libraries may
# differ in the last bit before that one rounding.
TOLERANCE = "--relative-tolerance=1e-6 --absolute-tolerance=1e-7"


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for module in (cases_dense, cases_routing, cases_attention, cases_sampling, cases_recurrent, cases_sparse, cases_hyper, cases_compression):
        for name, (generate, aliases) in families(module).items():
            # Each family has a generator of its own, so that a new case does not change the other files.
            cases = list(generate(np.random.default_rng(sum(map(ord, name)))))
            blocks = " --cache-blocks=24" if name in ("attention", "select_keys", "latent_attention", "entries") else ""
            exact = [case for case in cases if all(dtype != "f32" for dtype, _ in case.results)]
            close = [case for case in cases if case not in exact]
            if close:
                write(folder / f"{name}.mlir", close, TOLERANCE + blocks, aliases)
            if exact:
                write(folder / f"{name}_exact.mlir", exact, blocks.strip(), aliases)


def families(module):
    if module is cases_dense:
        return {"norms": (module.norms, ""), "linear": (module.linears, ""), "blocks": (module.blocks, ""),
                "dequantize_codes": (module.dequantized_codes, ""), "rope": (module.rotaries, ""), "gate": (module.gates, ""),
                "mix_residuals": (module.mixes, ""), "vision": (module.vision, "")}
    if module is cases_routing:
        return {"route": (module.routes, ""), "hash_route": (module.hashes, ""), "group_tokens": (module.groups, ""), "experts": (module.experts, ""),
                "grouped_linear": (module.grouped, "")}
    if module is cases_sampling:
        return {"sample": (module.samples, "")}
    if module is cases_recurrent:
        return {"recurrent": (module.recurrences, "")}
    if module is cases_sparse:
        return {"select_keys": (module.selections, ""), "latent_attention": (module.latents, ""), "head_linear": (module.head_products, "")}
    if module is cases_hyper:
        return {"hyper_connections": (module.hyper, "")}
    if module is cases_compression:
        return {"compress": (module.compressions, ""), "entries": (module.entries, "")}
    return {"attention": (module.attentions, "")}


if __name__ == "__main__":
    main()
