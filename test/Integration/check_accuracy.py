"""check_accuracy.py BUNDLE MODEL PRECISION: the demo model against its reference, and against itself in chunks."""

import json
import sys

from common import expect_close, logits, moec, safetensors

bundle, model, precision = sys.argv[1:]
reference = safetensors(model + "/reference.safetensors")
with open(model + "/reference.json", encoding="utf-8") as file:
    recorded = json.load(file)

value = moec("eval", bundle, "--ids", f"@{model}/eval_tokens.npy", "--window", 512)
print(f"perplexity {value['perplexity']}, recorded {recorded['perplexity']}")
assert value["windows"] == 40 and value["tokens"] == 40 * 511
allowed = {"f32": 0.001, "bf16": 0.005}[precision]
assert abs(value["perplexity"] / recorded["perplexity"] - 1) <= allowed

if precision == "f32":
    short = logits(bundle, reference["short.tokens"])
    expect_close("short", short, reference["short.logits"], 1e-4)
    long = logits(bundle, reference["long.tokens"])
    expect_close("long", long[-64:], reference["long.logits_last64"], 1e-4)
    for chunk in (1, 7, 16, 64):
        expect_close(f"chunks of {chunk}", logits(bundle, reference["long.tokens"], "--chunk", chunk), long, 1e-4)
    for greedy in recorded["greedy"]:
        result = moec("run", bundle, "--prompt", greedy["prompt"], "--max-tokens", 200, "--ignore-eos", "--special")
        assert result["prompt_ids"] == greedy["prompt_ids"], greedy["prompt"]
        assert result["generated_ids"] == greedy["generated_ids"], greedy["prompt"]
        assert result["text"] == greedy["text"], greedy["prompt"]
print("accurate")
