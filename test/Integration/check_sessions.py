"""Sequences together, alone, in pieces, forked, truncated and restored, on compiled code through the C interface.

check_sessions.py LIBMOERT BUNDLE TOLERANCE [TRUNCATIONS] [recurrent]: logits may differ by TOLERANCE where other tokens share a
step; 0 asks for the same bits. A sequence is forked, truncated and restored at every position up to TRUNCATIONS, and at some of a longer one. A
recurrent model's sequences must refuse to be truncated to anything but nothing.
"""

import ctypes
import sys

import numpy


class StepPart(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_uint64), ("tokens", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_size_t),
                ("logits", ctypes.c_uint32)]


class Logits(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_float)), ("rows", ctypes.c_size_t), ("vocabulary", ctypes.c_size_t)]


library = ctypes.CDLL(sys.argv[1])
for name in ("moert_bundle_open", "moert_model_load", "moert_session_create", "moert_sequence_create", "moert_sequence_fork",
             "moert_sequence_truncate", "moert_sequence_release", "moert_session_step", "moert_snapshot_take",
             "moert_snapshot_restore"):
    getattr(library, name).restype = ctypes.c_void_p
library.moert_error_message.restype = ctypes.c_char_p


def message(error):
    return library.moert_error_message(ctypes.c_void_p(error)).decode() if error else ""


def call(name, *arguments):
    error = getattr(library, name)(*arguments)
    if error:
        sys.exit(f"{name}: {message(error)}")


class Session:
    def __init__(self, path):
        bundle, model, self.handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("moert_bundle_open", path.encode(), None, ctypes.byref(bundle))
        call("moert_model_load", bundle, None, ctypes.byref(model))
        call("moert_session_create", model, None, ctypes.byref(self.handle))

    def create(self):
        sequence = ctypes.c_uint64()
        call("moert_sequence_create", self.handle, ctypes.byref(sequence))
        return sequence

    def fork(self, sequence):
        other = ctypes.c_uint64()
        call("moert_sequence_fork", self.handle, sequence, ctypes.byref(other))
        return other

    def truncate(self, sequence, length):
        call("moert_sequence_truncate", self.handle, sequence, ctypes.c_uint64(length))

    def refuses_to_truncate(self, sequence, length):
        text = message(library.moert_sequence_truncate(self.handle, sequence, ctypes.c_uint64(length)))
        if "recurrent state" not in text:
            sys.exit(f"truncating to {length}: expected an error about the recurrent state, got '{text}'")

    def snapshot(self, sequence):
        snapshot = ctypes.c_void_p()
        call("moert_snapshot_take", self.handle, sequence, ctypes.byref(snapshot))
        return snapshot

    def restore(self, sequence, snapshot):
        call("moert_snapshot_restore", self.handle, sequence, snapshot)

    def release(self, sequence):
        call("moert_sequence_release", self.handle, sequence)

    def step(self, *parts):
        """Appends tokens to sequences; the logits of all of them, one array for each part."""
        arrays = [(ctypes.c_int32 * len(tokens))(*tokens) for _, tokens in parts]
        structures = (StepPart * len(parts))(*[StepPart(sequence, array, len(array), 2)
                                               for (sequence, _), array in zip(parts, arrays)])
        logits = Logits()
        call("moert_session_step", self.handle, structures, ctypes.c_size_t(len(parts)), ctypes.byref(logits))
        values = numpy.ctypeslib.as_array(logits.data, (logits.rows, logits.vocabulary)).copy()
        return numpy.split(values, numpy.cumsum([len(tokens) for _, tokens in parts])[:-1])


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
