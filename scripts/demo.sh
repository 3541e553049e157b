#!/usr/bin/env bash
# From nothing to generated text: installs what is needed, builds, compiles the demo model, runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh
cmake --preset default
cmake --build --preset default --target moec
build/bin/moec compile test/models/gptoss-tiny -o build/gptoss-tiny.moeb
build/bin/moec run build/gptoss-tiny.moeb --prompt "${1:-And it came to pass in those days, that}" --max-tokens 64
