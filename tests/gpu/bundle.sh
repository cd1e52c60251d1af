#!/usr/bin/env bash
# bundle.sh DIRECTORY - copies the programs and the shared libraries that they need beside
# libc's own into DIRECTORY, so that they run on a machine where nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
directory=${1:?usage: bundle.sh DIRECTORY}

mkdir -p "$directory/bin" "$directory/lib"
for name in gpu-scheduler gpu-agent gpu-keeper gpu-slot-proxy gpu-checkpoint gpu-guard-run; do
	install -m 755 "bin/$name" "$directory/bin/"
	strip "$directory/bin/$name"
done
install -m 755 lib/libgpuguard.so "$directory/lib/"
ldd bin/gpu-scheduler bin/gpu-agent | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
	while read -r library; do
		case ${library##*/} in
		libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.*) ;;
		*) install -m 644 "$library" "$directory/lib/" ;;
		esac
	done
du -sh "$directory"
