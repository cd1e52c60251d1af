#!/usr/bin/env bash
# cycles.sh [BUNDLE [DIRECTORY [torch|jax|cupy...]]] - PyTorch, JAX and CuPy, where they are installed,
# fill their jobs' reservations until they are refused and go on, 100 times in each of ten jobs, under
# an agent with its defaults, on a machine with an NVIDIA GPU. BUNDLE is what bundle.sh made (or
# this checkout, where it was built). The last line is 'N passed, M failed'.
set -euo pipefail
cd "$(dirname "$0")/../.."
bundle=$(realpath "${1:-.}")
out=${2:-${OUT:-build/gpu}}
shift $(($# < 2 ? $# : 2))
mkdir -p "$out"

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus | grep -q GPU; then
	echo "no NVIDIA GPU here: skipped"
	echo "0 passed, 0 failed"
	exit 0
fi
timeout -k 5 560 python3 -u tests/gpu/cycles_report.py "$bundle" "$out" "$@" | tee "$out/cycles.md"
