"""Sequences together, alone, in pieces, forked, truncated and restored, on compiled code through the C interface.

check_sessions.py LIBMOERT BUNDLE TOLERANCE [TRUNCATIONS] [recurrent]: logits may differ by TOLERANCE where other tokens share a
step; 0 asks for the same bits. A sequence is forked, truncated and restored at every position up to TRUNCATIONS, and at some of a longer one. A
recurrent model's sequences must refuse to be truncated to anything but nothing.
"""

import sys

import numpy
from runtime_library import Session, library

tolerance = float(sys.argv[3])
truncations = int(sys.argv[4]) if len(sys.argv) > 4 else 40
recurrent = sys.argv[5:] == ["recurrent"]
session = Session(sys.argv[2])
random = numpy.random.default_rng(3)
VOCABULARY = 48
prompts = [random.integers(2, VOCABULARY, length).tolist() for length in (41, 1, 17, 16, 33)]


def check(what, got, want, allowed=tolerance):
    difference = float(numpy.abs(got - want).max())
    if not difference <= allowed:
        sys.exit(f"{what}: logits differ by {difference}, allowed {allowed}")


alone = []
for prompt in prompts:
    sequence = session.create()
    alone.append(session.step((sequence, prompt))[0])
    session.release(sequence)
assert max(float(numpy.ptp(each)) for each in alone) > 0.1, "the logits say nothing"

# All in one step; then prefill of some beside decoding of others, in uneven pieces.
sequences = [session.create() for _ in prompts]
for i, logits in enumerate(session.step(*zip(sequences, prompts))):
    check(f"prompt {i} in a batch", logits, alone[i])
for sequence in sequences:
    session.truncate(sequence, 0)
done = [0] * len(prompts)
while any(done[i] < len(prompt) for i, prompt in enumerate(prompts)):
    parts, chosen = [], []
    for i, prompt in enumerate(prompts):
        size = min(int(random.integers(0, 9)), len(prompt) - done[i])
        if size > 0:
            parts.append((sequences[i], prompt[done[i]:done[i] + size]))
            chosen.append((i, size))
    if not parts:
        continue
    for (i, size), logits in zip(chosen, session.step(*parts)):
        check(f"tokens {done[i]} to {done[i] + size} of prompt {i}", logits, alone[i][done[i]:done[i] + size])
        done[i] += size


def check_position(prompt, expected, position):
    """Forked, truncated and restored there, a sequence goes on as it would have. Alone in a step each time."""
    sequence = session.create()
    session.step((sequence, prompt[:position]))
    snapshot, fork = session.snapshot(sequence), session.fork(sequence)
    session.step((sequence, [5, 7, 11]))  # the original goes another way
    check(f"fork at {position}", session.step((fork, prompt[position:]))[0], expected[position:])
    if recurrent:
        session.refuses_to_truncate(sequence, position)
        session.truncate(sequence, 0)
        check(f"truncated to 0 after {position}", session.step((sequence, prompt))[0], expected)
    else:
        session.truncate(sequence, position)
        check(f"truncated to {position}", session.step((sequence, prompt[position:]))[0], expected[position:])
    session.restore(sequence, snapshot)
    check(f"restored at {position}", session.step((sequence, prompt[position:]))[0], expected[position:])
    session.release(sequence)
    session.release(fork)
    library.moert_snapshot_free(snapshot)


for position in range(1, min(truncations, len(prompts[0]) - 1)):
    check_position(prompts[0], alone[0], position)
# At multiples of what others cut prompts into, beside them, and far from any.
prompt, sequence = random.integers(2, VOCABULARY, 150).tolist(), session.create()
expected = session.step((sequence, prompt))[0]
for position in (63, 64, 65, 127, 128, 129, 130):
    check_position(prompt, expected, position)
print("sessions agree")
