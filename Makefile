# Corral's commands for people; `make help` lists them. Everything that a target needs it makes itself,
# and everything it makes is in bin/ or in Go's own caches.

GO ?= go
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2 # 2026.2.2
FUZZTIME ?= 10s

# The race detector is left out of SQLite, which is C that was translated into Go, and of compression: it makes
# them ten times slower and finds nothing of ours in them.
# Debuggers' tables are left out of the tests' programs: they took most of the time to link them.
race := -race -ldflags=-w -gcflags=modernc.org/...=-race=false -gcflags=compress/...=-race=false -gcflags=hash/...=-race=false
version := -X github.com/corral-pilot/corral/internal/version.release=$(VERSION)
go_files = $(shell git ls-files --cached --others --exclude-standard '*.go')
tests = $(filter %_test.go,$(go_files))
# packages_of FILES, as Go names them.
packages_of = $(sort $(patsubst %/,./%,$(dir $(1))))
property_files = $(shell grep -l 'rapid\.Check' $(tests))
properties = $(shell awk '/^func Test/ { name = $$2; sub(/[^A-Za-z0-9_].*/, "", name) } /rapid\.Check/ { print name }' $(property_files) | paste -sd '|')
crashes := Kill|Restart|Survives
crash_files = $(shell grep -lE '^func Test[A-Za-z0-9]*($(crashes))' $(tests))

.PHONY: help build htcondor slurm demo demo-condor test test-all test-more test-properties test-crashes test-soak test-fuzz \
	test-arm64 bench bench-overheads bench-glideins bench-relay bench-sites lint fmt clean compiler

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' Makefile

build: ## corrald, corral and pilot in bin/
	$(GO) build -trimpath -ldflags '$(version)' -o bin/ ./cmd/corrald ./cmd/corral
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w $(version)' -o bin/ ./cmd/pilot

htcondor: ## a real HTCondor for tests, in the cache; make test makes it too
	scripts/htcondor

slurm: ## a real Slurm for tests, likewise
	scripts/slurm

demo: build ## the main job, end to end: a workflow on pilots on this machine
	bin/corral demo

demo-condor: build ## the same on a real HTCondor pool, of packages made from Debian's
	bin/corral demo --kind condor

test: build compiler ## all tests, with the race detector and in random order; make lint has go vet
	$(GO) test $(race) -vet=off -shuffle=on -p 3 -timeout 20m ./...

test-all: test test-more ## test, then the longer checks

compiler:
	@set -- $$($(GO) env CC); command -v "$$1" >/dev/null || { echo "the race detector needs a C compiler: install gcc and libc6-dev"; exit 1; }

test-more: test-properties test-crashes test-soak test-fuzz test-arm64 ## the longer checks alone; make -k goes on after a failure

test-properties: ## a thousand cases of each property
	$(GO) test -timeout 20m -run '^($(properties))$$' $(call packages_of,$(property_files)) -rapid.checks=1000

test-crashes: compiler ## what is killed or started anew, three times over
	$(GO) test $(race) -count=3 -timeout 20m -run '$(crashes)' $(call packages_of,$(crash_files))

test-soak: compiler ## outages and limits of real sites, which take minutes
	$(GO) test $(race) -tags soak -timeout 20m -run 'CondorSurvives|SlurmLimit|SlurmSurvives|RelaySurvives|BrokenNode' ./internal/e2e

test-fuzz: ## every parser, for FUZZTIME each
	scripts/fuzz $(FUZZTIME)

test-arm64: ## the other architecture compiles
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build -trimpath -ldflags '-s -w $(version)' -o /dev/null ./cmd/pilot

bench: build ## benchmarks beside what the machine could do at best
	$(GO) run ./bench

bench-overheads: build ## what Corral adds around an HTCondor pool's jobs, beside the thesis's tables
	$(GO) run ./bench overheads

bench-glideins: build ## 200 glideins in one HTCondor pool: time, memory, jobs a second
	$(GO) run ./bench glideins

bench-relay: build ## connections through a relay and ssh, beside connections without
	$(GO) run ./bench relay

bench-sites: ## 1,000 attempts at one simulated site: commands, time and memory of a tick
	$(GO) run ./bench sites

lint: ## format, vet, staticcheck, go.mod, and the architecture as tests
	@unformatted=$$(gofmt -l $(go_files)); [ -z "$$unformatted" ] || { echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; }
	$(GO) vet -tags soak ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags soak ./internal/e2e
	$(GO) mod tidy -diff
	$(GO) test ./internal/archtest

fmt: ## format the Go files
	gofmt -w $(go_files)

clean: ## remove what was built
	rm -rf bin build
