#!/usr/bin/env python3
"""Compares the runtime's tokenizer with the libraries `tokenizers` and `tiktoken` over a megabyte of mixed text.

    scripts/tokenizers/compare.py build/bin/moec            every family's form, with vocabularies trained here
    scripts/tokenizers/compare.py build/bin/moec FOLDER     the tokenizer of a checkpoint

Needs `pip install tokenizers tiktoken`. Ends with 1 if any id or decoded text differs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import families
import texts as mixed
import tiktoken
from tokenizers import Tokenizer


def write_texts(folder, texts):
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"text{number:03}"
        path.write_bytes(text.encode())
        paths.append(path)
    return paths


def encode_ours(tool, folder, paths):
    command = [tool, "tokenize", str(folder), "--timing"]
    for path in paths:
        command += ["--file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = done.stdout.split("\n")[: len(paths)]
    return [[int(id) for id in line.split(",")] if line else [] for line in lines], float(done.stderr.split()[0])


def decode_ours(tool, folder, ids):
    done = subprocess.run([tool, "tokenize", str(folder), "--ids", ",".join(map(str, ids)), "--special"], capture_output=True, check=True)
    return done.stdout[:-1].decode()


def report(name, tool, folder, texts, paths, encode, decode):
    expected, seconds = [], 0.0
    for text in texts:
        begin = time.perf_counter()
        expected.append(encode(text))
        seconds += time.perf_counter() - begin
    found, our_seconds = encode_ours(tool, folder, paths)
    wrong = 0
    for text, ours, theirs in zip(texts, found, expected):
        if ours == theirs:
            continue
        wrong += 1
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        context = decode(theirs[max(0, at - 3) : at + 4])
        print(f"  {name}: token {at} of a text of {len(text)} characters: {ours[at:at + 5]}, expected {theirs[at:at + 5]}, around {context!r}")
    for ids in expected[:8]:
        if ids and decode_ours(tool, folder, ids) != decode(ids):
            wrong += 1
            print(f"  {name}: decoded text differs")
    size = sum(len(text.encode()) for text in texts) / 1e6
    tokens = sum(map(len, expected))
    print(f"{name:12} {wrong} differences in {len(texts)} texts, {tokens} tokens; {size / our_seconds:.1f} MB/s, the library {size / seconds:.1f} MB/s", flush=True)
    return wrong


def compare_json(name, tool, folder, texts, paths):
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return report(name, tool, folder, texts, paths, lambda text: library.encode(text, add_special_tokens=False).ids,
                  lambda ids: library.decode(ids, skip_special_tokens=False))


def compare_kimi(tool, folder, texts, paths, ranks, config):
    names = {int(id): token["content"] for id, token in config["added_tokens_decoder"].items()}
    special = {names.get(id, f"<|reserved_token_{id}|>"): id for id in range(len(ranks), len(ranks) + 256)}
    library = tiktoken.Encoding("kimi", pat_str=families.KIMI, mergeable_ranks=ranks, special_tokens=special)
    return report("kimi", tool, folder, texts, paths, lambda text: library.encode(text, allowed_special="all"), library.decode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", help="moec or moert")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="a checkpoint with tokenizer.json")
    parser.add_argument("--vocabulary", type=int, default=6000, help="size of the trained vocabularies")
    parser.add_argument("--only", help="one family")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    training = mixed.documents(root)
    texts = training + mixed.extremes()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        paths = write_texts(work, texts)
        if arguments.folder:
            sys.exit(compare_json(arguments.folder.name, arguments.tool, arguments.folder, texts, paths) != 0)
        for family in families.BYTE_LEVEL + families.TEXT:
            if arguments.only not in (None, family.__name__):
                continue
            folder = work / family.__name__
            folder.mkdir()
            family(training, arguments.vocabulary).save(str(folder / "tokenizer.json"))
            wrong += compare_json(family.__name__, arguments.tool, folder, texts, paths)
        if arguments.only in (None, "kimi"):
            folder = work / "kimi"
            folder.mkdir()
            lines, config, ranks = families.kimi_ranks(training, arguments.vocabulary)
            (folder / "tiktoken.model").write_bytes(lines)
            (folder / "tokenizer_config.json").write_text(json.dumps(config))
            wrong += compare_kimi(arguments.tool, folder, texts, paths, ranks, config)
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
