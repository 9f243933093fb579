//go:build sites

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

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/condor/condorpool"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

const htcondorVersion = "23.9.6"

type onlyRelease struct{}

func (onlyRelease) Newest(context.Context) (ref string, err error) { return programs.HTCondor() }

func (onlyRelease) Release(context.Context, string) (dir, version string, err error) {
	dir, err = programs.HTCondor()
	return dir, htcondorVersion, err
}

func (onlyRelease) Prune([]string) error { return nil }

// poolDirs holds the directories of the worlds' pools and their workers.
var poolDirs sync.Map // :: *world → string

// pool starts a real HTCondor pool as cluster "mine", for as long as the test runs.
func (w *world) pool() corral.Cluster {
	w.t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ep")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // so that the pool's owner can enter it
		w.t.Fatal(err)
	}
	poolDirs.Store(w, dir)
	w.pools = condorpool.New(w.lg, w.db, condorpool.Config{
		Dir: filepath.Join(dir, "c"), Host: netip.MustParseAddr("127.0.0.1"), Releases: onlyRelease{}, RunAs: programs.Unprivileged(),
		NewQueue: func(corral.Cluster, condor.Tools, string) condorpool.Submitter { return nil },
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

// removeCluster removes a pool even if it is still needed.
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

// condorGlidein requests a glidein for a pool.
func (w *world) condorGlidein(site corral.SiteID, change func(*corral.Glidein)) (g corral.Glidein) {
	w.t.Helper()
	g = corral.Glidein{Owner: "local", Site: site, Cluster: 2,
		Shape: corral.Shape{Hosts: 1, CPUs: 2, MemoryMiB: 200, Walltime: corral.Seconds(5 * time.Minute)}}
	if change != nil {
		change(&g)
	}
	w.write(func(tx *store.Tx) (err error) { g, err = tx.CreateGlidein(g); return err })
	return g
}

// given reads a file that an attempt received.
func (w *world) given(j corral.Job, name string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(jobdir.Path(filepath.Join(w.dir, "here"), j.Tag), name))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// workers starts a real condor_master with the files that an attempt received, like its pilot, until the test ends.
func (w *world) workers(c corral.Cluster, j corral.Job, secret string) {
	w.t.Helper()
	release, err := programs.HTCondor()
	if err != nil {
		w.t.Fatal(err)
	}
	dir, _ := poolDirs.Load(w)
	config := condor.GlideinConfig{
		Dir: filepath.Join(dir.(string), j.Tag), Release: release, Name: "node1", Identity: condor.GlideinIdentity(int64(j.ID)),
		Network: condor.GlideinNetwork{
			Collector: netip.MustParseAddrPort(c.Collector), Address: netip.MustParseAddr("127.0.0.1"),
		},
		Cpus: 2, MemoryMiB: 200,
		Times: condor.GlideinTimes{
			Retire: time.Now().Add(4 * time.Minute), End: time.Now().Add(5 * time.Minute), Update: 2 * time.Second,
		},
		Attributes: classad.Ad{"CorralCluster": c.Name, "CorralAttempt": int64(j.ID), "CorralWorker": j.Tag + "/0", "CorralHost": "node1", "CorralCpus": 2},
	}
	file, err := config.Prepare(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	account, err := condor.AccountFor(programs.Unprivileged())
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

var _ admission.Pools = (*condorpool.Keepers)(nil)

// workerPackage adds a worker package of HTCondor to the catalog. It contains nothing executable: what is staged, and
// when, does not depend on that.
func (w *world) workerPackage(version, arch string) (p corral.Package) {
	w.t.Helper()
	h := packages.Header{What: htcondor.Worker, Version: version, Platform: corral.Platform{OS: "linux", Arch: arch, Libc: packages.Static}}
	var b bytes.Buffer
	_, err := packages.Build(&b, h, fstest.MapFS{"sbin/condor_master": {Data: []byte("a master"), Mode: 0o755}})
	archive := filepath.Join(w.t.TempDir(), "worker.tar.gz")
	if err == nil {
		err = os.WriteFile(archive, b.Bytes(), 0o600)
	}
	if err == nil {
		p, err = w.cfg.Catalog.Import(w.t.Context(), archive, nil, true)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	p.Owner = "local"
	w.write(func(tx *store.Tx) (err error) { p, err = tx.CreatePackage(p); return err })
	return p
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
