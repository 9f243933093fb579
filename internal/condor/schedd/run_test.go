//go:build sites

package schedd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	requests "github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/internal/work/run"
)

// A corrald represents the part of corrald that drives runs, on a site's pool.
type corrald struct {
	*site
	db      *store.DB
	cluster corral.ClusterID
	queue   *Submitter
	manager *run.Manager
	stop    func()
}

// Queue and Offer implement run.Clusters.
func (c *corrald) Queue(corral.ClusterID, corral.RunOptions) (run.Dispatcher, error) {
	return c.queue, nil
}

func (c *corrald) Offer(context.Context, corral.ClusterID) (execution.Offer, error) {
	shape := execution.Capacity{Worker: "g/0", CPUs: 2, MemoryMiB: 256, Left: time.Hour}
	return execution.Offer{CPUs: 2, Capacities: []execution.Capacity{shape}}, nil
}

func newCorrald(s *site) *corrald {
	c := &corrald{site: s, db: storetest.OpenTest(s)}
	c.write(func(tx *store.Tx) error {
		row, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
		c.cluster = row.ID
		return err
	})
	c.start()
	return c
}

func (c *corrald) write(fn func(*store.Tx) error) {
	c.Helper()
	if err := storetest.All(c.db).Write(soon(c), "local", fn); err != nil {
		c.Fatal(err)
	}
}

func (c *corrald) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.queue = New(c.lg(), Config{Tools: c.pool.Tools(), Dir: filepath.Join(c.dir, "q"), Lease: 21 * time.Second})
	c.manager = run.NewManager(c.lg(), c.db, c, filepath.Join(c.dir, "runs"))
	ended := make(chan error, 1)
	go func() { ended <- c.manager.Run(ctx) }()
	queue := c.queue
	c.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			c.Error(err)
		}
		queue.Close()
		ended <- nil
	}
	c.Cleanup(c.stop)
}

// begin starts a run.
func (c *corrald) begin(document []byte, options corral.RunOptions) corral.Run {
	c.Helper()
	flow, err := requests.Workflow(soon(c), document, "test.json")
	if err != nil {
		c.Fatal(err)
	}
	in := api.NewRun{Workflow: document, WorkflowName: "test.json", SourceDir: c.dir, Options: options}
	p, err := c.manager.Prepare(soon(c), c.cluster, in, flow)
	if err != nil {
		c.Fatal(err)
	}
	var row corral.Run
	c.write(func(tx *store.Tx) error {
		row, err = p.Insert(tx, (*store.Tx).CreateRun)
		return err
	})
	c.manager.Start(row.ID)
	return row
}

// row returns the run's current row.
func (c *corrald) row(id corral.RunID) (row corral.Run) {
	c.Helper()
	err := storetest.All(c.db).View(soon(c), func(tx *store.Tx) (err error) {
		row, err = tx.Run(id)
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	return row
}

// fan returns a workflow with one root task, n tasks below it and one final task. Each task records in dir that it ran.
func fan(n int, dir string) []byte {
	type object = map[string]any
	var specification, execution []object
	var middles, parts []string
	add := func(id string, parents, children, in, out []string, script string) {
		specification = append(specification, object{
			"name": "step", "id": id, "parents": parents, "children": children, "inputFiles": in, "outputFiles": out, "x-corral": object{"estimate_s": 2},
		})
		execution = append(execution, object{
			"id": id, "runtimeInSeconds": 0, "coreCount": 1,
			"command": object{"program": "sh", "arguments": []string{"-c", "echo $CORRAL_ATTEMPT >>" + dir + "/" + id + "; " + script}},
		})
	}
	files := []object{{"id": "source", "sizeInBytes": 1}, {"id": "all", "sizeInBytes": 1}, {"id": "sum", "sizeInBytes": 1}}
	for i := range n {
		middles, parts = append(middles, fmt.Sprintf("m%d", i)), append(parts, fmt.Sprintf("part/%d", i))
		files = append(files, object{"id": parts[i], "sizeInBytes": 1})
	}
	none := []string{}
	add("a", none, middles, []string{"source"}, []string{"all"}, "cat source >all")
	for i := range n {
		add(middles[i], []string{"a"}, []string{"z"}, []string{"all"}, parts[i:i+1], "sleep 1; cat all >"+parts[i])
	}
	add("z", middles, none, parts, []string{"sum"}, "cat part/* | wc -l >sum")
	text, err := json.Marshal(object{
		"name": "test", "schemaVersion": "1.5", "createdAt": "2026-11-21T00:00:00Z",
		"workflow": object{
			"specification": object{"tasks": specification, "files": files},
			"execution":     object{"makespanInSeconds": 0, "executedAt": "2026-11-21T00:00:00Z", "tasks": execution},
		},
	})
	if err != nil {
		panic(err)
	}
	return text
}

func TestRunSurvivesScheddAndCorrald(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.glidein("g", 2, nil)
	if err := os.WriteFile(filepath.Join(s.dir, "source"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCorrald(s)
	const n = 6
	row := c.begin(fan(n, s.dir), corral.RunOptions{})
	done := func(atLeast int) func() bool { return func() bool { return c.row(row.ID).Tasks.Done >= atLeast } }
	eventually(t, "root", done(1))
	c.stop()
	c.start()
	eventually(t, "some tasks", done(3))
	s.kill("condor_schedd")
	eventually(t, "one more task", done(4))
	c.stop()
	s.kill("condor_schedd")
	c.start()
	eventually(t, "end of the run", func() bool { return c.row(row.ID).State.Over() })
	if end := c.row(row.ID); end.State != corral.RunSucceeded {
		t.Errorf("run is %s: %s", end.State, end.Reason)
	}
	if got := strings.TrimSpace(s.read(row.Dir, "data", "sum")); got != fmt.Sprint(n) {
		t.Errorf("sum = %q, want %d", got, n)
	}
	tasks, _, err := run.TaskPage(access.With(soon(t), access.Local), c.manager, row.ID, run.Choice{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of the run's files", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "q", fmt.Sprint(row.ID)))
		return os.IsNotExist(err)
	})
	again := 0
	for _, task := range tasks {
		ran := strings.Fields(s.read(s.dir, task.ID))
		again += max(0, len(ran)-task.Attempts)
		if len(ran) == 0 || task.State != corral.TaskDone {
			t.Errorf("task %s is %s after %d attempts and ran as %v", task.ID, task.State, task.Attempts, ran)
		}
	}
	if again > 2*twice {
		t.Errorf("%d executions too many; the schedd was killed twice", again)
	}
}
