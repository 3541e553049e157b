"""The C interface of moert: sequences of a model, for the checks of this folder. load_library(PATH) comes first."""

import ctypes
import sys

import numpy

library = None


class StepPart(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_uint64), ("tokens", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_size_t),
                ("logits", ctypes.c_uint32)]


class Logits(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_float)), ("rows", ctypes.c_size_t), ("vocabulary", ctypes.c_size_t)]


def load_library(path):
    global library
    library = ctypes.CDLL(path)
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

    def free(self, snapshot):
        library.moert_snapshot_free(snapshot)

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

    def run(self, tokens, chunk=None):
        """The logits of a sequence of its own, in steps of `chunk` tokens."""
        sequence, rows = self.create(), []
        for begin in range(0, len(tokens), chunk or len(tokens)):
            rows += self.step((sequence, tokens[begin:begin + (chunk or len(tokens))]))
        self.release(sequence)
        return numpy.concatenate(rows)
