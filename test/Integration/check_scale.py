"""check_scale.py CHECKPOINT FOLDER: compiles a checkpoint of true size, and a slice of it for a GPU; opens the bundles. Says what came out,
whether 2 GiB of memory sufficed to compile and 200 MiB to open, and prints times and memory."""

import json
import os
import subprocess
import sys
import time

checkpoint, folder = sys.argv[1:]


def run(*command):
    """Output, seconds, and the most memory that the process had."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return output, time.monotonic() - begin, usage.ru_maxrss * 1024


def judge(memory, most):
    return f"{most >> 20} MiB suffice" if memory < most else f"{most >> 20} MiB do not suffice: {memory >> 20}"


for name, options in (("cpu", []), ("cuda:sm_90a, layers 0-4", ["--target=cuda:sm_90a", "--layers=0-4"])):
    bundle = f"{folder}/model.moeb"
    subprocess.run(["rm", "-rf", bundle], check=True)
    _, seconds, memory = run("moec", "compile", checkpoint, "-o", bundle, *options)
    _, open_seconds, open_memory = run("moert", "inspect", bundle)
    # By a process of its own: half a million weights would stay in this one, and a process that it starts begins as large as it is.
    text, _, _ = run("sh", "-c", f"moert inspect {bundle} --json | {sys.executable} -c "
                     "'import json, sys; print(json.dumps(json.loads(sys.stdin.readlines()[-1])[\"language_model\"]))'")
    model = json.loads(text)
    print(f"{name}: {model['layers']} layers, {model['expert_layers']} with {model['experts']} experts, {model['experts_per_token']} for a token; "
          f"{model['bytes_per_token']} bytes a token, {model['bytes_per_sequence']} a sequence")
    print(f"{name}: compiled, {judge(memory, 2 << 30)}; opened, {judge(open_memory, 200 << 20)}")
    print(f"{name}: compiled in {seconds:.1f} s with {memory >> 20} MiB, opened in {open_seconds:.2f} s with {open_memory >> 20} MiB", flush=True)
