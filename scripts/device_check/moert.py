"""moert's C interface for Python, through ctypes: what the device check needs of it."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

import numpy as np

# Element types that numpy has, by their number in moert.h.
TYPES = {1: np.float32, 2: np.float16, 3: np.uint16, 4: np.float64, 7: np.int8, 9: np.int32, 10: np.int64, 12: np.uint8}
NUMBERS = {"f32": 1, "f16": 2, "bf16": 3, "f64": 4, "i32": 9, "i64": 10, "i8": 7, "u8": 12}
LOGITS_NONE, LOGITS_LAST, LOGITS_ALL = 0, 1, 2


class LoadOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("threads", c_uint32), ("variant", c_char_p), ("progress", c_void_p), ("context", c_void_p),
                ("device", c_char_p), ("no_graphs", c_uint32), ("reserved", c_uint32)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_uint32), ("rank", c_uint32), ("shape", POINTER(c_int64)), ("data", c_void_p),
                ("bytes", c_size_t)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("weights_folder", c_char_p)]


class StepPart(ctypes.Structure):
    _fields_ = [("sequence", c_uint64), ("tokens", POINTER(c_int32)), ("count", c_size_t), ("logits", c_uint32)]


class Logits(ctypes.Structure):
    _fields_ = [("data", POINTER(ctypes.c_float)), ("rows", c_size_t), ("vocabulary", c_size_t)]


class Choice(ctypes.Structure):
    _fields_ = [("row", c_uint64), ("temperature", ctypes.c_float), ("top_k", c_int32), ("top_p", c_double), ("random", c_double)]


class GenerateOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("maximum_tokens", c_uint64), ("temperature", c_double), ("top_k", c_int64), ("top_p", c_double),
                ("seed", c_uint64), ("ignore_end", c_uint32), ("reserved", c_uint32), ("chunk", c_uint64), ("on_token", c_void_p),
                ("context", c_void_p)]


class Error(Exception):
    pass


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("message", "location", "hint"):
            getattr(self.c, f"moert_error_{name}").restype = c_char_p
        for name in ("bundle_open", "model_load", "model_run", "session_create", "session_step", "sequence_create", "sequence_release",
                     "session_advance", "session_logits", "session_choose", "sequence_fork", "sequence_truncate", "generate"):
            getattr(self.c, f"moert_{name}").restype = c_void_p
        self.c.moert_tensors_get.restype = POINTER(Tensor)
        self.c.moert_tensors_count.restype = c_size_t
        self.c.moert_model_device.restype = c_char_p

    def call(self, name, *arguments):
        error = getattr(self.c, f"moert_{name}")(*arguments)
        if error:
            texts = [getattr(self.c, f"moert_error_{each}")(c_void_p(error)) for each in ("location", "message", "hint")]
            self.c.moert_error_free(c_void_p(error))
            raise Error(": ".join(text.decode() for text in texts if text))

    def load(self, bundle, device, graphs=True, weights=None):
        """`weights`: the folder of weight files outside the bundle, where it is not the one that they were compiled from."""
        return Model(self, bundle, device, graphs, weights)


class Model:
    def __init__(self, library, path, device, graphs, weights):
        self.library = library
        self.bundle, self.handle = c_void_p(), c_void_p()
        options = OpenOptions(ctypes.sizeof(OpenOptions), weights.encode() if weights else None)
        library.call("bundle_open", path.encode(), byref(options), byref(self.bundle))
        options = LoadOptions(size=ctypes.sizeof(LoadOptions), device=device.encode(), no_graphs=0 if graphs else 1)
        library.call("model_load", self.bundle, byref(options), byref(self.handle))

    def device(self):
        return self.library.c.moert_model_device(self.handle).decode()

    def run(self, inputs):
        """inputs: name -> (type, array). Gives name -> array; bf16 comes as uint16."""
        tensors, keep = (Tensor * len(inputs))(), []
        for tensor, (name, (kind, array)) in zip(tensors, inputs.items()):
            array = np.ascontiguousarray(array)
            shape = (c_int64 * array.ndim)(*array.shape)
            keep += [array, shape]
            tensor.name, tensor.type, tensor.rank, tensor.shape = name.encode(), NUMBERS[kind], array.ndim, shape
            tensor.data, tensor.bytes = array.ctypes.data, array.nbytes
        outputs = c_void_p()
        self.library.call("model_run", self.handle, None, tensors, c_size_t(len(inputs)), byref(outputs))
        results = {}
        for i in range(self.library.c.moert_tensors_count(outputs)):
            tensor = self.library.c.moert_tensors_get(outputs, c_size_t(i)).contents
            shape = [tensor.shape[d] for d in range(tensor.rank)]
            array = np.empty(shape, TYPES[tensor.type])
            if tensor.bytes:  # copied by numpy, which lets other threads go on
                array.view(np.uint8).reshape(-1)[:] = np.ctypeslib.as_array(ctypes.cast(tensor.data, POINTER(c_uint8)), (tensor.bytes,))
            results[tensor.name.decode()] = array
        self.library.c.moert_tensors_free(outputs)
        return results

    def session(self):
        return Session(self)

    def close(self):
        self.library.c.moert_model_free(self.handle)
        self.library.c.moert_bundle_close(self.bundle)


class Session:
    def __init__(self, model):
        self.library, self.handle = model.library, c_void_p()
        self.library.call("session_create", model.handle, None, byref(self.handle))

    def sequence(self):
        sequence = c_uint64()
        self.library.call("sequence_create", self.handle, byref(sequence))
        return sequence.value

    def release(self, sequence):
        self.library.call("sequence_release", self.handle, c_uint64(sequence))

    def step(self, parts, wanted=LOGITS_ALL):
        """parts: list of (sequence, tokens). Gives the logits, f32 [rows, vocabulary]."""
        self.advance(parts, wanted)
        return self.logits()

    def advance(self, parts, wanted=LOGITS_LAST):
        """The same, but the logits stay on the device."""
        array, keep = (StepPart * len(parts))(), []
        for each, (sequence, tokens) in zip(array, parts):
            tokens = np.ascontiguousarray(tokens, np.int32)
            keep.append(tokens)
            each.sequence, each.count, each.logits = sequence, len(tokens), wanted
            each.tokens = tokens.ctypes.data_as(POINTER(c_int32))
        self.library.call("session_advance", self.handle, array, c_size_t(len(parts)), None)

    def logits(self):
        logits = Logits()
        self.library.call("session_logits", self.handle, byref(logits))
        if not logits.rows:
            return np.zeros((0, logits.vocabulary), np.float32)
        return np.ctypeslib.as_array(logits.data, (logits.rows, logits.vocabulary)).copy()

    def choose(self, choices):
        """choices: list of (row, temperature, top_k, top_p, random). Gives the tokens, chosen on the device."""
        array, tokens = (Choice * len(choices))(*choices), (c_int32 * len(choices))()
        self.library.call("session_choose", self.handle, array, c_size_t(len(choices)), tokens)
        return list(tokens)

    def generate(self, prompt, count):
        prompt = np.ascontiguousarray(prompt, np.int32)
        options = GenerateOptions(size=ctypes.sizeof(GenerateOptions), maximum_tokens=count, ignore_end=1)
        ids, length = POINTER(c_int32)(), c_size_t()
        self.library.call("generate", self.handle, prompt.ctypes.data_as(POINTER(c_int32)), c_size_t(len(prompt)), byref(options),
                          byref(ids), byref(length))
        result = [ids[i] for i in range(length.value)]
        self.library.c.moert_free(ids)
        return result

    def close(self):
        self.library.c.moert_session_free(self.handle)
