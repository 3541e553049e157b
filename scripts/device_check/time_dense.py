"""Dense bf16 products beside PyTorch's (cuBLAS) in one run: error against PyTorch in float32 and time. Needs PyTorch on the machine.

    time_dense.py FOLDER [DEVICE]"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import moert

# Rows of inputs, and of the weight its rows and columns.
CASES = [(8192, 8192, 8192), (4096, 7168, 2048), (4096, 2048, 7168), (64, 12288, 7168), (16, 12288, 7168), (1, 12288, 7168),
         (64, 7168, 12288), (16, 7168, 12288), (1, 7168, 12288)]


def time_torch(torch, m, n, k):
    """Seconds of a product, of a graph of many with weights in turn, so that none is in a cache."""
    copies = max(1, min(8, 2**30 // (2 * n * k)))
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    for w in weights:
        torch.mm(x, w.t(), out=y)
    graph, count = torch.cuda.CUDAGraph(), 16
    with torch.cuda.graph(graph):
        for i in range(count):
            torch.mm(x, weights[i % copies].t(), out=y)
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1000 / count)
    return statistics.median(times[1:])


def time_moert(here, bundle, weights, m, device):
    command = [f"{here}/moert", "bench", bundle, "--device", device, "--dimension", f"tokens={m}", "--weights", weights, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["seconds"]


def check(library, here, folder, device):
    import torch
    records = []
    with tempfile.TemporaryDirectory() as weights:
        for m, n, k in CASES:
            w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5
            w.view(torch.int16).cpu().numpy().tofile(f"{weights}/{n}x{k}.bin")
            x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            model = library.load(f"{folder}/{n}x{k}.moeb", device, weights=weights)
            got = model.run({"x": ("bf16", x.view(torch.int16).cpu().numpy().view(np.uint16))})["y"]
            model.close()
            expected = x.float() @ w.float().t()
            error = (torch.from_numpy(got.view(np.int16)).cuda().view(torch.bfloat16).float() - expected).square().mean().sqrt() / expected.square().mean().sqrt()
            torch_seconds = time_torch(torch, m, n, k)
            del w, x, expected
            torch.cuda.empty_cache()
            record = {"m": m, "n": n, "k": k, "error": float(error), "torch": torch_seconds, "moec": time_moert(here, f"{folder}/{n}x{k}.moeb", weights, m, device)}
            records.append(record)
            print(f"{m:5} x {n:5} x {k:5}: error {record['error']:.2e}, torch {1e6 * record['torch']:.1f} us, moec {1e6 * record['moec']:.1f} us, "
                  f"torch / moec {record['torch'] / record['moec']:.2f}", flush=True)
    return records


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    check(moert.Library(f"{here}/libmoert.so"), here, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cuda")
