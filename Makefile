# Everything here needs Go and make alone. `make help` lists it.

FUZZTIME ?= 10s
BENCHTIME ?= 1s
PACKAGES ?= ./...
N ?= 10000
FROM ?= $(shell echo $$(($$(date +%s) * 500)))
DURATION ?= 10m
SEED ?= $(shell date +%s)
MODES ?= plain,sentinel,rdb,cluster

# Pinned: what a linter says must not change from one day to the next. So the one
# on the PATH isn't taken, but the one that .ci/run has built, or go run builds.
GOLANGCI_LINT_VERSION = v2.15.0
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

# The compiler takes a tenth less of the processors where it collects its garbage less often. That is
# for what go runs as it builds, and not for what is built.
export GOFLAGS := $(shell go env GOFLAGS) '-toolexec=env GOGC=400'

.PHONY: help run build test test-all lint bench fuzz model simulate chaos

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

run: ## a broker, a Redis, sample players and boards that move; Ctrl-C ends it
	@echo "Building bin/consumer. The first time Go downloads its modules too: a minute or two."
	@go build -o bin/consumer ./cmd/consumer
	@exec bin/consumer demo

build: ## bin/consumer
	go build -o bin/consumer ./cmd/consumer

test: ## the tests, on the best Kafka and Redis that this machine has; LIST=1 lists what is not run
	@PACKAGES="$(PACKAGES)" STANDINGS_TEST_LIST="$(LIST)" scripts/test -short

test-all: ## the same with slow tests, and the race detector wherever it can watch
	@RACE="$${RACE:-all}" PACKAGES="$(PACKAGES)" STANDINGS_TEST_LIST="$(LIST)" scripts/test

lint: ## gofmt, vet and golangci-lint
	@scripts/gofmt-check
	go vet ./...
	@built=$${XDG_CACHE_HOME:-$$HOME/.cache}/standings/bin/golangci-lint-$(GOLANGCI_LINT_VERSION); \
	if [ -x "$$built" ]; then "$$built" run ./...; else go run $(GOLANGCI_LINT) run ./...; fi

bench: ## every benchmark; BENCHTIME=1s
	go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) ./...

fuzz: ## every fuzz target in turn; FUZZTIME=10s each
	@scripts/fuzz $(FUZZTIME)

model: ## search the large worlds of the ledger's protocol: minutes, and 6 GB of memory
	go test -v -timeout=60m ./test/model -large

chaos: ## everything that can go wrong, on a real Kafka and Redis; DURATION=10m SEED= MODES= FAULTS=regexp
	@STANDINGS_TEST_DEMAND=processes go test -v -count=1 -timeout=0 -run=WhateverGoesWrong ./test/chaos \
		-duration=$(DURATION) -seed=$(SEED) -modes=$(MODES) -faults='$(FAULTS)'

simulate: ## new worlds in which everything goes wrong; N=10000, FROM= for the same ones again, SEED= for one as a story
	go test -count=1 -run=EveryWorldEnds -v -timeout=0 ./test/simulate -args -n=$(N) -from=$(FROM) $(if $(filter command environment,$(origin SEED)),-seed=$(SEED))
