"""A megabyte of mixed text, the same each time: what tokenizers get wrong."""

import pathlib
import random
import unicodedata

ENGLISH = (
    "the of and to in is that it was for on with as be at by this had not are but from or have an they which one you were "
    "all her she there would their we him been has when who will no more if out so said what up its about than into them "
    "can only other time new some could these two may first then do any like my now over such our man me even most made "
    "after also did many off before must well back through years where much your way down should because long each just "
    "state those people too mister good very make world still see own work men day get here between both life being under "
    "don't it's we'll I'd they've you're DON'T It'S O'Neil rock'n'roll naïve café résumé Übermensch"
).split()
CHINESE = "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从"
JAPANESE = "のにはをたがでてとしれさあいうえおかきくけこアイウエオカキクケコガギグゲゴー日本語東京々〇〆ヶｱｲｳ、。「」"
OTHERS = {
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяЁЖЩ",
    "Greek": "αβγδεζηθικλμνξοπρσςτυφχψωΑΣΩάέ",
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويًٌٍَُِ٠١٢٣",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשתְֱֲֳִֵ",
    "Devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौ्ंः०१२३",
    "Thai": "กขคงจฉชซญฐณดตถทธนบปผฝพฟภมยรลวศษสหอะาิีุูเแโใไ่้๊๋๑๒๓",
    "Hangul": "가나다라마바사아자차카타파하각난달람밥삿앙잦찾ᄀ까ᅢᆨᆩ",
}
EMOJI = ["🤖", "👩‍👩‍👧", "🏳️‍🌈", "👍🏽", "❤️", "🇩🇪", "1️⃣", "☃", "🫠", "😀", "\u200d", "\ufe0f"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085", "\u180e", "\u200b",
          "\x0b", "\x0c", "\x1c", "\ufeff", " " * 9, "\n" * 5, "\t" * 4, "\r", " \r\n \t "]
SPECIALS = ["<s>", "</s>", "<unk>", "<|x|>", "<|endoftext|>", "[EOS]", "<|im_end|>", " <mask> ", "<tool>", "<|reserved_token_", "<0x41>"]
CODE = [
    "def f(x):\n    return {'a': x[0], \"b\": x[1:]}  # comment\n", "for (int i = 0; i < n; ++i) {\n\ta[i] += b[i] * 0x1F;\n}\n",
    "std::vector<std::pair<int, float>> v(100'000);\n", "SELECT * FROM t WHERE x >= 10 AND y != 'z';\n", "\\frac{1}{2}\\sum_{i=0}^{n} x_i^2\n",
    "https://example.org/a/b?c=d&e=%20f#g\n", "if (!p->q && (r | ~s)) goto end;\n", "camelCaseName snake_case_name CONSTANT_NAME HTTPServer2\n",
    "<div class=\"a\">&amp;&#39;</div>\n", "1,234,567.89 + 3.14e-10 = 12345678901234567890\n", "```\n$ ls -la | grep '^d' > /dev/null 2>&1\n```\n",
]


# Characters of Unicode 14 that normalization changes or reorders: the data of `tokenizers` are older and leave them alone.
UNKNOWN_TO_THE_LIBRARY = [(0x0898, 0x089F), (0x08C8, 0x08D2), (0x0C3C, 0x0C3C), (0x1AC1, 0x1ACE), (0x1DFA, 0x1DFA), (0xA7F2, 0xA7F4), (0x10780, 0x107BA),
                          (0x10F82, 0x10F85), (0x11070, 0x11070), (0x110C2, 0x110C2), (0x1E2AE, 0x1E2AE)]


def rare(rng):
    """A code point that Python's Unicode data know, of any plane."""
    while True:
        code = rng.choice([rng.randrange(0x80, 0x3000), rng.randrange(0x20, 0x10000), rng.randrange(0x10000, 0x32000), rng.randrange(0xE0000, 0xE01F0)])
        if any(first <= code <= last for first, last in UNKNOWN_TO_THE_LIBRARY):
            continue
        if unicodedata.category(chr(code)) not in ("Cs", "Cn"):
            return chr(code)


def word(rng):
    kind = rng.random()
    if kind < 0.45:
        text = rng.choice(ENGLISH)
        return rng.choice([text, text, text, text.upper(), text.title()])
    if kind < 0.55:
        return "".join(rng.choices(CHINESE, k=rng.randrange(1, 9))) + rng.choice(["", "，", "。", "！"])
    if kind < 0.62:
        return "".join(rng.choices(JAPANESE, k=rng.randrange(1, 9)))
    if kind < 0.70:
        return "".join(rng.choices(rng.choice(list(OTHERS.values())), k=rng.randrange(1, 8)))
    if kind < 0.74:
        return rng.choice(EMOJI) * rng.randrange(1, 3)
    if kind < 0.79:
        return rng.choice(CODE)
    if kind < 0.83:
        return str(rng.randrange(10 ** rng.randrange(1, 12))) + rng.choice(["", ".", "%", "th", "²", "½", "Ⅷ", "٣"])
    if kind < 0.87:
        text = rng.choice(ENGLISH)
        return unicodedata.normalize(rng.choice(["NFC", "NFD"]), "".join(c + rng.choice(["", "", "\u0301", "\u0323\u0307", "\u0308"]) for c in text))
    if kind < 0.90:
        return rng.choice(SPECIALS)
    if kind < 0.94:
        return "".join(rng.choices("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¿¡«»“”‘’—…•№€£", k=rng.randrange(1, 5)))
    if kind < 0.98:
        return "".join(rare(rng) for _ in range(rng.randrange(1, 5)))
    return rng.choice(["'ſ", "'S", "K's", "ﬁ", "ǅ", "İstanbul", "Straße", "ﷺ", "\ufffd", "\x00", "\x7f", "▁", "▁a", "Ġ"])


def document(seed, size):
    rng = random.Random(seed)
    parts = []
    length = 0
    while length < size:
        part = word(rng) + (rng.choice(SPACES) if rng.random() < 0.2 else rng.choice([" ", " ", " ", ""]))
        parts.append(part)
        length += len(part.encode())
    return "".join(parts)


def documents(root):
    """At least a megabyte, as a list of texts."""
    texts = [document(seed, 25_000) for seed in range(32)]
    for path in sorted(pathlib.Path(root).glob("docs/**/*.md")) + sorted(pathlib.Path(root).glob("runtime/session/*.cpp")):
        texts.append(path.read_text())
    return texts


def extremes():
    """Short texts and long runs; no vocabulary is trained on them."""
    return ["", " ", "a", "\n", "  a", "a  ", "<|x|>", "a<|x|> b", "x" * 3000, " " * 3000, "1" * 3000, "漢" * 3000, "aB" * 2000, "e\u0301" * 500]
