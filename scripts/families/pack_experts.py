#!/usr/bin/env python3
"""pack_experts.py CHECKPOINT OUT: a checkpoint with the experts in MXFP4 as compressed-tensors stores it, and, in OUT/plain, the same
numbers in bf16. Needs numpy. Both must give the same logits."""

import json
import os
import shutil
import sys

import numpy as np
from checkpoint_files import bf16_to_numbers, numbers_to_bf16, read, write

MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def pack(values):
    """[rows, columns] -> codes, two in a byte, the first one low; scales; and the numbers that they are."""
    blocks = values.reshape(len(values), -1, 32)
    largest = np.abs(blocks).max(-1, keepdims=True)
    exponents = np.clip(np.floor(np.log2(np.maximum(largest, 1e-30))) - 2, -126, 126)
    scaled = blocks / np.exp2(exponents)
    nearest = np.abs(np.abs(scaled)[..., None] - MAGNITUDES).argmin(-1).astype(np.uint8)
    codes = (nearest | (scaled < 0).astype(np.uint8) << 3).reshape(len(values), -1)
    exact = np.sign(scaled) * MAGNITUDES[nearest] * np.exp2(exponents)
    scales = (exponents[..., 0] + 127).astype(np.uint8)
    return codes[:, 0::2] | codes[:, 1::2] << 4, scales, exact.reshape(values.shape).astype(np.float32)


def main():
    source, out = sys.argv[1:]
    for kind in ("packed", "plain"):
        shutil.rmtree(f"{out}/{kind}", ignore_errors=True)
        os.makedirs(f"{out}/{kind}")
    with open(f"{source}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    quantized = config | {"quantization_config": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}}
    for kind, content in (("plain", config), ("packed", quantized)):
        with open(f"{out}/{kind}/config.json", "w", encoding="utf-8") as file:
            json.dump(content, file)
        shutil.copy(f"{source}/generation_config.json", f"{out}/{kind}")
    for shard in sorted(name for name in os.listdir(source) if name.endswith(".safetensors")):
        plain, packed = {}, {}
        for name, (dtype, shape, data) in read(f"{source}/{shard}").items():
            plain[name] = packed[name] = dtype, shape, data
            if ".experts." in name:
                assert dtype == "BF16"
                values = bf16_to_numbers(data, shape)
                codes, scales, exact = pack(values)
                del packed[name]
                packed[name + "_packed"] = "U8", codes.shape, codes.tobytes()
                packed[name + "_scale"] = "U8", scales.shape, scales.tobytes()
                plain[name] = dtype, shape, numbers_to_bf16(exact)
        write(f"{out}/plain/{shard}", plain)
        write(f"{out}/packed/{shard}", packed)


main()
