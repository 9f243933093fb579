package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/workflow"
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

// fan returns a workflow of one root, n middle tasks and one end: a → m0 … → z.
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
	flow, err := request.Workflow(context.Background(), document(tasks...), "test.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(flow, o)
	if err != nil {
		t.Fatal(err)
	}
	p.run, p.dir = 1, "/run"
	return p
}

// quiet returns a logger that discards its output.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// A world is a manager with its store, for tests.
type world struct {
	testing.TB
	db       *store.DB
	clusters Clusters
	dir      string // of runs
	cluster  corral.ClusterID
	limit    time.Duration // of await

	manager *Manager
	stop    func() // ends the manager's Run and waits
}

// asLocal returns a context whose caller is the owner of the world's runs.
func asLocal(t testing.TB) context.Context { return access.With(t.Context(), access.For("local")) }

// newWorld returns a world for virtual time; see realWorld.
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
	if err := storetest.All(w.db).Write(asLocal(w), "local", fn); err != nil {
		w.Fatal(err)
	}
}

// start creates a manager with the same store and directories, like a restarted corrald.
func (w *world) start() {
	ctx, cancel := context.WithCancel(asLocal(w))
	m := NewManager(quiet(), w.db, w.clusters, w.dir)
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

// prepare parses the workflow of a request and prepares its run.
func (w *world) prepare(r api.NewRun) (*Prepared, error) {
	flow, err := w.parse(r)
	if err != nil {
		return nil, err
	}
	return w.manager.Prepare(asLocal(w), w.cluster, r, flow)
}

// check parses the workflow of a request and checks its run.
func (w *world) check(r api.NewRun) error {
	flow, err := w.parse(r)
	if err != nil {
		return err
	}
	return w.manager.Check(asLocal(w), r, flow)
}

func (w *world) parse(r api.NewRun) (*workflow.Workflow, error) {
	if r.Open {
		return nil, nil
	}
	return request.Workflow(asLocal(w), r.Workflow, r.WorkflowName)
}

// create prepares, inserts and starts a run.
func (w *world) create(r api.NewRun) corral.Run {
	w.Helper()
	p, err := w.prepare(r)
	if err != nil {
		w.Fatal(err)
	}
	var row corral.Run
	w.write(func(tx *store.Tx) error {
		row, err = p.Insert(tx, (*store.Tx).CreateRun)
		return err
	})
	w.manager.Start(row.ID)
	return row
}

func (w *world) run(id corral.RunID) corral.Run {
	w.Helper()
	row, err := readRow(asLocal(w), storetest.All(w.db), id)
	if err != nil {
		w.Fatal(err)
	}
	return row
}

// await returns the run as soon as want returns true for it.
func (w *world) await(id corral.RunID, want func(corral.Run) bool) corral.Run {
	w.Helper()
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	for {
		changed := w.db.Changed(store.Subject{})
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

// text returns a function that writes a workflow's text unchanged.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}
