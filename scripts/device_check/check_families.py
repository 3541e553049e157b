"""The small checkpoints of all model families on a device, against what the families' own libraries make of them."""

import json
import os

import numpy as np

import moert
from check_model import prompt_logits, read_safetensors


def check_family(library, folder, device):
    """Largest differences: of logits in f32, of chunks, of a sequence among others; bf16's root mean square; steps that repeat with other bits."""
    reference = read_safetensors(f"{folder}/reference.safetensors")
    tokens, expected = reference["tokens"].astype(np.int32), reference["logits"]
    rows = slice(None) if len(expected) == len(tokens) else slice(-len(expected), None)
    record = {}
    for precision in ("f32", "bf16"):
        model = library.load(f"{folder}/{precision}.moeb", device, weights=f"{folder}/checkpoint")
        session = model.session()
        logits = prompt_logits(session, tokens)
        record[f"{precision} repeats"] = sum(not np.array_equal(prompt_logits(session, tokens), logits) for _ in range(5))
        if precision == "f32":
            record["logits"] = float(np.abs(logits[rows] - expected).max())
            for chunk in (1, 7, 16, 64):
                record[f"chunk {chunk}"] = float(np.abs(prompt_logits(session, tokens, chunk) - logits).max())
            lengths = [5, len(tokens), 1, 33]
            sequences = [session.sequence() for _ in lengths]
            together = session.step([(s, tokens[:n]) for s, n in zip(sequences, lengths)])
            record["ragged"] = float(np.abs(together - np.concatenate([logits[:n] for n in lengths])).max())
        else:
            dense = reference.get("dense_logits", expected)
            record["bf16 rms"] = float(np.sqrt(((logits[rows] - dense) ** 2).mean()) / dense.std())
            record["bf16 median row"] = float(np.median(np.sqrt(((logits[rows] - dense) ** 2).mean(1)) / dense.std()))
            # As test/Integration/check_families.py.
            record["bf16 allowed"] = max(0.05, 1.2 * float(reference.get("bf16_error", [0])[0]))
        session.close()
        model.close()
    record["sound"] = (max(value for name, value in record.items() if name in ("logits", "ragged") or name.startswith("chunk")) <= 1e-4
                       and record["bf16 rms"] <= record["bf16 allowed"] and record["bf16 median row"] <= 0.05 and not record["f32 repeats"] and not record["bf16 repeats"])
    return record


def check(library, folder, device):
    """Prints a line for each family. -> by family a record, or what went wrong."""
    records = {}
    errors = json.load(open(f"{folder}/errors.json", encoding="utf-8"))
    for name in sorted(os.listdir(folder)):
        if not os.path.isdir(f"{folder}/{name}"):
            continue
        try:
            missing = [text for key, text in errors.items() if key.split()[0] == name]
            if missing:
                raise moert.Error(missing[0])
            record = check_family(library, f"{folder}/{name}", device)
        except moert.Error as error:
            record = {"error": str(error), "sound": False}
        records[name] = record
        numbers = ", ".join(f"{key} {value:.2g}" for key, value in record.items() if isinstance(value, float))
        print(f"{name:28} {'agrees' if record['sound'] else 'DIFFERS'}: {record.get('error', numbers)}", flush=True)
    return records
