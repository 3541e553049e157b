"""Small models of DeepSeek-V4, and what their checkpoints need beyond those of other families."""

import json
import os
import re

import checkpoint_files
import numpy as np
import quantize
import torch
from safetensors.torch import load_file, save_file
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

KINDS = {"s": "sliding_attention", "c": "compressed_sparse_attention", "h": "heavily_compressed_attention"}
RATIOS = {"s": 0, "c": 4, "h": 128}
TOP_ENTRIES = 4


def model(layers, heavy_rate, **changes):
    return DeepseekV4ForCausalLM(DeepseekV4Config(**dict(
        vocab_size=512, hidden_size=128, num_attention_heads=4, num_key_value_heads=1, head_dim=64, max_position_embeddings=1024,
        bos_token_id=1, eos_token_id=2, num_hidden_layers=len(layers), q_lora_rank=48, o_groups=2, o_lora_rank=40, sliding_window=8,
        layer_types=[KINDS[letter] for letter in layers], compress_rates={KINDS["c"]: 4, KINDS["h"]: heavy_rate},
        index_n_heads=8, index_head_dim=32, index_topk=TOP_ENTRIES, hc_mult=4, hc_sinkhorn_iters=20, n_routed_experts=8,
        num_experts_per_tok=2, moe_intermediate_size=16, routed_scaling_factor=1.5, swiglu_limit=1.0,
        mlp_layer_types=["hash_moe"] * 2 + ["moe"] * (len(layers) - 2), partial_rotary_factor=0.25, rope_theta=10000.0,
        compress_rope_theta=160000.0, rope_parameters={"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64}) | changes))


# Name: layers, window of heavily compressed layers, tokens, whether it is written as the publisher does.
CHECKPOINTS = {"deepseek-v4": ("schch", 8, 96, False), "deepseek-v4-publisher": ("shc", 128, 264, True)}
FAMILIES = {name: lambda layers=layers, rate=rate: model(layers, rate) for name, (layers, rate, _, _) in CHECKPOINTS.items()}

# As the release is quantised: linear layers in FP8 with scales of blocks of so many rows and columns, experts in MXFP4. The sizes are no
# multiples of the blocks', and a block lies in both groups of the output projection.
QUANTIZED = {"deepseek-v4-fp8": 128, "deepseek-v4-fp8-small-blocks": 32}
for name in QUANTIZED:
    CHECKPOINTS[name] = "scc", 128, 96, True
    FAMILIES[name] = lambda: model("scc", 128, moe_intermediate_size=32, q_lora_rank=144, o_lora_rank=72)
# By their names in the library, and the publisher's.
FLOAT8 = re.compile(r"(self_attn\.(q_a|q_b|kv|o_a|o_b)_proj|indexer\.q_b_proj|shared_experts\.\w+_proj)\.weight$|"
                    r"(attn\.(wq_a|wq_b|wkv|wo_a|wo_b)|indexer\.wq_b|shared_experts\.w\d)\.weight$")
EXPERTS = re.compile(r"mlp\.experts\.(gate_up|down)_proj$|ffn\.experts\.\d+\.w\d\.weight$")


def quantize_matrix(name, values, block):
    """-> codes, exponents of scales, numbers; nothing where the matrix stays as it is."""
    if EXPERTS.search(name):
        return quantize.mxfp4(values)
    if not FLOAT8.search(name):
        return None
    codes, scales, numbers = quantize.fp8(values, block, block, powers_of_two=True)
    return codes, (np.log2(scales) + 127).astype(np.uint8), numbers


def round_weights(model, block):
    """To numbers that the packed checkpoint has."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if found := quantize_matrix(name, parameter.numpy(), block):
                parameter.copy_(torch.from_numpy(found[2]))


def pack(folder, block):
    """Quantises a checkpoint in the publisher's spelling, whose weights were rounded."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    config |= dict(expert_dtype="fp4", quantization_config=dict(
        quant_method="fp8", fmt="e4m3", scale_fmt="ue8m0", activation_scheme="dynamic", weight_block_size=[block, block]))
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, sort_keys=True)
    packed = {}
    for name, (dtype, shape, data) in checkpoint_files.read(f"{folder}/model.safetensors").items():
        values = checkpoint_files.bf16_to_numbers(data, shape) if dtype == "BF16" else None
        found = quantize_matrix(name, values, block) if values is not None else None
        if found is None:
            packed[name] = dtype, shape, data
            continue
        codes, exponents, numbers = found
        assert np.array_equal(numbers, values), name
        packed[name] = "I8" if EXPERTS.search(name) else "F8_E4M3", codes.shape, codes.tobytes()
        packed[name.removesuffix("weight") + "scale"] = "F8_E8M0", exponents.shape, exponents.tobytes()
    checkpoint_files.write(f"{folder}/model.safetensors", packed)


def unpack(folder, out):
    """The same model in plain tensors, by torch's types alone."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    block = config.pop("quantization_config")["weight_block_size"]
    os.makedirs(out)
    with open(f"{out}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    tensors = load_file(f"{folder}/model.safetensors")
    for name in [name for name in tensors if name.endswith(".scale")]:
        scale, codes = tensors.pop(name).float(), tensors[name.removesuffix("scale") + "weight"]
        rows, columns = block if codes.dtype is torch.float8_e4m3fn else (1, 32)
        if codes.dtype is torch.int8:
            half = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
            table, unsigned = torch.cat([half, -half]), codes.view(torch.uint8).long()
            codes = torch.stack([table[unsigned & 15], table[unsigned >> 4]], -1).flatten(-2)
        numbers = codes.float()
        factors = scale.repeat_interleave(rows, 0)[:numbers.shape[0]].repeat_interleave(columns, 1)[:, :numbers.shape[1]]
        tensors[name.removesuffix("scale") + "weight"] = (numbers * factors).bfloat16()
    save_file(tensors, f"{out}/model.safetensors", metadata={"format": "pt"})


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
