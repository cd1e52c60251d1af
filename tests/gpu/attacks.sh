#!/usr/bin/env bash
# attacks.sh [DIRECTORY [NAME...]] - tries to get around the guard on a machine with an NVIDIA GPU, in
# two minutes: builds it with gcc, runs each attack of attack.py (or those that are named) under a
# limit of 20 GiB, alone and beside a neighbor, and prints a table that can go into
# docs/hardware.md. The last line is 'N passed, M failed'.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-${OUT:-build/gpu}}
shift || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus | grep -q GPU; then
	echo "no NVIDIA GPU here: skipped"
	echo "0 passed, 0 failed"
	exit 0
fi
tests/gpu/build_guard.sh "$work"
timeout -k 5 400 python3 -u tests/gpu/attacks_report.py "$work" "$@" | tee "$out/attacks.md"
