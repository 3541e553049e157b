"""check_vision_sessions.py LIBMOERT BUNDLE TOLERANCE [recurrent]: sequences with and without images in one step, cut within an image, forked and put
back there, through the C interface; and what it refuses."""

import ctypes
import sys

import numpy
from kimi_k3_checkpoint import PLACEHOLDER
from kimi_k3_vision import cut, png
from runtime_library import Session, library

tolerance = float(sys.argv[3])
recurrent = sys.argv[4:] == ["recurrent"]
session = Session(sys.argv[2])
random = numpy.random.default_rng(5)
SIDE = 4
pixels = [random.integers(0, 256, size=(SIDE * h, SIDE * w, 3)) for h, w in ((4, 6), (6, 6))]
images = [session.encode(png(each)) for each in pixels]
counts = [library.moert_image_tokens(image) for image in images]
assert counts == [6, 9], counts


def check(what, got, want):
    difference = float(numpy.abs(got - want).max())
    if not difference <= tolerance:
        sys.exit(f"{what}: logits differ by {difference}, allowed {tolerance}")


def words(count):
    return random.integers(0, PLACEHOLDER, count).tolist()


# (tokens, [(position, image)])
prompts = [(words(3) + [PLACEHOLDER] * counts[0] + words(4) + [PLACEHOLDER] * counts[1], [(3, 0), (13, 1)]), (words(9), []),
           ([PLACEHOLDER] * counts[1] + words(1), [(0, 1)])]


def begin(prompt):
    sequence = session.create()
    for position, image in prompt[1]:
        session.place(sequence, position, images[image])
    return sequence


alone = [session.step((begin(prompt), prompt[0]))[0] for prompt in prompts]
without = session.step((session.create(), prompts[0][0]))[0]
assert numpy.abs(without[:3] - alone[0][:3]).max() <= tolerance and numpy.abs(without[3:] - alone[0][3:]).max() > 0.1, "images say nothing"

for i, logits in enumerate(session.step(*[(begin(prompt), prompt[0]) for prompt in prompts])):
    check(f"prompt {i} in a batch", logits, alone[i])

# The same patches, cut by the caller.
patches, grid = cut(pixels[1], SIDE)
sequence = session.create()
session.place(sequence, 0, session.encode_patches(patches, grid))
check("patches", session.step((sequence, prompts[2][0]))[0], alone[2])

# Cut, forked and put back at every token, within images, too; a sequence without images runs beside them.
tokens = prompts[0][0]
for position in range(1, len(tokens)):
    sequence, other = begin(prompts[0]), session.create()
    first, _ = session.step((sequence, tokens[:position]), (other, prompts[1][0][:2]))
    check(f"before {position}", first, alone[0][:position])
    snapshot, fork = session.snapshot(sequence), session.fork(sequence)
    _, beside = session.step((sequence, tokens[position:]), (other, prompts[1][0][2:]))
    check(f"beside {position}", beside, alone[1][2:])
    check(f"fork at {position}", session.step((fork, tokens[position:]))[0], alone[0][position:])
    session.restore(sequence, snapshot)
    check(f"restored at {position}", session.step((sequence, tokens[position:]))[0], alone[0][position:])
    if recurrent:
        session.refuses_to_truncate(sequence, position)
    else:
        session.truncate(sequence, position)  # keeps the images that have begun
        for at, image in prompts[0][1]:
            if at >= position:
                session.place(sequence, at, images[image])
        check(f"truncated to {position}", session.step((sequence, tokens[position:]))[0], alone[0][position:])
    session.truncate(sequence, 0)  # forgets its images
    check(f"truncated after {position}", session.step((sequence, prompts[1][0]))[0], alone[1])
    for each in (sequence, fork, other):
        session.release(each)
    library.moert_snapshot_free(snapshot)


def refuses(text, name, *arguments):
    complaint = session.complaint(name, *arguments)
    if text not in complaint:
        sys.exit(f"{name}: expected '{text}' in '{complaint}'")


def refuses_place(text, sequence, position):
    refuses(text, "moert_sequence_place_image", session.handle, sequence, ctypes.c_uint64(position), images[0])


sequence = session.create()
session.step((sequence, words(5)))
refuses_place("the sequence has 5 tokens already", sequence, 4)
refuses_place("the longest context is 1024", sequence, 1020)
session.place(sequence, 7, images[0])
refuses_place("the image before it ends at token 13", sequence, 12)
session.place(sequence, 13, images[1])
refuses("where an image was placed", "moert_session_step", session.handle, *session.parts((sequence, words(3))), ctypes.byref(session.logits))
session.step((sequence, words(2) + [PLACEHOLDER] * 15))  # the error changed nothing
image = ctypes.c_void_p()
for content, text in ((b"", "expected an image, a JPEG or PNG file"), (b"GIF89a", "expected an image, a JPEG or PNG file"),
                      (png(pixels[0])[:200], "a damaged PNG file: it is cut off"), (b"\xff\xd8\xff\xe0", "an image of no pixels")):
    refuses(text, "moert_image_encode_file", session.model, content, ctypes.c_size_t(len(content)), ctypes.byref(image))
print("images in sessions agree")
