//go:build sites

package condorpool

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/run"
)

// release is the folder of a real HTCondor release.
var release string

func TestMain(m *testing.M) {
	flag.Parse()
	// HTCondor spends most of its time waiting for its own daemons.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	var err error
	if release, err = programs.HTCondor(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// installed provides the real HTCondor as the only release. Any other ref is a folder or does not exist.
type installed struct{}

func (installed) Newest(context.Context) (ref string, err error) { return release, nil }

func (installed) Release(_ context.Context, ref string) (dir, version string, err error) {
	if _, err := os.Stat(ref); err != nil {
		return "", "", corral.Errorf(corral.Unsatisfiable, "no HTCondor %s here", ref)
	}
	return ref, "23.9.6", nil
}

func (installed) Prune([]string) error { return nil }

// A queue is a dummy, because these tests submit no job to it.
type queue struct {
	run.Dispatcher
	closed bool
}

func (q *queue) Close() { q.closed = true }

// A world is a store, pools that follow it, and a folder for everything.
type world struct {
	t       *testing.T
	dir     string
	db      *store.DB
	keepers *Keepers
	endRun  func()
	tags    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "pools-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // so that the pools' owner can enter it
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, db: storetest.OpenTest(t)}
	t.Cleanup(w.clean)
	w.begin()
	return w
}

// begin starts the Keepers, for the first time or after earlier Keepers were ended.
func (w *world) begin() {
	w.keepers = New(slog.New(slog.NewTextHandler(w.t.Output(), nil)), w.db, Config{
		Dir:      filepath.Join(w.dir, "clusters"),
		Host:     netip.MustParseAddr("127.0.0.1"),
		Releases: installed{},
		NewQueue: func(corral.Cluster, condor.Tools, string) Submitter { return &queue{} },
		RunAs:    programs.Unprivileged(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.keepers.Run(ctx) }()
	w.endRun = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		w.endRun = func() {}
	}
}

// clean removes all clusters at the end, and checks that nothing is left behind.
func (w *world) clean() {
	all := w.clusters()
	for _, c := range all {
		if c.State != corral.ClusterRemoving {
			w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
		}
	}
	for _, c := range all {
		w.await(c.ID, corral.ClusterDeleted)
	}
	w.endRun()
	left, err := filepath.Glob(filepath.Join(w.dir, "clusters", "*"))
	if err != nil || len(left) > 0 {
		w.t.Errorf("left behind: %v, %v", left, err)
	}
	for _, pid := range daemons(filepath.Join(w.dir, "clusters")) {
		w.t.Errorf("process %d of a pool is left", pid)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Error(err)
	}
}

// force removes a cluster even if it is still needed.
func force(tx *store.Tx, id corral.ClusterID) error {
	live, err := tx.Glideins(store.GlideinFilter{Cluster: id, Live: true})
	if err != nil {
		return err
	}
	for _, g := range live {
		if _, err := tx.AskGlidein(g.ID, corral.AskCancel, "end of the test"); err != nil {
			return err
		}
		for _, j := range g.Live() {
			if err := end(tx, j.ID); err != nil {
				return err
			}
		}
	}
	_, err = tx.RemoveCluster(id, "end of the test")
	return err
}

func end(tx *store.Tx, id corral.JobID) error {
	_, err := tx.MoveJob(id, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired})
	return err
}

func (w *world) write(fn func(tx *store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(context.Background(), "test", fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) clusters() (all []corral.Cluster) {
	w.t.Helper()
	err := storetest.All(w.db).View(context.Background(), func(tx *store.Tx) (err error) {
		all, err = tx.Clusters(store.Filter{})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) cluster(id corral.ClusterID) (c corral.Cluster) {
	w.t.Helper()
	err := storetest.All(w.db).View(context.Background(), func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(id)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// create creates a cluster's row, which is all that a user does.
func (w *world) create(c corral.Cluster) corral.Cluster {
	w.t.Helper()
	c.Owner, c.Kind = "local", corral.Condor
	w.write(func(tx *store.Tx) (err error) {
		c, err = tx.CreateCluster(c)
		return err
	})
	return c
}

func (w *world) move(id corral.ClusterID, move corral.ClusterMove) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		_, err := tx.MoveCluster(id, move, "by the test")
		return err
	})
}

// await waits until the cluster is in a state.
func (w *world) await(id corral.ClusterID, want corral.ClusterState) (c corral.Cluster) {
	w.t.Helper()
	w.eventually("cluster "+string(want), func() bool {
		c = w.cluster(id)
		if c.State == corral.ClusterFailed && want != corral.ClusterFailed {
			w.t.Fatalf("cluster failed: %s", c.Reason)
		}
		return c.State == want
	})
	return c
}

// ready returns a cluster whose pool is running.
func (w *world) ready(name string) corral.Cluster {
	w.t.Helper()
	return w.await(w.create(corral.Cluster{Name: name}).ID, corral.ClusterReady)
}

// attempt creates a glidein for the cluster with one attempt.
func (w *world) attempt(c corral.Cluster, hosts, cpus int) (j corral.Job) {
	w.t.Helper()
	w.tags++
	tag := fmt.Sprintf("tag-%d", w.tags)
	w.write(func(tx *store.Tx) error {
		s, err := tx.CreateSite(corral.Site{Name: tag, Owner: "local", Contact: "local:", Batch: "fork", Root: "/" + tag})
		if err != nil {
			return err
		}
		g, err := tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: c.ID,
			Shape: corral.Shape{Hosts: hosts, CPUs: cpus, MemoryMiB: 100, Walltime: corral.Seconds(time.Hour)}})
		if err != nil {
			return err
		}
		j, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: s.ID, Glidein: g.ID, Tag: tag})
		return err
	})
	return j
}

// eventually waits for up to three minutes, enough for a slow or busy machine. Checks take at most a fifth of the time,
// because each query of HTCondor starts a process.
func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	late := time.After(3 * time.Minute)
	for {
		from := time.Now()
		if done() {
			return
		}
		select {
		case <-time.After(max(20*time.Millisecond, 4*time.Since(from))):
		case <-late:
			w.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// tools returns the commands for a cluster's pool.
func (w *world) tools(c corral.Cluster) condor.Tools {
	w.t.Helper()
	_, _, tools, err := w.keepers.ready(w.t.Context(), c.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return tools
}

// submit queues a job that succeeds and returns its number.
func (w *world) submit(c corral.Cluster) int {
	w.t.Helper()
	cluster, err := w.trySubmit(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return cluster
}

func (w *world) trySubmit(c corral.Cluster) (int, error) {
	job := condor.Submit{
		Executable: "/bin/true", Request: condor.Request{Cpus: 1}, Transfer: condor.Transfer{When: "YES"},
		Procs: []condor.Proc{{}},
	}
	return w.tools(c).Submit(w.t.Context(), job)
}

// queued returns the number of a submission's jobs in the queue.
func (w *world) queued(c corral.Cluster, cluster int) int {
	w.t.Helper()
	ads, err := w.jobs(c, cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(ads)
}

// gone reports whether the schedd's history shows that a submission's jobs have left the queue.
func (w *world) gone(c corral.Cluster, cluster int) bool {
	ads, err := w.jobs(c, cluster)
	return err == nil && len(ads) == 0
}

func (w *world) jobs(c corral.Cluster, cluster int) ([]classad.Ad, error) {
	return w.tools(c).Query(w.t.Context(), "condor_q", []string{fmt.Sprint(cluster)}, []string{"ClusterId", "JobStatus"})
}
