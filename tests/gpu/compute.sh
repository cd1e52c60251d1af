#!/usr/bin/env bash
# compute.sh [BUNDLE [DIRECTORY [PART...]]] - how MPS divides the compute of an NVIDIA GPU: among
# clients of one server, and among servers. PART: alone, one, servers, users, faults, memory; all of them
# take about eight minutes. Daemons have directories of their own and are ended through them. The last
# line is 'N measured, M failed'.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${2:-${OUT:-build/gpu}}
mkdir -p "$out"

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --list-gpus | grep -q GPU; then
	echo "no NVIDIA GPU here: skipped"
	echo "0 measured, 0 failed"
	exit 0
fi
if ! command -v nvidia-cuda-mps-control >/dev/null; then
	echo "no nvidia-cuda-mps-control here: skipped"
	echo "0 measured, 0 failed"
	exit 0
fi
timeout -k 5 570 python3 -u tests/gpu/compute_report.py "$out" "${@:3}" | tee "$out/compute.md"
