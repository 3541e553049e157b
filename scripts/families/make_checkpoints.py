#!/usr/bin/env python3
"""Writes a small checkpoint of random weights for each model family, by the family's own library, and what that library makes of
it. Needs torch and transformers (5.24):

    scripts/families/make_checkpoints.py test/models/families [--references-only] [NAME ...]

Weights are bf16 numbers, so that a checkpoint is small and f32 computes with exactly the same numbers on both sides. A folder has
checkpoint/ and reference.safetensors: `tokens`, `logits` in f32, `bf16_error`, the library's own error when it computes in bf16 (root mean
square, over the logits' deviation): near choices of experts then fall otherwise, here and there; and of a model that chooses keys what
its indexers choose, `chosen.0` and so on, and `dense_logits` when they choose all.

Beside these are two more sequences: `short.`, the first tokens, with the residual stream around each layer (see docs/how-to/verify.md),
and `long.`, 300 other tokens with the logits of the last four. With --references-only the checkpoints stay as they are, and these two
sequences alone are made anew. Metadata say what made the file, and how far it is off itself: the largest error of a layer, given its
inputs, and of the logits in float32 against float64."""

import json
import os
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (DeepseekV32Config, DeepseekV32ForCausalLM, DeepseekV3Config, DeepseekV3ForCausalLM, Glm4MoeConfig,
                          Glm4MoeForCausalLM, GlmMoeDsaConfig, GlmMoeDsaForCausalLM, KimiLinearConfig, KimiLinearForCausalLM, MixtralConfig,
                          MixtralForCausalLM, Qwen3_5MoeConfig, Qwen3_5MoeForCausalLM, Qwen3_5MoeForConditionalGeneration, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM, Qwen3NextConfig, Qwen3NextForCausalLM)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import deepseek_v4  # noqa: E402
import references  # noqa: E402
from write_reference import sort_choice  # noqa: E402

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


# Many heads: a score without any positive product is 0, and libraries choose among equal scores as they like.
INDEXER = dict(index_n_heads=10, index_head_dim=24, index_topk=8)


def deepseek_v32(**changes):
    config = {name: value for name, value in LATENT.items() if name != "rope_interleave"} | INDEXER | changes
    return DeepseekV32ForCausalLM(DeepseekV32Config(**config))


def glm(**changes):
    config = LATENT | INDEXER | dict(qk_nope_head_dim=48, v_head_dim=40, moe_intermediate_size=32, n_routed_experts=6, num_experts_per_tok=2,
                                     n_group=1, topk_group=1, rms_norm_eps=1e-5,
                                     rope_parameters=dict(rope_type="default", rope_theta=1e6)) | changes
    return GlmMoeDsaForCausalLM(GlmMoeDsaConfig(**config))


def glm4_moe():
    return Glm4MoeForCausalLM(Glm4MoeConfig(**COMMON | dict(
        num_hidden_layers=4, intermediate_size=96, moe_intermediate_size=48, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
        n_group=2, topk_group=1, routed_scaling_factor=1.5, first_k_dense_replace=1, attention_bias=True, use_qk_norm=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5})))


HYBRID = COMMON | dict(
    num_hidden_layers=4, head_dim=64, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=48,
    linear_conv_kernel_dim=4, moe_intermediate_size=32, shared_expert_intermediate_size=48, num_experts=6, num_experts_per_tok=3,
    rope_parameters={"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25})


def qwen3_next():
    return Qwen3NextForCausalLM(Qwen3NextConfig(**HYBRID))


def qwen3_5_text():
    config = Qwen3_5MoeConfig(text_config=HYBRID | dict(num_hidden_layers=2, layer_types=["full_attention", "linear_attention"])).text_config
    return Qwen3_5MoeForCausalLM(config)


def qwen3_5():
    sections = {"mrope_interleaved": True, "mrope_section": [3, 3, 2]}
    text = HYBRID | {"rope_parameters": HYBRID["rope_parameters"] | sections}
    vision = dict(depth=1, hidden_size=32, intermediate_size=48, num_heads=2, patch_size=4, out_hidden_size=128, num_position_embeddings=16,
                  deepstack_visual_indexes=[])
    return Qwen3_5MoeForConditionalGeneration(Qwen3_5MoeConfig(text_config=text, vision_config=vision))


def kimi_linear():
    types = ["linear_attention"] * 3 + ["full_attention"] * 2
    return KimiLinearForCausalLM(KimiLinearConfig(**COMMON | dict(
        num_key_value_heads=4, num_hidden_layers=5, layer_types=types, linear_num_heads=4, linear_head_dim=32, linear_conv_kernel_dim=4,
        kv_lora_rank=64, q_lora_rank=None, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, intermediate_size=96,
        moe_intermediate_size=32, num_local_experts=8, num_experts_per_tok=4, n_shared_experts=1, n_group=1, topk_group=1,
        routed_scaling_factor=2.446, pad_token_id=None)))


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
    "deepseek-v32": deepseek_v32,
    "glm-moe-dsa": lambda: glm(num_hidden_layers=6, indexer_types=["full", "full", "shared", "shared", "full", "shared"]),
    "glm-moe-dsa-offset": lambda: glm(num_hidden_layers=4, n_routed_experts=4, indexer_types=None, index_topk_freq=2, index_skip_topk_offset=2),
    "qwen3-next": qwen3_next,
    "qwen3.5-moe": qwen3_5,
    "qwen3.5-moe-text": qwen3_5_text,
    "kimi-linear": kimi_linear,
} | deepseek_v4.FAMILIES | {"glm4-moe": glm4_moe}


def randomize(model, seed, negative_biases):
    """Every tensor matters: norms are not one, routers tell experts apart, biases change which experts are chosen."""
    generator = torch.Generator().manual_seed(seed)
    zero_centred = model.config.model_type.startswith(("qwen3_next", "qwen3_5"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            x = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.bias"):
                x = 0.3 * x
            elif "norm" in name:
                x = 0.1 * x if zero_centred and not name.endswith("linear_attn.norm.weight") else 1 + 0.1 * x
            elif name.endswith(("A_log", "conv1d.weight")):
                x = 0.5 * x
            elif name.endswith("dt_bias"):
                pass
            elif name.endswith("gate.weight"):
                x = 0.15 * x
            elif "conv1d" in name or name.endswith("A_log"):
                x = 0.5 * x
            elif name.endswith("dt_bias"):
                pass
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


def save(model, place, save_original_format, shard="1500KB"):
    """The model's parameters as bf16; biases of routers stay f32, as publishers have them."""
    biases = {name: buffer.clone() for name, buffer in model.named_buffers() if name.endswith("e_score_correction_bias")}
    model.bfloat16()
    for name, bias in biases.items():
        module, _, last = name.rpartition(".")
        setattr(model.get_submodule(module), last, torch.nn.Buffer(bias))
    model.save_pretrained(f"{place}/checkpoint", max_shard_size=shard, save_original_format=save_original_format)


def add_further_layer(checkpoint):
    """Qwen publishes layers that predict further tokens with the model; the library leaves them out."""
    save_file({"mtp.norm.weight": torch.ones(128).bfloat16()}, f"{checkpoint}/mtp.safetensors")
    with open(f"{checkpoint}/model.safetensors.index.json", encoding="utf-8") as file:
        index = json.load(file)
    index["weight_map"]["mtp.norm.weight"] = "mtp.safetensors"
    with open(f"{checkpoint}/model.safetensors.index.json", "w", encoding="utf-8") as file:
        json.dump(index, file, indent=2)


def add_prediction_layer(place, layers):
    """Some tensors of the layer that publishers store behind the model's."""
    file = f"{place}/checkpoint/model.safetensors"
    tensors = load_file(file)
    for name in ("enorm.weight", "eh_proj.weight", "input_layernorm.weight"):
        tensors[f"model.layers.{layers}.{name}"] = torch.ones(3).bfloat16()
    save_file(tensors, file, metadata={"format": "pt"})


def find_indexers(model):
    return [module for module in model.modules() if type(module).__name__ in ("DeepseekV32Indexer", "GlmMoeDsaIndexer")]


def run_indexers(model, tokens):
    """What each indexer chooses, ascending, -1 behind. It must be neither everything nor the last positions."""
    results = []

    def keep(module, inputs, chosen):
        rows = sort_choice(chosen)[0]
        latest = range(len(tokens) - rows.shape[1], len(tokens))
        assert rows.shape[1] < len(tokens) and len(set(rows[-1].tolist()) & set(latest)) < rows.shape[1] / 2, rows[-1]
        results.append(rows.int())

    handles = [indexer.register_forward_hook(keep) for indexer in find_indexers(model)]
    model(tokens[None])
    for handle in handles:
        handle.remove()
    return {f"chosen.{i}": rows for i, rows in enumerate(results)}


def main():
    folder, names = sys.argv[1], [name for name in sys.argv[2:] if name != "--references-only"] or list(FAMILIES)
    if "--references-only" in sys.argv:
        for name in names:
            references.add(f"{folder}/{name}")
        return
    for seed, (name, make) in enumerate(FAMILIES.items()):
        if name not in names:
            continue
        layers, _, length, is_published = deepseek_v4.CHECKPOINTS.get(name, ("", 0, 96, False))
        while True:
            model = make().float().eval()
            randomize(model, seed, "negative-biases" in name)
            if name in deepseek_v4.QUANTIZED:
                deepseek_v4.round_weights(model, deepseek_v4.QUANTIZED[name])
            tokens = torch.randint(0, 512, (length,), generator=torch.Generator().manual_seed(seed))
            margins = deepseek_v4.Margins(model)
            with torch.no_grad():
                logits = model(tokens[None]).logits[0]
            if margins.smallest > 1e-5:
                break
            seed += 100
        with torch.no_grad():
            reference = {"tokens": tokens.int(), "logits": logits.contiguous()} | run_indexers(model, tokens)
            indexers = [module for module in model.modules() if hasattr(module, "index_topk")]
            if name in deepseek_v4.QUANTIZED or find_indexers(model):
                for indexer in indexers:
                    indexer.index_topk = len(tokens)
                reference["dense_logits"] = model(tokens[None]).logits[0].contiguous()
        place = f"{folder}/{name}"
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        # Qwen3.5-MoE is published with the experts of a layer in one tensor, as the library has them in memory.
        save(model, place, save_original_format=name != "qwen3.5-moe", shard="4MB" if is_published else "1500KB")
        if name == "qwen3-next":
            add_further_layer(f"{place}/checkpoint")
        if name == "glm-moe-dsa-offset":
            add_prediction_layer(place, model.config.num_hidden_layers)
        if is_published:
            deepseek_v4.publish(f"{place}/checkpoint", layers)
        if name in deepseek_v4.QUANTIZED:
            deepseek_v4.pack(f"{place}/checkpoint", deepseek_v4.QUANTIZED[name])
        if "dense_logits" not in reference:
            with torch.no_grad():
                error = (model(tokens[None]).logits[0].float() - logits).square().mean().sqrt() / logits.std()
            reference["bf16_error"] = error.reshape(1)
        save_file(reference, f"{place}/reference.safetensors")
        references.add(place)
        print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits {reference['logits'].std():.3f}")


main()
