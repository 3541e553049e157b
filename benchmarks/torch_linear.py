"""What torch's bf16 linear does at the size of one expert's gate and up projection, to set beside experts_bench.

    python3 torch_linear.py [--threads N] [--hidden H] [--inter I]
"""
import argparse
import time

import torch


def best_seconds(function, seconds=1.0):
    """The shortest of the repetitions that fit into `seconds`."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=2880)
    parser.add_argument("--inter", type=int, default=2880)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows, columns = 2 * options.inter, options.hidden
    # Several weights in turn, as a model has them, so that they do not stay in the caches.
    weights = [torch.randn(rows, columns).to(torch.bfloat16) for _ in range(8)]
    print(f"torch {torch.__version__}, bf16 linear [{rows}, {columns}], {options.threads} threads")
    with torch.inference_mode():
        for tokens in (1, 16, 64, 128):
            x = torch.randn(tokens, columns).to(torch.bfloat16)
            taken = best_seconds(lambda: [torch.nn.functional.linear(x, weight) for weight in weights]) / len(weights)
            print(f"{tokens:5} tokens {taken * 1e3:10.3f} ms {2 * rows * columns / taken / 1e9:10.1f} GB/s "
                  f"{2 * tokens * rows * columns / taken / 1e9:10.0f} GFLOP/s")


if __name__ == "__main__":
    main()
