"""The programs that prepare_ops.py made, on a device, against the interpreter's results.

    check_ops.py DEVICE TOKENS...    those cases and the blocks alone, as one line of JSON: what runs under compute-sanitizer"""

import json
import os
import sys

import numpy as np

import check_blocks
import moert
from compare import compare, widen


def check(library, folder, device, sizes=None):
    failures, passed, models = [], 0, {}
    for case in json.load(open(f"{folder}/cases.json")):
        if sizes and case.get("tokens") not in sizes:
            continue
        name = f"{case['program']}, {case.get('tokens')} tokens"
        try:
            if "error" in case:
                raise moert.Error(f"not compiled: {case['error']}")
            if case["program"] not in models:
                models[case["program"]] = library.load(f"{folder}/{case['program']}.moeb", device)
            data = np.load(f"{folder}/{case['data']}.npz")
            inputs = {each: (kind, data[f"in.{each}"]) for each, kind in case["inputs"].items()}
            outputs = models[case["program"]].run(inputs)
            problems = [compare(widen(outputs[f"out{i}"], kind), data[f"out.out{i}"], kind, case["roundings"])
                        for i, kind in enumerate(case["results"])]
        except moert.Error as error:
            problems = [str(error)]
        problems = [problem for problem in problems if problem]
        failures += [f"{name}: {problem}" for problem in problems]
        passed += not problems
    for model in models.values():
        model.close()
    return {"passed": passed, "failed": len(failures), "failures": failures}


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    library = moert.Library(f"{here}/libmoert.so")
    ops = check(library, f"{here}/ops", sys.argv[1], [int(size) for size in sys.argv[2:]])
    blocks = check_blocks.check(library, f"{here}/blocks", sys.argv[1])
    print(json.dumps({key: ops[key] + blocks[key] for key in ops}))
