#!/usr/bin/env python3
"""Writes a gpt-oss checkpoint of random weights: config.json and safetensors shards. Needs numpy only.

    scripts/make_tiny_checkpoint.py OUT                         a few kilobytes, for tests
    scripts/make_tiny_checkpoint.py OUT --preset bench          about 1 GB, for measuring
    scripts/make_tiny_checkpoint.py OUT --plain --hidden 48 ... any other size, experts in bf16

The same arguments give the same bytes. Tensors are dealt to the shards in random order, as no reader may rely on an order.
"""

import argparse
import json
import os
import struct

import numpy as np

PRESETS = {
    "tiny": dict(layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, inner=32, experts=4, top_k=2, vocabulary=96, window=8,
                 shards=2),
    "bench": dict(layers=12, hidden=1024, heads=16, kv_heads=4, head_dim=64, inner=1024, experts=32, top_k=4,
                  vocabulary=32768, window=128, shards=3),
}
BLOCK = 32  # of MXFP4


def to_bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def tensors(args):
    """name -> (dtype, shape, kind), where kind says how the values are drawn."""
    hidden, inner, experts = args.hidden, args.inner, args.experts
    result = {
        "model.embed_tokens.weight": ("BF16", (args.vocabulary, hidden), "embedding"),
        "model.norm.weight": ("BF16", (hidden,), "scale"),
        "lm_head.weight": ("BF16", (args.vocabulary, hidden), "matrix"),
    }
    for layer in range(args.layers):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            result[at + norm + ".weight"] = ("BF16", (hidden,), "scale")
        wide = args.heads * args.head_dim
        narrow = args.kv_heads * args.head_dim
        for name, rows, columns in (("q", wide, hidden), ("k", narrow, hidden), ("v", narrow, hidden), ("o", hidden, wide)):
            result[at + f"self_attn.{name}_proj.weight"] = ("BF16", (rows, columns), "matrix")
            result[at + f"self_attn.{name}_proj.bias"] = ("BF16", (rows,), "bias")
        result[at + "self_attn.sinks"] = ("BF16", (args.heads,), "bias")
        result[at + "mlp.router.weight"] = ("BF16", (experts, hidden), "matrix")
        result[at + "mlp.router.bias"] = ("BF16", (experts,), "bias")
        for name, rows, columns in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
            at_expert = at + "mlp.experts." + name
            result[at_expert + "_bias"] = ("BF16", (experts, rows), "bias")
            if args.plain:
                result[at_expert] = ("BF16", (experts, columns, rows), "matrix")
            else:
                result[at_expert + "_blocks"] = ("U8", (experts, rows, columns // BLOCK, BLOCK // 2), "codes")
                result[at_expert + "_scales"] = ("U8", (experts, rows, columns // BLOCK), "scales")
    return result


def draw(random, shape, kind, hidden):
    if kind == "codes":
        return random.integers(0, 256, shape, np.uint8)
    if kind == "scales":  # the root of the mean square of random codes is about 3
        centre = 127 + round(float(np.log2(1 / (3 * np.sqrt(hidden)))))
        return random.integers(centre - 1, centre + 2, shape, np.uint8)
    values = random.standard_normal(shape, np.float32)
    if kind == "scale":
        values = 1 + 0.1 * values
    elif kind == "bias":
        values *= 0.1
    elif kind == "matrix":
        values /= np.sqrt(hidden)
    return to_bf16(values)


def write_shard(path, names, table, random, hidden):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        dtype, shape, _ = table[name]
        count = int(np.prod(shape)) * (1 if dtype == "U8" else 2)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + count]}
        offset += count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            _, shape, kind = table[name]
            file.write(draw(random, shape, kind, hidden).tobytes())
    return offset


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--plain", action="store_true", help="experts in bf16 instead of MXFP4")
    parser.add_argument("--seed", type=int, default=0)
    for name in PRESETS["tiny"]:
        parser.add_argument("--" + name.replace("_", "-"), type=int)
    args = parser.parse_args()
    for name, value in PRESETS[args.preset].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if not args.plain and (args.hidden % BLOCK or args.inner % BLOCK):
        parser.error(f"MXFP4 needs --hidden and --inner to be multiples of {BLOCK}")

    os.makedirs(args.output, exist_ok=True)
    config = {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "torch_dtype": "bfloat16",
        "vocab_size": args.vocabulary,
        "hidden_size": args.hidden,
        "intermediate_size": args.inner,
        "num_hidden_layers": args.layers,
        "num_attention_heads": args.heads,
        "num_key_value_heads": args.kv_heads,
        "head_dim": args.head_dim,
        "num_local_experts": args.experts,
        "num_experts_per_tok": args.top_k,
        "sliding_window": args.window,
        "layer_types": [["sliding_attention", "full_attention"][layer % 2] for layer in range(args.layers)],
        "rope_theta": 150000.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0,
                         "beta_slow": 1.0, "truncate": False},
        "rms_norm_eps": 1e-05,
        "swiglu_limit": 7.0,
        "attention_bias": True,
        "tie_word_embeddings": False,
        "max_position_embeddings": 131072,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    if not args.plain:
        config["quantization_config"] = {"quant_method": "mxfp4"}
    with open(os.path.join(args.output, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")

    table = tensors(args)
    random = np.random.default_rng(args.seed)
    names = list(table)
    random.shuffle(names)
    if args.shards == 1:
        write_shard(os.path.join(args.output, "model.safetensors"), names, table, random, args.hidden)
        return
    weight_map, total = {}, 0
    for shard in range(args.shards):
        name = f"model-{shard + 1:05}-of-{args.shards:05}.safetensors"
        mine = names[shard::args.shards]
        total += write_shard(os.path.join(args.output, name), mine, table, random, args.hidden)
        weight_map.update({tensor: name for tensor in mine})
    with open(os.path.join(args.output, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
