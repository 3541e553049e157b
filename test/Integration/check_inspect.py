"""check_inspect.py BUNDLE: flips one byte of one weight inside the bundle; `--verify` names the tensor, and running never crashes."""

import os
import subprocess
import sys

from common import moec

bundle = sys.argv[1]
before = moec("inspect", bundle, "--verify")
assert before["verified"] == {"intact": True, "weights_without_digest": 0}, before["verified"]
weight = next(each for each in before["weights"] if each["name"] == "model.layers.1.mlp.router.weight")
path = os.path.join(bundle, before["weight_files"][weight["file"]]["path"])
with open(path, "r+b") as file:
    file.seek(weight["offset"] + 3)
    old = file.read(1)
    file.seek(weight["offset"] + 3)
    file.write(bytes([old[0] ^ 0xFF]))
result = subprocess.run(["moec", "inspect", bundle, "--verify"], capture_output=True, text=True, check=False)
assert result.returncode == 1, result
assert "model.layers.1.mlp.router.weight" in result.stderr, result.stderr
result = subprocess.run(["moec", "run", bundle, "--ids", "0,5,6", "--max-tokens", "2"], capture_output=True, check=False)
assert result.returncode in (0, 1), result
print("named")
