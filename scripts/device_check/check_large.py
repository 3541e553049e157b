"""Ops whose tensors have more than 2^31 elements. Their inputs repeat after a period of tokens: so must the results, and the first period's
are those of a run of its own, whose size other checks compare with the interpreter. Every row is compared.

    check_large.py FOLDER [DEVICE]"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import moert
from compare import TOLERANCES, widen

pool = ThreadPoolExecutor(os.cpu_count())


class Inputs:
    def __init__(self, shape, rng):
        self.sequences, self.length, self.blocks, self.rng = shape["sequences"], shape["length"], shape["blocks"], rng
        self.period = self.sequences * self.length

    def rows(self, kind, dtype, shape):
        """One period of rows. bf16 as its bits."""
        size, rng = (self.period, *shape), self.rng
        if kind == "choices":
            return rng.permuted(np.tile(np.arange(2, dtype=np.int32), (self.period, 1)), axis=1)
        if kind == "ids":
            return rng.integers(0, 16, self.period, dtype=np.int32)
        if kind == "positions":
            return np.tile(np.arange(self.length, dtype=np.int32), self.sequences)
        x = {"normal": rng.standard_normal, "decay": lambda size, dtype: -5 * rng.random(size, dtype), "share": rng.random}[kind](size, dtype=np.float32)
        return x if dtype == "f32" else (x.view(np.uint32) >> 16).astype(np.uint16)

    def repeat(self, rows, periods):
        result = np.empty((periods, *rows.shape), rows.dtype)
        list(pool.map(lambda part: np.copyto(part, rows), result))
        return result.reshape(-1, *rows.shape[1:])

    def make(self, base, kind, periods):
        """`base`: one period of rows, where the input has a row a token."""
        count = periods * self.sequences
        if kind == "sequences":
            return np.repeat(np.arange(count, dtype=np.int32), self.length)
        if kind == "offsets":
            return np.arange(count + 1, dtype=np.int32) * self.length
        if kind == "slots":
            return self.rng.permutation(count).astype(np.int32)
        if kind == "table":
            return self.rng.permutation(count * self.blocks).astype(np.int32).reshape(count, self.blocks)
        if kind == "blocks":
            return np.zeros(count * self.blocks, np.int32)
        return self.repeat(base, periods)


def count_wrong(got, expected, kind):
    """Rows that are further apart than orders of sums may bring them."""
    if np.array_equal(got, expected):
        return 0
    if kind == "i32":
        return int((got != expected).reshape(len(got), -1).any(1).sum())
    a, b = (widen(x, kind).reshape(len(got), -1).astype(np.float64) for x in (got, expected))
    with np.errstate(invalid="ignore", over="ignore"):
        return int((~(np.sqrt(((a - b)**2).mean(1)) <= 4 * TOLERANCES[kind] * np.sqrt((b**2).mean(1)) + 1e-30)).sum())


def check_case(library, folder, device, shape, case, rng):
    made = Inputs(shape, rng)
    per_token = {name: made.rows(each["kind"], each["type"], each["shape"]) for name, each in case["inputs"].items()
                 if each["kind"] not in ("sequences", "offsets", "slots", "table", "blocks")}
    model = library.load(f"{folder}/{case['name']}.moeb", device)

    def run(periods):
        return model.run({name: (each["type"], made.make(per_token.get(name), each["kind"], periods)) for name, each in case["inputs"].items()})

    base, large = run(1), run(case["periods"])
    model.close()
    wrong = 0
    for i, kind in enumerate(case["results"]):
        name = f"out{i}"
        if base[name].min() == base[name].max():
            raise moert.Error(f"result {i} of the first period is the same number everywhere")
        wrong += sum(pool.map(lambda part, name=name, kind=kind: count_wrong(part, base[name], kind), large[name].reshape(case["periods"], *base[name].shape)))
    tokens = made.period * case["periods"]
    return {"tokens": tokens, "elements": tokens * case["width"], "wrong_rows": wrong}


def check(library, folder, device):
    shape, rng, records = json.load(open(f"{folder}/cases.json", encoding="utf-8")), np.random.default_rng(), {}
    for case in shape["cases"]:
        begin = time.monotonic()
        try:
            record = check_case(library, folder, device, shape, case, rng)
            text = f"{record['elements'] / 2**31:.2f} x 2^31 elements, {record['wrong_rows']} of {record['tokens']} rows wrong"
        except moert.Error as error:
            record = {"error": str(error), "wrong_rows": -1}
            text = str(error)
        records[case["name"]] = record
        print(f"{case['name']:18} {text} ({time.monotonic() - begin:.0f} s)", flush=True)
    return records


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    results = check(moert.Library(f"{here}/libmoert.so"), sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cuda")
    sys.exit(any(record["wrong_rows"] for record in results.values()))
