#!/usr/bin/env bash
# fuzz.sh SECONDS [NAME ...]: runs fuzzers for long, each so many seconds, one after the other; all of them unless some are named, such as
# checkpoint-config or safetensors. What they found interesting, and inputs that crash, stay in build-sanitize/fuzz/NAME.
# Needs the build of the preset `sanitize`, and its tests to have run once: they make seeds.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: scripts/fuzz.sh SECONDS [NAME ...]}
shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  names=(safetensors npy tokenizer manifest checkpoint-config checkpoint-header checkpoint-index)
fi
for name in "${names[@]}"; do
  folder=build-sanitize/fuzz/$name
  mkdir -p "$folder/corpus"
  case $name in
    manifest) seeds=(build-sanitize/test/Runtime/Fuzz/manifest_seed) ;;
    checkpoint-*) seeds=() ;; # they know their seeds
    *) seeds=(test/Runtime/Fuzz/seeds/"$name") ;;
  esac
  echo "$name: $seconds seconds"
  # Sorted by size, a long corpus would keep whole checkpoints away for hours: hence no control of the length.
  "build-sanitize/bin/fuzz-$name" -max_total_time="$seconds" -max_len=200000 -len_control=0 -timeout=60 -rss_limit_mb=4096 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$folder/" "$folder/corpus" "${seeds[@]}"
done
