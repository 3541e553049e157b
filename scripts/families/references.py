"""What a family's library makes of a checkpoint, layer by layer, and how far it is off itself in float32."""

import copy
import tempfile

import deepseek_v4
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode
from write_reference import METADATA, run_layers

LONG, LAST = 300, 4


class Float64(TorchFunctionMode):
    """Whatever asks for float32 gets float64."""

    def __torch_function__(self, function, types, arguments=(), named=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(widen, arguments), **{name: widen(x) for name, x in (named or {}).items()})


def to_float64(x):
    if isinstance(x, torch.Tensor):
        return x.double() if x.is_floating_point() else x
    if isinstance(x, (list, tuple)):
        return type(x)(map(to_float64, x))
    if type(x) is dict:
        return {key: to_float64(value) for key, value in x.items()}
    return x


def error(actual, expected):
    """Relative root mean square."""
    return ((actual.double() - expected.double()).square().sum() / expected.double().square().sum()).sqrt().item()


def own_errors(model, calls, tokens, logits):
    """Of the layers, each given the inputs that it had, and of the logits from end to end."""
    wide = copy.deepcopy(model).double()
    layers = [module for module in wide.modules() if type(module).__name__.endswith("DecoderLayer")]
    worst = 0
    with torch.no_grad(), Float64():
        for layer, (arguments, named, result) in zip(layers, calls):
            exact = layer(*to_float64(arguments), **to_float64(named))
            pair = [x[0] if isinstance(x, tuple) else x for x in (result, exact)]
            worst = max(worst, error(*pair))
        exact = wide(tokens[None], use_cache=False).logits[0]
    return worst, error(logits, exact)


def load(checkpoint):
    config = transformers.AutoConfig.from_pretrained(checkpoint)
    if getattr(config, "quantization_config", None):
        with tempfile.TemporaryDirectory() as folder:
            deepseek_v4.unpack(checkpoint, f"{folder}/plain")
            return load(f"{folder}/plain")
    kind = getattr(transformers, config.architectures[0])
    return kind.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager").eval()


def add(place):
    """Adds the sequences `short.` and `long.` to place/reference.safetensors; what is there of whole sequences stays."""
    path = f"{place}/reference.safetensors"
    model, tensors = load(f"{place}/checkpoint"), load_file(path)
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(("short.", "long."))}
    tokens = tensors["tokens"].long()
    logits, _, calls = run_layers(model, tokens)
    assert (logits - tensors["logits"]).abs().max() < 1e-5, "the checkpoint is not the one that the reference is of"
    layers, whole = own_errors(model, calls, tokens, logits)
    # Longer than windows and choices: windows of 128 tokens in one of the models.
    short = tokens[:136 if len(tokens) > 136 else 40]
    tensors["short.tokens"] = short.int()
    tensors |= {f"short.{name}": stream for name, stream in run_layers(model, short)[1].items()}
    long = torch.randint(0, model.config.get_text_config().vocab_size, (LONG,), generator=torch.Generator().manual_seed(11))
    logits, _, calls = run_layers(model, long)
    tensors["long.tokens"], tensors[f"long.logits_last{LAST}"] = long.int(), logits[-LAST:].contiguous()
    errors = [max(pair) for pair in zip(own_errors(model, calls, long, logits), (layers, whole))]
    metadata = METADATA | {"own_layer_error": f"{errors[0]:.2g}", "own_logits_error": f"{errors[1]:.2g}"}
    save_file(tensors, path, metadata=metadata)
    print(f"{place}: own errors of layers {errors[0]:.2g}, of logits {errors[1]:.2g}", flush=True)
