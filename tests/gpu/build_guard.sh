#!/usr/bin/env bash
# build_guard.sh DIRECTORY - builds the guard and gpu-guard-run there with gcc alone, for a machine on
# which nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=${1:?usage: build_guard.sh DIRECTORY}

options=(-std=gnu17 -O2 -g -Wall -Wextra -Isrc)
library=()
for source in src/guard/*.c src/guard/*/*.c; do
	case $source in
	src/guard/run.c | */watch.c | */test/* | */bench/*) ;;
	*) library+=("$source") ;;
	esac
done
gcc "${options[@]}" -fPIC -fvisibility=hidden -shared -Wl,-Bsymbolic,-z,now \
	-o "$directory/libgpuguard.so" "${library[@]}"
gcc "${options[@]}" -o "$directory/gpu-guard-run" src/guard/run.c \
	src/guard/budget/{budget,heir,lock,process,segment,share,size,system,uuid,watch}.c \
	src/base/*.c
