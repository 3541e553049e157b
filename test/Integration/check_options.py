"""check_options.py MODEL FOLDER: results stay when any optimising pass is left out; --batch-invariant gives the same bits in
chunks."""

import os
import re
import subprocess
import sys

import numpy as np

from common import expect_close, logits

model, folder = sys.argv[1:]
ids = [0, 5, 9, 31, 7, 7, 40, 2, 11, 3, 25, 17, 6, 29, 33, 1, 8, 21, 44, 14]


def compile(name, *arguments):
    bundle = os.path.join(folder, name + ".moeb")
    subprocess.run(["moec", "compile", model, "-o", bundle, "--precision=f32", *arguments], check=True)
    return bundle


expected = logits(compile("all"), ids)

# The tool itself says which passes can be left out.
refusal = subprocess.run(["moec", "compile", model, "-o", "x", "--disable-pass=none"], capture_output=True, text=True, check=False)
names = re.search(r"these can: (.*)", refusal.stderr).group(1).split(", ")
assert "moec-fuse-rotary" in names, names
for name in names:
    expect_close("without " + name, logits(compile(name, "--disable-pass=" + name), ids), expected, 1e-5)
everything = logits(compile("none", "--disable-pass=" + ",".join(names)), ids)
expect_close("without any", everything, expected, 1e-5)

invariant = compile("invariant", "--batch-invariant")
whole = logits(invariant, ids)
expect_close("batch-invariant", whole, expected, 1e-5)
for chunk in (1, 3, 7):
    np.testing.assert_array_equal(logits(invariant, ids, "--chunk", chunk), whole)
print("results stay")
