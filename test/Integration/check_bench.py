"""check_bench.py OUT.json: the figures of one `moec bench --json` fit together."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    result = json.loads(file.read().splitlines()[-1])
assert result["threads"] == 2 and result["prompt_tokens"] == 20 and result["new_tokens"] == 5
assert abs(result["prompt_tokens_per_s"] * result["time_to_first_token_s"] / 20 - 1) < 1e-6
assert abs(result["new_tokens_per_s"] * result["time_per_token_s"] - 1) < 1e-6
assert result["peak_memory_bytes"] > 1 << 20
for kind in ("prompt_ops", "decode_ops"):
    assert abs(sum(op["share"] for op in result[kind]) - 1) < 1e-6
    assert all(op["seconds_per_step"] > 0 for op in result[kind])
launches = sum(op["launches_per_step"] for op in result["decode_ops"])
assert launches == result["launches_per_step"], (launches, result["launches_per_step"])
print("sound")
