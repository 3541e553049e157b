"""exit_code.py CODE COMMAND...: runs the command, passes on what it prints, and succeeds when it exits with CODE."""

import subprocess
import sys

expected = int(sys.argv[1])
code = subprocess.run(sys.argv[2:], check=False).returncode
if code != expected:
    sys.exit(f"expected exit code {expected}, got {code}: {' '.join(sys.argv[2:])}")
