"""check_differential.py FOLDER SEED COUNT [TARGET]: random programs, compiled and interpreted, must agree.

Relative RMS of the difference: 1e-5 for f32 results, 2.5e-3 for bf16 ones (rounding alone costs 1.7e-3) and as many times the root of
the number of kernels that round one after the other. Indices must be equal."""

import os
import subprocess
import sys

import numpy as np

from differential_programs import encode, make

folder, seed, count = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
target = [f"--target={sys.argv[4]}"] if len(sys.argv) > 4 else []
programs = make(folder, seed, count)


def numbers(file):
    """f32 and i32 as they are, raw 16-bit elements as bf16."""
    x = np.load(file)
    return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if x.dtype.kind == "V" else x


def write(program, tokens, rng):
    files = {}
    for name, (dtype, maker) in program.makers.items():
        x = encode(dtype, maker(tokens))
        files[name] = f"{folder}/{name}.npy"
        np.save(files[name], x.view("V2") if dtype == "bf16" else x)
    return files


def check(program, tokens):
    """What differs, a line each."""
    source, bundle = f"{folder}/{program.name}.mlir", f"{folder}/{program.name}.moeb"
    files = write(program, tokens, program.rng)
    inputs = [argument for name, file in files.items() for argument in ("--input", f"{name}={file}")]
    expected = [f"{folder}/expected{i}.npy" for i in range(len(program.results))]
    commands = [["moec", "run", bundle, *inputs, "--outputs", f"{folder}/out"],
                ["moec-interpret", source, f"--entry={program.name}"]
                + [f"--input={i}={file}" for i, file in enumerate(files.values())]
                + [f"--output={i}={file}" for i, file in enumerate(expected)]]
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            yield f"{' '.join(command[:2])}: exit code {result.returncode}: {result.stderr}"
            return
    for i, (_, kind) in enumerate(program.results):
        a, b = numbers(f"{folder}/out/out{i}.npy"), numbers(expected[i])
        if a.shape != b.shape:
            yield f"result {i}: shape {a.shape}, expected {b.shape}"
        elif kind.endswith("xi32>"):
            if not np.array_equal(a, b):
                yield f"result {i}: {(a != b).sum()} of {a.size} integers differ"
        else:
            a, b = a.astype(np.float64), b.astype(np.float64)
            distance = float(np.sqrt(((a - b) ** 2).sum() / max((b**2).sum(), 1e-30)))
            if not distance <= (1e-5 if kind.endswith("xf32>") else 2.5e-3 * program.roundings**0.5):
                yield f"result {i}: relative RMS {distance:.3g}"


failures = []
for program in programs:
    command = ["moec", "compile", f"{folder}/{program.name}.mlir", "-o", f"{folder}/{program.name}.moeb", *target]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        failures.append(f"{program.name}: cannot be compiled: {result.stderr.strip()}")
        continue
    for tokens in (0, 1, 5, 33):
        failures += [f"{program.name}, {tokens} tokens: {text}" for text in check(program, tokens)]
print("\n".join(failures) or f"{len(programs)} programs agree")
sys.exit(bool(failures))
