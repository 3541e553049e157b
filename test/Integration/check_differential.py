"""check_differential.py FOLDER SEED ROUNDS [TARGET]: random programs, compiled and interpreted, must agree.

scripts/device_check/compare.py says what agreeing is."""

import os
import subprocess
import sys

import numpy as np

from differential_programs import encode, make

sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../../scripts/device_check")
from compare import compare, widen

folder, seed, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
target = [f"--target={sys.argv[4]}"] if len(sys.argv) > 4 else []
programs = make(folder, seed, rounds)


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
                ["moec-interpret", source, f"--entry={program.name}", "--cache-blocks=2048"]
                + [f"--input={i}={file}" for i, file in enumerate(files.values())]
                + [f"--output={i}={file}" for i, file in enumerate(expected)]]
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            yield f"{' '.join(command[:2])}: exit code {result.returncode}: {result.stderr}"
            return
    for i, (_, kind) in enumerate(program.results):
        kind = kind.split("x")[-1].rstrip(">")
        got, wanted = (widen(np.load(file), kind) for file in (f"{folder}/out/out{i}.npy", expected[i]))
        if problem := compare(got, wanted, kind, program.roundings):
            yield f"result {i}: {problem}"


failures = []
for program in programs:
    command = ["moec", "compile", f"{folder}/{program.name}.mlir", "-o", f"{folder}/{program.name}.moeb", *target]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        failures.append(f"{program.name}: cannot be compiled: {result.stderr.strip()}")
        continue
    for tokens in (0, 1, 5, 33):
        failures += [f"{program.name}, {tokens} tokens: {text}" for text in check(program, tokens)]
print("\n".join(failures) or f"{rounds} programs of each kind agree")
sys.exit(bool(failures))
