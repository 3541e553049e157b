#!/usr/bin/env bash
# Installs what building and testing need, on Debian 12 as root: Debian's packages, and a Python environment in .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  # toolchain
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools liblld-22-dev libclang-rt-22-dev
  cmake ninja-build ccache pkg-config python3 python3-venv ca-certificates git
  # what LLVM's CMake files look for
  zlib1g-dev libzstd-dev libxml2-dev libcurl4-openssl-dev libedit-dev libffi-dev
  # libraries of our own
  protobuf-compiler libprotobuf-dev libprotoc-dev libssl-dev nlohmann-json3-dev libspdlog-dev libcli11-dev libpcre2-dev
  libutf8proc-dev libturbojpeg0-dev libpng-dev
  libgtest-dev libgmock-dev
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

[ -x .venv/bin/python3 ] || python3 -m venv .venv
.venv/bin/python3 -c 'import numpy, onnx, safetensors' 2>/dev/null ||
  .venv/bin/python3 -m pip install --quiet --disable-pip-version-check numpy onnx safetensors
