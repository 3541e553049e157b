"""The runtime's C interface, as far as checks of this folder use it. The library is the first argument of the program."""

import ctypes
import sys

import numpy


class StepPart(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_uint64), ("tokens", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_size_t),
                ("logits", ctypes.c_uint32)]


class Patches(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.POINTER(ctypes.c_float)), ("count", ctypes.c_size_t), ("frames", ctypes.c_uint32),
                ("rows", ctypes.c_uint32), ("columns", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class Logits(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_float)), ("rows", ctypes.c_size_t), ("vocabulary", ctypes.c_size_t)]


library = ctypes.CDLL(sys.argv[1])  # every check has it as its first argument
for name in ("moert_bundle_open", "moert_model_load", "moert_session_create", "moert_sequence_create", "moert_sequence_fork",
             "moert_sequence_truncate", "moert_sequence_release", "moert_session_step", "moert_snapshot_take",
             "moert_snapshot_restore", "moert_image_encode_file", "moert_image_encode_patches", "moert_sequence_place_image", "moert_generate"):
    getattr(library, name).restype = ctypes.c_void_p
library.moert_error_message.restype = ctypes.c_char_p
library.moert_image_tokens.restype = ctypes.c_size_t
library.moert_image_tokens.argtypes = [ctypes.c_void_p]


def message(error):
    return library.moert_error_message(ctypes.c_void_p(error)).decode() if error else ""


def call(name, *arguments):
    error = getattr(library, name)(*arguments)
    if error:
        sys.exit(f"{name}: {message(error)}")


class Session:
    def __init__(self, path):
        bundle, self.model, self.handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("moert_bundle_open", path.encode(), None, ctypes.byref(bundle))
        call("moert_model_load", bundle, None, ctypes.byref(self.model))
        call("moert_session_create", self.model, None, ctypes.byref(self.handle))
        self.logits = Logits()

    def encode(self, file):
        """An image of a JPEG or PNG file's bytes."""
        image = ctypes.c_void_p()
        call("moert_image_encode_file", self.model, file, ctypes.c_size_t(len(file)), ctypes.byref(image))
        return image

    def encode_patches(self, patches, grid):
        image, flat = ctypes.c_void_p(), numpy.ascontiguousarray(patches, numpy.float32).reshape(-1)
        given = Patches(ctypes.sizeof(Patches), flat.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), flat.size, *grid, 0)
        call("moert_image_encode_patches", self.model, ctypes.byref(given), ctypes.byref(image))
        return image

    def place(self, sequence, position, image):
        call("moert_sequence_place_image", self.handle, sequence, ctypes.c_uint64(position), image)

    def complaint(self, name, *arguments):
        """What a call that must fail says."""
        text = message(getattr(library, name)(*arguments))
        if not text:
            sys.exit(f"{name}: expected an error")
        return text

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

    @staticmethod
    def free(snapshot):
        library.moert_snapshot_free(snapshot)

    def release(self, sequence):
        call("moert_sequence_release", self.handle, sequence)

    @staticmethod
    def parts(*parts):
        """The arguments that give all logits of tokens appended to sequences."""
        arrays = [(ctypes.c_int32 * len(tokens))(*tokens) for _, tokens in parts]
        return (StepPart * len(parts))(*[StepPart(sequence, array, len(array), 2)
                                         for (sequence, _), array in zip(parts, arrays)]), ctypes.c_size_t(len(parts))

    def step(self, *parts):
        """Appends tokens to sequences; the logits of all of them, one array for each part."""
        call("moert_session_step", self.handle, *self.parts(*parts), ctypes.byref(self.logits))
        values = numpy.ctypeslib.as_array(self.logits.data, (self.logits.rows, self.logits.vocabulary)).copy()
        return numpy.split(values, numpy.cumsum([len(tokens) for _, tokens in parts])[:-1])

    def run(self, tokens, chunk=None):
        """The logits of a sequence of its own, in steps of `chunk` tokens."""
        sequence, rows = self.create(), []
        for begin in range(0, len(tokens), chunk or len(tokens)):
            rows += self.step((sequence, tokens[begin:begin + (chunk or len(tokens))]))
        self.release(sequence)
        return numpy.concatenate(rows)
