//go:build sites

package pilot_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// joined maps a site's root to the pool that its workers are to join.
var joined sync.Map // :: string → *condor.Pool

func (s site) pool() *condor.Pool {
	p, _ := joined.Load(s.root)
	return p.(*condor.Pool)
}

func init() { atEnd = append(atEnd, stopPool) }

// htcondor is a real HTCondor with a pool that the tests share; see needPool.
var htcondor struct {
	once    sync.Once
	release string
	dir     string
	address netip.AddrPort
	pool    *condor.Pool
	err     error
}

// stopPool stops the shared pool after all tests.
func stopPool() error {
	if htcondor.pool == nil {
		return nil
	}
	return stop(htcondor.pool, htcondor.dir)
}

func stop(p *condor.Pool, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(p.Stop(ctx), os.RemoveAll(dir))
}

// condorDigest identifies the package that represents the real HTCondor of scripts/htcondor.
var condorDigest = "sha256:" + strings.Repeat("c0", 32)

// needPool returns the pool, which its first caller starts.
func needPool(t *testing.T) *condor.Pool {
	t.Helper()
	htcondor.once.Do(func() { htcondor.err = startPool() })
	if htcondor.err != nil {
		t.Fatal(htcondor.err)
	}
	return htcondor.pool
}

func startPool() error {
	var err error
	if htcondor.release, err = programs.HTCondor(); err != nil {
		return err
	}
	if htcondor.dir, err = openFolder("pilot-pool-"); err != nil {
		return err
	}
	config, err := poolConfig(htcondor.dir)
	if err != nil {
		return err
	}
	p, err := condor.NewPool(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	htcondor.address, htcondor.pool = config.Address, p
	return p.Start(ctx)
}

func poolConfig(dir string) (condor.PoolConfig, error) {
	address, err := condor.FreeAddress(netip.MustParseAddr("127.0.0.1"))
	return condor.PoolConfig{Dir: filepath.Join(dir, "pool"), Release: htcondor.release, Address: address, RunAs: programs.Unprivileged()}, err
}

// openFolder makes a folder that the pool's owner can enter.
func openFolder(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	return dir, errors.Join(err, os.Chmod(dir, 0o755))
}

// soon limits operations that should take some seconds.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// newCondorSite puts an order for a pilot with one worker of the pool into a directory; change may modify the order. At
// the end of the test, no process that was started below the directory may be left.
func newCondorSite(t *testing.T, s *service, change func(*jobfiles.PilotOrder)) site {
	t.Helper()
	p := needPool(t)
	minted, err := p.Mint(7, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	root, err := openFolder("condor-site-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		noneBelow(t, root)
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	unique := "pilot-" + strings.ToLower(filepath.Base(root))
	o := jobfiles.PilotOrder{Token: token,
		Shape: corral.Shape{Hosts: 1, CPUs: 2, MemoryMiB: 300, Walltime: corral.Seconds(5 * time.Minute)},
		Condor: &jobfiles.Condor{Package: "htcondor-test", Digest: condorDigest, Collector: htcondor.address.String(),
			Broker: corral.BrokerNone, Cluster: "mine", Site: "here", Glidein: 3, Attempt: 7}}
	if s != nil {
		o.Addresses, s.tag = []string{"unix:" + s.socket}, unique
		giveAway(t, filepath.Dir(s.socket))
	} else {
		o.Addresses = []string{"unix:" + filepath.Join(root, "nobody")}
	}
	if change != nil {
		change(&o)
	}
	b, err := jobfiles.Order{Tag: unique, Root: root, Pilot: &o}.Encode()
	dir := filepath.Join(root, "jobs", unique)
	err = errors.Join(err, os.MkdirAll(dir, 0o700), os.MkdirAll(filepath.Join(root, "packages"), 0o755),
		os.Symlink(htcondor.release, filepath.Join(root, "packages", strings.TrimPrefix(condorDigest, "sha256:"))),
		os.WriteFile(filepath.Join(dir, jobfiles.File), b, 0o600),
		os.WriteFile(filepath.Join(dir, jobfiles.PoolToken), []byte(minted.Secret()+"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	giveAway(t, root)
	joined.Store(root, p)
	return site{t: t, root: root, dir: dir, as: credential(t)}
}

// credential returns the user that pilots run as; nil: the current user.
func credential(t *testing.T) *syscall.Credential {
	t.Helper()
	name := programs.Unprivileged()
	if name == "" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// giveAway gives the files below root to the user that pilots run as.
func giveAway(t *testing.T, root string) {
	t.Helper()
	c := credential(t)
	if c == nil {
		return
	}
	err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, int(c.Uid), int(c.Gid)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// below returns the processes whose HTCondor configuration is below root.
func below(root string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !alive(pid) {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(env, []byte("CONDOR_CONFIG="+root+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func noneBelow(t *testing.T, root string) {
	t.Helper()
	for _, pid := range lasting(func() []int { return below(root) }) {
		t.Errorf("process %d of HTCondor was left: %s", pid, commandLine(pid))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// slots returns the ads of the workers of a site's pilot.
func (s site) slots() []classad.Ad {
	s.t.Helper()
	ads, err := s.pool().Tools().Query(soon(s.t), "condor_status", []string{"-constraint",
		"regexp(" + classad.FormatNew("^"+filepath.Base(s.dir)+"/") + ", CorralWorker)"}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return ads
}

// inPool waits until n slots of the site's pilot are in the pool.
func (s site) inPool(n int) (ads []classad.Ad) {
	s.t.Helper()
	eventually(s.t, strconv.Itoa(n)+" slots in the pool", func() bool {
		ads = s.slots()
		return len(ads) == n
	})
	return ads
}

// job submits jobs only for this site's workers, which run a shell command. It returns their cluster.
func (s site) job(line string, count int) int {
	s.t.Helper()
	return s.jobOf(line, count, nil)
}

// jobOf is job with attributes.
func (s site) jobOf(line string, count int, attributes classad.Ad) int {
	s.t.Helper()
	dir := filepath.Join(s.root, "submitted")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		s.t.Fatal(err)
	}
	giveAway(s.t, dir)
	procs := make([]condor.Proc, count)
	for i := range procs {
		procs[i] = condor.Proc{Arguments: []string{"-c", line}, Stdout: "out." + strconv.Itoa(i)}
	}
	cluster, err := s.pool().Tools().Submit(soon(s.t), condor.Submit{
		Dir: dir, Executable: "/bin/sh", Log: filepath.Join(dir, "log"),
		Request: condor.Request{Cpus: 1, MemoryMiB: 20}, Transfer: condor.Transfer{When: "YES"},
		Requirements: classad.Expr("regexp(" + classad.FormatNew("^"+filepath.Base(s.dir)+"/") + ", TARGET.CorralWorker)"), Attributes: attributes, Procs: procs,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _, _ = s.pool().Tools().Run(context.Background(), nil, "condor_rm", strconv.Itoa(cluster)) }) // the job may have ended
	return cluster
}

// states returns the number of a cluster's queued jobs in each of HTCondor's states.
func (s site) states(cluster int) map[int64]int {
	s.t.Helper()
	ads, err := s.pool().Tools().Query(soon(s.t), "condor_q", []string{strconv.Itoa(cluster)}, []string{"JobStatus"})
	if err != nil {
		s.t.Fatal(err)
	}
	states := map[int64]int{}
	for _, ad := range ads {
		state, _ := ad.Int("JobStatus")
		states[state]++
	}
	return states
}

// jobIdle is HTCondor's state of a job that waits in its queue; jobHeld is the state of a job that waits for its
// release.
const jobIdle, jobHeld = 1, 5

func TestCondorWorkerServesUntilIdle(t *testing.T) {
	t.Parallel()
	place := newCondorSite(t, nil, func(p *jobfiles.PilotOrder) { p.Hosts, p.Idle = 2, corral.Seconds(40*time.Second) })
	from := time.Now()
	r := place.start()
	for _, ad := range place.inPool(2) {
		if worker, _ := ad.Text("CorralWorker"); strings.HasSuffix(worker, "/0") {
			place.advertises(ad)
		}
	}
	t.Logf("in the pool after %s", time.Since(from).Round(time.Millisecond))
	cluster := place.job("echo done", 1)
	eventually(t, "the end of the job", func() bool { return len(place.states(cluster)) == 0 })
	if out, err := os.ReadFile(filepath.Join(place.root, "submitted", "out.0")); err != nil || string(out) != "done\n" {
		t.Errorf("the job printed %q, %v", out, err)
	}
	ended := time.Now()
	rep := r.report(0, corral.OutcomeIdle, false)
	t.Logf("left %s after its last job", time.Since(ended).Round(time.Millisecond))
	if _, err := os.Stat(filepath.Join(place.root, "packages", strings.TrimPrefix(condorDigest, "sha256:")+".use")); err != nil {
		t.Errorf("the use of the package was not noted: %v", err)
	}
	if log := strings.Join(rep.Log, "\n"); !strings.Contains(log, "measured: collector") || rep.Reason != "no task for 40s" {
		t.Errorf("report %+v does not say what was measured, or why it left", rep)
	}
	for _, ad := range place.slots() { // the pool removes their ads only after some time, and matches none
		divided, _ := ad.Bool("PartitionableSlot")
		if draining, _ := ad.Bool("CorralDraining"); divided && !draining {
			t.Error("a worker left that had not told the pool that it takes no more jobs")
		}
	}
	noneBelow(t, place.root)
}

// advertises checks the ad of a worker of newCondorSite's order.
func (s site) advertises(ad classad.Ad) {
	s.t.Helper()
	for name, want := range map[string]any{
		"Cpus": int64(2), "Memory": int64(300), "CorralCluster": "mine", "CorralSite": "here", "CorralGlidein": int64(3), "CorralAttempt": int64(7),
		"CorralWorker": filepath.Base(s.dir) + "/0", "CorralPilot": program, "CorralCpus": int64(2), "CorralMemoryMiB": int64(300),
		"CorralDraining": false,
	} {
		if got, _ := ad.Lookup(name); got != want {
			s.t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	host, err := os.Hostname()
	if got, _ := ad.Text("CorralHost"); got != host || err != nil {
		s.t.Errorf("CorralHost = %q, want %q, %v", got, host, err)
	}
	if libc, _ := ad.Text("CorralLibc"); libc == "" || libc == "unknown" {
		s.t.Errorf("CorralLibc = %q", libc)
	}
	if speed, _ := ad.Int("CorralSpeed"); speed < 1 || speed > 10_000 {
		s.t.Errorf("CorralSpeed = %v million steps a second", speed)
	} else {
		s.t.Logf("speed %d", speed)
	}
	end, _ := ad.Int("CorralEnd")
	if left := time.Until(time.Unix(end, 0)); left < time.Minute || left > 5*time.Minute-jobfiles.Reserve(5*time.Minute) {
		s.t.Errorf("it ends in %s", left)
	}
	for constraint, want := range map[string]int{"CorralTimeLeft > 60 && CorralTimeLeft < 300": 1, "CorralTimeLeft >= 300": 0} {
		worker := "CorralWorker == " + classad.FormatNew(filepath.Base(s.dir)+"/0")
		ads, err := s.pool().Tools().Query(soon(s.t), "condor_status", []string{"-constraint", worker + " && " + constraint}, nil)
		if err != nil || len(ads) != want {
			s.t.Errorf("the collector finds it %d times where %s, want %d (%v)", len(ads), constraint, want, err)
		}
	}
	pid, _ := ad.Int("CorralPID")
	if name := commandLine(int(pid)); !strings.Contains(name, "condor_master") {
		s.t.Errorf("CorralPID = %d is %q", pid, name)
	}
}
