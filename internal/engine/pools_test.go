package engine

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing/fstest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/pools"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

// realHTCondor is the folder of a real HTCondor, which scripts/htcondor has set up.
var realHTCondor = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("../../scripts/htcondor")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(bytes.TrimSpace(out)), err
})

const htcondorVersion = "23.9.6"

type onlyRelease struct{}

func (onlyRelease) Newest(context.Context) (ref string, err error) { return realHTCondor() }

func (onlyRelease) Release(context.Context, string) (dir, version string, err error) {
	dir, err = realHTCondor()
	return dir, htcondorVersion, err
}

func (onlyRelease) Prune([]string) error { return nil }

// unprivileged is the user whom pools of tests belong to: HTCondor refuses root.
func unprivileged() string {
	if os.Getuid() == 0 {
		return "nobody"
	}
	return ""
}

// pool starts a real HTCondor pool as cluster "mine", for as long as the test runs.
func (w *world) pool() corral.Cluster {
	w.t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ep")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the pool's owner enters it
		w.t.Fatal(err)
	}
	w.poolDir = dir
	w.pools = pools.New(w.lg, w.db, pools.Config{
		Dir: filepath.Join(dir, "c"), Host: netip.MustParseAddr("127.0.0.1"), Releases: onlyRelease{}, RunAs: unprivileged(),
		NewQueue: func(corral.Cluster, condor.Tools, string) pools.Queue { return nil },
		OnChange: func() {
			if c := w.current.Load(); c != nil {
				c.Notify()
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = w.pools.Run(ctx); close(done) }()
	var c corral.Cluster
	w.write(func(tx *store.Tx) (err error) {
		c, err = tx.CreateCluster(corral.Cluster{Name: "mine", Owner: "local", Kind: corral.Condor})
		return err
	})
	w.t.Cleanup(func() { w.removeCluster(c.ID); cancel(); <-done })
	return w.clusterIs(c.ID, corral.ClusterReady)
}

func (w *world) clusterIs(id corral.ClusterID, state corral.ClusterState) (c corral.Cluster) {
	w.t.Helper()
	w.until("cluster "+string(state), func() bool {
		w.view(func(tx *store.Tx) (err error) { c, err = tx.Cluster(id); return err })
		return c.State == state
	})
	return c
}

// removeCluster ends a pool, whatever still needs it.
func (w *world) removeCluster(id corral.ClusterID) {
	w.write(func(tx *store.Tx) error {
		live, err := tx.Glideins(store.GlideinFilter{Cluster: id, Live: true})
		if err != nil {
			return err
		}
		for _, g := range live {
			if _, err := tx.AskGlidein(g.ID, corral.AskCancel, "the end of the test"); err != nil {
				return err
			}
			for _, j := range g.Live() {
				if _, err := tx.MoveJob(j.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeRemoved}); err != nil {
					return err
				}
			}
		}
		_, err = tx.RemoveCluster(id, "the end of the test")
		return err
	})
	w.clusterIs(id, corral.ClusterDeleted)
}

// workerPackage puts a worker package of HTCondor into the catalog. Nothing in it can be run: what is staged, and
// when, does not depend on that.
func (w *world) workerPackage(version, arch string) corral.Package {
	w.t.Helper()
	h := packages.Header{What: htcondor.Worker, Version: version, Platform: corral.Platform{OS: "linux", Arch: arch, Libc: packages.Static}}
	p, err := depot.mirror.Build(h, fstest.MapFS{"sbin/condor_master": {Data: []byte("a master"), Mode: 0o755}})
	if err != nil {
		w.t.Fatal(err)
	}
	s := depot.signer.Sign(p)
	if err := depot.vouch(s); err != nil {
		w.t.Fatal(err)
	}
	return w.catalogued(s)
}

func (w *world) catalogued(s packages.Signed) corral.Package {
	w.t.Helper()
	p := described(s)
	p.Owner = "local"
	w.write(func(tx *store.Tx) (err error) { p, err = tx.CreatePackage(p); return err })
	return p
}

// condorGlidein asks for a glidein for a pool.
func (w *world) condorGlidein(site corral.SiteID, change func(*corral.Glidein)) (g corral.Glidein) {
	w.t.Helper()
	g = corral.Glidein{Owner: "local", Site: site, Cluster: 2, Hosts: 1, CPUs: 2, MemoryMiB: 200, Walltime: corral.Seconds(5 * time.Minute)}
	if change != nil {
		change(&g)
	}
	w.write(func(tx *store.Tx) (err error) { g, err = tx.CreateGlidein(g); return err })
	return g
}

// A queue is a batch system in which pilots wait for ever. What they are given stands in their directories, as with
// any other; setup and cleanup jobs run.
type queue struct {
	gridsite.Batch
	root string
	all  *sync.Map // :: tag → gridsite.Phase; "why" → why all wait, a string
}

// queues makes pilots wait at all sites of a world, which are below dir.
func queues(dir string) func(gridsite.Batch) gridsite.Batch {
	all := &sync.Map{}
	return func(b gridsite.Batch) gridsite.Batch { return queue{b, filepath.Join(dir, "here"), all} }
}

func (q queue) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if filepath.Base(spec.Argv[1]) != "run" {
		return q.Batch.Submit(ctx, spec)
	}
	dir := gridsite.JobDir(q.root, spec.Tag)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, b := range spec.Files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return "", err
		}
	}
	q.all.Store(spec.Tag, gridsite.Queued)
	return "1", nil
}

func (q queue) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	var rest []string
	found := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		phase, ok := q.all.Load(tag)
		if !ok {
			rest = append(rest, tag)
			continue
		}
		st := gridsite.JobStatus{Tag: tag, ID: "1", Phase: phase.(gridsite.Phase)}
		if why, ok := q.all.Load("why"); ok && st.Phase == gridsite.Queued {
			st.Waits = why.(string)
		}
		if st.Phase == gridsite.Ended {
			st.Killed, st.EndedAt = gridsite.ByCancel, time.Now()
		}
		found[tag] = st
	}
	if len(rest) == 0 {
		return found, nil
	}
	others, err := q.Batch.Poll(ctx, rest)
	for tag, st := range others {
		found[tag] = st
	}
	return found, err
}

func (q queue) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	if _, ok := q.all.Load(tag); !ok {
		return q.Batch.Cancel(ctx, tag, grace)
	}
	q.all.Store(tag, gridsite.Ended)
	return nil
}

// given reads a file that an attempt was given.
func (w *world) given(j corral.Job, name string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(gridsite.JobDir(filepath.Join(w.dir, "here"), j.Tag), name))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// queued waits until the glidein's last attempt waits in the site's queue.
func (w *world) queued(id corral.GlideinID) corral.Job {
	w.t.Helper()
	w.attemptIs(id, corral.JobQueued)
	a := w.glideinNow(id).Attempts
	return a[len(a)-1]
}

// history returns what was written about an object: "event: reason".
func (w *world) history(object string, id int64) (lines []string) {
	w.t.Helper()
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(object, id, store.Page{})
		for _, e := range entries {
			lines = append(lines, e.Event+": "+e.Reason)
		}
		return err
	})
	return lines
}

// workers starts a real condor_master with what an attempt was given, as its pilot would, until the test ends.
func (w *world) workers(c corral.Cluster, j corral.Job, secret string) {
	w.t.Helper()
	release, err := realHTCondor()
	if err != nil {
		w.t.Fatal(err)
	}
	config := condor.GlideinConfig{
		Dir: filepath.Join(w.poolDir, j.Tag), Release: release, Name: "node1",
		Collector: netip.MustParseAddrPort(c.Collector), Address: netip.MustParseAddr("127.0.0.1"),
		Cpus: 2, MemoryMiB: 200, Retire: time.Now().Add(4 * time.Minute), End: time.Now().Add(5 * time.Minute), Update: 2 * time.Second,
		Attributes: condor.Ad{"CorralCluster": c.Name, "CorralAttempt": int64(j.ID), "CorralWorker": j.Tag + "/0", "CorralHost": "node1", "CorralCpus": 2},
	}
	file, err := config.Prepare(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	account, err := condor.AccountFor(unprivileged())
	if err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", account.UID, account.GID), config.Dir).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(release, "sbin/condor_master"), "-f")
	cmd.Env = append(os.Environ(), "CONDOR_CONFIG="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: account.UID, Gid: account.GID}
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
	})
}

var _ Pools = (*pools.Pools)(nil)
