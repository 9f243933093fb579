//go:build sites

package pilot_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// executing waits until n of the site's jobs have begun. The schedd reports a job as running once it has sent the job,
// which may still fail to start.
func (s site) executing(n int) {
	s.t.Helper()
	eventually(s.t, strconv.Itoa(n)+" running jobs", func() bool { return len(events[eventlog.Executing](s)) == n })
}

func TestCondorWorkerDrains(t *testing.T) {
	t.Parallel()
	for name, static := range map[string]bool{"partitionable": false, "static": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			place := newCondorSite(t, s, func(p *jobfiles.PilotOrder) { p.Condor.Static = static })
			from := time.Now()
			r := place.start()
			if static {
				for _, ad := range place.inPool(2) {
					if cpus, _ := ad.Int("Cpus"); cpus != 1 {
						t.Errorf("a static slot has %d cpus", cpus)
					}
				}
			} else {
				place.inPool(1)
			}
			t.Logf("in the pool after %s", time.Since(from).Round(time.Millisecond))
			let := filepath.Join(place.root, "let")
			cluster := place.job("until [ -e "+let+" ]; do sleep .2; done; echo done", 6)
			place.executing(2)
			s.dispatcher.Drain(7)
			eventually(t, "an ad that says so", func() bool {
				for _, ad := range place.slots() {
					if draining, _ := ad.Bool("CorralDraining"); draining {
						return true
					}
				}
				return false
			})
			if err := os.WriteFile(let, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			r.report(0, corral.OutcomeDrained, false)
			ends := events[eventlog.Terminated](place)
			if starts := events[eventlog.Executing](place); len(starts) != 2 || len(ends) != 2 {
				t.Fatalf("%d jobs were started and %d ended, want 2: those that ran", len(starts), len(ends))
			}
			t.Logf("left %s after its last job", time.Since(ends[1]).Round(time.Millisecond))
			left := 0 // a job sent last is reported as running for some more seconds
			for _, n := range place.states(cluster) {
				left += n
			}
			if left != 4 {
				t.Errorf("%d jobs are in the queue, want the 4 that were not started", left)
			}
		})
	}
}

// events returns the times of the site's job events of one kind.
func events[Kind any](s site) (times []time.Time) {
	s.t.Helper()
	log := eventlog.File{Path: filepath.Join(s.root, "submitted", "log")}
	for e, err := range log.New(time.Now()) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, ok := e.Detail.(Kind); ok {
			times = append(times, e.Time)
		}
	}
	return times
}

// These events end a worker regardless of running jobs. The jobs must be idle again soon.
func TestCondorJobsGoBackToTheQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		walltime time.Duration
		end      func(s *service, r *run) error
		exit     int
		outcome  corral.Outcome
	}{
		{"preempted", 5 * time.Minute, func(_ *service, r *run) error { return r.cmd.Process.Signal(syscall.SIGTERM) }, 4, corral.OutcomePreempted},
		{"everybody signalled", 5 * time.Minute, func(_ *service, r *run) error { // as batch systems do
			var errs []error
			for _, pid := range append(below(r.root), sessionOf(r.cmd.Process.Pid)...) {
				if err := syscall.Kill(pid, syscall.SIGTERM); !errors.Is(err, syscall.ESRCH) {
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		}, 4, corral.OutcomePreempted},
		{"removed", 5 * time.Minute, func(s *service, _ *run) error { s.dispatcher.Leave(7); return nil }, 0, corral.OutcomeRemoved},
		{"expired", time.Minute, func(*service, *run) error { return nil }, 0, corral.OutcomeExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			place := newCondorSite(t, s, func(p *jobfiles.PilotOrder) { p.Walltime = corral.Seconds(c.walltime) })
			r := place.start()
			place.inPool(1)
			// If a job's starter vanishes without a message, the schedd keeps the claim for the length of this lease.
			lease := classad.Ad{"JobLeaseDuration": int64(20)}
			cluster := place.jobOf("mkdir -p locked/in; chmod 555 locked; "+escaping(filepath.Join(place.dir, "pid")), 1, lease)
			place.executing(1)
			escaped := pidFrom(t, filepath.Join(place.dir, "pid"))
			from := time.Now()
			if err := c.end(s, r); err != nil {
				t.Fatal(err)
			}
			rep := r.report(c.exit, c.outcome, false)
			t.Logf("left after %s: %s", time.Since(from).Round(time.Millisecond), rep.Reason)
			if took := rep.EndedAt.Sub(rep.StartedAt); took > c.walltime+sloth {
				t.Errorf("it took %s of %s", took, c.walltime)
			}
			noneBelow(t, place.root)
			if stays(escaped) {
				t.Error("a child of the job was left")
			}
			from = time.Now()
			eventually(t, "the job to be idle again", func() bool { return place.states(cluster)[jobIdle] == 1 })
			t.Logf("the job was idle again %s later", time.Since(from).Round(time.Millisecond))
		})
	}
}

func TestCondorWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, comm string
		says       string
	}{
		{"worker", "pilot", "died of signal 9"},
		{"master", "condor_master", "condor_master died of signal 9"},
		{"startd", "condor_startd", "its condor_startd died due to signal 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			place := newCondorSite(t, s, nil)
			r := place.start()
			first, _ := place.inPool(1)[0].Int("CorralPID")
			place.job(escaping(filepath.Join(place.dir, "pid")), 1)
			place.executing(1)
			escaped := pidFrom(t, filepath.Join(place.dir, "pid"))
			old := below(place.root)
			victim := r.find(c.comm)
			from := time.Now()
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another worker", func() bool {
				for _, ad := range place.slots() {
					if pid, ok := ad.Int("CorralPID"); ok && pid != first {
						return true
					}
				}
				return false
			})
			t.Logf("replaced after %s", time.Since(from).Round(time.Millisecond))
			for _, pid := range append(old, escaped) {
				if alive(pid) {
					t.Errorf("%s of the old worker was left", commandLine(pid))
				}
			}
			s.dispatcher.Leave(7)
			rep := r.report(0, corral.OutcomeRemoved, false)
			if log := strings.Join(rep.Log, "\n"); !strings.Contains(log, c.says) {
				t.Errorf("log %q does not say that it %s", log, c.says)
			}
		})
	}
}

// find returns a process of the run by its program's name: the worker, or a program of HTCondor.
func (r *run) find(comm string) (pid int) {
	r.t.Helper()
	candidates := below(r.root)
	if comm == "pilot" {
		candidates = sessionOf(r.cmd.Process.Pid)
	}
	for _, c := range candidates {
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(c) + "/comm")
		if strings.TrimSpace(string(name)) == comm && c != r.cmd.Process.Pid {
			return c
		}
		if comm == "pilot" && c != r.cmd.Process.Pid {
			return c
		}
	}
	r.t.Fatalf("no process %s", comm)
	return 0
}

func TestCondorDaemonsDoNotOutliveTheirSupervisor(t *testing.T) {
	t.Parallel()
	for name, alsoWorker := range map[string]bool{"supervisor": false, "supervisor and worker": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newCondorSite(t, newService(t), nil)
			r := place.start()
			place.inPool(1)
			place.job("sleep 1000", 1)
			place.executing(1)
			victims := []int{r.cmd.Process.Pid}
			if alsoWorker {
				victims = append(victims, r.find("pilot"))
			}
			from := time.Now()
			for _, pid := range victims {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the end of all daemons", func() bool {
				return len(below(place.root)) == 0 && len(sessionOf(r.cmd.Process.Pid)) == 0
			})
			t.Logf("all gone after %s", time.Since(from).Round(time.Millisecond))
			within(t, "the supervisor's end", r.exit)
		})
	}
}

// The reason why a worker cannot join the pool is reported as a sentence.
func TestCondorWorkerCannotJoin(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	for _, c := range []struct {
		name      string
		change    func(p *jobfiles.PilotOrder)
		place     func(s site) error
		transient bool
		says      string
	}{
		{"forged token", nil, func(s site) error {
			file := filepath.Join(s.dir, jobfiles.PoolToken)
			b, err := os.ReadFile(file)
			return errors.Join(err, os.WriteFile(file, append(b[:len(b)-6], "AAAAA\n"...), 0o600))
		}, false, "the pool refused the token: AUTHENTICATE:"},
		{"token without the right", nil, func(s site) error {
			out, err := htcondor.pool.Tools().Run(context.Background(), nil, "condor_token_create", "-identity", "glidein@corral.pool", "-authz", "READ")
			return errors.Join(err, os.WriteFile(filepath.Join(s.dir, jobfiles.PoolToken), out, 0o600))
		}, false, "the pool refused the token: SECMAN:2010:Received \"DENIED\""},
		{"no token", nil, func(s site) error { return os.Remove(filepath.Join(s.dir, jobfiles.PoolToken)) }, true, "the job has no token for the pool"},
		{"no package", func(p *jobfiles.PilotOrder) { p.Condor.Digest = "sha256:" + strings.Repeat("00", 32) }, nil, true, "package htcondor-test is not installed at this site"},
		{"missing library", nil, func(s site) error {
			dir := filepath.Join(s.root, "packages", strings.TrimPrefix(condorDigest, "sha256:"))
			b, err := os.ReadFile(filepath.Join(htcondor.release, "sbin", "condor_master"))
			return errors.Join(err, os.Remove(dir), os.MkdirAll(filepath.Join(dir, "sbin"), 0o755), os.WriteFile(filepath.Join(dir, "sbin", "condor_master"), b, 0o755))
		}, true, "error while loading shared libraries"},
		{"other C library", nil, func(s site) error {
			dir := filepath.Join(s.root, "packages", strings.TrimPrefix(condorDigest, "sha256:"))
			return errors.Join(os.Remove(dir), os.MkdirAll(filepath.Join(dir, "sbin"), 0o755),
				os.WriteFile(filepath.Join(dir, "sbin", "condor_master"), []byte("#!/no/loader\n"), 0o755))
		}, true, "the package is for another C library"},
		{"collector away", func(p *jobfiles.PilotOrder) {
			p.Condor.Collector, p.Walltime = "127.0.0.1:9", corral.Seconds(20*time.Second)
		}, nil, true, "127.0.0.1:9"},
		{"collector's machine away", func(p *jobfiles.PilotOrder) {
			p.Condor.Collector, p.Walltime = deafPort(t), corral.Seconds(30*time.Second)
		}, nil, true, "(timed out)"},
		{"collector says nothing", func(p *jobfiles.PilotOrder) {
			p.Condor.Collector, p.Walltime = mute.Addr().String(), corral.Seconds(30*time.Second)
		}, nil, true, "did not take it in within "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			place := newCondorSite(t, newService(t), c.change)
			if c.place != nil {
				if err := c.place(place); err != nil {
					t.Fatal(err)
				}
				giveAway(t, place.root)
			}
			rep := place.start().report(1, corral.OutcomeFailed, c.transient)
			if !strings.Contains(rep.Reason, c.says) {
				t.Errorf("reason %q does not say %q", rep.Reason, c.says)
			}
			if missing := strings.Contains(c.says, "is not installed"); missing != (rep.Missing != "") {
				t.Errorf("missing is said to be %q", rep.Missing)
			}
			if said := strings.Join(rep.Log, "\n"); strings.HasPrefix(rep.Reason, "--broker") && !strings.Contains(said, "measured: collector ") {
				t.Errorf("what was measured is not said:\n%s", said)
			}
		})
	}
}

// Only root can be refused for being root.
func TestCondorWorkerOfRoot(t *testing.T) {
	t.Parallel()
	place := newCondorSite(t, newService(t), nil)
	place.as = nil
	r := place.start()
	if os.Getuid() == 0 {
		if rep := r.report(1, corral.OutcomeFailed, false); !strings.Contains(rep.Reason, "the pilot runs as root: HTCondor refuses root's jobs") {
			t.Errorf("reason %q", rep.Reason)
		}
		return
	}
	place.inPool(1)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.report(4, corral.OutcomePreempted, false)
}
