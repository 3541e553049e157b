"""check_reference.py BUNDLE: compiled code and interpreter agree on tokens and logits."""

import sys

from common import expect_close, logits, moec

bundle = sys.argv[1]
ids = [0, 5, 9, 31, 7, 7, 40, 2, 11, 3, 25, 17]
expect_close("logits", logits(bundle, ids), logits(bundle, ids, "--reference"), 1e-4)
expect_close("interpreter in chunks", logits(bundle, ids, "--reference", "--chunk", 5), logits(bundle, ids, "--reference"), 1e-5)
arguments = ["run", bundle, "--ids", ",".join(map(str, ids)), "--max-tokens", 6, "--ignore-eos"]
compiled, interpreted = moec(*arguments), moec(*arguments, "--reference")
assert compiled["generated_ids"] == interpreted["generated_ids"], (compiled, interpreted)
print("agree")
