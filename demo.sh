#!/usr/bin/env bash
# demo.sh - in one minute: tenants, priorities, a gang, a shared GPU and a preemption, on a
# scheduler and two nodes of four simulated GPUs of their own, which are gone afterwards. Says
# what it shows, and ends with status 1 if something else happens.
set -euo pipefail
cd "$(dirname "$0")"

scripts/install-packages build
scripts/build release

folder=$(mktemp -d "${TMPDIR:-/tmp}/gpu-scheduler-demo-XXXXXX")
processes=()
clean_up()
{
	local job process
	trap - EXIT INT TERM
	for job in $(jobs_in pending) $(jobs_in running); do
		bin/gpu-cli cancel "$job" >/dev/null || true
	done
	for _ in {1..100}; do
		[[ -n $(jobs_in running) ]] || break
		sleep 0.1
	done
	for process in "${processes[@]}"; do
		kill -TERM "$process" 2>/dev/null || true
	done
	wait
	rm -rf "$folder"
}
trap 'clean_up' EXIT
trap 'exit 130' INT TERM

# As nobody's configuration has it: this service alone.
export GPU_SCHEDULER_CONFIG=/dev/null
unset GPU_SCHEDULER_TOKEN GPU_SCHEDULER_TOKEN_FILE GPU_SCHEDULER_TENANT GPU_SCHEDULER_CONTEXT

jobs_in()
{
	bin/gpu-cli list --state "$1" --all -o name 2>/dev/null || true
}

# field JOB NAME - what is told about it under a name
field()
{
	bin/gpu-cli get "$1" -o json | sed -n "s/^ *\"$2\": \"\?\([^\",]*\)\"\?,\?$/\1/p" | head -n 1
}

# submit TENANT NAME SECONDS OPTION... - the id of a job that takes so long
submit()
{
	bin/gpu-cli submit --tenant-id "$1" --name "$2" "${@:4}" -o name -- sleep "$3"
}

say()
{
	if [[ -t 1 ]]; then
		printf '\n\033[1m%s\033[0m\n' "$*"
	else
		printf '\n%s\n' "$*"
	fi
}

# expect JOB STATE WHAT - waits until it is in that state, and says so; else the demo has failed
expect()
{
	local seen deadline=$((SECONDS + 20))
	until seen=$(field "$1" state) && [[ $seen == "$2" ]]; do
		if ((SECONDS >= deadline)); then
			echo "FAILED: $1 should be $2 ($3), and is $seen" >&2
			bin/gpu-cli why "$1" >&2
			exit 1
		fi
		sleep 0.1
	done
	printf '  %-6s is %-9s  %s\n' "$1" "$2" "$3"
}

# because JOB WORDS - that the explanation of why it waits has these words, which it prints
because()
{
	local sentence
	if ! sentence=$(bin/gpu-cli why "$1" | grep "$2" | head -n 1); then
		echo "FAILED: why $1 waits does not say '$2':" >&2
		bin/gpu-cli why "$1" >&2
		exit 1
	fi
	printf '         why: %s\n' "$sentence"
}

# place JOB - where it runs, one GPU after another
places()
{
	bin/gpu-cli get "$1" -o json | sed -n 's/^ *"uuid": "\([^"]*\)".*/\1/p' | sort
}

started_at()
{
	field "$1" started_at
}

claim()
{
	printf '  %s\n' "$2"
	eval "$1" || { echo "FAILED: that is not so: $1" >&2; exit 1; }
}

: >"$folder/serves-at"
bin/gpu-scheduler --data "$folder/data" --http-port 0 --grpc-port 0 --metrics-port 0 \
	>"$folder/serves-at" 2>"$folder/log" &
processes+=($!)
until GPU_SCHEDULER_URL=$(sed -n 's/.*serves at //p' "$folder/serves-at") && [[ -n $GPU_SCHEDULER_URL ]]; do
	kill -0 "${processes[0]}" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
	sleep 0.05
done
export GPU_SCHEDULER_URL
grpc=$(awk '$1 == "gRPC" { print $2 }' "$folder/serves-at")
for node in node-a node-b; do
	bin/gpu-agent --scheduler "$grpc" --name "demo-$$-$node" --state "$folder/$node" --beat-ms 200 --uid-range none \
		--fake-gpus 4x80G 2>"$folder/$node.log" &
	processes+=($!)
done

say "A cluster: two nodes with four simulated GPUs of 80 GiB each"
for _ in {1..200}; do
	[[ $(bin/gpu-cli gpus -o name | wc -l) -ne 8 ]] || break
	sleep 0.1
done
claim '[[ $(bin/gpu-cli gpus -o name | wc -l) -eq 8 ]]' "8 GPUs are there."

say "Tenants: research is owed 4 GPUs, students take what is left"
bin/gpu-cli create-tenant research --gpus 4 >/dev/null
bin/gpu-cli create-tenant students --gpus 0 >/dev/null
claim '[[ $(bin/gpu-cli tenants -o name | wc -l) -eq 2 ]]' "Both are made."

# It comes first: once short jobs have ended here, waiting for such a one is cheaper than stopping it.
say "A preemption: students have all 8 GPUs, research wants the 4 that it is owed"
running=()
for number in 1 2 3 4 5 6 7 8; do
	running+=("$(submit students "loan-$number" 5 --gpus 1)")
done
for job in "${running[@]}"; do
	expect "$job" running "on one GPU"
done
owed=$(submit research owed 1 --gpus 4)
expect "$owed" completed "it got its 4 GPUs from the students"
preempted=$(bin/gpu-cli list --all -o json | grep -c '"preempted_count": [1-9]')
claim '[[ $preempted == 4 ]]' "$preempted of their jobs were stopped, and are queued again by themselves."
for job in "${running[@]}"; do
	expect "$job" completed "in the end"
done

say "A shared GPU: 60 GiB and 16 GiB fit on one of 80 GiB; another 40 GiB go elsewhere"
large=$(submit students large 12 --gpu-memory 60G)
small=$(submit students small 12 --gpu-memory 16G)
third=$(submit students third 12 --gpu-memory 40G)
expect "$large" running "60 GiB of one GPU"
expect "$small" running "16 GiB"
expect "$third" running "40 GiB"
claim '[[ $(places "$large") == "$(places "$small")" ]]' "$large and $small share $(places "$large")."
claim '[[ $(places "$third") != "$(places "$large")" ]]' "$third is on $(places "$third"): 116 GiB do not fit on 80."

say "A gang: two tasks of four GPUs start together or not at all"
gang=$(submit research gang 3 --gpus 4 --tasks 2)
expect "$gang" pending "6 GPUs are empty, it needs 8"
because "$gang" "waits"
for job in "$large" "$small" "$third"; do
	bin/gpu-cli cancel "$job" >/dev/null
	expect "$job" cancelled "to make room"
done
expect "$gang" running "on 8 GPUs at once"
claim '[[ $(places "$gang" | wc -l) == 8 ]]' "It has all 8 GPUs, on both nodes."

say "Priorities: of two that wait for the same GPUs, the more urgent one goes first"
later=$(submit students later 1 --gpus 4 --tasks 2 --priority 200)
sooner=$(submit students sooner 1 --gpus 4 --tasks 2 --priority 900)
expect "$later" pending "submitted first, priority 200"
expect "$sooner" pending "submitted second, priority 900"
expect "$gang" completed "and gives its GPUs back"
expect "$sooner" completed "before the other one"
expect "$later" completed "after it"
claim '[[ $(started_at "$sooner") < $(started_at "$later") ]]' "$sooner started before $later."

say "All of it happened as it says, in $SECONDS seconds."
