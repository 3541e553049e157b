"""What the checks of this folder share: running moec, and reading safetensors."""

import json
import re
import os
import struct
import subprocess
import sys

import numpy as np

# On a machine with a GPU and the compiler, MOEC_TEST_TARGET=cuda:sm_90a runs the same checks there.
TARGET = [f"--target={os.environ['MOEC_TEST_TARGET']}"] if "MOEC_TEST_TARGET" in os.environ else []


def moec(*arguments):
    """Runs `moec ARGUMENTS --json` and gives the object on the last line."""
    result = subprocess.run(["moec", *map(str, arguments), "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"exit code {result.returncode}: moec {' '.join(map(str, arguments))}")
    return json.loads(result.stdout.splitlines()[-1])


def metadata(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)).get("__metadata__", {})


def safetensors(path):
    """name -> array; only the types that the references use."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    types = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "U16": np.uint16}
    result = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            result[name] = np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return result


COLUMNS = ("layers", "logits", "own lay.", "own log.", "chunks", "sessions", "bf16")


def table_head():
    return f"{'family':29}" + "".join(f"{column:>9}" for column in COLUMNS)


def table_line(name, *figures_and_result):
    """A figure for each column, None where there is none; whether all agrees; the reference."""
    *figures, agrees, reference = figures_and_result
    texts = ["-" if figure is None else f"{figure:.1e}" for figure in figures]
    return f"{name:29}" + "".join(f"{text:>9}" for text in texts) + f" {'agrees' if agrees else 'differs'}  {reference}"


def write_safetensors(path, tensors):
    """Of arrays of f64, f32 and i32."""
    names = {"float64": "F64", "float32": "F32", "int32": "I32"}
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def logits(bundle, ids, *arguments):
    """The prompt's logits from `moec run`."""
    stem = os.path.splitext(os.path.abspath(bundle))[0]
    file, prompt = f"{stem}.logits.npy", f"{stem}.prompt.npy"
    np.save(prompt, np.asarray(ids, np.int32))
    moec("run", bundle, "--ids", "@" + prompt, "--max-tokens", 0, "--logits", file, *arguments)
    return np.load(file)


def expect_close(name, actual, expected, tolerance):
    difference = float(np.abs(actual - expected).max())
    print(f"{name}: largest difference {difference:.3g}, allowed {tolerance:g}")
    if not difference <= tolerance:
        sys.exit(f"{name}: {difference} exceeds {tolerance}")


def without_locations(text):
    """A program of phase moe without the names that its ops carry as locations."""
    text = re.sub(r"^#loc.*\n", "", text, flags=re.M)
    return re.sub(r' loc\((?:#loc\d*|"[^"]*"|unknown)\)', "", text)
