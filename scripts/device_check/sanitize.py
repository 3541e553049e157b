"""The ops under NVIDIA's compute-sanitizer: bad accesses, races, misused barriers, memory that is read before anything wrote it."""

import json
import re
import subprocess
import sys

# By tool, the numbers of tokens whose cases run: under racecheck kernels take longest.
TOOLS = {"memcheck": [0, 1, 5, 33, 130], "racecheck": [1, 5, 33], "synccheck": [1, 5, 33, 130], "initcheck": [1, 5, 33, 130]}


def start(tool, here, device):
    command = ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--print-limit", "20", sys.executable,
               f"{here}/check_ops.py", device, *map(str, TOOLS[tool])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def read(tool, output):
    """Errors that the tool counted, and what the cases gave."""
    summary = re.search(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", output)
    result = next((json.loads(line) for line in output.splitlines() if line.startswith('{"passed"')), None)
    record = {"tokens": TOOLS[tool], "errors": int(summary[1] or summary[2]) if summary else None,
              "passed": result and result["passed"], "failed": result and result["failed"]}
    record["sound"] = record["errors"] == 0 and record["failed"] == 0 and record["passed"] > 0
    if not record["sound"]:
        record["output"] = output[-20000:]
    return record


def sanitize(here, device):
    """All tools at once: each is busy with the host most of the time."""
    running = {tool: start(tool, here, device) for tool in TOOLS}
    return {tool: read(tool, process.communicate()[0]) for tool, process in running.items()}
