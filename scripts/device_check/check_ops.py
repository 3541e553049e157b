"""The programs that prepare_ops.py made, on a device, against the interpreter's results."""

import json

import numpy as np

import moert


def widen(array, kind):
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else array


def compare(got, expected, kind, roundings):
    """What is wrong, or None."""
    got = widen(got, kind)
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    if kind == "i32":
        different = int((got != expected).sum())
        return f"{different} of {got.size} integers differ" if different else None
    a, b = got.astype(np.float64), expected.astype(np.float64)
    distance = float(np.sqrt(((a - b) ** 2).sum() / max((b**2).sum(), 1e-30)))
    return None if distance <= (1e-5 if kind == "f32" else 2.5e-3 * roundings**0.5) else f"relative RMS {distance:.3g}"


def check(library, folder, device):
    failures, passed, models = [], 0, {}
    for case in json.load(open(f"{folder}/cases.json")):
        name = f"{case['program']}, {case.get('tokens')} tokens"
        try:
            if "error" in case:
                raise moert.Error(f"not compiled: {case['error']}")
            if case["program"] not in models:
                models[case["program"]] = library.load(f"{folder}/{case['program']}.moeb", device)
            data = np.load(f"{folder}/{case['data']}.npz")
            inputs = {each: (kind, data[f"in.{each}"]) for each, kind in case["inputs"].items()}
            outputs = models[case["program"]].run(inputs)
            problems = [compare(outputs[f"out{i}"], data[f"out.out{i}"], kind, case["roundings"])
                        for i, kind in enumerate(case["results"])]
        except moert.Error as error:
            problems = [str(error)]
        problems = [problem for problem in problems if problem]
        failures += [f"{name}: {problem}" for problem in problems]
        passed += not problems
    for model in models.values():
        model.close()
    return {"passed": passed, "failed": len(failures), "failures": failures}
