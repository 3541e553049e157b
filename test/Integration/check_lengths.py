"""check_lengths.py BUNDLE REFERENCE LENGTH...: prompts of every length have the logits of a library's longest one, whole and token by
token."""

import sys

import numpy as np
from common import logits, safetensors

bundle, reference = sys.argv[1], safetensors(sys.argv[2])
for length in map(int, sys.argv[3:]):
    tokens, expected = reference["tokens"][:length], reference["logits"][:length]
    whole, steps = logits(bundle, tokens), logits(bundle, tokens, "--chunk", 1)
    errors = np.abs(whole - expected).max(), np.abs(steps - whole).max()
    print(f"{length} tokens: {errors[0]:.2g} to the library, {errors[1]:.2g} token by token")
    if not (errors[0] <= 1e-4 and errors[1] <= 1e-5):
        sys.exit(f"{length} tokens differ")
print("lengths agree")
