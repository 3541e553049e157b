#!/usr/bin/env python3
"""write_reference.py CHECKPOINT OUT.safetensors [--tokens N] [--text TEXT]: what transformers computes, for `moec verify --against`.

Writes `tokens` i32 [T], `logits` f32 [T, V] and `hidden.N` f32 [T, hidden] (N = 0: the embedding, else what layer N - 1 gives; the
last one, behind the final norm, is left out), of float32 and eager attention. The tokens are random, or those of the text. Needs
torch, transformers and safetensors."""

import argparse

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("checkpoint")
parser.add_argument("out")
parser.add_argument("--tokens", type=int, default=64, metavar="N", help="how many random tokens (default: 64)")
parser.add_argument("--text", help="take the tokens of this text instead")
arguments = parser.parse_args()

model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=torch.float32, attn_implementation="eager").eval()
if arguments.text is None:
    tokens = torch.randint(0, model.config.vocab_size, (arguments.tokens,), generator=torch.Generator().manual_seed(7))
else:
    tokens = AutoTokenizer.from_pretrained(arguments.checkpoint)(arguments.text, return_tensors="pt").input_ids[0]
with torch.no_grad():
    result = model(tokens[None], output_hidden_states=True, use_cache=False)
tensors = {f"hidden.{n}": state[0].float().contiguous() for n, state in enumerate(result.hidden_states[:-1])}
save_file({"tokens": tokens.int(), "logits": result.logits[0].float().contiguous(), **tensors}, arguments.out)
print(f"{arguments.out}: {len(tokens)} tokens, {len(tensors)} residual streams, logits {result.logits.std():.3f}")
