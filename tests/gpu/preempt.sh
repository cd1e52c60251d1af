#!/usr/bin/env bash
# preempt.sh [BUNDLE [DIRECTORY]] - a PyTorch training run that is suspended for a job of higher
# priority and resumed, ten times, on a machine with an NVIDIA GPU, in about four minutes: its losses
# must equal those of the same run that was never stopped. BUNDLE is what bundle.sh made (or this
# checkout, where it was built). The last line is 'N passed, M failed'.
set -euo pipefail
cd "$(dirname "$0")/../.."
bundle=$(realpath "${1:-.}")
out=${2:-${OUT:-build/gpu}}
mkdir -p "$out"

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus | grep -q GPU; then
	echo "no NVIDIA GPU here: skipped"
	echo "0 passed, 0 failed"
	exit 0
fi
timeout -k 5 570 python3 -u tests/gpu/preempt_report.py "$bundle" "$out" | tee "$out/preempt.md"
