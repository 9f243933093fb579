# Corral's commands for people; `make help` lists them. Everything that a target needs it makes itself, in bin/ and in
# Go's caches; the tests of real sites fetch theirs into corral-ci in the user's cache (root's: in /var/cache), and
# install iproute2, nftables and debootstrap.

GO ?= go
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2 # 2026.2.2
DEADCODE := golang.org/x/tools/cmd/deadcode@v0.52.0
NFPM := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
# Where the Debian package goes, and for which of Go's architectures it is.
DEB ?= build
DEB_ARCH ?= $(shell $(GO) env GOARCH)
# For each of some fifty parsers; make test-long takes five minutes for each.
FUZZTIME ?= 2s
CASES ?= 400
# How many steps a case has on average that is a list of them: a hundred thousand in all.
STEPS ?= 250
ROUNDS ?= 1
# How often corrald is killed while it revises a plan.
export KILLS ?= 1
# What goes wrong with each action that leaves corrald: one kind of fault, or all.
export FAULTS ?= one
# Sites of a virtual day.
export SITES ?= 2
export PLANS ?= 4

# Without the Go that go.mod requires, whatever needs Go fails at once, with one sentence.
without_go := help clean htcondor slurm prometheus peers networks debian
ifneq ($(filter-out $(without_go),$(MAKECMDGOALS)),)
go_problem := $(shell scripts/goversion '$(GO)')
$(if $(go_problem),$(error $(go_problem)))
endif

# Programs and tests do not know where they were built: another clone of the same commit finds them in Go's cache.
export GOFLAGS := -trimpath $(GOFLAGS)

# The race detector needs a C compiler with its headers. Without one, everything is built and tested without both.
compiler := $(shell set -- $$($(GO) env CC 2>/dev/null); echo '\#include <stdlib.h>' | "$$@" -x c -E - >/dev/null 2>&1 && echo yes)
ifeq ($(compiler),)
export CGO_ENABLED := 0
endif
# Debuggers' tables are left out of the tests' programs: they took most of the time to link them.
# The race detector is left out of SQLite, which is C that was translated into Go, and of compression: it makes
# them ten times slower and finds nothing of ours in them.
# A program with it sleeps for a second when it ends, for races that it might find yet: every command of a test would.
export GORACE := atexit_sleep_ms=0 $(GORACE)
race := -ldflags=-w $(if $(compiler),-race -gcflags=modernc.org/...=-race=false -gcflags=compress/...=-race=false -gcflags=hash/...=-race=false)
version := -X github.com/corral-pilot/corral/internal/kit/version.release=$(VERSION)
# No program prints a manual page: without urfave/cli's code for that they start sooner, as a pilot does for every job of
# the Slurm shim.
lean := -tags urfave_cli_no_docs
# The packages of both modules: benchmarks have one of their own (go.work).
modules := ./... ./bench/...
go_files = $(wildcard $(shell git ls-files --cached --others --exclude-standard '*.go'))
tests = $(filter %_test.go,$(go_files))
# Tests of real sites and networks have the build tag sites.
site_files = $(shell grep -l '^//go:build sites$$' $(tests))
site_tests = $(call names_in,$(site_files))
soak_files = $(shell grep -lE '^//go:build .*soak' $(tests))
# Of them, those that compute for minutes in one goroutine: the race detector would make them ten times slower. It is in
# their packages' other tests. Those that have the tag sites, too, are among the others.
counting_files = $(filter-out $(site_soak_files),$(filter plan/% workflow/% bench/evidence/% bench/schedules/%,$(soak_files)))
site_soak_files = $(shell grep -lE '^//go:build sites && soak$$' $(tests))
daemon_files = $(filter-out $(counting_files),$(soak_files))
# Those that make networks or mount file systems, which an ordinary user may not.
refused = $(if $(filter 0,$(shell id -u)),,$(call names_in,$(shell grep -lE '^package netns|/kit/netns"|newHeaded|"mount"|newMachine' $(site_files) $(soak_files))))
run_sites = $(GO) test $(race) -vet=off $(if $(refused),-skip '^($(refused))$$')
tell_refused = @$(if $(refused),echo "Not run: only root may make networks and mount file systems: $(subst |, ,$(refused))"; exit 1)
# names_in FILES lists their tests, as go test -run takes them.
names_in = $(shell awk '/^func Test/ { name = $$2; sub(/[^A-Za-z0-9_].*/, "", name); if (name != "TestMain") print name }' $(1) | paste -sd '|')
# packages_of FILES, as Go names them.
packages_of = $(sort $(patsubst %/,./%,$(dir $(1))))
property_files = $(shell grep -l 'rapid\.Check' $(tests))
properties = $(shell awk '/^func Test/ { name = $$2; sub(/[^A-Za-z0-9_].*/, "", name) } /rapid\.Check/ { print name }' $(property_files) | paste -sd '|')
crashes := Kill|Restart|Survives
crash_files = $(shell grep -lE '^func Test[A-Za-z0-9]*($(crashes))' $(tests))

.PHONY: help build deb bin/test/plain bin/test/race networks debian htcondor slurm peers prometheus demo demo-condor test test-sites fresh test-all test-more test-long test-properties test-crashes test-soak test-fuzz \
	test-arm64 test-mutants bench bench-overheads bench-glideins bench-plans bench-growth bench-peers bench-evidence bench-witness bench-live bench-schedules bench-thesis bench-shim bench-streams bench-load bench-relay bench-sites bench-ensembles bench-traces bench-slots lint fmt clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' Makefile

build: ## corrald, corral, pilot and corral-slurm in bin/
	$(GO) build $(lean) -ldflags '$(version)' -o bin/ ./cmd/corrald ./cmd/corral
	CGO_ENABLED=0 $(GO) build $(lean) -ldflags '-s -w $(version)' -o bin/ ./cmd/pilot ./cmd/corral-slurm

# What tests start (internal/kit/programs): as users build it, and with the race detector in corrald. A test starts corral
# for each of its questions, which with the detector takes five times as long.
bin/test/plain:
	$(GO) build $(lean) -ldflags=-w -o $@/ ./cmd/corral ./cmd/corrald ./examples/provision
	CGO_ENABLED=0 $(GO) build $(lean) -ldflags '-s -w' -o $@/ ./cmd/pilot ./cmd/corral-slurm

bin/test/race: bin/test/plain
	$(GO) build $(lean) $(race) -o $@/ ./cmd/corrald
	ln -f $</corral $</pilot $</corral-slurm $@/

# A version for Debian: what follows a release is newer than that, and what comes before one, or has none yet, is older.
deb_version = $(or $(shell echo '$(VERSION)' | sed -E 's/^v//; s/-dirty$$/+dirty/; s/-([0-9]+)-g/+\1.g/; s/-/~/g'),$(shell \
	sed -nE 's/.*"([0-9.]+)-dev".*/\1/p' internal/kit/version/version.go)~dev$(shell git rev-list --count HEAD).g$(shell \
	git describe --always --dirty=+dirty))

# The program corral of the package, if this machine can run it.
corral_here = $(if $(filter $(DEB_ARCH),$(shell $(GO) env GOHOSTARCH)),$(DEB)/parts/programs/corral,CGO_ENABLED=0 $(GO) run ./cmd/corral)

deb: ## the Debian package, in build/
	@rm -rf $(DEB)/parts
	CGO_ENABLED=0 GOARCH=$(DEB_ARCH) $(GO) build $(lean) -ldflags '-s -w $(version)' -o $(DEB)/parts/programs/ ./cmd/corrald ./cmd/corral
	CGO_ENABLED=0 GOARCH=$(DEB_ARCH) $(GO) build $(lean) -ldflags '-s -w $(version)' -o $(DEB)/parts/programs/ ./cmd/pilot ./cmd/corral-slurm
	for shell in bash fish; do $(corral_here) completion $$shell >$(DEB)/parts/$$shell; done
	DEB_ARCH=$(DEB_ARCH) DEB_VERSION='$(deb_version)' DEB_PARTS=$(DEB)/parts SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
		$(GO) run $(NFPM) package --config service/deb/nfpm.yaml --packager deb --target $(DEB)/
	@rm -r $(DEB)/parts

htcondor: ## a real HTCondor for tests, in the cache; what needs it makes it too
	scripts/htcondor

slurm: ## a real Slurm for tests, likewise
	scripts/slurm

prometheus: ## Debian's Prometheus for a test, likewise
	scripts/prometheus

peers: ## GNU parallel, Makeflow, Work Queue, Dask and Snakemake for tests and benchmarks beside them, likewise
	scripts/peers

demo: build ## the main job, end to end: a workflow on pilots on this machine
	bin/corral demo

demo-condor: build ## the same on a real HTCondor pool, of packages made from Debian's
	bin/corral demo --kind condor

test: ## the tests that need only Go, with the race detector where there is a C compiler, in random order
	@$(if $(compiler),,echo "There is no C compiler (gcc and libc6-dev): the tests run without the race detector.")
	$(GO) test $(race) -vet=off -shuffle=on -p 3 -timeout 40m $(modules)

test-sites: htcondor slurm peers prometheus networks debian ## the tests of real sites: HTCondor, Slurm, OpenSSH, FTP, networks with firewalls; and of the Debian package
	$(run_sites) -tags sites -shuffle=on -p 3 -timeout 40m -run '^($(site_tests))$$' $(call packages_of,$(site_files))
	$(tell_refused)

networks:
	@$(if $(refused),,scripts/networks)

# The system in which the Debian package is installed: the test takes it from there.
debian:
	@$(if $(refused),,scripts/fresh --hold systemd,logrotate </dev/null >/dev/null)

fresh: ## make demo and make test on a throw-away Debian with nothing but Go, make and git; needs root
	scripts/fresh

test-all: test test-sites test-more ## both, and the longer checks, one round each

test-more: test-properties test-soak test-fuzz test-arm64 ## the longer checks alone, some with published data (CONTRIBUTING.md); make -k goes on after a failure

test-long: ## all rounds of everything that may differ from one to the next; it takes hours
	$(MAKE) test-properties CASES=10000
	$(MAKE) test-crashes
	$(MAKE) test-soak ROUNDS=3 KILLS=20 PLANS=100 FAULTS=all SITES=20
	$(MAKE) test-fuzz FUZZTIME=5m

test-properties: ## CASES of each property, four hundred, of STEPS each where they are lists
	$(GO) test -tags soak -timeout 20m -run '^($(properties))$$' $(call packages_of,$(property_files)) -rapid.checks=$(CASES) -rapid.steps=$(STEPS)

test-crashes: htcondor slurm networks ## what is killed or started again, three times over
	$(run_sites) -tags sites -count=3 -timeout 60m -run '$(crashes)' $(call packages_of,$(crash_files))
	$(tell_refused)

test-soak: htcondor slurm peers networks ## outages and limits of real sites, and benchmarks in small, which take minutes
	$(GO) test -vet=off -tags soak -count=$(ROUNDS) -timeout 60m -run '^($(call names_in,$(counting_files)))$$' $(call packages_of,$(counting_files))
	$(run_sites) -tags sites,soak -parallel 3 -count=$(ROUNDS) -timeout 60m -run '^($(call names_in,$(daemon_files)))$$' $(call packages_of,$(daemon_files))
	$(tell_refused)

test-fuzz: ## every parser, for FUZZTIME each
	scripts/fuzz $(FUZZTIME)

test-arm64: ## the other architecture compiles
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build $(modules)
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build -ldflags '-s -w $(version)' -o /dev/null ./cmd/pilot

test-mutants: ## change operators of the pure packages one by one: their tests must fail; an hour or two
	scripts/mutants

bench: build ## benchmarks beside what the machine could do at best
	$(GO) run ./bench

bench-overheads: build ## what Corral adds around an HTCondor pool's jobs, beside the thesis's tables
	$(GO) run ./bench overheads

bench-glideins: build ## 200 glideins in one HTCondor pool: time, memory, jobs a second
	$(GO) run ./bench glideins

bench-plans: build ## plans of published workflows, executed with sleeping tasks, beside what they predicted
	$(GO) run ./bench plans

bench-peers: build peers ## no-op tasks beside GNU parallel, Makeflow, Work Queue, Dask and Snakemake, from Debian's packages
	$(GO) run ./bench peers

bench-growth: ## workflows of a thousand to a million tasks, read, ranked and drained without executing
	$(GO) run ./bench/growth

bench-evidence: ## the planner's claims: figures, with plots and tables in docs/bench; INSTANCES names published workflows
	$(GO) run ./bench/evidence -out docs/bench $(if $(INSTANCES),-instances $(INSTANCES))

bench-witness: ## 1,000 plans and 100 of shares, executed by a player that shares no code with Corral; DATA has published workflows
	$(GO) build -o bin/player ./bench/player
	$(GO) run ./bench/witness -player bin/player -problems 150 -shares 110 $(if $(DATA),-data $(DATA)) -csv docs/bench/witness.csv

bench-live: build ## RUNS runs of a minute or two by `run --auto`, each beside a control; SLURM=1: on a real Slurm
	$(GO) run ./bench/live -runs $(or $(RUNS),4) $(if $(SLURM),-slurm) -csv docs/bench/live$(if $(SLURM),-slurm).csv

bench-ensembles: ## algorithms for ensembles beside the published figures; LONG=1: as large as published, for hours
	$(GO) run ./bench/ensembles $(if $(LONG),-long)

bench-slots: ## plans on slots beside best effort, plots in docs/bench; LONG=1: more instants; DATA has traces
	$(GO) run ./bench/slots -out docs/bench $(if $(LONG),-long) $(if $(DATA),-data $(DATA))

bench-schedules: build ## makespans of workflows beside the list schedule, clustered and not; DATA has the generator's
	$(GO) run ./bench/schedules $(if $(DATA),-data $(DATA))

bench-thesis: ## chapter 2 of the thesis simulated: workflows job by job and on pilots, beside the published figures
	$(GO) run ./bench/schedules -thesis

bench-streams: build htcondor ## tasks that stream through an HTCondor pool, beside a job for each of them
	$(GO) run ./bench/streams -from "$$(scripts/htcondor)"

bench-shim: build slurm peers ## jobs of a second by sbatch, Makeflow and Snakemake, through a real Slurm and the shim: over an hour
	$(GO) run ./bench/shim

bench-traces: build ## what tracing costs the traced: tasks that do nothing, that read and write, that compute
	$(GO) run ./bench/traces

bench-load: build ## a central corrald with 1,000 watchers, lists and 200 creates a second, over TLS
	$(GO) run ./bench/load

bench-relay: ## connections through a relay and ssh, beside connections without
	$(GO) test ./bench -run '^$$' -bench Relay

bench-sites: ## 1,000 attempts at one simulated site: commands, time and memory of a tick
	$(GO) test ./bench -run '^$$' -bench Sites -benchtime 1000x

lint: ## format, vet, staticcheck, dead code, go.mod, and the architecture and the English as tests
	@unformatted=$$(gofmt -l $(go_files)); [ -z "$$unformatted" ] || { echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; }
	$(GO) vet -tags sites,soak $(modules)
	$(GO) run $(STATICCHECK) $(modules)
	$(GO) run $(STATICCHECK) -tags sites,soak $(modules)
	scripts/deadcode $(DEADCODE)
	$(GO) mod tidy -diff
	GOWORK=off $(GO) -C bench mod tidy -diff
	$(GO) test ./internal/archtest/...

fmt: ## format the Go files
	gofmt -w $(go_files)

clean: ## remove what was built
	rm -rf bin build
