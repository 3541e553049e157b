"""Tokenizers as the model families have them, with small vocabularies of their own: each function gives the `tokenizers` object."""

import base64
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

QWEN3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GLM = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT_OSS = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK_V3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
               r"""|\s*[\r\n]+|\s+(?!\S)|\s+""")
KIMI = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def special(text, **options):
    return AddedToken(text, special=True, normalized=False, **options)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def train(tokenizer, texts, size, **options):
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False, min_frequency=2, **options))


def byte_level(texts, size, steps, normalizer=None, ignore_merges=False, last=None):
    """A vocabulary of bytes; the last step writes them in the byte alphabet."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    last = last or pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, last]) if steps else last
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    train(tokenizer, texts, size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens([special("<|x|>"), special("<|endoftext|>"), special("<|im_end|>")])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    return tokenizer


def qwen3(texts, size):
    return byte_level(texts, size, [split(QWEN3)], normalizers.NFC())


def qwen35(texts, size):
    return byte_level(texts, size, [split(QWEN35)], normalizers.NFC())


def gpt_oss(texts, size):
    return byte_level(texts, size, [split(GPT_OSS)], ignore_merges=True)


def glm(texts, size):
    return byte_level(texts, size, [split(GLM)])


def deepseek_v3(texts, size):
    return byte_level(texts, size, [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK_V3)], normalizers.Sequence([]))


def gpt2(texts, size):
    """ByteLevel's own pattern and its space in front."""
    return byte_level(texts, size, [], last=pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True))


def other_steps(texts, size):
    """Steps that the families above do not use."""
    steps = [split(r"\w+'", "merged_with_previous"), split("[-_]+", "merged_with_next"), split("é|ß", "contiguous"), split(r"[^@]", "removed", invert=True),
             pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("isolated")]
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s\s+"), "  "), normalizers.Strip(True, False)])
    tokenizer = byte_level(texts, size, steps, normalizer)
    tokenizer.add_special_tokens([special("<mask>", lstrip=True, rstrip=True), special("[EOS]", single_word=True)])
    tokenizer.add_tokens([AddedToken("<S>", normalized=True), AddedToken("日本", normalized=True, single_word=True)])
    return tokenizer


def words(texts, size):
    """Whitespace's pattern, NFKD."""
    return byte_level(texts, size, [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(False)], normalizers.NFKD())


def sentencepiece(texts, size, metaspace):
    """As converted from SentencePiece: ▁ for a space, bytes for unknown characters."""
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    # Training wants words; the tokenizer itself merges across them.
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="never", split=True)
    train(trained, texts, size, limit_alphabet=400)
    model = json.loads(trained.to_str())["model"]
    names = ["<unk>", "<s>", "</s>", *alphabet]
    names += [name for name in model["vocab"] if name not in names]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer.model = models.BPE(vocab={name: id for id, name in enumerate(names)}, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tokenizer


def mixtral(texts, size):
    return sentencepiece(texts, size, metaspace=False)


def metaspace(texts, size):
    return sentencepiece(texts, size, metaspace=True)


def unknown(texts, size):
    """Characters outside of the vocabulary, without bytes for them; Metaspace that splits, and its decoder."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    train(tokenizer, texts, size, limit_alphabet=300, special_tokens=["<unk>", "<s>"])
    return tokenizer


def kimi_ranks(texts, size):
    """tiktoken.model's lines and tokenizer_config.json. Ids in the order of training are ranks."""
    tokenizer = byte_level(texts, size, [split(GLM)])
    alphabet = {}
    following = 0x100
    for byte in range(256):
        printable = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE
        alphabet[chr(byte if printable else following)] = byte
        following += not printable
    model = json.loads(tokenizer.to_str())["model"]["vocab"]
    tokens = sorted((id, bytes(alphabet[c] for c in token)) for token, id in model.items())
    tokens = [(rank, token) for rank, (_, token) in enumerate(tokens)]
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in tokens)
    first = len(tokens)
    names = ["[BOS]", "[EOS]", "<|im_end|>", "<|x|>", "<tool>"]
    decoder = {str(first + i): {"content": name, "special": name != "<tool>"} for i, name in enumerate(names)}
    return lines, {"tokenizer_class": "TikTokenTokenizer", "added_tokens_decoder": decoder}, dict((token, rank) for rank, token in tokens)


BYTE_LEVEL = [qwen3, qwen35, gpt_oss, glm, deepseek_v3, gpt2, other_steps, words]
TEXT = [mixtral, metaspace, unknown]
