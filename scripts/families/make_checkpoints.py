#!/usr/bin/env python3
"""Writes a small checkpoint of random weights for each model family, by the family's own library, and what that library makes of
it. Needs torch and transformers (5.24):

    scripts/families/make_checkpoints.py test/models/families [NAME ...]

Weights are bf16 numbers, so that a checkpoint is small and f32 computes with exactly the same numbers on both sides. A folder has
checkpoint/ and reference.safetensors: `tokens`, `logits` in f32, and `bf16_error`, the library's own error when it computes in bf16
(root mean square, over the logits' deviation): near choices of experts then fall otherwise, here and there."""

import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import (DeepseekV3Config, DeepseekV3ForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM)

import deepseek_v4

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


# No two sizes that could be confused are equal. Positions go past YaRN's original length.
LATENT = dict(vocab_size=512, hidden_size=128, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=48, kv_lora_rank=64,
              qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=24, max_position_embeddings=1280, bos_token_id=1, eos_token_id=2,
              intermediate_size=96, moe_intermediate_size=64, num_hidden_layers=3, first_k_dense_replace=1, n_routed_experts=12,
              num_experts_per_tok=4, n_shared_experts=1, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5,
              rms_norm_eps=1e-6,
              rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=40.0, original_max_position_embeddings=32, beta_fast=32.0,
                                   beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0))


def deepseek_v3(**changes):
    return DeepseekV3ForCausalLM(DeepseekV3Config(**LATENT | changes))


FAMILIES = {
    "qwen3-moe": lambda: qwen3_moe(True, 4),
    "qwen3-moe-not-renormalised": lambda: qwen3_moe(False, 1),
    "mixtral": mixtral,
    "qwen3-moe-dense-layers": lambda: qwen3_moe(True, 2, dense=[0]),
    "deepseek-v3": deepseek_v3,
    # Groups that are left out must not be chosen: with negative scores that differs from a score of zero.
    "deepseek-v3-negative-biases": lambda: deepseek_v3(num_hidden_layers=2, first_k_dense_replace=0, moe_intermediate_size=32),
    "deepseek-v3-plain-queries": lambda: deepseek_v3(num_hidden_layers=2, moe_intermediate_size=32, q_lora_rank=None, n_shared_experts=2,
                                                     n_group=1, topk_group=1, norm_topk_prob=False, rope_interleave=False),
} | deepseek_v4.FAMILIES


def randomize(model, seed, negative_biases):
    """Every tensor matters: norms are not one, routers tell experts apart, biases change which experts are chosen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            x = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.bias"):
                x = 0.3 * x
            elif "norm" in name:
                x = 1 + 0.1 * x
            elif name.endswith("gate.weight"):
                x = 0.15 * x
            elif name.endswith(("q_b_proj.weight", "kv_a_proj_with_mqa.weight", "kv_b_proj.weight")):
                x = 0.15 * x  # scores that tell positions apart
            else:
                x = 0.05 * x
            parameter.copy_(x.bfloat16().float())
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                x = 0.5 * torch.randn(buffer.shape, generator=generator)
                buffer.copy_(-1.5 - x.abs() if negative_biases else x)
        if isinstance(model, deepseek_v4.DeepseekV4ForCausalLM):
            deepseek_v4.randomize(model, generator)


def save(model, place):
    """The model's parameters as bf16; biases of routers stay f32, as publishers have them."""
    biases = {name: buffer.clone() for name, buffer in model.named_buffers() if name.endswith("e_score_correction_bias")}
    model.bfloat16()
    for name, bias in biases.items():
        module, _, last = name.rpartition(".")
        setattr(model.get_submodule(module), last, torch.nn.Buffer(bias))
    model.save_pretrained(f"{place}/checkpoint", max_shard_size="1500KB")


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(FAMILIES)
    for seed, (name, make) in enumerate(FAMILIES.items()):
        if name not in names:
            continue
        layers, _, length, is_published = deepseek_v4.CHECKPOINTS.get(name, ("", 0, 96, False))
        while True:
            model = make().float().eval()
            randomize(model, seed, "negative-biases" in name)
            tokens = torch.randint(0, 512, (length,), generator=torch.Generator().manual_seed(seed))
            margins = deepseek_v4.Margins(model)
            with torch.no_grad():
                logits = model(tokens[None]).logits[0]
            if margins.smallest > 1e-5:
                break
            seed += 100
        place = f"{folder}/{name}"
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        save(model, place)
        if is_published:
            deepseek_v4.publish(f"{place}/checkpoint", layers)
        with torch.no_grad():
            error = (model(tokens[None]).logits[0].float() - logits).square().mean().sqrt() / logits.std()
        save_file({"tokens": tokens.int(), "logits": logits.contiguous(), "bf16_error": error.reshape(1)}, f"{place}/reference.safetensors")
        print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits {logits.std():.3f}")


main()
