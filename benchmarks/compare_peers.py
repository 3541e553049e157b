#!/usr/bin/env python3
"""Times a gpt-oss model under moec, onnxruntime and transformers in one run and prints one table.

    compare_peers.py --moec build/bin/moec --checkpoint DIR [--onnx model.onnx] [--threads 2] [--prompt 512] [--new 64]

moec compiles the checkpoint first (bf16 and f32). onnxruntime runs the graph that scripts/export_onnx.py writes; transformers
runs the checkpoint, eager attention, in f32 and bf16 with its grouped experts (others by --experts). The runs take turns
(moec, peers, moec, peers, ...), and the best of the rounds counts for each, so that a machine whose speed drifts is fair to
all. Needs torch, transformers and onnxruntime from PyPI; without one of them its rows are left out.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy


def moec_runner(arguments, bundle):
    def run():
        command = [arguments.moec, "bench", bundle, "--threads", str(arguments.threads), "--prompt-tokens",
                   str(arguments.prompt), "--new-tokens", str(arguments.new), "--repetitions", "3", "--json"]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        record = json.loads(result.stdout.strip().splitlines()[-1])
        return arguments.prompt / record["time_to_first_token_s"], 1 / record["time_per_token_s"]

    return run


def onnxruntime_runner(arguments):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(arguments.onnx, options, providers=["CPUExecutionProvider"])
    inputs = {each.name: each for each in session.get_inputs()}
    outputs = [each.name for each in session.get_outputs()]
    past_names = [name for name in inputs if name.startswith("past_key_values.")]

    def step(tokens, position, past):
        feeds = {"input_ids": numpy.array([tokens], numpy.int64),
                 "position_ids": numpy.arange(position, position + len(tokens), dtype=numpy.int64)[None]}
        feeds.update(past)
        results = dict(zip(outputs, session.run(None, feeds)))
        return results["logits"], {name: results[name.replace("past_key_values", "present")] for name in past_names}

    def empty():
        past = {}
        for name in past_names:
            shape = inputs[name].shape
            past[name] = numpy.zeros((1, shape[1], 0, shape[3]), numpy.float32)
        return past

    return lambda: time_model(arguments, lambda tokens, position, past: step(tokens, position, past), empty)


def transformers_runner(arguments, dtype, implementation):
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache, Mxfp4Config

    torch.set_num_threads(arguments.threads)
    model = AutoModelForCausalLM.from_pretrained(
        arguments.checkpoint, dtype=getattr(torch, dtype), attn_implementation="eager",
        quantization_config=Mxfp4Config(dequantize=True))
    model.set_experts_implementation(implementation)
    model.eval()

    def step(tokens, position, past):
        with torch.inference_mode():
            result = model(torch.tensor([tokens]), past_key_values=past, use_cache=True, logits_to_keep=1)
        return result.logits.float().numpy(), result.past_key_values

    return lambda: time_model(arguments, step, DynamicCache)


def time_model(arguments, step, empty):
    """Tokens per second of a prompt and of decoding after it: the median of three runs."""
    generator = numpy.random.default_rng(1)
    prompt = generator.integers(2, arguments.vocabulary, arguments.prompt).tolist()
    prefill, decode = [], []
    for _ in range(3):
        begin = time.perf_counter()
        logits, past = step(prompt, 0, empty())
        prefill.append(arguments.prompt / (time.perf_counter() - begin))
        begin = time.perf_counter()
        for i in range(arguments.new):
            logits, past = step([int(logits[0, -1].argmax())], arguments.prompt + i, past)
        decode.append(arguments.new / (time.perf_counter() - begin))
    return sorted(prefill)[1], sorted(decode)[1]


def make_runners(arguments, folder):
    runners = {}
    for precision in ("bf16", "f32"):
        bundle = os.path.join(folder, precision + ".moeb")
        subprocess.run([arguments.moec, "compile", arguments.checkpoint, "-o", bundle, "--precision=" + precision],
                       check=True)
        runners["moec " + precision] = moec_runner(arguments, bundle)
    if arguments.onnx:
        try:
            runners["onnxruntime f32"] = onnxruntime_runner(arguments)
        except ImportError as error:
            print(f"without onnxruntime: {error}", file=sys.stderr)
    try:
        for dtype in ("float32", "bfloat16"):
            for implementation in arguments.experts:
                runners[f"transformers {dtype} {implementation}"] = transformers_runner(arguments, dtype, implementation)
    except ImportError as error:
        print(f"without transformers: {error}", file=sys.stderr)
    return runners


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moec", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--onnx")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--experts", nargs="+", default=["grouped_mm"], metavar="IMPLEMENTATION",
                        help="how transformers computes experts: grouped_mm, batched_mm, eager")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    config = json.loads(pathlib.Path(arguments.checkpoint, "config.json").read_text())
    arguments.vocabulary = config["vocab_size"]
    with tempfile.TemporaryDirectory() as folder:
        runners = make_runners(arguments, folder)
        best = {name: (0.0, 0.0) for name in runners}
        for _ in range(arguments.rounds):
            for name, run in runners.items():
                prefill, decode = run()
                best[name] = (max(best[name][0], prefill), max(best[name][1], decode))
    print(f"| {arguments.threads} threads | prefill {arguments.prompt}, tokens/s | decode, tokens/s |\n|---|---|---|")
    for name, (prefill, decode) in best.items():
        print(f"| {name} | {prefill:.0f} | {decode:.0f} |")


if __name__ == "__main__":
    main()
