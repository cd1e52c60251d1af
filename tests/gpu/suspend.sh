#!/usr/bin/env bash
# suspend.sh [BUNDLE [DIRECTORY]] - suspends and resumes jobs on a machine with an NVIDIA GPU, in about
# two minutes. BUNDLE is what bundle.sh made (or this checkout, where it was built). The last line
# is 'N passed, M failed'.
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
timeout -k 5 400 python3 -u tests/gpu/suspend_report.py "$bundle" "$out" | tee "$out/suspend.md"
