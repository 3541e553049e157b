#!/usr/bin/env python3
"""compare_kimi_k3_vision.py FOLDER: the numpy model that tests compare Kimi K3's vision tower with, against nemo-automodel, both in f64.

Needs torch, transformers and nemo-automodel (0.7.0, without its dependencies). Prints the largest difference of embeddings, relative to the
largest one, for items of several sizes; exits with 1 above 1e-6. What the library keeps in f32 whatever the type, the table of times, is
what remains for items of several frames."""

import os
import pathlib
import sys

os.environ["TORCHDYNAMO_DISABLE"] = "1"

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/Integration"))
from kimi_k3_checkpoint import HIDDEN, VISION, make  # noqa: E402
from kimi_k3_vision import Vision  # noqa: E402

torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double
plain_softmax = torch.softmax
torch.softmax = lambda x, dim, dtype=None: plain_softmax(x, dim)

import nemo_automodel.components.models.kimi_k3.vision as nemo  # noqa: E402
from nemo_automodel.components.models.kimi_k3.config import KimiK3VisionConfig  # noqa: E402
from nemo_automodel.components.models.kimi_k3.multimodal import _projector_config, _vision_tower_config  # noqa: E402

nemo._apply_rope_input_validation = lambda x, freqs: None  # it wants complex numbers of 2 x 32 bits


class Config:
    vision_config = KimiK3VisionConfig(**VISION, attn_implementation="eager", text_hidden_size=HIDDEN)
    text_config = type("Text", (), dict(hidden_size=HIDDEN))


def load(module, prefix, tensors):
    module.load_state_dict({name: torch.tensor(tensors[prefix + name].astype(np.float64)) for name in module.state_dict()})
    for child in module.modules():
        if isinstance(child, torch.nn.RMSNorm) and child.eps is None:
            child.eps = torch.finfo(torch.float32).eps  # what it is in the types that the model runs in
    return module.double().eval()


def main():
    make("vision", f"{sys.argv[1]}/vision")
    ours = Vision.read(f"{sys.argv[1]}/vision")
    tower = load(nemo.MoonViT3dPretrainedModel(_vision_tower_config(Config)), "vision_tower.", ours.tensors)
    projector = load(nemo.PatchMergerMLPV2(_projector_config(Config)), "mm_projector.", ours.tensors)
    rng, is_wrong = np.random.default_rng(3), False
    for grid in [(1, 4, 6), (1, 6, 6), (2, 4, 6), (4, 2, 4), (1, 20, 14)]:
        patches = rng.normal(size=(np.prod(grid), 3, VISION["patch_size"], VISION["patch_size"]))
        with torch.no_grad():
            theirs = projector(tower(torch.tensor(patches), torch.tensor([grid])))[0].numpy()
        expected = ours.encode(patches, grid)
        difference = np.abs(theirs - expected).max() / np.abs(expected).max()
        is_wrong |= not difference <= 1e-6
        print(f"{str(grid):12} {difference:.2g}")
    sys.exit(is_wrong)


main()
