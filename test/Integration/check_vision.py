"""check_vision.py FOLDER: the eyes of a random Kimi K3, compiled in f32, against numpy in f64: embeddings of items of several sizes, and
logits of text with images, whole and in pieces."""

import json
import subprocess
import sys

import numpy as np
from common import TARGET, expect_close, logits, moec
from kimi_k3_checkpoint import PLACEHOLDER, VISION, make
from kimi_k3_model import Model
from kimi_k3_vision import Vision, cut, entry_inputs, png

folder = sys.argv[1]
checkpoint, bundle = f"{folder}/vision", f"{folder}/vision.moeb"
rng = np.random.default_rng(11)


def encode(patches, grid, at=bundle):
    """The compiled entry's embeddings."""
    arguments = []
    for name, x in entry_inputs(patches, grid, VISION["merge_kernel_size"][0]).items():
        np.save(f"{folder}/{name}.npy", x)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    moec("run", at, "--entry", "encode_image", *arguments, "--outputs", f"{folder}/encoded")
    return np.load(f"{folder}/encoded/embeddings.npy")


def relative(x, expected):
    return np.abs(x - expected).max() / np.abs(expected).max()


def characters():
    """How byte-level tokenizers write bytes: printable ones as themselves, the others from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b if b in printable else 256 + others.index(b)) for b in range(256)}


make("vision", checkpoint)
special = [dict(id=PLACEHOLDER, content="<|media_pad|>", special=True, single_word=False, lstrip=False, rstrip=False, normalized=False)]
level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
with open(f"{checkpoint}/tokenizer.json", "w", encoding="utf-8") as file:
    json.dump(dict(version="1.0", added_tokens=special, normalizer=None, pre_tokenizer=level, post_processor=None, decoder=level,
                   model=dict(type="BPE", vocab={c: b for b, c in characters().items()}, merges=[])), file)
subprocess.run(["moec", "compile", checkpoint, "-o", bundle, "--precision=f32", *TARGET], check=True, stdout=subprocess.DEVNULL)
model = Model.read(checkpoint)
vision = Vision.read(checkpoint)
# Not the grid's size, in both directions; its size; a video; the least; more keys than a chunk of them.
for grid in [(1, 4, 6), (1, 6, 6), (2, 4, 6), (4, 2, 4), (1, 2, 2), (1, 20, 14)]:
    t, h, w = grid
    patches = rng.normal(size=(t * h * w, 3, VISION["patch_size"], VISION["patch_size"]))
    expected = vision.encode(patches.astype(np.float32), grid)
    own = relative(vision.encode(patches.astype(np.float32), grid, np.float32), expected)
    found = relative(encode(patches, grid), expected)
    print(f"{grid}: {found:.2g} of the largest embedding, numpy in f32 {own:.2g}")
    assert found < 1e-5, found
    if t == 1:  # the test could tell wrong places
        turned = relative(vision.encode(patches[::-1].astype(np.float32), grid)[::-1], expected)
        assert h * w == 4 or turned > 1e-2, turned
print("embeddings agree")


# Text with images: an image of 4 x 6 patches first, one of 6 x 6, and then nothing but its placeholder.
images = [rng.integers(0, 256, size=(4 * h, 4 * w, 3)) for h, w in ((4, 6), (6, 6))]
files, embeddings = [], []
for i, pixels in enumerate(images):
    files.append(f"{folder}/{i}.png")
    with open(files[-1], "wb") as file:
        file.write(png(pixels))
    embeddings.append(cut(pixels, VISION["patch_size"]))


def run(text, which, dtype=np.float64):
    """The logits that numpy gives; each placeholder becomes as many tokens as its image has embeddings."""
    tokens, places = [], []
    for token in text:
        if token != PLACEHOLDER:
            tokens.append(token)
            continue
        patches, grid = embeddings[which[len(places)]]
        places.append((len(tokens), vision.encode(patches.astype(np.float32), grid, dtype)))
        tokens += [PLACEHOLDER] * len(places[-1][1])
    return model.run(np.array(tokens), dtype, images=places)


words = lambda count: rng.integers(0, PLACEHOLDER, size=count).tolist()
prompts = {"an image within text": (words(5) + [PLACEHOLDER] + words(9), [0]), "an image alone": ([PLACEHOLDER], [1]),
           "an image at the end": (words(11) + [PLACEHOLDER], [0]), "two images": (words(3) + [PLACEHOLDER] * 2 + words(2), [1, 0]),
           "one image twice": ([PLACEHOLDER] + words(4) + [PLACEHOLDER], [0, 0]), "no image": (words(20), [])}
for name, (text, which) in prompts.items():
    expected = run(text, which)
    own = np.abs(run(text, which, np.float32) - expected).max()
    options = [word for i in which for word in ("--image", files[i])]
    whole = logits(bundle, text, *options)
    expect_close(name, whole, expected, max(1e-4, 3 * own))
    for chunk in (1, 7):
        expect_close(f"{name} in chunks of {chunk}", logits(bundle, text, *options, "--chunk", chunk), whole, 1e-4)
print("logits agree")

# A prompt in words: the placeholder is a special token of the tokenizer.
by_words = moec("run", bundle, "--prompt", "See <|media_pad|>!", "--image", files[0], "--max-tokens", 6)
ids = [*b"See ", PLACEHOLDER, *b"!"]
assert by_words["prompt_ids"] == ids, by_words["prompt_ids"]
by_ids = moec("run", bundle, "--ids", ",".join(map(str, ids)), "--image", files[0], "--max-tokens", 6)
assert by_words["generated_ids"] == by_ids["generated_ids"]
complaint = subprocess.run(["moec", "run", bundle, "--prompt", "See!", "--image", files[0]], stderr=subprocess.PIPE, text=True,
                           check=False).stderr
assert "write <|media_pad|> (token 500) into the prompt" in complaint, complaint
print("words agree")

# In bf16, as the release is: as far off as roundings to 8 bits are, and no further.
subprocess.run(["moec", "compile", checkpoint, "-o", f"{folder}/bf16.moeb", "--layers=0-0", *TARGET], check=True, stdout=subprocess.DEVNULL)
patches, grid = embeddings[0]
expected = vision.encode(patches, grid)
found = (encode(patches, grid, f"{folder}/bf16.moeb").view("<u2").astype("<u4") << 16).view("<f4").reshape(expected.shape)
error = np.sqrt(((found - expected) ** 2).mean() / (expected**2).mean())
print(f"bf16: {error:.2g} of the embeddings, root mean square")
assert error < 0.02
print("bf16 agrees")
