#!/usr/bin/env bash
# attacks.sh [BUNDLE [DIRECTORY [NAME...]]] - tries to take more GPU memory than a job reserved, in
# the ways of attack.py (or those that are named), on a machine with an NVIDIA GPU, in about six
# minutes: each as a job under a scheduler and an agent with its defaults, alone and beside a
# neighbor. BUNDLE is what bundle.sh made (or this checkout, where it was built). Prints a table
# that can go into docs/hardware.md. The last line is 'N passed, M failed'.
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
timeout -k 5 560 python3 -u tests/gpu/attacks_report.py "$bundle" "$out" "$@" | tee "$out/attacks.md"
