# The daily commands. Meson and ninja do the work; the scripts say how.

N ?= 10000000
SEED ?= $(shell date +%s)
SECONDS ?= 600

.PHONY: build test bench bench-core bench-store bench-wire bench-service bench-agent bench-gateway gateway-endurance bench-dashboard bench-sizing bench-kube kube kube-churn kubelet crash takeover faults chaos chaos-kube threads parity lint format soak fuzz fuzz-api attack attack-fuzz web deb images demo first-run bench-sessions clean

build:
	@scripts/build release

# Unit tests only; ./test runs everything.
test:
	@scripts/unit-tests release

bench:
	@scripts/bench

bench-core:
	@scripts/bench core

bench-store:
	@scripts/bench store

bench-service:
	@scripts/bench service

bench-agent:
	@scripts/bench agent

bench-gateway:
	@scripts/install-packages bench
	@scripts/build release src/http_load_driver
	@scripts/bench-gateway build/bench-gateway.json

# From a keystroke to its echo, beside ssh to localhost
bench-sessions:
	@scripts/install-packages bench
	@scripts/build release
	@scripts/bench-sessions build/bench-sessions.json

# 500 streams over 20 kills of the scheduler and 20 take-overs, 10,000 hang-ups, use over 100 kills,
# 1,000 slow clients, cold loads of up to a minute by each client
gateway-endurance:
	@GATEWAY_FULL=1 TEST_PROCESSES=0 scripts/system-tests -s -k 'test_endurance or held_while or told_no'

bench-dashboard:
	@scripts/bench dashboard

bench-wire:
	@scripts/bench wire

# What memory and disk a scheduler needs, for docs/sizing.md
bench-sizing:
	@scripts/build release
	@scripts/bench-sizing build/bench-sizing.json

# make crash KILLS=number: kills of a scheduler, on each database
KILLS ?= 1000
crash:
	@TEST_PROCESSES=0 CRASH_KILLS=$(KILLS) scripts/system-tests -s -k test_crash

# make takeover TIMES=number: take-overs by a second scheduler
TIMES ?= 100
takeover:
	@TEST_PROCESSES=0 TAKEOVER_TIMES=$(TIMES) scripts/system-tests -s -k test_takeover

# Bindings a second on a real control plane: ours, kube-scheduler's, a bare client's
bench-kube:
	@scripts/bench-kube build/bench-kube.json

# etcd, kube-apiserver and the rest of a control plane for tests, into a cache
kube:
	@scripts/kube-tools

# make kube-churn KUBE_CHURN_S=seconds: pods beside kube-scheduler, on a real control plane
KUBE_CHURN_S ?= 600
kube-churn:
	@scripts/build release
	@KUBE_CHURN_S=$(KUBE_CHURN_S) scripts/kube-tests -s -k 'beside_kube_scheduler or nodes_of_their_own'

# make kubelet SEQUENCES=number KUBELET_VERSIONS='1.36.4 1.34.4': gpu-agent --dra and the DRA manager of
# a kubelet
SEQUENCES ?= 1000
kubelet:
	@scripts/build release
	@KUBELET_SEQUENCES=$(SEQUENCES) scripts/kubelet-tests -s

# Every single allocation under SQLite and every row in PostgreSQL fails once;
# ./test fails a sample of them.
faults:
	@scripts/build release tests
	@STORE_TEST_ALL=1 build/release/src/store_faults_test
	@FAULTS_ALL=1 scripts/system-tests -k test_postgres

# What has threads, under the thread sanitizer.
threads:
	@scripts/unit-tests thread 'wire_*'

# Every field of a job in every interface: a table, also in build/parity.txt.
parity:
	@scripts/parity

# make fuzz-api SECONDS=number: random requests, as openapi.json describes them
fuzz-api:
	@scripts/python-tools
	@FUZZ_API_SECONDS=$(SECONDS) scripts/system-tests -k schemathesis

# make attack WORDS='word ...': attacks on a real service and agents; a word keeps those with it.
# make attack-fuzz SECONDS=per-target: fuzzes what reads bytes from the network.
attack:
	@scripts/attack $(WORDS)

attack-fuzz:
	@scripts/fuzz $(SECONDS) 'wire_*'

# make chaos SEEDS=number FIRST=seed STEPS=number: agents, schedulers and a world that fails
SEEDS ?= 2000
FIRST ?= 1
STEPS ?= 20000
chaos:
	@scripts/chaos $(SEEDS) $(FIRST) $(STEPS)

# The same for pods behind an API server that fails
chaos-kube:
	@scripts/chaos $(SEEDS) $(FIRST) $(STEPS) --kubernetes

lint:
	@scripts/lint

format:
	@scripts/format

# make soak N=commands SEED=number
soak:
	@echo "$(N) commands, seed $(SEED)"
	@scripts/property-test release $(N) $(SEED)

# make fuzz SECONDS=per-target
fuzz:
	@scripts/fuzz $(SECONDS)

# Builds the dashboard of web/ and keeps it in web/built, where ./run takes it from.
web: build
	@scripts/generate-web
	@scripts/build-web --keep

# Debian packages, into build/deb
deb:
	@scripts/deb

# Container images as OCI archives, into build/images; as root
images:
	@scripts/images

demo:
	@./demo.sh

# The first run of a new user on a bare Debian 12; as root, takes minutes.
# make first-run BARE=tarball: unpacks one that was made before.
first-run:
	@tests/first_run/bare $(BARE)

# What was built; data/ stays.
clean:
	rm -rf bin lib share build web/node_modules
