"""Makes the checkpoints that no folder of test/models has: python3 make_checkpoints.py ROOT OUTPUT."""

import pathlib
import subprocess
import sys

root, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "test/Integration"))
import kimi_k3_checkpoint

for variant in ("k3", "groups", "no-latent", "ordinary-residuals", "k31"):
    kimi_k3_checkpoint.make(variant, output / f"kimi-{variant}")
scripts = root / "scripts/families"
for family, script, *form in (
    ("qwen3-moe", "pack_experts.py"),
    ("qwen3-moe", "quantize.py", "fp8:48x40"),
    ("qwen3-next", "quantize.py", "fp8-e8m0:128x128"),
    ("qwen3.5-moe", "quantize.py", "fp8"),
    ("deepseek-v3", "quantize.py", "int4:32"),
):
    checkpoint, folder = root / "test/models/families" / family / "checkpoint", output / "-".join([family, script[:4], *form]).replace(":", "-")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, scripts / script, checkpoint, folder, *form], check=True)
