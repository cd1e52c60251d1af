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
	for job in $(jobs_in running) $(jobs_in pending); do
		call DELETE "/api/v1/jobs/$job" >/dev/null
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

# call METHOD PATH [BODY] - the body of the answer; nothing where nobody answers
call()
{
	local line body=${3-}
	exec 3<>"/dev/tcp/127.0.0.1/${port:-1}" || return 0
	printf '%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
		"$1" "$2" "${#body}" "$body" >&3
	while IFS= read -r line <&3 && [[ $line != $'\r' ]]; do :; done
	cat <&3
	exec 3>&-
} 2>/dev/null

# field NAME - of the JSON that is read, the first of that name
field()
{
	grep -o "\"$1\":\"\\?[^\",}]*" | head -n 1 | sed 's/^"[^"]*":"\?//'
}

jobs_in()
{
	call GET "/api/v1/jobs?state=$1" | grep -o '"job_id":"[^"]*' | cut -d'"' -f4 || true
}

# submit TENANT NAME FIELDS SECONDS - the id of a job that takes so long
submit()
{
	local answer
	answer=$(call POST /api/v1/jobs "{\"tenant_id\":\"$1\",\"name\":\"$2\",$3,\"script\":\"sleep $4\"}")
	field job_id <<<"$answer" || { echo "FAILED: $2 was not taken: $answer" >&2; exit 1; }
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
	until seen=$(call GET "/api/v1/jobs/$1") && [[ $(field state <<<"$seen") == "$2" ]]; do
		if ((SECONDS >= deadline)); then
			echo "FAILED: $1 should be $2 ($3), and is $(field state <<<"$seen")" >&2
			call GET "/api/v1/jobs/$1/why" >&2
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
	if ! sentence=$(call GET "/api/v1/jobs/$1/why" | grep -o "\"[^\"]*$2[^\"]*\"" | head -n 1); then
		echo "FAILED: why $1 waits does not say '$2':" >&2
		call GET "/api/v1/jobs/$1/why" >&2
		exit 1
	fi
	printf '         why: %s\n' "${sentence//\"/}"
}

# place JOB - where it runs, one GPU after another
places()
{
	call GET "/api/v1/jobs/$1" | grep -o '"uuid":"[^"]*' | cut -d'"' -f4 | sort
}

started_at()
{
	call GET "/api/v1/jobs/$1" | field started_at
}

claim()
{
	printf '  %s\n' "$2"
	eval "$1" || { echo "FAILED: that is not so: $1" >&2; exit 1; }
}

bin/gpu-scheduler --data "$folder/data" --http-port 0 --grpc-port 0 --metrics-port 0 \
	>"$folder/serves-at" 2>"$folder/log" &
processes+=($!)
until port=$(sed -n 's/.*serves at .*:\([0-9]*\)$/\1/p' "$folder/serves-at") && [[ -n $port ]]; do
	kill -0 "${processes[0]}" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
	sleep 0.05
done
grpc=$(awk '$1 == "gRPC" { print $2 }' "$folder/serves-at")
for node in node-a node-b; do
	bin/gpu-agent --scheduler "$grpc" --name "demo-$$-$node" --state "$folder/$node" --beat-ms 200 \
		--fake-gpus 4x80G 2>"$folder/$node.log" &
	processes+=($!)
done

say "A cluster: two nodes with four simulated GPUs of 80 GiB each"
for _ in {1..200}; do
	[[ $(call GET /api/v1/cluster/status | field usable_gpus) != 8 ]] || break
	sleep 0.1
done
claim '[[ $(call GET /api/v1/cluster/status | field usable_gpus) == 8 ]]' "8 GPUs are there."

say "Tenants: research is owed 4 GPUs, students take what is left"
call POST /api/v1/tenants '{"name":"research","quota_gpus":4}' >/dev/null
call POST /api/v1/tenants '{"name":"students","quota_gpus":0}' >/dev/null
claim '[[ $(call GET /api/v1/tenants | grep -o "\"quota_gpus\":4" | wc -l) == 1 ]]' "Both are made."

say "A shared GPU: 60 GiB and 16 GiB fit on one of 80 GiB; another 40 GiB go elsewhere"
large=$(submit students large '"gpu_memory_mb":61440' 12)
small=$(submit students small '"gpu_memory_mb":16384' 12)
third=$(submit students third '"gpu_memory_mb":40960' 12)
expect "$large" running "60 GiB of one GPU"
expect "$small" running "16 GiB"
expect "$third" running "40 GiB"
claim '[[ $(places "$large") == "$(places "$small")" ]]' "$large and $small share $(places "$large")."
claim '[[ $(places "$third") != "$(places "$large")" ]]' "$third is on $(places "$third"): 116 GiB do not fit on 80."

say "A gang: two tasks of four GPUs start together or not at all"
gang=$(submit research gang '"gpu_count":4,"tasks":2,"gang_scheduling":true' 4)
expect "$gang" pending "6 GPUs are empty, it needs 8"
because "$gang" "waits"
for job in "$large" "$small" "$third"; do
	call DELETE "/api/v1/jobs/$job" >/dev/null
	expect "$job" cancelled "to make room"
done
expect "$gang" running "on 8 GPUs at once"
claim '[[ $(places "$gang" | wc -l) == 8 ]]' "It has all 8 GPUs, on both nodes."

say "Priorities: of two that wait for the same GPUs, the more urgent one goes first"
later=$(submit students later '"gpu_count":4,"tasks":2,"gang_scheduling":true,"priority":200' 1)
sooner=$(submit students sooner '"gpu_count":4,"tasks":2,"gang_scheduling":true,"priority":900' 1)
expect "$later" pending "submitted first, priority 200"
expect "$sooner" pending "submitted second, priority 900"
expect "$gang" completed "and gives its GPUs back"
expect "$sooner" completed "before the other one"
expect "$later" completed "after it"
claim '[[ $(started_at "$sooner") < $(started_at "$later") ]]' "$sooner started before $later."

say "A preemption: students have all 8 GPUs, research wants the 4 that it is owed"
running=()
for number in 1 2 3 4 5 6 7 8; do
	running+=("$(submit students "loan-$number" '"gpu_count":1' 5)")
done
for job in "${running[@]}"; do
	expect "$job" running "on one GPU"
done
owed=$(submit research owed '"gpu_count":4,"priority":500' 2)
expect "$owed" completed "it got its 4 GPUs from the students"
preempted=$(call GET '/api/v1/jobs?limit=100' | grep -o '"preempted_count":[1-9]' | wc -l)
claim '[[ $preempted == 4 ]]' "$preempted of their jobs were stopped, and are queued again by themselves."
for job in "${running[@]}"; do
	expect "$job" completed "in the end"
done

say "All of it happened as it says, in $SECONDS seconds."
