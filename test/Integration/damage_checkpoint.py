"""Damages the checkpoint folder that it is given in four ways."""

import json
import os
import sys

folder = sys.argv[1]
path = os.path.join(folder, "config.json")
with open(path, encoding="utf-8") as file:
    config = json.load(file)
config["hidden_size"] = "wide"
config["rope_scaling"]["factor"] = 0
with open(path, "w", encoding="utf-8") as file:
    json.dump(config, file)

shard = os.path.join(folder, "model-00001-of-00002.safetensors")
os.truncate(shard, os.path.getsize(shard) - 1)
os.remove(os.path.join(folder, "model-00002-of-00002.safetensors"))
