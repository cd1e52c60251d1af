#!/usr/bin/env bash
# shares.sh [BUNDLE [DIRECTORY]] - jobs with shares of a GPU's compute under an agent, on a machine with
# an NVIDIA GPU and MPS, in about two minutes. BUNDLE is what bundle.sh made (or this checkout, where it
# was built). The last line is 'N passed, M failed'.
set -euo pipefail
cd "$(dirname "$0")/../.."
bundle=$(realpath "${1:-.}")
out=${2:-${OUT:-build/gpu}}
mkdir -p "$out"

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus | grep -q GPU ||
	! command -v nvidia-cuda-mps-control >/dev/null; then
	echo "no NVIDIA GPU with MPS here: skipped"
	echo "0 passed, 0 failed"
	exit 0
fi
timeout -k 5 400 python3 -u tests/gpu/shares_report.py "$bundle" "$out" | tee "$out/shares.md"
