"""When the results of compiled code and of the reference interpreter agree. The differential test and the device check share it."""

import numpy as np

# Relative root mean square that one rounding to the type may make, with some room; of f32, what sums in another order may make.
TOLERANCES = {"f32": 1e-5, "bf16": 2.5e-3, "f16": 3.2e-4}


def widen(array, kind):
    """bf16, which numpy does not have, as f32."""
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else array


def compare(got, expected, kind, roundings):
    """What is wrong, or None. `roundings`: how many kernels in a row round to 16 bits."""
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    if kind == "i32":
        different = int((got != expected).sum())
        return f"{different} of {got.size} integers differ" if different else None
    a, b = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return "infinities or numbers that are none differ"
    a, b = a[finite], b[finite]
    distance = float(np.sqrt(((a - b) ** 2).sum() / max((b**2).sum(), 1e-30)))
    return None if distance <= TOLERANCES[kind] * (1 if kind == "f32" else roundings**0.5) else f"relative RMS {distance:.3g}"
