"""prepare_families.py FOLDER TARGET: the small checkpoints of all model families, compiled for a device, with their references. Runs where
the compiler is; check_families.py runs on the device's machine."""

import json
import os
import shutil
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
folder, target = os.path.abspath(sys.argv[1]), sys.argv[2]
models = f"{root}/test/models/families"
shutil.rmtree(folder, ignore_errors=True)
errors = {}
for name in sorted(os.listdir(models)):
    shutil.copytree(f"{models}/{name}", f"{folder}/{name}")
    for precision in ("f32", "bf16"):
        # As test/Integration/check_families.py: a model in bf16 that chooses keys is compared with one that takes all.
        with open(f"{models}/{name}/reference.safetensors", "rb") as file:
            has_dense = b'"dense_logits"' in file.read(1 << 16)
        choice = ["--set=index_topk=96"] if precision == "bf16" and has_dense else []
        command = [f"{root}/build/bin/moec", "compile", f"{models}/{name}/checkpoint", "-o", f"{folder}/{name}/{precision}.moeb",
                   f"--target={target}", f"--precision={precision}", *choice]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            errors[f"{name} {precision}"] = result.stderr.strip()
            print(name, precision, result.stderr.strip()[:300])
with open(f"{folder}/errors.json", "w", encoding="utf-8") as file:
    json.dump(errors, file)
print(f"{len(os.listdir(models))} families, {len(errors)} bundles not compiled")
