#!/usr/bin/env python3
"""Writes a small checkpoint of random weights for each model family, by the family's own library, and what that library makes of
it. Needs torch and transformers (5.24):

    scripts/families/make_checkpoints.py test/models/families [NAME ...]

Weights are bf16 numbers, so that a checkpoint is small and f32 computes with exactly the same numbers on both sides. A folder has
checkpoint/ and reference.safetensors: `tokens`, and `logits` in f32."""

import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

COMMON = dict(vocab_size=512, hidden_size=128, num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
              bos_token_id=1, eos_token_id=2)


def qwen3_moe(renormalise, layers, dense=()):
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**COMMON | dict(
        num_hidden_layers=layers, moe_intermediate_size=64, intermediate_size=96, num_experts=16, num_experts_per_tok=4,
        norm_topk_prob=renormalise, mlp_only_layers=list(dense), rope_parameters={"rope_type": "default", "rope_theta": 1e6})))


def mixtral():
    return MixtralForCausalLM(MixtralConfig(**COMMON | dict(
        num_hidden_layers=3, intermediate_size=96, num_local_experts=6, num_experts_per_tok=2, sliding_window=None,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6})))


FAMILIES = {
    "qwen3-moe": lambda: qwen3_moe(True, 4),
    "qwen3-moe-not-renormalised": lambda: qwen3_moe(False, 1),
    "mixtral": mixtral,
    "qwen3-moe-dense-layers": lambda: qwen3_moe(True, 2, dense=[0]),
}


def randomize(model, seed):
    """Every tensor matters: norms are not one, routers tell experts apart."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            x = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                x = 1 + 0.1 * x
            elif name.endswith("gate.weight"):
                x = 0.15 * x
            else:
                x = 0.05 * x
            parameter.copy_(x.bfloat16().float())


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(FAMILIES)
    for seed, (name, make) in enumerate(FAMILIES.items()):
        if name not in names:
            continue
        model = make().float().eval()
        randomize(model, seed)
        tokens = torch.randint(0, 512, (96,), generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            logits = model(tokens[None]).logits[0]
        place = f"{folder}/{name}"
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        model.bfloat16().save_pretrained(f"{place}/checkpoint", max_shard_size="1500KB")
        save_file({"tokens": tokens.int(), "logits": logits.contiguous()}, f"{place}/reference.safetensors")
        print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits {logits.std():.3f}")


main()
