"""check_context_memory.py MODELS FOLDER: compiles models that choose positions for contexts of 131,072 tokens and computes from the plan
how much memory a step needs beside weights and caches: for a decode step, and for a prefill of 32,768 tokens."""

import math
import subprocess
import sys

from common import moec

models, folder = sys.argv[1:]
CONTEXT, PREFILL, BLOCK = 131072, 32768, 16


def evaluate(expression, symbols):
    return eval(expression, {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "mod": lambda a, b: a % b}, symbols)


def count_bytes(program, tokens, context):
    """Temporaries and the largest scratch space of a launch."""
    symbols = dict(tokens=tokens, sequences=1, rows=1, blocks=context // BLOCK)
    for name in program["symbols"]:
        symbols.setdefault(name, 1)
    arenas = sum(arena["bytes"] * evaluate(arena["scale"], symbols) for arena in program["arenas"])
    return arenas, max(evaluate(each, symbols) for each in program["scratch"] or ["0"])


for name, target in (("deepseek-v32", "cpu"), ("deepseek-v32", "cuda:sm_80"), ("deepseek-v32", "cuda:sm_90a"), ("glm-moe-dsa", "cpu"),
                     ("deepseek-v4", "cpu"), ("deepseek-v4", "cuda:sm_90a"), ("qwen3-next", "cuda:sm_80")):
    bundle = f"{folder}/{name}-{target.replace(':', '-')}.moeb"
    for_gpu = ["--ptx-only"] if target != "cpu" else []
    subprocess.run(["moec", "compile", f"{models}/{name}/checkpoint", "-o", bundle, f"--target={target}", *for_gpu,
                    f"--set=max_position_embeddings={CONTEXT}"], check=True, stdout=subprocess.DEVNULL)
    step = next(entry for entry in moec("inspect", bundle, "--commands")["variants"][0]["entries"] if entry["name"] == "step")
    arenas, scratch = count_bytes(step, PREFILL, CONTEXT)
    short_arenas, _ = count_bytes(step, PREFILL, BLOCK)
    decode_arenas, decode_scratch = count_bytes(step, 1, CONTEXT)
    # What depends on the context is for a number of tokens that does not depend on the step's.
    one_row = CONTEXT * 4
    fits = arenas == short_arenas and arenas < PREFILL * 64 * 1024 and decode_arenas < 1 << 20 and scratch <= 256 * one_row
    print(f"{name} for {target}: {arenas >> 20} MiB of temporaries and {scratch >> 10} KiB of scratch space for {PREFILL} tokens, "
          f"{decode_arenas >> 10} KiB and {decode_scratch >> 10} KiB for one: {'fits' if fits else 'does not fit'}")
