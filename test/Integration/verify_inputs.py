"""Inputs that `moec verify` must find wrong.

  verify_inputs.py weights BUNDLE CHECKPOINT TENSOR     changes the tensor in the bundle's copied weights
  verify_inputs.py op BUNDLE OUT.mlir NAME OLD NEW      the bundle's program with OLD replaced by NEW in the ops at location NAME
  verify_inputs.py scale IN OUT TENSOR                  a safetensors file with one row of the tensor scaled
  verify_inputs.py rename IN OUT OLD NEW                a safetensors file with OLD called NEW in all names
  verify_inputs.py reshape IN OUT TENSOR                a safetensors file with the tensor seen as twice as many rows
  verify_inputs.py put IN OUT TENSOR ROW NUMBER         a safetensors file with the first integer of a row replaced
"""

import json
import re
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), bytearray(file.read())


def write(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def weights(bundle, checkpoint, tensor):
    header, data = read(f"{checkpoint}/model.safetensors")
    begin, end = header[tensor]["data_offsets"]
    path = f"{bundle}/weights/weights.bin"
    with open(path, "rb") as file:
        copied = bytearray(file.read())
    place = copied.index(data[begin:end])
    assert copied.count(data[begin:end]) == 1
    for i in range(place + 1, place + end - begin, 2):
        copied[i] ^= 0x80  # the sign of a bf16 number
    with open(path, "wb") as file:
        file.write(copied)


def op(bundle, out, name, old, new):
    with open(f"{bundle}/program/moe.mlir", encoding="utf-8") as file:
        text = file.read()
    (alias,) = re.findall(rf'^(#loc\d*) = loc\("{re.escape(name)}"\)', text, re.M)
    changed = 0
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if line.endswith(f"loc({alias})") and old in line:
            lines[i], changed = line.replace(old, new), changed + 1
    assert changed == 1, (alias, changed)
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def scale(source, out, tensor):
    header, data = read(source)
    begin, end = header[tensor]["data_offsets"]
    row = (end - begin) // header[tensor]["shape"][0]
    numbers = struct.unpack_from(f"<{row // 4}f", data, begin + 5 * row)
    struct.pack_into(f"<{row // 4}f", data, begin + 5 * row, *(1.01 * x for x in numbers))
    write(out, header, data)


def rename(source, out, old, new):
    header, data = read(source)
    write(out, {name.replace(old, new): entry for name, entry in header.items()}, data)


def reshape(source, out, tensor):
    header, data = read(source)
    rows, *rest, last = header[tensor]["shape"]
    header[tensor]["shape"] = [2 * rows, *rest, last // 2]
    write(out, header, data)


def put(source, out, tensor, row, number):
    header, data = read(source)
    width = header[tensor]["shape"][1]
    struct.pack_into("<i", data, header[tensor]["data_offsets"][0] + 4 * int(row) * width, int(number))
    write(out, header, data)


{"weights": weights, "op": op, "scale": scale, "rename": rename, "reshape": reshape, "put": put}[sys.argv[1]](*sys.argv[2:])
