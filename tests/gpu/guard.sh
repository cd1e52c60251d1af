#!/usr/bin/env bash
# guard.sh [DIRECTORY] - tries the guard on a machine with an NVIDIA GPU, in under six
# minutes: builds it with gcc, runs programs and frameworks under it, and prints a report
# that can go into docs/hardware.md. A framework that is not installed is left out, with
# a sentence; nothing is installed. The report and all that the steps printed are left
# in DIRECTORY (or $OUT, or build/gpu). The last line is 'N passed, M failed'.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-${OUT:-build/gpu}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

build()
{
	tests/gpu/build_guard.sh "$work" &&
		gcc -std=gnu17 -O2 -g -Wall -Wextra -Isrc -o "$work/driver" tests/gpu/guard_driver.c -ldl -lpthread
}
echo "building the guard"
if ! build >"$out/build.txt" 2>&1; then
	cat "$out/build.txt"
	echo "0 passed, 1 failed"
	exit 1
fi
# The CUDA runtime, linked statically, is an extra where its compiler is.
if command -v nvcc >/dev/null; then
	timeout -k 5 60 nvcc -O2 -o "$work/runtime" tests/gpu/guard_runtime.c >>"$out/build.txt" 2>&1 ||
		tail -n 5 "$out/build.txt"
fi

python=$(command -v python3) || {
	echo "guard.sh: python3 is needed, and not there" >&2
	exit 1
}
timeout -k 5 400 "$python" -u tests/gpu/guard_report.py "$work" "$out"
