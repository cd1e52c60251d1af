#!/usr/bin/env bash
# sleep.sh [BUNDLE [DIRECTORY]] - puts models to sleep and wakes them on a machine with an NVIDIA GPU,
# beside loads of the same models, in about four minutes. BUNDLE is what bundle.sh made (or this
# checkout, where it was built). The last line is "N passed, M failed".
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
timeout -k 5 560 python3 -u tests/gpu/sleep_report.py "$bundle" "$out" | tee "$out/sleep.md"
