"""check_same_logits.py BUNDLE OTHER REFERENCE [TOLERANCE]: two bundles agree on the reference's tokens, and are far from a constant."""

import sys

from common import expect_close, logits, safetensors

first, second, reference = sys.argv[1:4]
tolerance = float(sys.argv[4]) if len(sys.argv) > 4 else 1e-5
tokens = safetensors(reference)["tokens"]
expected = logits(first, tokens)
assert expected.std() > 0.1
expect_close("logits", logits(second, tokens), expected, tolerance)
