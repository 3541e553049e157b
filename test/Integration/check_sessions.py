"""Sequences together, alone, in pieces, forked, truncated and restored, on compiled code through the C interface.

check_sessions.py LIBMOERT BUNDLE TOLERANCE [TRUNCATIONS] [recurrent]: logits may differ by TOLERANCE where other tokens share a
step; 0 asks for the same bits. The sequence that is forked, truncated and restored is so at every position up to TRUNCATIONS. A
recurrent model's sequences must refuse to be truncated to anything but nothing.
"""

import sys

import numpy
from runtime_library import Session


def check_sessions(session, tolerance, positions, recurrent, vocabulary=48):
    """The largest difference; the process ends where it is above the tolerance."""
    random = numpy.random.default_rng(3)
    prompts = [random.integers(2, vocabulary, length).tolist() for length in (41, 1, 17, 16, 33)]
    largest = 0

    def check(what, got, want):
        nonlocal largest
        difference = float(numpy.abs(got - want).max())
        if not difference <= tolerance:
            sys.exit(f"{what}: logits differ by {difference}, allowed {tolerance}")
        largest = max(largest, difference)

    alone = [session.run(prompt) for prompt in prompts]
    assert max(float(numpy.ptp(each)) for each in alone) > 0.1, "the logits say nothing"

    # All in one step; then prefill of some beside decoding of others, in uneven pieces, so that their blocks lie in any order.
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
    # Blocks that are given back in any order are taken again in any order.
    for i in random.permutation(len(sequences)):
        session.release(sequences[i])
    check("in scattered blocks", session.run(prompts[0]), alone[0])

    # Fork, truncate and restore at these positions: what follows is what would have followed. Alone in a step each time.
    prompt, expected = prompts[0], alone[0]
    if max(positions) >= len(prompt):
        prompt = random.integers(2, vocabulary, max(positions) + 20).tolist()
        expected = session.run(prompt)
    for position in positions:
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
        session.free(snapshot)
    return largest


def main():
    truncations = int(sys.argv[4]) if len(sys.argv) > 4 else 40
    # Also at multiples of what others cut prompts into, beside them, and far from any.
    positions = [*range(1, min(truncations, 40)), 63, 64, 65, 127, 128, 129, 130]
    check_sessions(Session(sys.argv[2]), float(sys.argv[3]), positions, sys.argv[5:] == ["recurrent"])
    print("sessions agree")


if __name__ == "__main__":
    main()
