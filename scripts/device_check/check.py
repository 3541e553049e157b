"""check.py [DEVICE] [OPTIONS]: everything that prepare put beside this file, on a device ("cuda"): one JSON file and one table."""

import argparse
import json
import os
import sys
import traceback

import check_blocks
import check_experts
import check_families
import check_large
import check_model
import check_ops
import moert
import sanitize
import time_dense

# Bundle, and whether steps are kept as CUDA graphs.
MODELS = [("gptoss-tiny-f32", True), ("gptoss-tiny-f32", False), ("gptoss-tiny-f32-ptx", True), ("gptoss-tiny-bf16", True),
          ("gptoss-tiny-bf16-invariant", True), ("k31-tiny-f32", True), ("k31-tiny-bf16", True)]


def get_model(bundle):
    """The folder of its weights and references: the first two words of its name."""
    return "-".join(bundle.split("-")[:2])


def problems(name, record):
    """What does not hold, in words."""
    found = []
    for text in ("short", "long"):
        if "-f32" in name and record[text]["largest"] > 1e-4:
            found.append(f"{text} logits differ by {record[text]['largest']:.2g}")
        if name.startswith("k31-tiny-bf16"):
            continue  # chooses other positions where scores are near: its perplexity counts
        if record[text]["rms"] > 0.03:
            found.append(f"{text} logits differ by {record[text]['rms']:.2%} of their standard deviation")
        if record[text]["wrong_argmax"]:
            found.append(f"{record[text]['wrong_argmax']} best tokens of the {text} prompt differ")
    cuts = [record["first_steps"], *record["chunks"].values(), record["ragged"], record["ragged_decode"]]
    if "-f32" in name and max(cuts) > 1e-4 or name.endswith("invariant") and max(cuts) > 0:
        found.append(f"cuts and batches change logits by {max(cuts):.2g}")
    if record["repetitions_differ"]:
        found.append(f"{record['repetitions_differ']} repetitions differ")
    if "-f32" in name and min(record["greedy_equal"]) < 200:
        found.append(f"greedy tokens differ from {record['greedy_equal']} on")
    if abs(record["perplexity"] / record["perplexity_reference"] - 1) > (0.001 if "-f32" in name else 0.005):
        found.append(f"perplexity {record['perplexity']:.5f}")
    return found


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", nargs="?", default="cuda")
    parser.add_argument("--sanitize", action="store_true", help="also the ops under compute-sanitizer: some minutes")
    parser.add_argument("--experts", action="store_true", help="also MXFP4 experts of true size, 1,000 times each: some minutes")
    parser.add_argument("--large", action="store_true", help="also ops on more than 2^31 elements: some minutes, 100 GiB of memory")
    parser.add_argument("--dense", action="store_true", help="also dense products beside PyTorch's, where it is there")
    arguments = parser.parse_args()
    device = arguments.device
    library = moert.Library(f"{here}/libmoert.so")
    result, failed = {"models": [], "graphs": {}, "ops": None}, 0
    print(f"{'model':26} {'graphs':6} {'logits':>9} {'rms':>8} {'perplexity':>11} {'prompt 512':>11} {'token':>9}  problems")
    for name, graphs in MODELS:
        try:
            record = check_model.check(library, f"{here}/{name}.moeb", f"{here}/{get_model(name)}", device, graphs=graphs)
            record["problems"] = problems(name, record)
            print(f"{name:26} {str(graphs):6} {record['short']['largest']:9.2g} {record['short']['rms']:8.2%} {record['perplexity']:11.6f} "
                  f"{record['prompt_512_s'] * 1e3:8.2f} ms {record['token_s'] * 1e6:6.0f} us  {'; '.join(record['problems']) or 'none'}",
                  flush=True)
        except Exception:  # any failure is a result, too
            record = {"problems": [traceback.format_exc()]}
            print(f"{name:26} {record['problems'][0]}", flush=True)
        failed += bool(record["problems"])
        result["models"].append({"name": name, "graphs": graphs, **record})
    for name in ("gptoss-tiny-f32", "gptoss-tiny-bf16", "k31-tiny-f32"):
        record = check_model.check_graphs(library, f"{here}/{name}.moeb", f"{here}/{get_model(name)}", device)
        result["graphs"][name] = record
        failed += bool(sum(record["differ"].values()) or record["wrong_tokens"])
        print(f"{name}: with and without graphs " + ", ".join(f"{count} steps differ at batch {batch}" for batch, count
                                                              in record["differ"].items())
              + f"; {record['wrong_tokens']} tokens chosen wrongly", flush=True)
    result["families"] = check_families.check(library, f"{here}/families", device)
    failed += sum(not record["sound"] for record in result["families"].values())
    result["ops"] = check_ops.check(library, f"{here}/ops", device)
    print(f"ops: {result['ops']['passed']} cases agree with the interpreter, {result['ops']['failed']} do not")
    print("\n".join(result["ops"]["failures"][:20]))
    result["blocks"] = check_blocks.check(library, f"{here}/blocks", device)
    print(f"building blocks: {result['blocks']['passed']} programs give exact results, {result['blocks']['failed']} do not")
    print("\n".join(result["blocks"]["failures"]), end="")
    failed += result["blocks"]["failed"]
    if arguments.sanitize:
        result["sanitizer"] = sanitize.sanitize(here, device)
        for tool, record in result["sanitizer"].items():
            failed += not record["sound"]
            print(f"{tool}: {record['errors']} errors in {record['passed']} cases of {record['tokens']} tokens, {record['failed']} cases fail",
                  flush=True)
            print(record.get("output", "")[:3000], end="")
    if arguments.experts:
        result["experts"] = check_experts.check_experts(library, here, device, repetitions=1000)
        failed += result["experts"]["wrong"]
    if arguments.large:
        result["large"] = check_large.check(library, f"{here}/large", device)
        failed += sum(record["wrong_rows"] != 0 for record in result["large"].values())
    if arguments.dense:
        result["dense"] = time_dense.check(library, here, f"{here}/dense", device)
        failed += sum(not record["error"] <= 2.5e-3 for record in result["dense"])
    with open(f"{here}/result.json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    sys.exit(bool(failed or result["ops"]["failed"]))


if __name__ == "__main__":
    main()
