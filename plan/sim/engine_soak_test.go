//go:build soak

package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/engine"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/dag"
)

// An engineRun is a corrald in a bubble of virtual time. It contains these real parts: the engine with its loop for the
// site, the store, the head node's directory with the worker package, the gate, the port and the protocol of worker
// connections, the dispatcher, and the run's manager, driver and journal. The batch system, the supervisor of a pilot,
// and the worker's processes are simulated; a simulated worker follows the rules for real workers, which are in package
// matching.
type engineRun struct {
	t        *testing.T
	s        sim.Scenario
	db       *store.DB
	clusters *admission.Clusters
	site     corral.Site
	door     *door
	ctx      context.Context
	pilots   sync.WaitGroup

	mu   sync.Mutex // guards the following fields
	jobs map[string]*batchJob
	n    int      // number of pilots so far
	tags []string // tags of pilots, in order of submission
}

// A batchJob is a job of the batch system: a pilot, or a setup job that completes at once.
type batchJob struct {
	id             string
	started, ended time.Time
	outcome        corral.Outcome
	killed         gridsite.Killed
	seen           time.Time // when a poll showed its end
	begin          *time.Timer
	pilot          bool
}

func (e *engineRun) Submit(_ context.Context, spec gridsite.JobSpec) (string, error) {
	o, err := jobfiles.Decode(spec.Files[jobfiles.File])
	if err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	j := &batchJob{id: fmt.Sprint(len(e.jobs) + 1), pilot: o.Pilot != nil}
	e.jobs[spec.Tag] = j
	if !j.pilot {
		j.started, j.ended, j.outcome = time.Now(), time.Now(), corral.OutcomeDone
		return j.id, nil
	}
	n := e.n
	e.n++
	e.tags = append(e.tags, spec.Tag)
	j.begin = time.AfterFunc(e.s.Sites[0].Draw(shapeOf(o.Pilot), n), func() {
		e.pilots.Go(func() { e.supervise(j, o, n) })
	})
	return j.id, nil
}

func (e *engineRun) Poll(_ context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		if j := e.jobs[tag]; j != nil {
			st := gridsite.JobStatus{Tag: tag, ID: j.id, Phase: gridsite.Queued, StartedAt: j.started,
				EndedAt: j.ended, Killed: j.killed}
			switch {
			case !j.ended.IsZero():
				st.Phase = gridsite.Ended
				if j.seen.IsZero() {
					j.seen = time.Now()
				}
			case !j.started.IsZero():
				st.Phase = gridsite.Running
			}
			found[tag] = st
		}
	}
	return found, nil
}

func (e *engineRun) Read(_ context.Context, tag, name string) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.jobs[tag]; name == jobfiles.ReportFile && j != nil && j.outcome != "" {
		return json.Marshal(jobfiles.Report{Outcome: j.outcome, Reason: "played"})
	}
	return nil, fs.ErrNotExist
}

func (e *engineRun) Cancel(context.Context, string, time.Duration) error { return nil }
func (e *engineRun) Forget(context.Context, string) error                { return nil }

// supervise simulates a pilot's supervisor: it acquires the lease, starts a worker on each host, and writes the report.
func (e *engineRun) supervise(j *batchJob, o jobfiles.Order, number int) {
	e.mu.Lock()
	j.started = time.Now()
	e.mu.Unlock()
	stay := attempt.NewStay(time.Now(), *o.Pilot)
	var row corral.Job
	err := storetest.All(e.db).View(e.ctx, func(tx *store.Tx) (err error) { row, err = tx.JobTagged(o.Tag); return err })
	if err == nil {
		err = e.clusters.Lease(e.ctx, row.ID, "pilot", admission.Token(secret).Digest())
	}
	if err != nil {
		e.t.Error(err)
		return
	}
	if !e.pause(e.s.Sites[0].Overhead) {
		return
	}
	var workers sync.WaitGroup
	for i := range o.Pilot.Hosts {
		w := &player{
			e: e, host: sim.Host{Site: "hpc", Pilot: number, Number: i}, id: fmt.Sprintf("%s/%d", o.Tag, i),
			ended: make(chan *play, 1000), flushes: make(chan bool, 1000),
		}
		cut := time.Now().Add(matching.CutAfter(time.Until(stay.End)))
		w.room = matching.Room{Host: corral.Resources{CPUs: o.Pilot.CPUs, MemoryMiB: o.Pilot.MemoryMiB}, CutAt: cut,
			Speed: o.Pilot.Speed}
		w.dial(o)
		workers.Go(w.work)
	}
	workers.Wait()
	e.mu.Lock()
	j.ended, j.outcome = time.Now(), corral.OutcomeExpired
	e.mu.Unlock()
}

// pause waits, and reports whether it waited for the whole time.
func (e *engineRun) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-e.ctx.Done():
		return false
	}
}

// secret is the secret that every pilot generates and passes to its workers.
const secret = "of this test"

// A player is a worker whose tasks are timers.
type player struct {
	e       *engineRun
	host    sim.Host
	id      string
	conn    *wire.Conn
	room    matching.Room
	waiting []*play
	running []*play
	fresh   []wire.Report
	numbers int64
	ended   chan *play
	flushes chan bool
	due     time.Time
}

// A play is a job of a player.
type play struct {
	job    execution.Job
	task   int
	began  time.Time
	status execution.Status
	over   *time.Timer
}

func (p *play) needs() matching.Resources {
	return matching.Resources{Resources: p.job.Needs(), Time: p.job.Estimate()}
}

func (w *player) dial(o jobfiles.Order) {
	ours, theirs := net.Pipe()
	w.e.door.conns <- theirs
	w.conn = wire.NewConn(ours)
	w.conn.Send(&wire.Message{Type: wire.TypeHello, Hello: &wire.Hello{
		Version: wire.Version, Role: wire.RoleWorker, Tag: o.Tag, Token: o.Pilot.Token, ID: w.id, Instance: w.id,
		Holder: "pilot", Secret: secret,
		CPUs: w.room.Host.CPUs, MemoryMiB: w.room.Host.MemoryMiB, LeftMS: time.Until(w.room.CutAt).Milliseconds(),
		Speed: w.room.Speed,
	}})
	if m, err := w.conn.Recv(wire.MaxFrame); err != nil || m.Type != wire.TypeWelcome {
		w.e.t.Errorf("worker %s is not welcome: %+v, %v", w.id, m, err)
		return
	}
	w.conn.Send(&wire.Message{Type: wire.TypeHeld})
	w.conn.Send(&wire.Message{Type: wire.TypeHeartbeat, N: 1})
	for { // until registered, so that workers of the same instant register in the order of their hosts
		m, err := w.conn.Recv(wire.MaxFrame)
		if err != nil {
			w.e.t.Error(err)
			return
		}
		if m.Type == wire.TypePong {
			return
		}
		w.obey(m)
	}
}

// work handles messages and timers until the worker's time is over or its host fails.
func (w *player) work() {
	defer w.conn.Close()
	messages := make(chan *wire.Message)
	var reader sync.WaitGroup
	defer reader.Wait()
	stop := make(chan struct{})
	defer close(stop)
	defer w.conn.Close()
	reader.Go(func() {
		for {
			m, err := w.conn.Recv(wire.MaxFrame)
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-stop:
				return
			}
		}
	})
	beat := time.NewTicker(3 * time.Second)
	defer beat.Stop()
	cut := time.After(time.Until(w.room.CutAt))
	fails := make(<-chan time.Time)
	if f := w.e.s.Failures.Host; f != nil {
		if after, ok := f(w.host); ok {
			fails = time.After(after - w.e.s.Sites[0].Overhead)
		}
	}
	for {
		select {
		case m := <-messages:
			w.obey(m)
		case p := <-w.ended:
			w.end(p, p.status, "")
		case <-w.flushes:
			w.due = time.Time{}
			w.flush()
		case <-beat.C:
			w.conn.Send(&wire.Message{Type: wire.TypeHeartbeat, N: 1})
		case <-fails:
			for _, p := range w.running {
				p.over.Stop()
			}
			return
		case <-cut:
			w.leave()
			return
		case <-w.e.ctx.Done():
			return
		}
	}
}

func (w *player) obey(m *wire.Message) {
	switch m.Type {
	case wire.TypeAssign:
		for _, j := range m.Jobs {
			w.waiting = append(w.waiting, &play{job: j})
		}
		w.start()
	case wire.TypeRecall:
		var back []*play
		w.waiting = slices.DeleteFunc(w.waiting, func(p *play) bool {
			if slices.Contains(m.Keys, p.job.Key()) {
				back = append(back, p)
				return true
			}
			return false
		})
		w.handBack(back, "recalled")
	}
}

func (w *player) handBack(jobs []*play, reason string) {
	var keys []execution.Key
	for _, p := range jobs {
		keys = append(keys, p.job.Key())
	}
	if len(keys) > 0 {
		w.conn.Send(&wire.Message{Type: wire.TypeReturned, Keys: keys, Reason: reason})
	}
}

func (w *player) start() {
	for len(w.waiting) > 0 {
		p := w.waiting[0]
		switch w.room.Judge(time.Now(), p.needs()) {
		case matching.Keep:
			return
		case matching.Return:
			w.waiting = w.waiting[1:]
			w.handBack([]*play{p}, "its worker has too little time left")
		case matching.Start:
			w.waiting = w.waiting[1:]
			w.running = append(w.running, p)
			w.room.Take(p.needs())
			w.begin(p)
		}
	}
}

func (w *player) begin(p *play) {
	t := p.job.Tasks[p.task]
	if p.task > 0 && w.room.Late(time.Now(), t.Estimate) {
		w.off(p)
		w.flush()
		w.handBack([]*play{p}, "its worker stopped before its last task")
		return
	}
	took := w.room.Speed.Takes(w.e.s.Runtime(t.Index, t.Attempt))
	p.began, p.status = time.Now(), execution.Done
	if f := w.e.s.Failures.Task; f != nil && f(t.Index, t.Attempt) < 1 {
		took, p.status = time.Duration(float64(took)*f(t.Index, t.Attempt)), execution.Failed
	}
	p.over = time.AfterFunc((took + time.Millisecond - 1).Truncate(time.Millisecond), func() { w.ended <- p })
}

func (w *player) off(p *play) {
	w.running = slices.DeleteFunc(w.running, func(q *play) bool { return p == q })
	w.room.Free(p.needs())
	w.start()
}

func (w *player) end(p *play, status execution.Status, reason string) {
	t := p.job.Tasks[p.task]
	w.numbers++
	r := execution.Result{
		Key: p.job.Key(), Index: t.Index, Attempt: t.Attempt, Status: status, Reason: reason, Worker: w.id,
		StartedAt: p.began, EndedAt: time.Now(),
	}
	switch status {
	case execution.Failed:
		r.Exit, r.Reason = 1, "exit status 1"
	case execution.Cut:
		r.Exit = -1
	}
	w.fresh = append(w.fresh, wire.Report{N: w.numbers, Result: r})
	p.task++
	last := p.task == len(p.job.Tasks)
	if last {
		w.off(p)
	}
	if matching.SendNow(len(w.waiting), len(w.fresh)) {
		w.flush()
	} else if due := time.Now().Add(matching.ResultDelay(p.job.Leaf && status == execution.Done)); w.due.IsZero() || due.Before(w.due) {
		w.due = due
		time.AfterFunc(time.Until(due), func() { w.flushes <- true })
	}
	switch {
	case last:
	case status == execution.Cut, p.job.Ordered && status != execution.Done:
		w.off(p)
		w.flush()
		w.handBack([]*play{p}, "its worker stopped before its last task")
	default:
		w.begin(p)
	}
}

func (w *player) flush() {
	if len(w.fresh) > 0 {
		w.conn.Send(&wire.Message{Type: wire.TypeResults, Results: w.fresh})
		w.fresh = nil
	}
}

func (w *player) leave() {
	const why = "its worker had to leave: expired"
	w.conn.Send(&wire.Message{Type: wire.TypeDraining, Reason: "leaving: expired"})
	w.handBack(w.waiting, "its worker leaves")
	w.waiting = nil
	for _, p := range slices.Clone(w.running) {
		p.over.Stop()
		w.end(p, execution.Cut, why)
	}
	w.flush()
	<-time.After(time.Millisecond / 4) // for its results to be acknowledged
	w.conn.Send(&wire.Message{Type: wire.TypeBye, Reason: "expired"})
	w.conn.Finish()
}

func shapeOf(p *jobfiles.PilotOrder) (s plan.Shape) {
	return plan.Shape{Hosts: p.Hosts, Walltime: time.Duration(p.Walltime)}
}

// A door passes connections to the port.
type door struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case nc := <-d.conns:
		return nc, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}
func (d *door) Close() error   { d.once.Do(func() { close(d.closed) }); return nil }
func (d *door) Addr() net.Addr { return &net.UnixAddr{} }

// played is the address passed to pilots, which do not use it.
type played struct{}

func (played) For(corral.Site) ([]string, string, error) { return []string{"unix:/played"}, "", nil }
func (played) Dial(context.Context) (net.Conn, error)    { return nil, net.ErrClosed }

// write changes the store.
func (e *engineRun) write(do func(*store.Tx) error) {
	if err := storetest.All(e.db).Write(e.ctx, "local", do); err != nil {
		e.t.Fatal(err)
	}
}

// real runs a scenario with the real engine, and returns the run's journal and its beginning.
func real(t *testing.T, s sim.Scenario) (journal []execution.Record, begin time.Time, e *engineRun) {
	e = &engineRun{t: t, s: s, db: storetest.OpenTest(t), jobs: map[string]*batchJob{}}
	ctx, cancel := context.WithCancel(t.Context())
	e.ctx = ctx
	lg := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	dir := t.TempDir()
	signer, err := packages.LoadSigner(filepath.Join(dir, "package.key"))
	stock := delivery.OpenDepot(filepath.Join(dir, "cache"), signer)
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if err = errors.Join(err, stock.AddPilot([]byte("#!/bin/sh\n"), arch)); err != nil {
		t.Fatal(err)
	}
	e.clusters = admission.NewClusters(lg, e.db, nil, dispatch.Config{})
	e.door = &door{conns: make(chan net.Conn), closed: make(chan struct{})}
	way := siteaccess.New(gridsite.Backends{
		Transports: map[string]gridsite.Dialer{"local": func(string, string) (gridsite.Conn,
			error) {
			return local.Conn{}, nil
		}},
		Dialects: map[string]func(gridsite.Conn, string) gridsite.Batch{corral.ForkBatch: func(gridsite.Conn,
			string) gridsite.Batch {
			return e
		}},
		Head: func(conn gridsite.Conn, root string) gridsite.Head { return headnode.New(conn, root) },
	}, "test")
	corrald := engine.New(lg, e.db, e.clusters, engine.Config{
		Key: admission.Key("a key of at least 32 bytes, as it must be"), Address: played{}, Reach: way,
		Prober: siteaccess.NewProber(lg, e.db, way, played{}), Catalog: delivery.NewCatalog(lg, e.db, stock, nil),
	})
	manager := run.NewManager(lg, e.db, e.clusters, filepath.Join(dir, "runs"))
	var running sync.WaitGroup
	running.Go(func() { _ = corrald.Run(ctx) })
	running.Go(func() { _ = manager.Run(ctx) })
	running.Go(func() { _ = port.New(lg, e.clusters, nil).Serve(ctx, e.door) })
	defer func() { cancel(); e.pilots.Wait(); e.clusters.Close(); running.Wait() }()

	e.write(func(tx *store.Tx) (err error) {
		if _, err = tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local",
			Kind: corral.Embedded}); err != nil {
			return err
		}
		e.site, err = tx.CreateSite(corral.Site{Name: "hpc", Owner: "local", Contact: "local:", Batch: "fork",
			Root: filepath.Join(dir, "site")})
		return err
	})
	e.until(func(tx *store.Tx) (bool, error) {
		s, err := tx.Site(e.site.ID)
		return s.State == corral.SiteReady, err
	})
	// Wait for a whole minute at which everything is idle.
	e.pause(time.Until(time.Now().Truncate(time.Minute).Add(2 * time.Minute)))

	begin = time.Now()
	in := api.NewRun{Workflow: document(s.Work), Options: options(s)}
	flow, err := request.Workflow(ctx, in.Workflow, "")
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := manager.Prepare(ctx, 1, in, flow)
	if err != nil {
		t.Fatal(err)
	}
	var row corral.Run
	e.write(func(tx *store.Tx) (err error) {
		for _, a := range s.Asks {
			g := corral.Glidein{
				Owner: "local", Site: e.site.ID, Cluster: 1, Speed: s.Sites[0].Speed,
				Shape:    corral.Shape{Hosts: a.Hosts, CPUs: a.CPUs, MemoryMiB: a.MemoryMiB, Walltime: a.Walltime},
				Resubmit: a.Resubmit,
			}
			if a.Submit > 0 {
				g.NotBefore = begin.Add(time.Duration(a.Submit))
			}
			if _, err = tx.CreateGlidein(g); err != nil {
				return err
			}
		}
		row, err = prepared.Insert(tx, (*store.Tx).CreateRun)
		return err
	})
	manager.Start(row.ID)
	e.until(func(tx *store.Tx) (bool, error) {
		row, err = tx.Run(row.ID)
		return row.State.Over(), err
	})
	text, err := os.ReadFile(filepath.Join(row.Dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r execution.Record
		if err := json.Unmarshal([]byte(line[9:]), &r); err != nil {
			t.Fatal(err)
		}
		journal = append(journal, r)
	}
	return journal, begin, e
}

// seen returns the delay after which a poll showed the end of the nth pilot: for the simulator the times of corrald's
// polls are random, like waits.
func (e *engineRun) seen(n int) time.Duration {
	if n >= len(e.tags) || e.jobs[e.tags[n]].seen.IsZero() {
		return 0
	}
	return e.jobs[e.tags[n]].seen.Sub(e.jobs[e.tags[n]].ended)
}

// clusteredGroups is the number of jobs per level if tasks are clustered.
const clusteredGroups = 6

func options(s sim.Scenario) corral.RunOptions {
	o := corral.RunOptions{Stall: corral.Seconds(s.Stall)}
	switch c := s.Work.Clusters; {
	case c == nil:
	// The first job has a task that depends on another task of it.
	case len(s.Work.Graph.Parents(c[0][len(c[0])-1])) > 0:
		o.Clustering = "vertical"
	default:
		o.Clustering = fmt.Sprintf("horizontal=%d", clusteredGroups)
	}
	return o
}

// until waits for a state of the store.
func (e *engineRun) until(ok func(*store.Tx) (bool, error)) {
	for {
		changed, done := e.db.Changed(store.Subject{}), false
		if err := storetest.All(e.db).View(e.ctx, func(tx *store.Tx) (err error) { done, err = ok(tx); return err }); err != nil {
			e.t.Fatal(err)
		}
		if done {
			return
		}
		select {
		case <-changed:
		case <-time.After(24 * time.Hour):
			e.t.Fatal("it does not come")
		}
	}
}

// document returns a workflow file as users would write it.
func document(s execution.Spec) []byte {
	type object = map[string]any
	var specification, executed []object
	names := func(indices []int) []string {
		all := []string{}
		for _, i := range indices {
			all = append(all, s.Tasks[i].ID)
		}
		return all
	}
	for i, t := range s.Tasks {
		specification = append(specification, object{
			"name": "step", "id": t.ID, "parents": names(s.Graph.Parents(i)), "children": names(s.Graph.Children(i)),
			"inputFiles": []string{}, "outputFiles": []string{},
			"x-corral": object{"estimate_s": t.Estimate.Seconds(), "memory_mib": t.MemoryMiB, "retries": t.Retries},
		})
		executed = append(executed, object{
			"id": t.ID, "runtimeInSeconds": 0, "coreCount": t.CPUs, "command": object{"program": "true",
				"arguments": []string{}},
		})
	}
	text, err := json.Marshal(object{
		"name": "test", "schemaVersion": "1.5", "createdAt": "2026-11-21T00:00:00Z",
		"workflow": object{
			"specification": object{"tasks": specification, "files": []object{}},
			"execution":     object{"makespanInSeconds": 0, "executedAt": "2026-11-21T00:00:00Z", "tasks": executed},
		},
	})
	if err != nil {
		panic(err)
	}
	return text
}

// told formats records as lines, with instants relative to the beginning. Records of the same instant are sorted,
// because their order is random in a real run.
func told(t *testing.T, records []execution.Record, begin time.Time) []string {
	from := func(m execution.Msec) execution.Msec {
		if m == 0 {
			return 0
		}
		return m - execution.ToMsec(begin)
	}
	var lines []string
	for _, r := range records {
		at := from(r.At)
		r.At = 0
		if o := r.Finished; o != nil {
			copied := *o
			copied.Started, copied.Ended = from(o.Started), from(o.Ended)
			r.Finished = &copied
		}
		if b := r.Returned; b != nil {
			copied := *b
			copied.Seqs, copied.Until = slices.Sorted(slices.Values(b.Seqs)), from(b.Until)
			r.Returned = &copied
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%9d %s", at, text))
	}
	slices.Sort(lines)
	return lines
}

// The real engine in virtual time and the simulator produce the same records for the same site, instant for instant:
// the assignment and the end of each attempt, returned jobs, and registered workers.
func TestSameAsTheEngine(t *testing.T) {
	for _, tt := range scenarios(t) {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				journal, begin, e := real(t, tt.Scenario)
				tt.Sites[0].Seen = e.seen
				want := told(t, journal, begin)
				trace := sim.RunNamed(tt.Scenario, func(id corral.JobID) string { return e.tags[id-1] })
				got := told(t, trace.Records, trace.Begin)
				noTies(t, trace.Records)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("records (-engine +sim):\n%s", diff)
				}
				t.Logf("%d records, %s, %v of virtual time, %d withdrawn", len(got), trace.Ending, trace.Over, strings.Count(strings.Join(got, ""), "withdrawn"))
			})
		})
	}
}

// noTies checks that results of different workers do not arrive at the same instant.
func noTies(t *testing.T, records []execution.Record) {
	from := map[execution.Msec]string{}
	for _, r := range records {
		if o := r.Finished; o != nil && o.Status != execution.Cut {
			if w := from[r.At]; w != "" && w != o.Worker {
				t.Fatalf("two results come at %d, and which is first is chance: give the scenario other runtimes", r.At)
			}
			from[r.At] = o.Worker
		}
	}
}

type named struct {
	name string
	sim.Scenario
}

func scenarios(t *testing.T) []named {
	// In milliseconds, so as not to coincide with the driver's checks, which happen every second.
	waits := []time.Duration{20_250, 63_500, 8_125, 5_625, 5_375}
	hpc := site(0)
	hpc.Draw = func(_ plan.Shape, n int) time.Duration { return waits[n%len(waits)] * time.Millisecond }
	// With these runtimes hardly any two events happen at the same instant, where their order would be random.
	odd := func(s execution.Spec) sim.Runtime {
		by := sim.Lognormal(s, 0.5, 7)
		return func(task, attempt int) time.Duration {
			took := float64(s.Tasks[task].Estimate) * by(task)
			return time.Duration(took).Truncate(time.Millisecond) + time.Duration(task*13+attempt)*time.Millisecond
		}
	}
	scenario := func(w execution.Spec, change func(*sim.Scenario), asks ...sim.Ask) sim.Scenario {
		s := sim.Scenario{Work: w, Sites: []sim.Site{hpc}, Runtime: odd(w), Stall: time.Hour, Asks: asks}
		if change != nil {
			change(&s)
		}
		return s
	}
	later := func(a sim.Ask, submit time.Duration) sim.Ask { a.Submit = corral.Seconds(submit); return a }
	again := func(a sim.Ask, n int) sim.Ask { a.Resubmit = resubmit.Policy{Mode: resubmit.Times, Limit: n}; return a }
	wide, short, mixed := many(t, 120, 24), many(t, 200, 50), many(t, 150, 30)
	for i := range wide.Tasks {
		wide.Tasks[i].Retries = 2
		wide.Tasks[i].Estimate /= 6 // each second of virtual time costs real time, because corrald polls its clocks
	}
	clustered := wide
	clustered.Clusters = dag.ByLevel(clustered.Graph, clusteredGroups, nil)
	for i := range short.Tasks {
		short.Tasks[i].Estimate = time.Duration(20+i%50) * time.Millisecond
	}
	for i := range mixed.Tasks {
		mixed.Tasks[i].Estimate /= 10
		mixed.Tasks[i].CPUs = 1 + i%4
		mixed.Tasks[i].MemoryMiB = 100 + i%7*500
	}
	var links []task
	for i := range 100 {
		link := task{estimate: time.Duration(4+i%9) * time.Second}
		if i%5 > 0 {
			link.after = []int{i - 1}
		}
		links = append(links, link)
	}
	chains := work(t, links...)
	chains.Clusters = dag.Chains(chains.Graph, nil)
	for i := range chains.Tasks {
		chains.Tasks[i].Retries = 2
	}
	level := work(t, slices.Repeat([]task{{estimate: 10 * time.Second}}, 24)...)
	level.Clusters = dag.ByLevel(level.Graph, clusteredGroups, nil)
	return []named{
		{"jobs that wait while workers have less and less time", scenario(level, nil, pilot(1, 1, 170*time.Second),
			later(again(pilot(1, 1, 40*time.Second), 40), 200*time.Second))},
		{"pilots that outlast the work", scenario(wide, nil, pilot(1, 4, time.Hour), pilot(2, 2, time.Hour))},
		{"a pilot that comes later", scenario(wide, nil, pilot(1, 2, time.Hour), later(pilot(3, 2, time.Hour),
			40*time.Second))},
		{"pilots whose walltimes end", scenario(wide, nil,
			again(pilot(1, 4, time.Minute), 20), pilot(1, 1, 2*time.Hour))},
		{"tasks that fail", scenario(wide, func(s *sim.Scenario) {
			s.Failures.Task = func(task, attempt int) float64 {
				if task%7 == 0 && attempt <= 1+task%3 {
					return 0.5
				}
				return 1
			}
		}, pilot(2, 3, 2*time.Hour))},
		{"a host that fails", scenario(wide, func(s *sim.Scenario) {
			s.Failures.Host = func(h sim.Host) (time.Duration, bool) { return 33_456 * time.Millisecond, h.Number == 1 }
		}, pilot(3, 3, 2*time.Hour))},
		{"jobs of different sizes", scenario(mixed, nil, pilot(3, 4, 3*time.Hour))},
		{"slow hosts", scenario(wide, func(s *sim.Scenario) {
			s.Sites = slices.Clone(s.Sites)
			s.Sites[0].Speed = 0.7
		}, again(pilot(1, 4, time.Minute), 20), pilot(1, 1, 2*time.Hour))},
		{"tasks of milliseconds", scenario(short, nil, pilot(2, 2, time.Hour))},
		{"clustered jobs", scenario(clustered, nil, pilot(2, 3, 30*time.Minute), again(pilot(1, 4, 70*time.Second), 20))},
		{"chains in jobs, some of which are parted, and tasks that fail", scenario(chains, func(s *sim.Scenario) {
			s.Failures.Task = func(task, attempt int) float64 {
				if task%7 == 3 && attempt <= task%4 {
					return 0.5
				}
				return 1
			}
		}, pilot(1, 3, 100*time.Second), again(pilot(1, 4, 70*time.Second), 20))},
	}
}
