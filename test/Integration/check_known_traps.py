"""check_known_traps.py ROOT: the tests that docs/known-traps.md names exist. A guard is `FILE`: `NAME`, where NAME is Suite.Test of
GoogleTest or a text in the file."""

import os
import re
import sys

root = sys.argv[1]
rows, missing = 0, []
with open(f"{root}/docs/known-traps.md", encoding="utf-8") as page:
    for line in page:
        if not line.startswith("| ") or line.startswith("| trap"):
            continue
        rows += 1
        guards = re.findall(r"`([^`]+)`: `([^`]+)`", line.split(" | ", 1)[1])
        if not guards:
            missing.append(f"no test: {line.strip()}")
        for file, name in guards:
            if not os.path.exists(f"{root}/{file}"):
                missing.append(f"no such file: {file}")
                continue
            with open(f"{root}/{file}", encoding="utf-8") as source:
                text = source.read()
            unit_test = re.fullmatch(r"(\w+)\.(\w+)", name)
            found = re.search(rf"\bTEST(_P|_F)?\({unit_test[1]},\s*{unit_test[2]}\)", text) if unit_test and file.endswith("Test.cpp") else name in text
            if not found:
                missing.append(f"{file} has no '{name}'")
assert rows > 40, rows
sys.exit("\n".join(missing)) if missing else print(f"known traps are guarded: {rows}")
