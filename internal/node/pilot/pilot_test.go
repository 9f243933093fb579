package pilot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

func TestWorkersServeUntilDrained(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 2 }).start()
	workers := s.workers(2)
	for _, w := range workers {
		if w.CPUs != 1 || w.EndsAt.After(time.Now().Add(10*time.Minute-jobfiles.Reserve(10*time.Minute)+time.Second)) {
			t.Errorf("worker %+v, want one cpu, and to end before its reserve", w)
		}
	}
	s.submit("exit 3", time.Second)
	if got := within(t, "a result", s.results); got.Status != execution.Failed || got.Exit != 3 {
		t.Errorf("result = %+v, want exit 3", got)
	}
	file := filepath.Join(t.TempDir(), "pid")
	s.submit("echo $$ >"+file+"; sleep 1", time.Second)
	pidFrom(t, file)
	s.dispatcher.Drain(7)
	rep := r.report(0, corral.OutcomeDrained, false)
	if got := within(t, "a result", s.results); got.Status != execution.Done {
		t.Errorf("result of what ran while draining = %+v, want done", got)
	}
	// The report also contains the phases that do not reach corrald in time.
	phases := regexp.MustCompile("(?s) pilot started: .* leaving: drained: asked to drain$")
	if log := strings.Join(rep.Log, "\n"); !phases.MatchString(log) {
		t.Errorf("the report's log is %q", log)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.phases, ","); !slices.Contains([]string{"pilot started,leaving", "pilot started", "leaving", ""}, got) {
		t.Errorf("phases %q", got)
	}
}

func TestNoSecretInArgumentsOrEnvironment(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, nil).start()
	s.workers(1)
	pids := sessionOf(r.cmd.Process.Pid)
	if len(pids) != 2 {
		t.Errorf("processes %v, want supervisor and worker", pids)
	}
	for _, pid := range pids {
		for _, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
			hidden := errors.Is(err, fs.ErrPermission) // only root can read it
			if err != nil && !hidden || strings.Contains(string(b), token) {
				t.Errorf("%s of process %d shows the token (%v)", file, pid, err)
			}
		}
	}
	s.dispatcher.Drain(7)
	r.report(0, corral.OutcomeDrained, false)
}

func TestSecondPilotIsADuplicate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, nil)
	first := place.start()
	s.workers(1)
	second := place.start()
	if got := within(t, "the second pilot's end", second.exit); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
	if _, err := os.Stat(filepath.Join(place.dir, jobfiles.ReportFile)); err == nil {
		t.Error("the second pilot reported in the first one's place")
	}
	if found, _ := filepath.Glob(filepath.Join(place.dir, "duplicate-*", jobfiles.ReportFile)); len(found) != 1 {
		t.Errorf("reports of duplicates: %v, want one", found)
	}
	s.workers(1)
	s.dispatcher.Drain(7)
	first.report(0, corral.OutcomeDrained, false)
	third := place.start() // the lease outlives its holder
	if got := within(t, "the third pilot's end", third.exit); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
}

func TestLeaseHeldElsewhere(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.holder = "somebody else"
	r := newSite(t, s, nil).start()
	r.report(3, corral.OutcomeDuplicate, false)
	if n := len(s.dispatcher.Workers()); n != 0 {
		t.Errorf("%d workers, want none", n)
	}
}

func TestWrongTokenIsFinal(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Token = "another" }).start()
	if rep := r.report(1, corral.OutcomeFailed, false); !strings.Contains(rep.Reason, "token") {
		t.Errorf("reason %q names no token", rep.Reason)
	}
}

func TestUnfitNodeStartsNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.MemoryMiB = 1 << 30 }).start()
	if rep := r.report(1, corral.OutcomeFailed, true); !strings.Contains(rep.Reason, "memory: ") || !strings.Contains(rep.Reason, "node ") {
		t.Errorf("reason %q names neither node nor check", rep.Reason)
	}
	if s.visits != 0 {
		t.Errorf("corrald was asked %d times", s.visits)
	}
}

func TestImpossibleOrder(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 0 }).start()
	r.report(1, corral.OutcomeFailed, false)
}

func TestNoRoute(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.stop()
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Walltime = corral.Seconds(12 * time.Second) }).start()
	if rep := r.report(1, corral.OutcomeFailed, true); !strings.Contains(rep.Reason, s.socket) {
		t.Errorf("reason %q does not name the address", rep.Reason)
	} else if host, err := os.Hostname(); err != nil || len(rep.Lost) != 1 || rep.Lost[0].Node != host {
		t.Errorf("the report blames %v, want this node", rep.Lost)
	}
}

func TestLeavesBeforeItsWalltime(t *testing.T) {
	t.Parallel()
	for walltime := 15 * time.Second; !cutByWalltime(t, walltime); walltime *= 2 { // longer on a busy machine
		if walltime > patience {
			t.Fatalf("no task was cut by its worker within a walltime of %s", walltime)
		}
	}
}

// cutByWalltime runs a task until its pilot's walltime ends. It reports whether the pilot had time to begin the task,
// and the worker had time to report that the task was cut.
func cutByWalltime(t *testing.T, walltime time.Duration) bool {
	t.Helper()
	s := newService(t)
	file := filepath.Join(t.TempDir(), "pid")
	s.submit(escaping(file), 10*time.Millisecond) // a deliberately wrong estimate
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Walltime = corral.Seconds(walltime) }).start()
	eventually(t, "the task, or the pilot's end", func() bool {
		_, err := os.Stat(file)
		return err == nil || len(r.exit) > 0
	})
	if _, err := os.Stat(file); err != nil {
		return false
	}
	escaped := pidFrom(t, file)
	rep := r.report(0, corral.OutcomeExpired, false)
	if took := rep.EndedAt.Sub(rep.StartedAt); took > walltime+sloth {
		t.Errorf("it took %s of %s", took, walltime)
	}
	if stays(escaped) {
		t.Error("a task's child was left")
	}
	select {
	case got := <-s.results:
		if got.Status != execution.Cut {
			t.Errorf("result = %+v, want cut", got)
		}
		return true
	case <-s.returned: // the worker was killed before it could report
		return false
	case <-time.After(patience):
		t.Fatal("waited in vain for the result of what was cut")
		return false
	}
}

// idle is the idle time after which a pilot leaves.
const idle = 5 * time.Second

// meet runs one task on each of n workers. The tasks end when all of them have begun, so that no worker is idle before
// that. meet returns the time at which the last task ended.
func (s *service) meet(n int) (last time.Time) {
	s.t.Helper()
	met := s.t.TempDir()
	for range n {
		s.submit(fmt.Sprintf("touch %[1]s/$$; until [ $(ls %[1]s | wc -l) = %[2]d ]; do sleep .1; done", met, n), time.Minute)
	}
	for range n {
		got := within(s.t, "a result", s.results)
		if got.Status != execution.Done {
			s.t.Errorf("result = %+v, want done", got)
		}
		if got.EndedAt.After(last) {
			last = got.EndedAt
		}
	}
	return last
}

func TestLeavesWhenIdle(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts, p.Idle = 2, corral.Seconds(idle) }).start()
	last := s.meet(2)
	rep := r.report(0, corral.OutcomeIdle, false)
	if after := rep.EndedAt.Sub(last); after < idle {
		t.Errorf("it left %s after its last task, want %s", after, idle)
	}
}

func TestPreemptedBySignal(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, nil).start()
	s.workers(1)
	file := filepath.Join(t.TempDir(), "pid")
	s.submit(escaping(file), time.Minute)
	escaped := pidFrom(t, file)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rep := r.report(4, corral.OutcomePreempted, false); !strings.Contains(rep.Reason, "terminated") {
		t.Errorf("reason %q names no signal", rep.Reason)
	}
	if stays(escaped) {
		t.Error("a task's child was left")
	}
}

// Batch systems can send a notice to a job's first process or to all its processes. The pilot then finishes the running
// tasks and begins no new tasks.
func TestDrainsOnNotice(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, nil).start()
	s.workers(1)
	dir := t.TempDir()
	file, gate := filepath.Join(dir, "pid"), filepath.Join(dir, "gate")
	s.submit(fmt.Sprintf("echo $$ >%[1]s.new; mv %[1]s.new %[1]s; until [ -e %[2]s ]; do sleep 0.05; done", file, gate), time.Minute)
	pidFrom(t, file)
	for _, pid := range sessionOf(r.cmd.Process.Pid) {
		if line := commandLine(pid); strings.HasPrefix(line, program+" ") || strings.HasPrefix(line, "pilot ") {
			if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
				t.Error(err)
			}
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := within(t, "the task's end", s.results); got.Status != execution.Done {
		t.Errorf("the task is %+v, want it done", got)
	}
	if rep := r.report(4, corral.OutcomePreempted, false); !strings.Contains(rep.Reason, "gave notice (user defined signal 2)") {
		t.Errorf("reason %q names no notice", rep.Reason)
	}
}

// Batch systems signal every process of a job: workers then also receive the signal directly.
func TestPreemptedBySignalToAll(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, func(p *jobfiles.PilotOrder) { p.Hosts = 2 }).start()
	s.workers(2)
	all := sessionOf(r.cmd.Process.Pid)
	slices.Reverse(all) // the supervisor comes last
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	r.report(4, corral.OutcomePreempted, false)
}

func TestPreemptedByRemovalOfItsDirectory(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, nil).start()
	s.workers(1)
	// The directory is removed in one step: the pilot must not find half of the directory and have time to write its
	// report to it.
	if err := os.Rename(r.dir, filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Fatal(err)
	}
	if got := within(t, "the pilot's end", r.exit); got != 1 {
		t.Errorf("exit status %d, want 1: there is no place for a report", got)
	}
}

func TestPreemptedWhenItsParentDies(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, nil)
	r := place.startUnder("/bin/sh", "-c", `"$0" run --dir "$1"; exit 9`, program, place.dir)
	s.workers(1)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the report", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, jobfiles.ReportFile))
		return err == nil
	})
	eventually(t, "the pilot's end", func() bool { return len(sessionOf(r.cmd.Process.Pid)) == 0 })
	r.report(-1, corral.OutcomePreempted, false)
}

// A worker that is dead or stopped cannot kill its tasks when its lease expires.
func TestWorkerIsReplacedOnceItsOrphansAreGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		says   string
	}{
		{"killed", syscall.SIGKILL, "died of signal 9"},
		{"stopped", syscall.SIGSTOP, "said nothing for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			r := newSite(t, s, nil).start()
			old := s.workers(1)[0]
			file := filepath.Join(t.TempDir(), "pid")
			s.submit(escaping(file), time.Minute)
			escaped := pidFrom(t, file)
			if err := syscall.Kill(old.PID, c.signal); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another worker", func() bool {
				now := s.dispatcher.Workers()
				return len(now) == 1 && now[0].PID != old.PID && now[0].Connected
			})
			if alive(escaped) {
				t.Error("a task of the old worker still ran when the next one registered")
			}
			s.dispatcher.Leave(7)
			rep := r.report(0, corral.OutcomeRemoved, false)
			if !strings.Contains(strings.Join(rep.Log, "\n"), c.says) {
				t.Errorf("log %q does not say that it %s", rep.Log, c.says)
			}
		})
	}
}

func TestRepeatedlyDyingWorkerIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.deaf = true
	r := newSite(t, s, nil).start()
	seen := map[int]bool{r.cmd.Process.Pid: true}
	for range 4 {
		var worker int
		eventually(t, "a new worker", func() bool {
			for _, worker = range sessionOf(r.cmd.Process.Pid) {
				if !seen[worker] {
					return true
				}
			}
			return false
		})
		seen[worker] = true
		if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if rep := r.report(1, corral.OutcomeFailed, true); !strings.Contains(rep.Reason, "died of signal 9 (killed), 4 times") {
		t.Errorf("reason %q does not say how often", rep.Reason)
	}
}

func TestWorkersDoNotOutliveTheirSupervisor(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, nil).start()
	s.workers(1)
	s.submit("exec sleep 1000", time.Minute)
	eventually(t, "the task", func() bool { return len(sessionOf(r.cmd.Process.Pid)) == 3 })
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of worker and task", func() bool { return len(sessionOf(r.cmd.Process.Pid)) == 0 })
	within(t, "the supervisor's end", r.exit)
}

func TestPilotSurvivesCorrald(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newSite(t, s, nil).start()
	before := s.workers(1)[0]
	s.stop()
	s.start()
	if after := s.workers(1)[0]; after.PID != before.PID {
		t.Errorf("worker %d became %d, want the same process", before.PID, after.PID)
	}
	s.submit("exit 0", time.Second)
	if got := within(t, "a result", s.results); got.Status != execution.Done {
		t.Errorf("result = %+v, want done", got)
	}
	eventually(t, "the pilot's own link", func() bool { s.dispatcher.Drain(7); return len(r.exit) > 0 })
	r.report(0, corral.OutcomeDrained, false)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, nil)
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"run", "--dir", t.TempDir()}, 1},
		{[]string{"run", "--frobnicate"}, 2},
		{[]string{"run", "argument"}, 2},
		{[]string{"worker"}, 1},
		{[]string{"cleanup", "--dir", place.dir}, 1},
		{[]string{"--version"}, 0},
	} {
		if got := within(t, "its end", place.startUnder(program, c.args...).exit); got != c.want {
			t.Errorf("pilot %q: exit status %d, want %d", c.args, got, c.want)
		}
	}
}
