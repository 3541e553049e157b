#!/usr/bin/env python3
"""compare_kimi_k3.py FOLDER [VARIANT ...]: the numpy model that tests compare Kimi K3 with, against nemo-automodel, both in f64.

Needs torch, transformers and nemo-automodel (0.7.0, without its dependencies). Kernels that need a GPU are replaced by plain PyTorch:
the convolution, the delta rule, the gated norm. Prints the largest difference of logits for each variant; exits with 1 above 1e-9."""

import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/Integration"))
from kimi_k3_checkpoint import VARIANTS, make  # noqa: E402
from kimi_k3_model import Model  # noqa: E402

torch.set_default_dtype(torch.float64)
# What the library computes in f32 is f64 here.
plain_to = torch.Tensor.to
torch.Tensor.float = torch.Tensor.double
torch.Tensor.to = lambda self, *args, **options: plain_to(
    self, *[torch.float64 if each is torch.float32 else each for each in args],
    **{name: torch.float64 if each is torch.float32 else each for name, each in options.items()})

import nemo_automodel.components.models.kimi_k3.model as nemo  # noqa: E402
from nemo_automodel.components.models.common import BackendConfig  # noqa: E402
from nemo_automodel.components.models.kimi_k3.config import KimiK3TextConfig  # noqa: E402


class Convolution(nn.Module):
    def __init__(self, hidden_size, kernel_size, **_):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size, 1, kernel_size))

    def forward(self, x, **_):
        channels, _, taps = self.weight.shape
        y = functional.conv1d(functional.pad(x.transpose(1, 2), (taps - 1, 0)), self.weight, groups=channels)
        return functional.silu(y).transpose(1, 2), None


class GatedNorm(nn.Module):
    def __init__(self, size, eps, activation, **_):
        super().__init__()
        assert activation == "sigmoid"
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x, gate):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * torch.sigmoid(gate)


def delta_rule(q, k, v, g, beta, use_qk_l2norm_in_kernel, **_):
    assert use_qk_l2norm_in_kernel
    unit = lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)
    q, k = unit(q) * q.shape[-1]**-0.5, unit(k)
    state, out = torch.zeros(*k.shape[:1], *k.shape[2:], v.shape[-1]), torch.zeros_like(v)
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None]
        error = v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t])
        state = state + beta[:, t][..., None, None] * k[:, t][..., None] * error[:, :, None]
        out[:, t] = torch.einsum("bhkv,bhk->bhv", state, q[:, t])
    return out, None


nemo._require_fla = lambda: None
nemo.ShortConvolution, nemo.FusedRMSNormGated, nemo.chunk_kda = Convolution, GatedNorm, delta_rule


def weight(ours, name):
    """The numpy model's array for a parameter of the library's."""
    name = name.replace("._fp32_params", "")
    if "mlp." in name and "layers.0." not in name:
        name = name.replace(".mlp.", ".block_sparse_moe.")
    experts, _, kind = name.rpartition(".")
    every = range(ours.config["num_experts"])
    if kind == "gate_and_up_projs":
        return np.stack([np.concatenate([ours.expert_matrix(f"{experts}.{e}.{w}") for w in ("w1", "w3")]).T for e in every])
    if kind == "down_projs":
        return np.stack([ours.expert_matrix(f"{experts}.{e}.w2").T for e in every])
    array = ours.get(name)
    return array[:ours.config["linear_attn_config"]["num_heads"]] if kind == "A_log" else array


def main():
    folder, variants = sys.argv[1], sys.argv[2:] or [name for name in VARIANTS if name not in ("no-latent", "k31") and not name.startswith("vision")]  # the library has neither
    tokens, isWrong = np.random.default_rng(3).integers(0, 512, size=70), False
    for variant in variants:
        make(variant, f"{folder}/{variant}")
        ours = Model.read(f"{folder}/{variant}")
        expected = ours.run(tokens)
        config = KimiK3TextConfig(**ours.config, torch_dtype="float64", kda_use_fused_gate=False)
        backend = BackendConfig(attn="sdpa", linear="torch", rms_norm="torch", experts="torch", dispatcher="torch", rope_fusion=False,
                                gate_precision=torch.float64)
        model = nemo.KimiK3ForCausalLM(config, backend=backend).double().eval()
        model.load_state_dict({name: torch.tensor(weight(ours, name)).reshape(tensor.shape) for name, tensor in model.state_dict().items()})
        with torch.no_grad():
            output = model(torch.tensor(tokens)[None])
        logits = getattr(output, "logits", output)[0].numpy()
        difference = np.abs(logits - expected).max()
        isWrong |= not difference <= 1e-9
        print(f"{variant:20} {difference:.2g}")
    sys.exit(isWrong)


main()
