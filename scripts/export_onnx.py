#!/usr/bin/env python3
"""Exports a gpt-oss model to ONNX, the way that a user of transformers would.

    export_onnx.py CHECKPOINT_DIR -o model.onnx
    export_onnx.py --random micro -o test/models/gptoss-micro/model.onnx --reference reference.safetensors

The graph is what `torch.onnx.export(dynamo=True)` writes, untouched: inputs `input_ids` and
`position_ids` of [batch, tokens] and `past_key_values.N.key` / `.value` of [batch, heads, past, size],
outputs `logits` of [batch, tokens, vocabulary] and `present.N.key` / `.value`.

`--random NAME` makes a small model with random weights from a fixed seed; such exports are test data.
With `--reference FILE` the logits of transformers (eager attention, float32, no cache) on a fixed
prompt are written beside it, and with `--checkpoint DIR` the same weights as a checkpoint folder, so
that a test can compare the two ways into the compiler.

Needs torch, transformers, onnx, onnxscript and safetensors (`pip install` them; none is needed to
build or to use the compiler). The versions that wrote the test data are recorded in each file's
metadata.
"""

import argparse
import json
import os
import pathlib
import sys

# Small gpt-oss models. No two dimensions that could be confused are equal, and the windows are shorter
# than the reference prompt, so that a mistake in either shows in the logits.
RANDOM_MODELS = {
    "micro": dict(
        hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, head_dim=8, num_local_experts=5, num_experts_per_tok=2,
        sliding_window=5, vocab_size=48, swiglu_limit=1.0, max_position_embeddings=4096,
        rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=32.0,
                             original_max_position_embeddings=128, beta_fast=8.0, beta_slow=1.0,
                             truncate=False),
    ),
    "tiny": dict(
        hidden_size=96, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, num_local_experts=8, num_experts_per_tok=2,
        sliding_window=8, vocab_size=512, swiglu_limit=1.0, max_position_embeddings=16384,
        rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=32.0,
                             original_max_position_embeddings=512, beta_fast=32.0, beta_slow=1.0,
                             truncate=False),
    ),
}

REFERENCE_TOKENS = 48


def make_random_model(name):
    import torch
    from transformers import GptOssConfig, GptOssForCausalLM

    sizes = RANDOM_MODELS[name]
    layers = sizes["num_hidden_layers"]
    config = GptOssConfig(
        layer_types=["sliding_attention" if i % 2 == 0 else "full_attention" for i in range(layers)],
        rms_norm_eps=1e-5, attention_bias=True, tie_word_embeddings=False, bos_token_id=0,
        eos_token_id=1, pad_token_id=1, **sizes)
    model = GptOssForCausalLM(config)
    generator = torch.Generator().manual_seed(20240501)
    # The spread of each kind of weight; every tensor must matter in the logits.
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("sinks"):
                parameter.copy_(2.0 * noise)
            elif "norm" in name:
                parameter.copy_(1.0 + 0.1 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.5 * noise)
            elif "router" in name or "embed" in name:
                parameter.copy_(noise / parameter.shape[-1] ** 0.5 * 1.5)
            else:
                parameter.copy_(noise / parameter.shape[-1] ** 0.5)
            # Weights that bf16 holds exactly, so that a checkpoint in bf16 is the same model.
            parameter.copy_(parameter.to(torch.bfloat16).float())
    return model


def load_checkpoint(directory):
    import torch
    from transformers import AutoConfig, GptOssForCausalLM

    if not (directory / "config.json").is_file():
        sys.exit(f"error: {directory} holds no config.json; name the folder of a gpt-oss checkpoint")
    config = AutoConfig.from_pretrained(directory, local_files_only=True)
    if config.model_type != "gpt_oss":
        sys.exit(f"error: {directory}/config.json: model_type is '{config.model_type}', "
                 "this script exports 'gpt_oss'")
    options = {}
    if getattr(config, "quantization_config", None):
        from transformers import Mxfp4Config

        options["quantization_config"] = Mxfp4Config(dequantize=True)
    return GptOssForCausalLM.from_pretrained(directory, local_files_only=True, dtype=torch.bfloat16,
                                             **options)


def make_wrapper(model):
    """Gives the model the signature of the exported graph: the cache as plain tensors."""
    import torch
    from transformers import DynamicCache

    class LanguageModelStep(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, position_ids, *past):
            pairs = [(past[i], past[i + 1]) for i in range(0, len(past), 2)]
            # Without the configuration every layer keeps the whole past, windowed ones too.
            cache = DynamicCache(pairs)
            result = self.model(input_ids=input_ids, position_ids=position_ids,
                                past_key_values=cache, use_cache=True)
            present = []
            for layer in result.past_key_values.layers:
                present += [layer.keys, layer.values]
            return (result.logits, *present)

    return LanguageModelStep().eval()


def export(model, path, opset, external_data):
    import onnx
    import onnxscript
    import torch
    import transformers

    config = model.config
    model.config._attn_implementation = "eager"
    model.set_experts_implementation("batched_mm")
    layers = config.num_hidden_layers
    # Sizes that differ from each other and from one: equal or unit sizes would be taken as constants.
    batch, tokens, past = 2, 5, 3
    cache_shape = (batch, config.num_key_value_heads, past, config.head_dim)
    dtype = next(model.parameters()).dtype
    caches = [torch.randn(cache_shape, dtype=dtype) for _ in range(2 * layers)]
    arguments = (torch.randint(0, config.vocab_size, (batch, tokens)),
                 torch.arange(past, past + tokens).expand(batch, tokens).contiguous(), *caches)

    dim = torch.export.Dim
    batch_dim, tokens_dim, past_dim = dim("batch"), dim("tokens"), dim("past")
    token_shape = {0: batch_dim, 1: tokens_dim}
    shapes = (token_shape, token_shape, tuple({0: batch_dim, 2: past_dim} for _ in caches))
    names = [f"{{}}.{i}.{part}" for i in range(layers) for part in ("key", "value")]
    program = torch.onnx.export(
        make_wrapper(model), arguments, dynamo=True, dynamic_shapes=shapes, opset_version=opset,
        input_names=["input_ids", "position_ids"] + [n.format("past_key_values") for n in names],
        output_names=["logits"] + [n.format("present") for n in names])
    path.parent.mkdir(parents=True, exist_ok=True)
    program.save(str(path), external_data=external_data)

    proto = onnx.load(str(path), load_external_data=False)
    versions = dict(torch=torch.__version__, transformers=transformers.__version__,
                    onnx=onnx.__version__, onnxscript=onnxscript.__version__)
    for key, value in versions.items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = f"exported_with.{key}", value
    path.write_bytes(proto.SerializeToString())
    size = path.stat().st_size
    print(f"{path}: opset {opset}, {len(proto.graph.node)} nodes, {size} bytes")


def strip_debugging(path):
    """Drops stack traces and other notes of the exporter, which are most of a small file."""
    import onnx

    proto = onnx.load(str(path), load_external_data=False)
    for node in proto.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*proto.graph.value_info, *proto.graph.input, *proto.graph.output]:
        del value.metadata_props[:]
    for tensor in proto.graph.initializer:
        del tensor.metadata_props[:]
    del proto.graph.metadata_props[:]
    path.write_bytes(proto.SerializeToString())
    print(f"{path}: {path.stat().st_size} bytes without the exporter's notes")


def write_reference(model, path):
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(7)
    tokens = torch.randint(0, model.config.vocab_size, (REFERENCE_TOKENS,), generator=generator)
    with torch.no_grad():
        logits = model(input_ids=tokens[None], use_cache=False).logits[0].float()
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({"tokens": tokens.to(torch.int32), "logits": logits.contiguous()}, str(path))
    print(f"{path}: logits of {REFERENCE_TOKENS} tokens")


def write_checkpoint(model, directory):
    import torch
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    tensors = {name: p.detach().to(torch.bfloat16).contiguous()
               for name, p in model.state_dict().items()}
    save_file(tensors, str(directory / "model.safetensors"), metadata={"format": "pt"})
    config = model.config.to_dict()
    config["architectures"] = ["GptOssForCausalLM"]
    config["dtype"] = "bfloat16"
    config.pop("transformers_version", None)
    (directory / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    print(f"{directory}: checkpoint in bf16")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="\n\n".join(__doc__.split("\n\n")[1:]))
    parser.add_argument("checkpoint_dir", nargs="?", type=pathlib.Path,
                        help="folder with config.json and safetensors files (omit with --random)")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, help="the .onnx file")
    parser.add_argument("--random", choices=sorted(RANDOM_MODELS),
                        help="export a small model with random weights instead")
    parser.add_argument("--opset", type=int, default=23, help="operator set (default: 23)")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32",
                        help="type of weights and activations in the graph (default: f32)")
    parser.add_argument("--inline", action="store_true",
                        help="keep the weights inside the .onnx file (default: beside it, .onnx.data)")
    parser.add_argument("--strip", action="store_true",
                        help="drop the exporter's stack traces and notes")
    parser.add_argument("--reference", type=pathlib.Path, metavar="FILE",
                        help="also write a prompt and its logits, as safetensors")
    parser.add_argument("--checkpoint", type=pathlib.Path, metavar="DIR",
                        help="also write the model as a checkpoint folder in bf16")
    arguments = parser.parse_args()
    if (arguments.checkpoint_dir is None) == (arguments.random is None):
        parser.error("name either a checkpoint folder or --random MODEL")

    # Nothing is ever fetched.
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    if arguments.random:
        model = make_random_model(arguments.random)
    else:
        model = load_checkpoint(arguments.checkpoint_dir)
    model = model.eval().float()
    model.config._attn_implementation = "eager"
    if arguments.reference:
        write_reference(model, arguments.reference)
    if arguments.checkpoint:
        write_checkpoint(model, arguments.checkpoint)
    if arguments.dtype == "bf16":
        model = model.to(torch.bfloat16)
    with torch.no_grad():
        export(model, arguments.output, arguments.opset, external_data=not arguments.inline)
    if arguments.strip:
        strip_debugging(arguments.output)


if __name__ == "__main__":
    main()
