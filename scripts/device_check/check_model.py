"""gptoss-tiny on a device against the recorded logits, greedy texts and perplexity of transformers."""

import json
import os
import struct
import time

import numpy as np

import moert


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    types = {"F32": np.float32, "I32": np.int32}
    result = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            result[name] = np.frombuffer(data[8 + size + begin:8 + size + end], types[entry["dtype"]]).reshape(entry["shape"])
    return result


def prompt_logits(session, tokens, chunk=None):
    sequence = session.sequence()
    chunk = chunk or len(tokens)
    rows = [session.step([(sequence, tokens[i:i + chunk])]) for i in range(0, len(tokens), chunk)]
    session.release(sequence)
    return np.concatenate(rows)


def perplexity(session, ids, window=512):
    loss, count = 0.0, 0
    for begin in range(0, len(ids) - window + 1, window):
        tokens = ids[begin:begin + window].astype(np.int64)
        logits = prompt_logits(session, tokens).astype(np.float64)[:-1]
        largest = logits.max(1, keepdims=True)
        normal = np.log(np.exp(logits - largest).sum(1)) + largest[:, 0]
        loss += float((normal - logits[np.arange(window - 1), tokens[1:]]).sum())
        count += window - 1
    return float(np.exp(loss / count))


def differences(logits, reference):
    """Largest difference; root mean square over the reference's standard deviation; rows whose best token differs though the
    reference's is ahead by more than 0.1."""
    rms = float(np.sqrt(((logits - reference) ** 2).mean()) / reference.std())
    best = np.sort(reference, 1)
    clear = best[:, -1] - best[:, -2] > 0.1
    wrong = int(((logits.argmax(1) != reference.argmax(1)) & clear).sum())
    return {"largest": float(np.abs(logits - reference).max()), "rms": rms, "wrong_argmax": wrong}


GREEDY = (0.0, 0, 1.0, 0.0)


def decode(session, prompts, steps):
    """Each sequence goes on with the tokens that the device chooses. Gives the logits of all steps, and how many tokens are not those of
    the largest logits."""
    sequences, rows, wrong = [session.sequence() for _ in prompts], [], 0
    tokens = prompts
    for _ in range(steps):
        session.advance(list(zip(sequences, tokens)))
        chosen = session.choose([(row, *GREEDY) for row in range(len(sequences))])
        rows.append(session.logits())
        wrong += int((rows[-1].argmax(1) != chosen).sum())
        tokens = [[token] for token in chosen]
    for sequence in sequences:
        session.release(sequence)
    return np.stack(rows), wrong


def check_graphs(library, bundle, data, device, steps=24):
    """Steps that are replayed as graphs against the same steps launched one by one, for one sequence and for eight: by batch, how many
    steps differ in a bit, and how many tokens are chosen wrongly."""
    ids = np.load(f"{data}/eval_tokens.npy").astype(np.int32)
    record = {"differ": {}, "wrong_tokens": 0}
    for batch in (1, 8):
        prompts, results = [ids[i * 100:i * 100 + 3 + 7 * i] for i in range(batch)], []
        for graphs in (True, False):
            model = library.load(bundle, device, graphs)
            session = model.session()
            for _ in range(2 if graphs else 1):  # all steps of the second time are replayed
                logits, wrong = decode(session, prompts, steps)
                results.append(logits)
                record["wrong_tokens"] += wrong
            session.close()
            model.close()
        record["differ"][str(batch)] = sum(int((each != results[0]).any((1, 2)).sum()) for each in results[1:])
    return record


def check(library, bundle, data, device, full=True, graphs=True):
    record = {"bundle": os.path.basename(bundle)}
    started = time.time()
    model = library.load(bundle, device, graphs)
    record["load_s"], record["device"] = time.time() - started, model.device()
    session = model.session()
    reference = read_safetensors(f"{data}/reference.safetensors")
    texts = json.load(open(f"{data}/reference.json"))
    short = reference["short.tokens"]
    # The first step of all: what it reads nothing has written before, so that a kernel that does not wait for the one before it shows.
    first = prompt_logits(session, short[:8], chunk=1)
    logits = prompt_logits(session, short)
    record["first_steps"] = float(np.abs(first - logits[:8]).max())
    record["short"] = differences(logits, reference["short.logits"])
    record["long"] = differences(prompt_logits(session, reference["long.tokens"])[-64:], reference["long.logits_last64"])
    record["chunks"] = {str(chunk): float(np.abs(prompt_logits(session, short, chunk) - logits).max()) for chunk in (1, 7, 16)}

    # Unequal lengths in one step, and then one token each.
    lengths = [5, 96, 1, 33]
    sequences = [session.sequence() for _ in lengths]
    together = session.step([(s, short[:n]) for s, n in zip(sequences, lengths)])
    apart = np.concatenate([prompt_logits(session, short[:n]) for n in lengths])
    record["ragged"] = float(np.abs(together - apart).max())
    decoded = session.step([(s, short[:1]) for s in sequences])
    alone = np.concatenate([prompt_logits(session, np.concatenate([short[:n], short[:1]]))[-1:] for n in lengths])
    record["ragged_decode"] = float(np.abs(decoded - alone).max())
    for sequence in sequences:
        session.release(sequence)

    repeats = 50 if full else 5
    record["repetitions_differ"] = sum(not np.array_equal(prompt_logits(session, short), logits) for _ in range(repeats))
    greedy = []
    for text in texts["greedy"]:
        wanted = text["generated_ids"]
        got = session.generate(text["prompt_ids"], len(wanted))
        greedy.append(next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), len(wanted)))
    record["greedy_equal"] = greedy
    if full:
        ids = np.load(f"{data}/eval_tokens.npy")
        record["perplexity"], record["perplexity_reference"] = perplexity(session, ids), texts["perplexity"]

    # Speed: a prompt of 512, then 64 tokens.
    ids = np.arange(512, dtype=np.int32) * 7919 % 2048
    times = []
    for _ in range(4):
        sequence = session.sequence()
        begin = time.perf_counter()
        session.step([(sequence, ids)], moert.LOGITS_LAST)
        first = time.perf_counter()
        for i in range(64):
            session.step([(sequence, ids[i:i + 1])], moert.LOGITS_LAST)
        times.append((first - begin, (time.perf_counter() - first) / 64))
        session.release(sequence)
    record["prompt_512_s"], record["token_s"] = min(t[0] for t in times[1:]), min(t[1] for t in times[1:])
    session.close()
    model.close()
    return record
