#!/usr/bin/env bash
# Runs all tests: installs what is needed, builds everything, then the unit tests, the lit suite (once more with every input
# printed and parsed again), and the tests of the runtime and of the ONNX importer under AddressSanitizer and
# UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh
lit=/usr/lib/llvm-22/bin/lit
[ -x "$lit" ] || lit=/usr/lib/llvm-22/build/utils/lit/lit.py

cmake --preset default
cmake --build --preset default
cmake --preset sanitize
cmake --build --preset sanitize

ctest --test-dir build --output-on-failure -j "$(nproc)"
ASAN_OPTIONS=detect_leaks=1 ctest --test-dir build-sanitize --output-on-failure -j "$(nproc)"
build/bin/moec compile test/models/gptoss-micro/checkpoint -o build-sanitize/real.moeb --copy-weights
MOERT_TEST_BUNDLE=build-sanitize/real.moeb build-sanitize/bin/RealBundleTests
"$lit" -v build/test
"$lit" -v --param verify_roundtrip=1 build/test --filter 'Dialect|Transforms|Conversion'
