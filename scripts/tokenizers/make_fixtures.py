#!/usr/bin/env python3
"""Writes test/Runtime/tokenizers: small tokenizers of every family's form, texts, and the ids that `tokenizers` and `tiktoken` give.

    scripts/tokenizers/make_fixtures.py         needs `pip install tokenizers tiktoken`
"""

import json
import pathlib

import families
import texts as mixed
import tiktoken

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "test/Runtime/tokenizers"


def cases(encode, decode):
    texts = [mixed.document(1000 + seed, 400) for seed in range(12)] + [text for text in mixed.extremes() if len(text) < 20] + ["x" * 200, " " * 100]
    return [{"text": text, "ids": (ids := encode(text)), "decoded": decode(ids)} for text in texts]


def write(name, content):
    (FOLDER / f"{name}.json").write_text(json.dumps(content, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    FOLDER.mkdir(exist_ok=True)
    training = [mixed.document(seed, 25_000) for seed in range(4)]
    for family in families.BYTE_LEVEL + families.TEXT:
        library = family(training, 600)
        write(family.__name__, {"tokenizer": json.loads(library.to_str()),
                                "cases": cases(lambda text: library.encode(text, add_special_tokens=False).ids,
                                               lambda ids: library.decode(ids, skip_special_tokens=False))})
    lines, config, ranks = families.kimi_ranks(training, 600)
    names = {int(id): token["content"] for id, token in config["added_tokens_decoder"].items()}
    special = {names.get(id, f"<|reserved_token_{id}|>"): id for id in range(len(ranks), len(ranks) + 256)}
    library = tiktoken.Encoding("kimi", pat_str=families.KIMI, mergeable_ranks=ranks, special_tokens=special)
    write("kimi", {"ranks": lines.decode(), "tokenizer_config": config,
                   "cases": cases(lambda text: library.encode(text, allowed_special="all"), library.decode)})


if __name__ == "__main__":
    main()
