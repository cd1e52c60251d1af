#!/usr/bin/env bash
# agent.sh [BUNDLE [DIRECTORY]] - tries the scheduler and the agent on a machine with an NVIDIA
# GPU, in about four minutes, and prints a report that can go into docs/hardware.md. BUNDLE is
# what bundle.sh made (or this checkout, where it was built); the report and all logs are left in
# DIRECTORY (or $OUT, or build/gpu). Skips itself where there is no GPU. The last line is
# 'N passed, M failed'.
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
python=$(command -v python3) || {
	echo "agent.sh: python3 is needed, and not there" >&2
	exit 1
}
timeout -k 5 540 "$python" -u tests/gpu/agent_report.py "$bundle" "$out"
