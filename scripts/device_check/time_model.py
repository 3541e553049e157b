"""time_model.py BUNDLE WEIGHTS [DEVICE]: a prompt of 2,048 tokens, decode steps at batch 1, 8 and 64, and the time of each op. WEIGHTS is
the folder of the checkpoint, made by make_tiny_checkpoint.py with the same arguments on both machines."""

import json
import os
import subprocess
import sys
import time

import numpy as np

import moert

PROMPT, BEFORE, STEPS = 2048, 128, 32  # tokens of the prompt; tokens before the decode steps; decode steps


def tokens(rng, count):
    return rng.integers(0, 2048, count).astype(np.int32)


def time_prompt(session, rng):
    times = []
    for _ in range(6):
        sequence = session.sequence()
        begin = time.perf_counter()
        session.step([(sequence, tokens(rng, PROMPT))], moert.LOGITS_LAST)
        times.append(time.perf_counter() - begin)
        session.release(sequence)
    return float(np.median(times[1:]))


def time_decode(session, rng, batch):
    """Median seconds of a step whose tokens the device chooses, and of one whose logits the host fetches."""
    sequences = [session.sequence() for _ in range(batch)]
    for sequence in sequences:
        session.advance([(sequence, tokens(rng, BEFORE))])
    chosen, chosen_times, fetched_times = tokens(rng, batch), [], []
    for step in range(2 * STEPS):
        begin = time.perf_counter()
        session.advance([(s, [t]) for s, t in zip(sequences, chosen)])
        if step < STEPS:
            chosen = session.choose([(row, 0.0, 0, 1.0, 0.0) for row in range(batch)])
        else:
            chosen = session.logits().argmax(1)
        (chosen_times if step < STEPS else fetched_times).append(time.perf_counter() - begin)
    for sequence in sequences:
        session.release(sequence)
    return float(np.median(chosen_times[4:])), float(np.median(fetched_times))


def main():
    bundle, weights, device = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["cuda"])[0]
    here, rng = os.path.dirname(os.path.abspath(__file__)), np.random.default_rng()
    model = moert.Library(f"{here}/libmoert.so").load(bundle, device, weights=weights)
    session = model.session()
    seconds = time_prompt(session, rng)
    print(f"prompt of {PROMPT}: {1e3 * seconds:.2f} ms, {PROMPT / seconds:.0f} tokens/s", flush=True)
    for batch in (1, 8, 64):
        chosen, fetched = time_decode(session, rng, batch)
        print(f"decode, batch {batch}: {1e3 * chosen:.3f} ms with tokens chosen on the device, {1e3 * fetched:.3f} ms with logits fetched", flush=True)
    session.close()
    model.close()
    command = [f"{here}/moert", "bench", bundle, "--weights", weights, "--device", device, "--prompt-tokens", str(PROMPT), "--new-tokens", "32"]
    result = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    print(json.dumps(result, indent=1))


main()
