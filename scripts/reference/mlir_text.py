"""Writes test files for moec-interpret --check: pairs of functions @NAME and @NAME_expected."""

import numpy as np

from formulas import round_to


def bits(dtype, x):
    """The elements' bytes; floats must be numbers of the type."""
    x = np.asarray(x)
    if dtype in ("f64", "f32", "f16"):
        return x.astype({"f64": "<f8", "f32": "<f4", "f16": "<f2"}[dtype]).tobytes()
    if dtype == "bf16":
        return (x.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    if dtype == "i8":
        return x.astype(np.uint8).tobytes()
    return x.astype({"i32": "<i4", "i64": "<i8"}[dtype]).tobytes()


def type_of(dtype, shape):
    return "tensor<" + "".join(f"{n}x" for n in shape) + dtype + ">"


def constant(dtype, x):
    """'dense<...> : tensor<...>', exact: hexadecimal bytes, or decimals for short integers."""
    x = np.asarray(x)
    kind = type_of(dtype, x.shape)
    if x.size == 0:
        return f"dense<> : {kind}"
    if dtype.startswith("i") and dtype != "i8" and x.size <= 64:
        return f"dense<{x.tolist()}> : {kind}"
    # A single element in hexadecimal would be read as a splat, which is the same.
    return f'dense<"0x{bits(dtype, x).hex().upper()}"> : {kind}'


class Tensor:
    """An input: rounded to its type when made, so that numpy and the interpreter see the same numbers."""

    def __init__(self, dtype, x):
        self.dtype = dtype
        self.x = np.asarray(x, np.int64) if dtype.startswith("i") else round_to(dtype, x)

    @property
    def type(self):
        return type_of(self.dtype, self.x.shape)


class Case:
    """Body lines may name inputs as %name; {name} stands for the input's type. `results` are (dtype, array)."""

    def __init__(self, name, inputs, body, results, arguments="", comment=""):
        self.name, self.inputs, self.body, self.arguments, self.comment = name, inputs, body, arguments, comment
        self.results = [(dtype, x if dtype.startswith("i") else round_to(dtype, x)) for dtype, x in results]

    def text(self):
        types = [type_of(dtype, np.shape(x)) for dtype, x in self.results]
        joined = types[0] if len(types) == 1 else "(" + ", ".join(types) + ")"
        lines = [f"// {line}" for line in self.comment.splitlines()]
        lines.append(f"func.func @{self.name}({self.arguments}) -> {joined} {{")
        for key, value in self.inputs.items():
            lines.append(f"  %{key} = arith.constant {constant(value.dtype, value.x)}")
        substitutions = {key: value.type for key, value in self.inputs.items()}
        substitutions.update({f"result{i}": t for i, t in enumerate(types)})
        for line in self.body.strip().splitlines():
            for key, value in substitutions.items():
                line = line.replace("{" + key + "}", value)
            lines.append("  " + line.strip())
        returned = ", ".join(f"%r{i}" for i in range(len(types)))
        lines += [f"  return {returned} : {', '.join(types)}", "}"]
        lines.append(f"func.func @{self.name}_expected() -> {joined} {{")
        for i, (dtype, x) in enumerate(self.results):
            lines.append(f"  %r{i} = arith.constant {constant(dtype, x)}")
        lines += [f"  return {returned} : {', '.join(types)}", "}"]
        return "\n".join(lines) + "\n"


def write(path, cases, options="", aliases=""):
    header = f"// RUN: moec-interpret %s --check {options}".rstrip() + "\n"
    header += "// Made by scripts/reference/make_tests.py: the expected values come from numpy.\n\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(header + (aliases + "\n" if aliases else "") + "\n".join(case.text() for case in cases))
