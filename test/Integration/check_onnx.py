"""check_onnx.py ONNX.moeb CHECKPOINT.moeb REFERENCE: both doors give the logits that transformers computed, at once and in chunks."""

import sys

from common import expect_close, logits, safetensors

exported, checkpoint, path = sys.argv[1:]
reference = safetensors(path)
ids = reference["tokens"]
expect_close("checkpoint", logits(checkpoint, ids), reference["logits"], 1e-4)
expect_close("ONNX", logits(exported, ids), reference["logits"], 1e-4)
for chunk in (1, 7):
    expect_close(f"ONNX in chunks of {chunk}", logits(exported, ids, "--chunk", chunk), reference["logits"], 1e-4)
print("both doors agree")
