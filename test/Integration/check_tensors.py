"""check_tensors.py BUNDLE FOLDER: the program of Inputs/plain.mlir on numpy's arrays, and what it refuses."""

import os
import subprocess
import sys

import numpy as np

from common import moec

bundle, folder = sys.argv[1:]
random = np.random.default_rng(1)
x, y = random.standard_normal((2, 5, 4)).astype(np.float32)
paths = {}
for name, value in {"x": x, "y": y, "short": y[:3], "double": y.astype(np.float64)}.items():
    paths[name] = os.path.join(folder, name + ".npy")
    np.save(paths[name], value)

outputs = os.path.join(folder, "out")
report = moec("run", bundle, "--input", f"x={paths['x']}", "--input", f"y={paths['y']}", "--outputs", outputs)
assert sorted(each["name"] for each in report["outputs"]) == ["half/product", "sum"]
np.testing.assert_array_equal(np.load(os.path.join(outputs, "sum.npy")), x + y)
half = np.load(os.path.join(outputs, "half_product.npy"))  # as ml_dtypes stores bfloat16
assert half.dtype == np.dtype("V2") and half.shape == (5, 4)
bits = (x * y).view(np.uint32)
rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
np.testing.assert_array_equal(half.view(np.uint16), rounded)


def refused(text, *inputs):
    arguments = ["moec", "run", bundle, "--outputs", outputs]
    for each in inputs:
        arguments += ["--input", each]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and text in result.stderr, result


refused("has no such input; it has: 'x', 'y'", f"z={paths['x']}")
refused("y", f"x={paths['x']}")
refused("n", f"x={paths['x']}", f"y={paths['short']}")
refused("f8", f"x={paths['x']}", f"y={paths['double']}")
print("exact")
