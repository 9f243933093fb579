package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/pool"
)

// A spec is a task of a test's workflow.
type spec struct {
	ID        string
	After     []string
	CPUs      int
	MemoryMiB int
	Seconds   float64 // estimate
	Retries   *int
	In, Out   []string
	Argv      []string // nil: true
	Stdout    string
}

// document writes a WfFormat document.
func document(tasks ...spec) []byte {
	type object = map[string]any
	var specification, execution []object
	children := make(map[string][]string)
	for _, t := range tasks {
		for _, p := range t.After {
			children[p] = append(children[p], t.ID)
		}
	}
	for _, t := range tasks {
		extension := object{}
		if t.Seconds > 0 {
			extension["estimate_s"] = t.Seconds
		}
		if t.MemoryMiB > 0 {
			extension["memory_mib"] = t.MemoryMiB
		}
		if t.Retries != nil {
			extension["retries"] = *t.Retries
		}
		if t.Stdout != "" {
			extension["stdout"] = t.Stdout
		}
		specification = append(specification, object{
			"name": "step", "id": t.ID, "parents": orNone(t.After), "children": orNone(children[t.ID]),
			"inputFiles": orNone(t.In), "outputFiles": orNone(t.Out), "x-corral": extension,
		})
		argv := t.Argv
		if argv == nil {
			argv = []string{"true"}
		}
		execution = append(execution, object{
			"id": t.ID, "runtimeInSeconds": 0, "coreCount": max(1, t.CPUs),
			"command": object{"program": argv[0], "arguments": orNone(argv[1:])},
		})
	}
	files := make(map[string]bool)
	listed := []object{}
	for _, t := range tasks {
		for _, f := range slices.Concat(t.In, t.Out) {
			if !files[f] {
				files[f] = true
				listed = append(listed, object{"id": f, "sizeInBytes": 1})
			}
		}
	}
	text, err := json.Marshal(object{
		"name": "test", "schemaVersion": "1.5", "createdAt": "2026-11-21T00:00:00Z",
		"workflow": object{
			"specification": object{"tasks": specification, "files": listed},
			"execution":     object{"makespanInSeconds": 0, "executedAt": "2026-11-21T00:00:00Z", "tasks": execution},
		},
	})
	if err != nil {
		panic(err)
	}
	return text
}

func orNone(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// fan is a workflow of one root, n middles and one end: a → m0 … → z.
func fan(n int, seconds float64) []spec {
	tasks := []spec{{ID: "a", Seconds: seconds}}
	end := spec{ID: "z", Seconds: seconds}
	for i := range n {
		m := spec{ID: fmt.Sprintf("m%d", i), After: []string{"a"}, Seconds: seconds}
		tasks = append(tasks, m)
		end.After = append(end.After, m.ID)
	}
	return append(tasks, end)
}

func mustPlan(t interface{ Fatal(...any) }, o corral.RunOptions, tasks ...spec) *plan {
	o, err := withDefaults(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan("test.json", document(tasks...), o)
	if err != nil {
		t.Fatal(err)
	}
	p.run, p.dir = 1, "/run"
	return p
}

// A simWorker is a worker of a simCluster.
type simWorker struct {
	id        string
	cpus      int
	memoryMiB int
	endsAt    time.Time // zero: never leaves
	free      int
}

// A simCluster is a personal cluster in virtual time: a Queue whose workers only pretend to run. It
// serves one cluster, and as Clusters it knows no other.
type simCluster struct {
	run func(pool.Task) (pool.Status, time.Duration) // what a task does and how long; nil: Done after its estimate

	mu       sync.Mutex // guards what follows
	workers  []*simWorker
	extra    []Shape // requested
	sinks    map[corral.RunID]pool.Sink
	queued   []pool.Job
	held     map[pool.Key]*simHeld
	started  []string // ID.ATTEMPT, in order
	expected []string // ID.ATTEMPT
	calls    sync.WaitGroup
	order    chan struct{} // holds a token while no sink is called
}

type simHeld struct {
	job    pool.Job
	worker *simWorker
	timer  *time.Timer
	began  time.Time
}

func newSimCluster(workers ...*simWorker) *simCluster {
	c := &simCluster{sinks: map[corral.RunID]pool.Sink{}, held: map[pool.Key]*simHeld{}, order: make(chan struct{}, 1)}
	c.order <- struct{}{}
	for _, w := range workers {
		c.join(w)
	}
	return c
}

func (c *simCluster) join(w *simWorker) {
	c.mu.Lock()
	w.free = w.cpus
	c.workers = append(c.workers, w)
	c.mu.Unlock()
	c.match()
}

// lose takes a worker away with all it has.
func (c *simCluster) lose(id string) {
	c.mu.Lock()
	c.workers = slices.DeleteFunc(c.workers, func(w *simWorker) bool { return w.id == id })
	var keys []pool.Key
	for key, h := range c.held {
		if h.worker.id == id {
			h.timer.Stop()
			keys = append(keys, key)
			delete(c.held, key)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(keys, func(a, b pool.Key) int { return cmp.Compare(a.Seq, b.Seq) })
	c.tell(func() {
		for _, k := range keys {
			c.sink(k.Run).Returned([]pool.Key{k}, true, "worker "+id+" was lost")
		}
	})
}

// tell calls sinks, one call after another.
func (c *simCluster) tell(call func()) {
	<-c.order
	defer func() { c.order <- struct{}{} }()
	call()
}

func (c *simCluster) sink(run corral.RunID) pool.Sink {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sinks[run]; s != nil {
		return s
	}
	return nobody{}
}

// nobody takes nothing: corrald is not there.
type nobody struct{}

func (nobody) Assigned(string, []pool.Key) error { return errClosed }
func (nobody) Finished([]pool.Result) error      { return errClosed }
func (nobody) Returned([]pool.Key, bool, string) {}

// restart forgets what dies with corrald: the queue. Workers go on.
func (c *simCluster) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued, c.sinks = nil, map[corral.RunID]pool.Sink{}
}

func (c *simCluster) Queue(corral.ClusterID) (Queue, error) { return c, nil }

func (c *simCluster) Supply(context.Context, corral.ClusterID) (Supply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Supply{Shapes: slices.Clone(c.extra)}
	for _, w := range c.workers {
		s.CPUs += w.cpus
		s.Shapes = append(s.Shapes, WorkerShape(corral.Worker{ID: w.id, CPUs: w.cpus, MemoryMiB: w.memoryMiB, EndsAt: w.endsAt}, time.Now()))
	}
	return s, nil
}

func (c *simCluster) Attach(run corral.RunID, sink pool.Sink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sinks[run] = sink
}

func (c *simCluster) Detach(run corral.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sinks, run)
	c.queued = slices.DeleteFunc(c.queued, func(j pool.Job) bool { return j.Run == run })
	for key, h := range c.held {
		if key.Run == run {
			h.timer.Stop()
			h.worker.free += h.job.CPUs
			delete(c.held, key)
		}
	}
}

func (c *simCluster) Submit(jobs []pool.Job) {
	c.mu.Lock()
	c.queued = append(c.queued, jobs...)
	slices.SortStableFunc(c.queued, func(a, b pool.Job) int { return cmp.Compare(b.Priority, a.Priority) })
	c.mu.Unlock()
	c.calls.Go(c.match)
}

func (c *simCluster) Cancel(run corral.RunID) {
	c.mu.Lock()
	var gone []pool.Key
	c.queued = slices.DeleteFunc(c.queued, func(j pool.Job) bool {
		if j.Run == run {
			gone = append(gone, j.Key())
		}
		return j.Run == run
	})
	for key, h := range c.held {
		if key.Run == run && h.timer.Stop() {
			c.calls.Go(func() { c.end(h, 0, pool.Cancelled) })
		}
	}
	c.mu.Unlock()
	c.calls.Go(func() { c.tell(func() { c.sink(run).Returned(gone, false, "cancelled") }) })
}

func (c *simCluster) Expect(run corral.RunID, worker string, jobs []pool.Job) {
	c.mu.Lock()
	var gone []pool.Key
	for _, j := range jobs {
		for _, t := range j.Tasks {
			c.expected = append(c.expected, fmt.Sprintf("%s.%d", t.ID, t.Attempt))
		}
		if c.held[j.Key()] == nil {
			gone = append(gone, j.Key())
		}
	}
	c.mu.Unlock()
	if len(gone) > 0 {
		c.calls.Go(func() { c.tell(func() { c.sink(run).Returned(gone, true, "its worker came back without it") }) })
	}
}

// match starts what fits.
func (c *simCluster) match() {
	for {
		h := c.pick()
		if h == nil {
			return
		}
		c.tell(func() {
			if c.sink(h.job.Run).Assigned(h.worker.id, []pool.Key{h.job.Key()}) == nil {
				c.start(h, 0)
			}
		})
	}
}

func (c *simCluster) pick() *simHeld {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, j := range c.queued {
		for _, w := range c.workers {
			if j.CPUs > w.free || j.MemoryMiB > w.memoryMiB || !w.endsAt.IsZero() && time.Until(w.endsAt) < j.Estimate() {
				continue
			}
			w.free -= j.CPUs
			c.queued = slices.Delete(c.queued, k, k+1)
			h := &simHeld{job: j, worker: w}
			c.held[j.Key()] = h
			return h
		}
	}
	return nil
}

// start starts task k of a job.
func (c *simCluster) start(h *simHeld, k int) {
	task := h.job.Tasks[k]
	status, took := pool.Done, task.Estimate
	if c.run != nil {
		status, took = c.run(task)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[h.job.Key()] != h {
		return
	}
	if left := time.Until(h.worker.endsAt); !h.worker.endsAt.IsZero() && took > left {
		status, took = pool.Cut, left
	}
	c.started = append(c.started, fmt.Sprintf("%s.%d", task.ID, task.Attempt))
	h.began = time.Now()
	h.timer = time.AfterFunc(took, func() { c.end(h, k, status) })
}

// end ends task k of a job.
func (c *simCluster) end(h *simHeld, k int, status pool.Status) {
	t := h.job.Tasks[k]
	r := pool.Result{
		Key: h.job.Key(), Index: t.Index, Attempt: t.Attempt, Status: status, Worker: h.worker.id,
		StartedAt: h.began, EndedAt: time.Now(),
	}
	if status == pool.Failed {
		r.Exit, r.Reason = 3, "exit status 3"
	}
	c.report(h, k, r)
}

// report tells a result until it is taken, then starts the job's next task or gives the job up.
func (c *simCluster) report(h *simHeld, k int, r pool.Result) {
	var err error
	c.tell(func() { err = c.sink(h.job.Run).Finished([]pool.Result{r}) })
	c.mu.Lock()
	gone := c.held[h.job.Key()] != h
	c.mu.Unlock()
	last := k+1 == len(h.job.Tasks) || r.Status == pool.Cancelled
	switch {
	case gone:
		return
	case err != nil:
		time.AfterFunc(time.Second, func() { c.report(h, k, r) })
		return
	case !last:
		c.start(h, k+1)
		return
	}
	c.mu.Lock()
	delete(c.held, h.job.Key())
	h.worker.free += h.job.CPUs
	c.mu.Unlock()
	if k+1 < len(h.job.Tasks) {
		c.tell(func() { c.sink(h.job.Run).Returned([]pool.Key{h.job.Key()}, false, "cancelled") })
	}
	c.match()
}

func (c *simCluster) startedTasks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.started)
}

// quiet returns a logger that writes nothing, for tests that print on their own when they fail.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// A world is a manager with its store, and what tests do with it.
type world struct {
	testing.TB
	db       *store.DB
	clusters Clusters
	dir      string // of runs
	cluster  corral.ClusterID
	limit    time.Duration // of await

	manager *Manager
	stop    func() // ends manager's Run and waits
}

// newWorld is for virtual time, see realWorld.
func newWorld(t testing.TB, clusters Clusters) *world {
	w := &world{TB: t, db: storetest.OpenTest(t), clusters: clusters, dir: t.TempDir(), limit: 10 * time.Hour}
	w.write(func(tx *store.Tx) error {
		c, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
		w.cluster = c.ID
		return err
	})
	w.start()
	return w
}

func (w *world) write(fn func(*store.Tx) error) {
	w.Helper()
	if err := w.db.Write(w.Context(), "local", fn); err != nil {
		w.Fatal(err)
	}
}

// start makes a manager on the same store and directories, as a corrald that was started again.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.Context())
	m := NewManager(quiet(), w.db, w.clusters, Config{Dir: w.dir})
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	w.manager = m
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("Run: %v", err)
		}
	}
	w.Cleanup(func() { cancel() })
}

// create prepares, inserts and starts a run.
func (w *world) create(r NewRun) corral.Run {
	w.Helper()
	r.Cluster = w.cluster
	p, err := w.manager.Prepare(w.Context(), r)
	if err != nil {
		w.Fatal(err)
	}
	var row corral.Run
	w.write(func(tx *store.Tx) error {
		row, err = p.Insert(tx)
		return err
	})
	w.manager.Start(row.ID)
	return row
}

func (w *world) run(id corral.RunID) corral.Run {
	w.Helper()
	row, err := w.manager.row(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return row
}

// await returns the run as soon as it is as wanted.
func (w *world) await(id corral.RunID, want func(corral.Run) bool) corral.Run {
	w.Helper()
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	for {
		changed := w.db.Changed()
		row := w.run(id)
		if want(row) {
			return row
		}
		select {
		case <-changed:
		case <-limit.C:
			w.Fatalf("run is still %s (%s), tasks %+v", row.State, row.Reason, row.Tasks)
		}
	}
}

func (w *world) awaitOver(id corral.RunID) corral.Run {
	w.Helper()
	return w.await(id, func(r corral.Run) bool { return r.State.Over() })
}
