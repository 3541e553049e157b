#!/usr/bin/env python3
"""make_k3_stand_in.py OUT: Kimi K3 as published, without its numbers: config.json, the index and all 96 shards with their headers, and
holes where 1.56 TB of data would be. For measuring how a checkpoint of this size is opened and compiled; the file system must support
holes. Takes about 150 MB of disk.

    make_k3_stand_in.py OUT --layers 0-3 --experts 56 --numbers

writes a few layers of true width with random numbers (13 GB), for checking and timing them: moec compile OUT --layers 0-3."""

import argparse
import json
import os
import random
import struct
from concurrent.futures import ProcessPoolExecutor

TENSORS, BYTES, SHARDS = 497_220, 1_560_860_324_864, 96
HIDDEN, HEADS, HEAD, LAYERS, EXPERTS, INNER, LATENT = 7168, 96, 128, 93, 896, 3072, 3584
WIDTH = HEADS * HEAD
ATTENTION_LAYERS = [*range(4, 93, 4), 93]  # from 1
SIZES = {"BF16": 2, "F32": 4, "U8": 1}

TEXT = {
    "model_type": "kimi_linear", "vocab_size": 163840, "num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS, "intermediate_size": 33792, "first_k_dense_replace": 1, "moe_layer_freq": 1, "moe_intermediate_size": INNER,
    "routed_expert_hidden_size": LATENT, "num_experts": EXPERTS, "num_experts_per_token": 16, "num_shared_experts": 2, "moe_renormalize": True,
    "routed_scaling_factor": 1.0, "moe_router_activation_func": "sigmoid", "num_expert_group": 1, "topk_group": 1, "topk_method": "noaux_tc",
    "use_grouped_topk": True, "latent_moe_use_norm": True, "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "mla_use_nope": True,
    "mla_use_output_gate": True, "attn_res_block_size": 12, "rms_norm_eps": 1e-5, "max_position_embeddings": 1048576,
    "num_nextn_predict_layers": 0, "tie_word_embeddings": False,
    "linear_attn_config": {
        "num_heads": HEADS, "head_dim": HEAD, "short_conv_kernel_size": 4, "use_full_rank_gate": True, "gate_lower_bound": -5.0,
        "full_attn_layers": ATTENTION_LAYERS, "kda_layers": [n for n in range(1, LAYERS + 1) if n not in ATTENTION_LAYERS]}}
VISION = {"patch_size": 14, "hidden_size": 1024, "num_attention_heads": 12, "qkv_hidden_size": 1536, "intermediate_size": 4096,
          "num_hidden_layers": 27, "init_pos_emb_height": 64, "init_pos_emb_width": 64, "init_pos_emb_time": 4, "merge_kernel_size": [2, 2]}
QUANTIZATION = {
    "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 32, "symmetric": True,
                                                                      "scale_dtype": "torch.uint8"}}},
    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "re:vision_tower.*",
               "re:mm_projector.*"]}
CONFIG = {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "dtype": "bfloat16", "bos_token_id": 163584,
          "eos_token_id": 163586, "pad_token_id": 163839, "media_placeholder_token_id": 163605, "tie_word_embeddings": False,
          "text_config": TEXT, "vision_config": VISION, "quantization_config": QUANTIZATION}


def weight(name, *shape):
    return f"{name}.weight", "BF16", shape


def linear_attention():
    for part in "qkv":
        yield weight(f"{part}_proj", WIDTH, HIDDEN)
        yield f"{part}_conv1d.weight", "F32", (WIDTH, 1, 4)
    yield weight("f_a_proj", HEAD, HIDDEN)
    yield weight("f_b_proj", WIDTH, HEAD)
    yield weight("b_proj", HEADS, HIDDEN)
    yield "A_log", "F32", (HEAD,)
    yield "dt_bias", "F32", (WIDTH,)
    yield "o_norm.weight", "F32", (HEAD,)


def latent_attention():
    yield weight("q_a_proj", 1536, HIDDEN)
    yield weight("q_a_layernorm", 1536)
    yield weight("q_b_proj", HEADS * 192, 1536)
    yield weight("kv_a_proj_with_mqa", 576, HIDDEN)
    yield weight("kv_a_layernorm", 512)
    yield weight("kv_b_proj", HEADS * 256, 512)


def dense(name, inner):
    yield weight(f"{name}.gate_proj", inner, HIDDEN)
    yield weight(f"{name}.up_proj", inner, HIDDEN)
    yield weight(f"{name}.down_proj", HIDDEN, inner)


def mixture(rng, experts):
    yield weight("gate", experts, HIDDEN)
    yield "gate.e_score_correction_bias", "F32", (experts,)
    yield weight("routed_expert_down_proj", LATENT, HIDDEN)
    yield weight("routed_expert_norm", LATENT)
    yield weight("routed_expert_up_proj", HIDDEN, LATENT)
    yield from dense("shared_experts", 2 * INNER)
    # The six tensors of an expert lie one behind the other; experts come in no order.
    for expert in rng.sample(range(experts), experts):
        for part, rows, columns in (("w1", INNER, LATENT), ("w2", LATENT, INNER), ("w3", INNER, LATENT)):
            yield f"experts.{expert}.{part}.weight_packed", "U8", (rows, columns // 2)
            yield f"experts.{expert}.{part}.weight_scale", "U8", (rows, columns // 32)


def within(prefix, tensors):
    for name, dtype, shape in tensors:
        yield f"{prefix}.{name}", dtype, shape


def layer(number, rng, experts):
    for name in ("input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm"):
        yield weight(name, HIDDEN)
    for name in ("self_attention_res_proj", "mlp_res_proj"):
        yield weight(name, 1, HIDDEN)
    yield weight("self_attn.g_proj", WIDTH, HIDDEN)
    yield weight("self_attn.o_proj", HIDDEN, WIDTH)
    yield from within("self_attn", latent_attention() if number + 1 in ATTENTION_LAYERS else linear_attention())
    yield from dense("mlp", 33792) if number == 0 else within("block_sparse_moe", mixture(rng, experts))


def vision():
    yield weight("vision_tower.patch_embed.proj", 1024, 3, 14, 14)
    yield weight("vision_tower.patch_embed.pos_emb", 64, 64, 1024)
    for block in range(27):
        yield from within(f"vision_tower.encoder.blocks.{block}", [
            weight("norm0", 1024), weight("norm1", 1024), weight("wqkv", 4608, 1024), weight("wo", 1024, 1536),
            weight("mlp.fc0", 4096, 1024), weight("mlp.fc1", 1024, 4096)])
    yield weight("vision_tower.encoder.final_layernorm", 1024)
    yield weight("mm_projector.proj.0", 4096, 4096)
    yield weight("mm_projector.proj.2", HIDDEN, 4096)
    yield weight("mm_projector.post_norm", HIDDEN)


def model(rng, layers, experts, has_vision):
    text = "language_model"
    yield weight(f"{text}.model.embed_tokens", 163840, HIDDEN)
    for number in layers:
        yield from within(f"{text}.model.layers.{number}", layer(number, rng, experts))
    yield weight(f"{text}.model.norm", HIDDEN)
    yield weight(f"{text}.model.output_attn_res_norm", HIDDEN)
    yield weight(f"{text}.model.output_attn_res_proj", 1, HIDDEN)
    yield weight(f"{text}.lm_head", 163840, HIDDEN)
    if has_vision:
        yield from vision()


def bytes_of(dtype, shape):
    size = SIZES[dtype]
    for dimension in shape:
        size *= dimension
    return size


def numbers(name, dtype, shape, rng):
    """Random bytes of a tensor, of such sizes that activations stay near 1. numpy is needed for these alone."""
    import numpy as np
    count = bytes_of(dtype, shape) // SIZES[dtype]
    if name.endswith("weight_packed"):
        return rng.bytes(count)
    if name.endswith("weight_scale"):
        least = 126 - round(np.log2(32 * shape[-1]) / 2 + 1.4)
        return rng.integers(least, least + 3, count, dtype=np.uint8).tobytes()
    if dtype == "F32":
        x = rng.standard_normal(count, dtype=np.float32) * (0.5 if "conv1d" in name or "bias" in name else 0.1)
        x += 1 if "norm" in name else 0
        x[HEADS if name.endswith("A_log") else count:] = 0  # padded in the release, too
        return x.tobytes()
    # bf16 of two binades, by their bits: a sign, an exponent's last bit and seven of the mantissa at random.
    size = 1 if len(shape) == 1 or "embed_tokens" in name else 1.5 / np.sqrt(shape[-1])
    bits = np.frombuffer(rng.bytes(2 * count), np.uint16)
    sign = 0 if len(shape) == 1 else 0x8000  # norms' weights are positive
    return ((bits & np.uint16(sign | 0xFF)) + np.uint16(126 + round(np.log2(size)) << 7)).tobytes()


def write_shard(path, tensors, seed):
    """`tensors`: (name, dtype, shape). Without a seed holes instead of numbers."""
    header, end = {}, 0
    for name, dtype, shape in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end := end + bytes_of(dtype, shape)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        if seed is None:
            file.truncate(8 + len(text) + end)
            return
        import numpy as np
        rng = np.random.default_rng(seed)
        for name, dtype, shape in tensors:
            file.write(numbers(name, dtype, shape, rng))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the folder to write")
    parser.add_argument("--layers", metavar="N-M", help="only these layers, the embedding and the head")
    parser.add_argument("--experts", type=int, default=EXPERTS, help="of a layer")
    parser.add_argument("--numbers", action="store_true", help="random numbers instead of holes")
    arguments = parser.parse_args()
    first, last = map(int, arguments.layers.split("-")) if arguments.layers else (0, LAYERS - 1)
    TEXT["num_experts"] = arguments.experts
    os.makedirs(arguments.out)
    tensors = list(model(random.Random(3), range(first, last + 1), arguments.experts, not arguments.layers))
    total = sum(bytes_of(dtype, shape) for _, dtype, shape in tensors)
    if not arguments.layers and arguments.experts == EXPERTS:
        assert (len(tensors), total) == (TENSORS, BYTES), f"{len(tensors)} tensors, {total} bytes"
    shards, places, written = [[] for _ in range(SHARDS)], {}, 0
    for tensor in tensors:
        shard = min(written * SHARDS // total, SHARDS - 1)
        shards[shard].append(tensor)
        places[tensor[0]] = f"model-{shard + 1:05d}-of-{SHARDS:05d}.safetensors"
        written += bytes_of(*tensor[1:])
    with ProcessPoolExecutor() as workers:
        list(workers.map(write_shard, [f"{arguments.out}/model-{n + 1:05d}-of-{SHARDS:05d}.safetensors" for n in range(SHARDS)], shards,
                         range(SHARDS) if arguments.numbers else [None] * SHARDS))
    with open(f"{arguments.out}/model.safetensors.index.json", "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}, file, indent=2)
    with open(f"{arguments.out}/config.json", "w", encoding="utf-8") as file:
        json.dump(CONFIG, file, indent=2)
    print(f"{len(tensors)} tensors, {total} bytes in {SHARDS} shards")


if __name__ == "__main__":
    main()
