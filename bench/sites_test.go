package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/engine"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/packages"
)

// steadyTime is the observation time per attempt while nothing happens.
const steadyTime = 20 * time.Millisecond

// A step is one round of a site's loop.
type step struct {
	commands int
	took     time.Duration
}

// steps collects the engine's log entries about its steps.
type steps struct {
	slog.Handler // for other entries, from warnings up

	mu  sync.Mutex // guards the fields below
	all []step
}

func (s *steps) Enabled(context.Context, slog.Level) bool { return true }

func (s *steps) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *steps) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != engine.Stepped {
		if r.Level < slog.LevelWarn {
			return nil
		}
		return s.Handler.Handle(ctx, r)
	}
	var one step
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "commands":
			one.commands = int(a.Value.Int64())
		case "took":
			one.took = a.Value.Duration()
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
	return nil
}

// taken returns the steps since its last call.
func (s *steps) taken() []step {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = nil
	return all
}

// A phase holds the results for one part of the attempts' life.
type phase struct {
	name     string
	took     time.Duration
	steps    []step
	commands map[string]int // by kind
	cpu      time.Duration
	rss      int64 // KiB, at its end
}

// A yard is an engine over a store, for one simulated site.
type yard struct {
	db    *store.DB
	sim   *simulated
	steps *steps
	site  corral.Site
}

// nowhere is the address of a worker port that no pilot dials.
type nowhere struct{}

func (nowhere) For(corral.Site) ([]string, string, error) {
	return []string{"unix:/nonexistent"}, "", nil
}

func (nowhere) Dial(context.Context) (net.Conn, error) { return nil, net.ErrClosed }

// BenchmarkSites queues, runs and ends b.N attempts at one simulated site, and prints the table of their phases: with
// -benchtime 1000x for a thousand attempts. Package testing begins with a single attempt, for which it prints no table.
func BenchmarkSites(b *testing.B) {
	dir := b.TempDir()
	m := thisMachine(dir)
	phases := measureSites(b, dir, b.N)
	if b.N > 1 {
		fmt.Printf("\n%s\n\n%s", m, sitesTable(b.N, phases))
	}
}

// measureSites takes count attempts through their life at one simulated site, below dir.
func measureSites(t testing.TB, dir string, count int) (phases []phase) {
	t.Helper()
	err := inYard(t.Context(), dir, func(y *yard) (err error) {
		phases, err = y.measure(t.Context(), count)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return phases
}

// inYard calls do with a running engine.
func inYard(ctx context.Context, dir string, do func(*yard) error) (err error) {
	signer, err := packages.LoadSigner(filepath.Join(dir, "package.key"))
	if err != nil {
		return err
	}
	stock := delivery.OpenDepot(filepath.Join(dir, "cache"), signer)
	if err := stock.AddPilot([]byte("#!/bin/sh\n"), map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]); err != nil {
		return err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "corral.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	y := &yard{db: db, sim: newSimulated(), steps: &steps{Handler: slog.NewTextHandler(os.Stderr, nil)}}
	lg := slog.New(y.steps)
	clusters := admission.NewClusters(lg, db, nil, dispatch.Config{})
	defer clusters.Close()
	way := siteaccess.New(y.backends(), "bench")
	e := engine.New(lg, db, clusters, engine.Config{Key: admission.Key("nobody dials"), Address: nowhere{}, Reach: way,
		Prober: siteaccess.NewProber(lg, db, way, nowhere{}), Catalog: delivery.NewCatalog(lg, db, stock, nil)})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if err := y.setUp(ctx, filepath.Join(dir, "site")); err != nil {
		return err
	}
	return do(y)
}

// backends are a real head node on this machine, and the simulated batch system.
func (y *yard) backends() gridsite.Backends {
	dial := func(string, string) (gridsite.Conn, error) { return local.Conn{}, nil }
	batch := func(gridsite.Conn, string) gridsite.Batch { return y.sim }
	return gridsite.Backends{
		Transports: map[string]gridsite.Dialer{"local": dial},
		Dialects:   map[string]func(gridsite.Conn, string) gridsite.Batch{corral.ForkBatch: batch},
		Head:       func(conn gridsite.Conn, root string) gridsite.Head { return headnode.New(conn, root) },
	}
}

func (y *yard) setUp(ctx context.Context, root string) error {
	err := storetest.All(y.db).Write(ctx, "bench", func(tx *store.Tx) (err error) {
		if _, err = tx.CreateCluster(corral.Cluster{Name: "default", Owner: "bench", Kind: corral.Embedded}); err != nil {
			return err
		}
		y.site, err = tx.CreateSite(corral.Site{Name: "simulated", Owner: "bench", Contact: "local:", Batch: "fork", Root: root})
		return err
	})
	if err != nil {
		return err
	}
	return y.until(ctx, patience, func(tx *store.Tx) (bool, error) {
		s, err := tx.Site(y.site.ID)
		return s.State == corral.SiteReady, err
	})
}

// until waits for a state of the store.
func (y *yard) until(ctx context.Context, most time.Duration, ok func(*store.Tx) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("not within %s", most))
	defer cancel()
	tick := time.NewTicker(time.Second) // rarely, because each query distorts the measurement
	defer tick.Stop()
	for {
		var done bool
		err := storetest.All(y.db).View(ctx, func(tx *store.Tx) (err error) { done, err = ok(tx); return err })
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// measure takes the attempts through their life.
func (y *yard) measure(ctx context.Context, count int) (phases []phase, err error) {
	states := func(state corral.JobState, n int) func(*store.Tx) (bool, error) {
		return func(tx *store.Tx) (bool, error) {
			jobs, err := tx.Jobs(store.JobFilter{Site: y.site.ID, Kind: corral.PilotJob})
			in := 0
			for _, j := range jobs {
				if j.State == state {
					in++
				}
			}
			return in == n, err
		}
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"nothing there", func() error { return nil }},
		{"submitted, one by one", func() error {
			if err := y.request(ctx, count); err != nil {
				return err
			}
			return y.until(ctx, 10*patience, states(corral.JobRunning, count))
		}},
		{"running", func() error { return sleep(ctx, time.Duration(count)*steadyTime) }},
		{"all end at once", func() error {
			y.sim.endAll()
			return y.until(ctx, 10*patience, states(corral.JobEnded, count))
		}},
	} {
		ph, err := y.phase(part.name, part.do)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		phases = append(phases, ph)
	}
	return phases, nil
}

// request asks for glideins in one transaction.
func (y *yard) request(ctx context.Context, count int) error {
	return storetest.All(y.db).Write(ctx, "bench", func(tx *store.Tx) error {
		for range count {
			_, err := tx.CreateGlidein(corral.Glidein{
				Owner: "bench", Site: y.site.ID, Cluster: 1, Hosts: 1, CPUs: 1, MemoryMiB: 1,
				Walltime: corral.Seconds(24 * time.Hour),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (y *yard) phase(name string, do func() error) (ph phase, err error) {
	y.steps.taken()
	commands, from := y.sim.counted(), time.Now()
	before, err := statOf(os.Getpid())
	if err != nil {
		return ph, err
	}
	if err := do(); err != nil {
		return ph, err
	}
	after, err := statOf(os.Getpid())
	if err != nil {
		return ph, err
	}
	m, err := memoryOf(os.Getpid())
	ph = phase{name: name, took: time.Since(from), steps: y.steps.taken(), commands: y.sim.counted(), cpu: after.self - before.self, rss: m.now}
	for kind, n := range commands {
		ph.commands[kind] -= n
	}
	return ph, err
}

// most returns the maximum of a quantity over a phase's steps.
func most[T cmp.Ordered](all []step, of func(step) T) (m T) {
	for _, s := range all {
		m = max(m, of(s))
	}
	return m
}

func (ph phase) row() []string {
	var took spread
	for _, s := range ph.steps {
		took = append(took, float64(s.took.Microseconds())/1000)
	}
	middle := "-"
	if len(took) > 0 {
		middle = fmt.Sprintf("%.0f", took.median())
	}
	var commands []string
	for kind, n := range ph.commands {
		if n > 0 {
			commands = append(commands, fmt.Sprintf("%d %s", n, kind))
		}
	}
	slices.Sort(commands)
	return []string{
		ph.name, ph.took.Round(100 * time.Millisecond).String(), fmt.Sprint(len(ph.steps)), strings.Join(commands, ", "),
		fmt.Sprint(most(ph.steps, func(s step) int { return s.commands })),
		middle, fmt.Sprintf("%.0f", float64(most(ph.steps, func(s step) time.Duration { return s.took }).Microseconds())/1000),
		fmt.Sprintf("%.0f %%", 100*ph.cpu.Seconds()/ph.took.Seconds()), fmt.Sprintf("%d MiB", ph.rss/1024),
	}
}

func sitesTable(count int, phases []phase) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d attempts at one simulated site, each command there takes %s:\n\n", count, answerTime)
	rows := [][]string{{"phase", "took", "ticks", "commands", "most in a tick", "tick, median ms", "longest", "of one cpu", "resident"}}
	for _, ph := range phases {
		rows = append(rows, ph.row())
	}
	table(&b, rows)
	return b.String()
}
