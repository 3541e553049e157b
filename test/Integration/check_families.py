"""check_families.py LIBMOERT FOLDER MODEL ...: every family's small checkpoint, compiled, against what the library in its reference
made of it. One table with a line for each:

    layers    in f32, each layer with the library's inputs: the worst relative root mean square; at most 1e-5
    logits    in f32, from end to end, of the reference's tokens, of their first 6, 8, 9 and 40, and of 300 others: at most 1e-4
    own       how far the library in float32 is off itself in float64: of layers, of logits
    chunks    the prompt in steps of 1, 7, 16 and 64 tokens against the whole
    sessions  see check_sessions.py: in f32 to 1e-5, and bit for bit in bf16 with --batch-invariant
    bf16      root mean square over the logits' deviation

Files of a MODEL: checkpoint/, if it does not lie there itself, and reference.safetensors, which scripts/families/make_checkpoints.py writes. What indexers choose is
compared, too: exactly. In bf16 a model that chooses keys chooses some others, which is not an error of its numbers: there it is to
choose all of them, which is compared with what its library then computes."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

import numpy as np
from check_sessions import check_sessions
from common import TARGET, metadata, safetensors, table_head, table_line, without_locations
from runtime_library import Session

LAYERS, LOGITS, SESSIONS = 1e-5, 1e-4, 1e-5  # what is allowed
RECURRENT = ("deepseek-v4", "qwen3-next", "qwen3.5", "kimi-linear")
# Families whose layers' parts are those of another one in the list: sessions of theirs show nothing new.
SAME_SESSIONS = ("qwen3-moe-", "deepseek-v3-", "glm-moe-dsa-offset", "qwen3.5-moe-text", "deepseek-v4-fp8")


def run_indexers(checkpoint, tokens, folder):
    """What each moe.select_keys of the model gives, compiled as further outputs of the step."""
    text = without_locations(subprocess.run(["moec", "compile", checkpoint, "--to=moe", "--precision=f32", "-o", "-"], check=True,
                                            capture_output=True, text=True).stdout)
    chosen = re.findall(r"^ *(%\S+) = moe\.select_keys .* -> (\S+) *$", text, re.M)
    text = re.sub(r"moe\.language_model = \{[^}]*\}, ", "", text)
    outputs = "".join(f', {kind} {{moe.name = "chosen.{i}"}}' for i, (_, kind) in enumerate(chosen))
    text = text.replace('{moe.name = "logits"})', '{moe.name = "logits"}' + outputs + ")")
    text = text.replace("func.func @step(", 'func.func @step(%pool: tensor<?xi32> {moe.name = "pool", moe.dims = ["cache_blocks"]}, ')
    text = re.sub(r"return (%\S+) : (\S+)", lambda match: "return " + ", ".join([match[1], *(value for value, _ in chosen)]) + " : " +
                  ", ".join([match[2], *(kind for _, kind in chosen)]), text)
    with open(f"{folder}/indexers.mlir", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["moec", "compile", f"{folder}/indexers.mlir", "-o", f"{folder}/indexers.moeb", *TARGET], check=True)
    count, block = len(tokens), 16
    blocks = np.random.default_rng(1).permutation(-(-count // block))
    inputs = {"pool": np.zeros(len(blocks)), "tokens": tokens, "positions": np.arange(count), "token_sequences": np.zeros(count),
              "sequence_offsets": np.array([0, count]), "block_table": blocks[None], "logit_rows": np.array([count - 1])}
    for key, x in inputs.items():
        np.save(f"{folder}/{key}.npy", x.astype(np.int32))
    subprocess.run(["moec", "run", f"{folder}/indexers.moeb", *(f"--input={key}={folder}/{key}.npy" for key in inputs), "--outputs",
                    f"{folder}/outputs"], check=True, stdout=subprocess.DEVNULL)
    return [np.load(f"{folder}/outputs/chosen.{i}.npy") for i in range(len(chosen))]


def compile_checkpoint(checkpoint, bundle, *arguments):
    subprocess.run(["moec", "compile", checkpoint, "-o", bundle, *arguments, *TARGET], check=True, stdout=subprocess.DEVNULL)
    return bundle


def verify_layers(bundle, reference):
    """The worst error of a layer with the reference's inputs."""
    result = subprocess.run(["moec", "verify", bundle, "--against", reference, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    report = json.loads(result.stdout.splitlines()[-1])
    if not report["agrees"]:
        sys.exit(f"{bundle}: {report['first_difference']}")
    compared = [each for segment in report["segments"] for each in segment.get("with_file", [])]
    # Every layer is compared, and the embedding.
    assert sum("with_file" in segment for segment in report["segments"]) == len(report["segments"]) - 1
    return max(each["relative_rms"] for each in compared)


def check_family(model):
    """The line of the table; the process ends with the first family that differs."""
    name, path = os.path.basename(model), f"{model}/reference.safetensors"
    folder, checkpoint = f"{work}/{name}", f"{model}/checkpoint" if os.path.exists(f"{model}/checkpoint") else model
    os.makedirs(folder, exist_ok=True)
    reference, about = safetensors(path), metadata(path)
    prefix = "" if "tokens" in reference else "short."
    tokens, expected = reference[prefix + "tokens"], reference[prefix + "logits"]
    (last,) = (rows for key, rows in reference.items() if key.startswith("long.logits_last"))
    bundle = compile_checkpoint(checkpoint, f"{folder}/f32.moeb", "--precision=f32")
    wrong, figures = [], []

    def note(what, error, allowed):
        figures.append(error)
        if not error <= allowed:
            wrong.append(f"{what}: {error:.3g}, allowed {allowed:.3g}")

    note("layers", verify_layers(bundle, path), LAYERS)
    session = Session(bundle)
    whole = session.run(tokens)
    errors = [np.abs(whole - expected).max()]
    errors += [np.abs(session.run(tokens[:length]) - expected[:length]).max() for length in (6, 8, 9, 40)]
    errors.append(np.abs(session.run(reference["long.tokens"])[-len(last):] - last).max())
    note("logits", max(errors), LOGITS)
    note("chunks", max(np.abs(session.run(tokens, chunk) - whole).max() for chunk in (1, 7, 16, 64)), LOGITS)
    if not name.startswith(SAME_SESSIONS):
        recurrent, positions = name.startswith(RECURRENT), (1, 8, 13, 16, 31)
        note("sessions", check_sessions(session, SESSIONS, positions, recurrent, len(expected[0])), SESSIONS)
    else:
        figures.append(None)
    all_keys = [f"--set=index_topk={len(tokens)}"] if "dense_logits" in reference else []
    invariant = [] if name.startswith(SAME_SESSIONS) else ["--batch-invariant"]
    narrow = Session(compile_checkpoint(checkpoint, f"{folder}/bf16.moeb", *all_keys, *invariant))
    rough = narrow.run(tokens)
    if invariant:
        check_sessions(narrow, 0, positions, recurrent, len(expected[0]))
    dense = reference.get("dense_logits", expected)
    # Where two experts or entries are near, computations in bf16 take the one or the other: such rows may be as wrong as the library's
    # are by its own account, not much more, and most rows are none of them.
    note("bf16", np.sqrt(((rough - dense)**2).mean()) / dense.std(), max(0.05, 1.2 * float(reference.get("bf16_error", [0])[0])))
    rows = np.sqrt(((rough - dense)**2).mean(1)) / dense.std()
    if not np.median(rows) <= 0.05:
        wrong.append(f"bf16: the middle one of the rows' errors is {np.median(rows):.2g}")
    wanted = [reference[f"chosen.{i}"] for i in range(sum(key.startswith("chosen.") for key in reference))]
    chosen = run_indexers(checkpoint, tokens, folder) if wanted else []
    if len(chosen) != len(wanted) or not all(map(np.array_equal, chosen, wanted)):
        wrong.append("indexers choose other positions")
    print(table_line(name, *figures[:2], float(about["own_layer_error"]), float(about["own_logits_error"]), *figures[2:], not wrong,
                     about["reference"]), flush=True)
    if wrong:
        sys.exit(f"{name}: {'; '.join(wrong)}")


library, work, *given = sys.argv[1:]
print(table_head())
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(check_family, given))
