# The daily commands. Meson and ninja do the work; the scripts say how.

N ?= 10000000
SEED ?= $(shell date +%s)
SECONDS ?= 600

.PHONY: build test bench bench-core lint format soak fuzz clean

build:
	@scripts/build release

# Unit tests only; ./test runs everything.
test:
	@scripts/unit-tests release

bench:
	@scripts/bench

bench-core:
	@scripts/bench core

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

clean:
	rm -rf bin lib build
