"""prepare_ops.py FOLDER SEED ROUNDS TARGET: random programs of moe ops (those of the differential test) compiled for a device, with
inputs and what the reference interpreter makes of them. Runs where the compiler is; check_ops.py runs on the device's machine."""

import json
import os
import subprocess
import sys

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{root}/test/Integration")
from compare import widen
from differential_programs import HOPPER_SCALES, encode, make

folder, seed, rounds, target = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
tools = f"{root}/build/bin"
os.makedirs(folder, exist_ok=True)


cases = []
for program in make(folder, seed, rounds, HOPPER_SCALES):
    source = f"{folder}/{program.name}.mlir"
    command = [f"{tools}/moec", "compile", source, "-o", f"{folder}/{program.name}.moeb", f"--target={target}", "--copy-weights"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        cases.append({"program": program.name, "error": result.stderr.strip()})
        continue
    for tokens in (0, 1, 5, 33, 130):
        arrays, files, types = {}, [], {}
        for name, (dtype, maker) in program.makers.items():
            x = encode(dtype, maker(tokens))
            files.append(f"{folder}/in.npy.{name}")
            with open(files[-1], "wb") as file:
                np.save(file, x.view("V2") if dtype == "bf16" else x)
            arrays[f"in.{name}"], types[name] = x, str(dtype)
        expected = [f"{folder}/expected{i}.npy" for i in range(len(program.results))]
        command = [f"{tools}/moec-interpret", source, f"--entry={program.name}", "--cache-blocks=2048"]
        command += [f"--input={i}={file}" for i, file in enumerate(files)] + [f"--output={i}={file}" for i, file in enumerate(expected)]
        subprocess.run(command, check=True, capture_output=True)
        kinds = [kind.split("x")[-1].rstrip(">") for _, kind in program.results]
        for i, (file, kind) in enumerate(zip(expected, kinds)):
            arrays[f"out.out{i}"] = widen(np.load(file), kind)
        name = f"{program.name}-{tokens}"
        np.savez_compressed(f"{folder}/{name}.npz", **arrays)
        cases.append({"program": program.name, "tokens": tokens, "data": name, "inputs": types, "results": kinds,
                      "roundings": program.roundings})
with open(f"{folder}/cases.json", "w") as file:
    json.dump(cases, file)
for name in os.listdir(folder):
    if not name.endswith((".npz", ".moeb", "cases.json")):
        os.remove(f"{folder}/{name}")
print(f"{len(cases)} cases, {sum('error' in case for case in cases)} not compiled")
for case in cases:
    if "error" in case:
        print(case["program"], case["error"][:300])
