"""Small models of DeepSeek-V4, and what their checkpoints need beyond those of other families."""

import json
import re

import torch
from safetensors.torch import load_file, save_file
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

KINDS = {"s": "sliding_attention", "c": "compressed_sparse_attention", "h": "heavily_compressed_attention"}
RATIOS = {"s": 0, "c": 4, "h": 128}
TOP_ENTRIES = 4


def model(layers, heavy_rate):
    return DeepseekV4ForCausalLM(DeepseekV4Config(
        vocab_size=512, hidden_size=128, num_attention_heads=4, num_key_value_heads=1, head_dim=64, max_position_embeddings=1024,
        bos_token_id=1, eos_token_id=2, num_hidden_layers=len(layers), q_lora_rank=48, o_groups=2, o_lora_rank=40, sliding_window=8,
        layer_types=[KINDS[letter] for letter in layers], compress_rates={KINDS["c"]: 4, KINDS["h"]: heavy_rate},
        index_n_heads=8, index_head_dim=32, index_topk=TOP_ENTRIES, hc_mult=4, hc_sinkhorn_iters=20, n_routed_experts=8,
        num_experts_per_tok=2, moe_intermediate_size=16, routed_scaling_factor=1.5, swiglu_limit=1.0,
        mlp_layer_types=["hash_moe"] * 2 + ["moe"] * (len(layers) - 2), partial_rotary_factor=0.25, rope_theta=10000.0,
        compress_rope_theta=160000.0, rope_parameters={"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64}))


# Name: layers, window of heavily compressed layers, tokens, whether it is written as the publisher does.
CHECKPOINTS = {"deepseek-v4": ("schch", 8, 96, False), "deepseek-v4-publisher": ("shc", 128, 264, True)}
FAMILIES = {name: lambda layers=layers, rate=rate: model(layers, rate) for name, (layers, rate, _, _) in CHECKPOINTS.items()}


def randomize(model, generator):
    """Sinks, position biases and the weights of hyper-connections matter; tokens go to any experts."""
    for name, parameter in model.named_parameters():
        x = torch.randn(parameter.shape, generator=generator)
        if name.endswith(("hc.scale", "hc_scale")):
            x = 1 + 0.1 * x
        elif name.endswith(("sinks", "position_bias", "hc.base", "hc_base")):
            x = 0.5 * x
        elif name.endswith(("compressor.gate_proj.weight", "indexer.gate_proj.weight")):
            x = 0.15 * x
        else:
            continue
        parameter.copy_(x.bfloat16().float())
    for name, buffer in model.named_buffers():
        if name.endswith("tid2eid"):
            experts = torch.rand(buffer.shape[0], model.config.n_routed_experts, generator=generator).argsort(1)
            buffer.copy_(experts[:, :buffer.shape[1]])


class Margins:
    """How far chosen entries are from others: where it is too near, two libraries may choose differently."""

    def __init__(self, model):
        self.smallest = float("inf")
        for module in model.modules():
            if type(module).__name__ == "DeepseekV4IndexerScorer":
                module.register_forward_hook(self.look)

    def look(self, _module, _inputs, scores):
        for t, row in enumerate(scores[0]):
            visible = row[:(t + 1) // RATIOS["c"]].sort(descending=True).values
            if len(visible) > TOP_ENTRIES:
                gap = visible[TOP_ENTRIES - 1] - visible[TOP_ENTRIES]
                self.smallest = min(self.smallest, float(gap / visible.abs().max()))


def publish(folder, layers):
    """Rewrites a checkpoint in the publisher's spelling of config and tensors, with tensors of a layer that predicts more tokens."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    for name in ("layer_types", "compress_rates", "mlp_layer_types", "partial_rotary_factor"):
        config.pop(name)
    yarn = config.pop("rope_parameters")["compress"]
    config |= dict(compress_ratios=[RATIOS[letter] for letter in layers] + [0], num_hash_layers=2, num_nextn_predict_layers=1,
                   rope_theta=10000, compress_rope_theta=160000,
                   rope_scaling=dict(type="yarn", factor=yarn["factor"], beta_fast=32, beta_slow=1,
                                     original_max_position_embeddings=yarn["original_max_position_embeddings"]))
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, sort_keys=True)
    renames = [(r"^model\.embed_tokens\.", "embed."), (r"^model\.hc_head\.hc_", "hc_head_"), (r"^model\.", ""), (r"attn\.norm\.", "attn.kv_norm.")]

    def rename(name):
        for pattern, replacement in renames:
            name = re.sub(pattern, replacement, name)
        return name

    path = f"{folder}/model.safetensors"
    tensors = {rename(name): tensor for name, tensor in load_file(path).items()}
    tensors["mtp.0.enorm.weight"] = torch.ones(128, dtype=torch.bfloat16)
    save_file(tensors, path)
