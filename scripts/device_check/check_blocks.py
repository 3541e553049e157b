"""The building blocks of Hopper kernels, one by one, on small whole numbers: results are exact."""

import glob
import os

import numpy as np

import moert


def encode(x, kind):
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if kind == "bf16" else x.astype(np.float16)


def make_case(name, rng):
    """Inputs, name -> (type, numbers), and what is expected. The programs are those of test/Unit/Kernels/HopperKernels.cpp."""
    def numbers(*shape):
        return rng.integers(-4, 5, size=shape)

    if name == "box":
        x = numbers(96, 128)
        return {"x": ("bf16", x)}, np.pad(x, ((0, 16), (0, 16)))[48:, 80:]
    if name == "ring":
        x = numbers(704, 64)
        return {"x": ("bf16", x)}, x.reshape(11, 64, 64).sum(0)
    _, kind, columns = name.split("_")
    x, w = numbers(64, 128), numbers(int(columns), 128)
    return {"x": (kind, x), "w": (kind, w)}, x @ w.T


def check(library, folder, device):
    """Each program several times: what is left of a run must not matter to the next."""
    failures, passed = [], 0
    for bundle in sorted(glob.glob(f"{folder}/*.moeb")):
        name, rng = os.path.basename(bundle).removesuffix(".moeb"), np.random.default_rng(1)
        try:
            model = library.load(bundle, device)
            wrong = 0
            for _ in range(5):
                inputs, expected = make_case(name, rng)
                result = model.run({key: (kind, encode(x, kind)) for key, (kind, x) in inputs.items()})["y"]
                wrong += int((result != expected).sum())
            model.close()
            problem = f"{wrong} numbers differ" if wrong else None
        except moert.Error as error:
            problem = str(error)
        failures += [f"{name}: {problem}"] * bool(problem)
        passed += not problem
    return {"passed": passed, "failed": len(failures), "failures": failures}
