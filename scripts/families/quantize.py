#!/usr/bin/env python3
"""quantize.py CHECKPOINT OUT FORMAT: a checkpoint with its matrices quantised, OUT/packed, and in OUT/plain the same numbers unpacked.
Needs numpy. Both must give the same logits. Formats:

    fp8:ROWSxCOLUMNS        F8_E4M3 with an F32 scale for each block, as DeepSeek stores it; plain numbers are F32
    fp8-e8m0:ROWSxCOLUMNS   the same with F8_E8M0 scales in tensors named .scale; plain numbers are BF16
    fp8                     one F32 scale without dimensions for each matrix
    fp8-rows                compressed-tensors' float-quantized, an F32 scale for each row, and scales for activations, which nobody needs
    int4:COLUMNS            compressed-tensors' pack-quantized, a BF16 scale for so many columns of a row; plain numbers are F32

Embeddings, heads and routers stay as they are. Sizes need not be multiples of a block's."""

import json
import os
import shutil
import sys

import numpy as np
from checkpoint_files import bf16_to_numbers, numbers_to_bf16, read, write


def e4m3_values():
    """Of the codes 0 to 126: zero and the positive numbers, ascending."""
    codes = np.arange(127)
    exponents, mantissas = codes >> 3, codes & 7
    return np.where(exponents == 0, mantissas / 512, (1 + mantissas / 8) * np.exp2(exponents - 7.0)).astype(np.float32)


def largest_of_blocks(values, rows, columns):
    starts = np.arange(0, values.shape[-2], rows), np.arange(0, values.shape[-1], columns)
    return np.maximum.reduceat(np.maximum.reduceat(np.abs(values), starts[0], axis=-2), starts[1], axis=-1)


def spread(scales, rows, columns, shape):
    return np.repeat(np.repeat(scales, rows, axis=-2)[..., :shape[-2], :], columns, axis=-1)[..., :shape[-1]]


def fp8(values, rows, columns, powers_of_two):
    scales = np.maximum(largest_of_blocks(values, rows, columns), np.float32(1e-20)) / np.float32(448)
    if powers_of_two:
        scales = np.exp2(np.ceil(np.log2(scales))).astype(np.float32)
    factors, table = spread(scales, rows, columns, values.shape), e4m3_values()
    magnitudes = np.abs(values / factors)
    above = np.searchsorted(table, magnitudes).clip(1, 126)
    codes = np.where(magnitudes - table[above - 1] < table[above] - magnitudes, above - 1, above).astype(np.uint8)
    numbers = np.where(values < 0, -table[codes], table[codes]).astype(np.float32)
    return codes | (values < 0).astype(np.uint8) << 7, scales, numbers * factors


def mxfp4(values):
    """E2M1 codes, two of a row in a byte, the first one in the low bits; the exponents of the scales of 32; the numbers."""
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    largest = np.maximum(largest_of_blocks(values, 1, 32), np.float32(1e-20))
    exponents = np.floor(np.log2(largest)) - 2
    factors = spread(np.exp2(exponents).astype(np.float32), 1, 32, values.shape)
    codes = np.abs(np.abs(values / factors)[..., None] - table).argmin(-1).astype(np.uint8)
    numbers = np.where(values < 0, -table[codes], table[codes]) * factors
    codes |= (values < 0).astype(np.uint8) << 3
    return codes[..., 0::2] | codes[..., 1::2] << 4, (exponents + 127).astype(np.uint8), numbers


def int4(values, columns):
    scales = (np.maximum(largest_of_blocks(values, 1, columns), 1e-20) / 7).astype(np.float32)
    scales = (scales.view(np.uint32) & 0xFFFF0000).view(np.float32)
    factors = spread(scales, 1, columns, values.shape)
    codes = np.clip(np.round(values / factors), -8, 7)
    padded = np.pad((codes + 8).astype(np.uint32), [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % 8)])
    words = padded.reshape(*values.shape[:-1], -1, 8) << (4 * np.arange(8, dtype=np.uint32))
    return words.sum(-1).astype(np.uint32), scales, codes.astype(np.float32) * factors


def is_quantized(name, shape):
    return len(shape) >= 2 and "conv1d" not in name and "visual" not in name and not name.endswith(
        ("embed_tokens.weight", "lm_head.weight", "mlp.gate.weight"))


def quantize(name, shape, values, kind, block):
    """The packed tensors, the plain one."""
    if kind == "int4":
        words, scales, exact = int4(values, block[0])
        packed = {name + "_packed": ("I32", words.shape, words.tobytes()), name + "_scale": ("BF16", scales.shape, numbers_to_bf16(scales)),
                  name + "_shape": ("I64", [len(shape)], np.array(shape, "<i8").tobytes())}
        return packed, ("F32", shape, exact.tobytes())
    if kind == "fp8-rows":
        codes, scales, exact = fp8(values, 1, shape[-1], powers_of_two=False)
        packed = {name: ("F8_E4M3", shape, codes.tobytes()), name + "_scale": ("F32", scales.shape, scales.tobytes()),
                  name.removesuffix("weight") + "input_scale": ("F32", [1], np.float32([0.5]).tobytes())}
        return packed, ("F32", shape, exact.tobytes())
    codes, scales, exact = fp8(values, *(block or shape[-2:]), powers_of_two=kind == "fp8-e8m0")
    packed = {name: ("F8_E4M3", shape, codes.tobytes())}
    if kind == "fp8-e8m0" and name.endswith(".weight"):
        bytes_ = (np.log2(scales) + 127).astype(np.uint8)
        packed[name.removesuffix("weight") + "scale"] = "F8_E8M0", scales.shape, bytes_.tobytes()
        return packed, ("BF16", shape, numbers_to_bf16(exact))
    packed[name + "_scale_inv"] = "F32", scales.shape if block or len(shape) > 2 else [], scales.tobytes()
    return packed, ("F32", shape, exact.tobytes())


def main():
    source, out, format = sys.argv[1:]
    kind, _, sizes = format.partition(":")
    block = [int(size) for size in sizes.split("x")] if sizes else None
    if kind == "int4":
        weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": block[0]}
        settings = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"weights": weights}}}
    elif kind == "fp8-rows":
        weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"}
        group = {"weights": weights, "input_activations": {"num_bits": 8, "type": "float", "dynamic": False}}
        settings = {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": group}}
    else:
        settings = {"quant_method": "fp8", "weight_block_size": block}
    with open(f"{source}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    for folder, content in (("plain", config), ("packed", config | {"quantization_config": settings})):
        shutil.rmtree(f"{out}/{folder}", ignore_errors=True)
        os.makedirs(f"{out}/{folder}")
        with open(f"{out}/{folder}/config.json", "w", encoding="utf-8") as file:
            json.dump(content, file)
    plain, packed = {}, {}
    for shard in sorted(name for name in os.listdir(source) if name.endswith(".safetensors")):
        for name, (dtype, shape, data) in read(f"{source}/{shard}").items():
            plain[name] = dtype, shape, data
            if is_quantized(name, shape):
                assert dtype == "BF16"
                tensors, plain[name] = quantize(name, shape, bf16_to_numbers(data, shape), kind, block)
                packed.update(tensors)
            else:
                packed[name] = plain[name]
    write(f"{out}/plain/model.safetensors", plain)
    write(f"{out}/packed/model.safetensors", packed)


if __name__ == "__main__":
    main()
