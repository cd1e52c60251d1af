#!/usr/bin/env bash
# session.sh BUNDLE DIRECTORY PART... - parts of what is to be tried on a machine with an NVIDIA GPU, in
# one call: attacks, cycles, suspend, cost, agent, guard; 'attacks:plain,fdstash' runs those alone. Each
# leaves its table in DIRECTORY/PART.md, and all else in DIRECTORY/raw.tar.gz. BUNDLE is what
# bundle.sh made; an earlier build of the guard in BUNDLE/before is what cost compares with.
set -uo pipefail
cd "$(dirname "$0")/../.."
bundle=$(realpath "${1:?usage: session.sh BUNDLE DIRECTORY PART...}")
out=$(realpath "${2:?usage: session.sh BUNDLE DIRECTORY PART...}")
raw=$(mktemp -d)
# Tasks run as users of their own, who must be able to read the programs.
tree=$raw/tree
mkdir "$tree"
cp -r "$bundle/." tests "$tree"
[[ -d $tree/src ]] || cp -r src "$tree"
chmod 755 "$raw"
chmod -R a+rX "$tree"
cd "$tree"
bundle=$tree

cost()
{
	local before=()
	gcc -std=gnu17 -O2 -Isrc -o "$raw/driver" tests/gpu/guard_driver.c -ldl -lpthread
	[[ ! -d $bundle/before ]] || before=("$bundle"/before/gpu-guard-run "$bundle"/before/libgpuguard.so)
	LD_LIBRARY_PATH=$bundle/lib:${LD_LIBRARY_PATH-} python3 tests/gpu/cost_report.py "$raw/driver" \
		"$bundle/bin/gpu-guard-run" "$bundle/lib/libgpuguard.so" "${before[@]}"
}

for part in "${@:3}"; do
	began=$SECONDS
	mkdir -p "$raw/$part"
	words=()
	[[ $part != *:* ]] || IFS=, read -r -a words <<<"${part#*:}"
	name=${part%%:*}
	case $name in
	cost) cost ;;
	guard) tests/gpu/guard.sh "$raw/$part" ;;
	*) "tests/gpu/$name.sh" "$bundle" "$raw/$part" "${words[@]}" ;;
	esac >"$out/$name.md" 2>"$raw/$name.txt"
	echo "== $part: $((SECONDS - began)) s, $(tail -n 1 "$out/$name.md")"
	tail -n 50 "$out/$name.md"
	tail -n 20 "$raw/$name.txt"
	tar -C "$raw" --exclude=data --exclude=tree --exclude='*/agent/*' -czf "$out/raw.tar.gz" . 2>/dev/null
done
