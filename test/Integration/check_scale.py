"""check_scale.py CHECKPOINT FOLDER: compiles a checkpoint of true size, and a slice of it for a GPU; says what came out and whether 2 GB of
memory sufficed."""

import json
import resource
import subprocess
import sys

checkpoint, folder = sys.argv[1:]
for name, options in (("cpu", []), ("cuda:sm_90a, layers 0-4", ["--target=cuda:sm_90a", "--layers=0-4"])):
    bundle = f"{folder}/model.moeb"
    subprocess.run(["rm", "-rf", bundle], check=True)
    subprocess.run(["moec", "compile", checkpoint, "-o", bundle, *options], check=True, stdout=subprocess.DEVNULL)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    text = subprocess.run(["moec", "inspect", bundle, "--json"], check=True, capture_output=True, text=True).stdout
    vocabulary = json.loads(text.splitlines()[-1])["language_model"]["vocabulary"]
    print(f"{name}: a language model of {vocabulary} words, 2 GB {'suffice' if most < 2 << 30 else f'do not suffice: {most}'}")
