#!/usr/bin/env python3
"""write_reference.py CHECKPOINT OUT.safetensors [--tokens N] [--text TEXT]: what transformers computes, for `moec verify --against`.

Writes `tokens` i32 [T], `logits` f32 [T, V], `embedding` and `layers.N`, the residual stream before the first layer and after layer N,
all in float32 with eager attention; of layers that share what an indexer chose also `layers.N.1`, the positions of each token. The
tokens are random, or those of the text. Needs torch, transformers and safetensors."""

import argparse

import torch
import transformers
from safetensors.torch import save_file

METADATA = {"reference": f"transformers {transformers.__version__}, float32, eager attention"}


def find_layers(model):
    return [module for module in model.modules() if type(module).__name__.endswith("DecoderLayer")]


def run_layers(model, tokens):
    """The logits and the residual stream around each layer, f32 [T, ...]. `calls` are the layers' arguments and results."""
    calls, layers = [], find_layers(model)

    def keep(_module, arguments, named, result):
        calls.append((arguments, named, result))

    handles = [layer.register_forward_hook(keep, with_kwargs=True) for layer in layers]
    with torch.no_grad():
        logits = model(tokens[None], use_cache=False).logits[0]
    for handle in handles:
        handle.remove()
    assert len(calls) == len(layers), "layers that run more than once, or not at all"
    arguments, named, _ = calls[0]
    streams = {"embedding": arguments[0] if arguments else named["hidden_states"]}
    for n, (_, _, result) in enumerate(calls):
        streams[f"layers.{n}"] = result[0] if isinstance(result, tuple) else result
    # Layers that have no indexer of their own use the choice of the one before.
    kinds = getattr(model.config, "indexer_types", None) or []
    for n, pair in enumerate(zip(kinds, kinds[1:])):
        if pair == ("full", "shared"):
            streams[f"layers.{n}.1"] = sort_choice(calls[n][2][1])
    return logits, {name: (x[0] if x.is_floating_point() else x[0].int()).contiguous() for name, x in streams.items()}, calls


def sort_choice(chosen):
    """Ascending, -1 behind: of a token with too few keys the library adds some that it does not see."""
    rows = torch.full_like(chosen, -1)
    for t, row in enumerate(chosen[0]):
        seen = row[(row <= t) & (row >= 0)].sort().values
        rows[0, t, :len(seen)] = seen
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("out")
    parser.add_argument("--tokens", type=int, default=64, metavar="N", help="how many random tokens (default: 64)")
    parser.add_argument("--text", help="take the tokens of this text instead")
    arguments = parser.parse_args()
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=torch.float32, attn_implementation="eager").eval()
    if arguments.text is None:
        tokens = torch.randint(0, model.config.vocab_size, (arguments.tokens,), generator=torch.Generator().manual_seed(7))
    else:
        tokens = transformers.AutoTokenizer.from_pretrained(arguments.checkpoint)(arguments.text, return_tensors="pt").input_ids[0]
    logits, streams, _ = run_layers(model, tokens)
    save_file({"tokens": tokens.int(), "logits": logits.contiguous(), **streams}, arguments.out, metadata=METADATA)
    print(f"{arguments.out}: {len(tokens)} tokens, {len(streams) - 1} layers, logits {logits.std():.3f}")


if __name__ == "__main__":
    main()
