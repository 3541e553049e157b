"""check_same_logits.py BUNDLE OTHER REFERENCE: two bundles agree on the reference's tokens, and are far from a constant."""

import sys

from common import expect_close, logits, safetensors

first, second, reference = sys.argv[1:]
tokens = safetensors(reference)["tokens"]
expected = logits(first, tokens)
assert expected.std() > 0.1
expect_close("logits", logits(second, tokens), expected, 1e-5)
