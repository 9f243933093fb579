package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Workers that do not answer are named, with since when, by the glidein and the run that have them: in the lists, on the
// line of progress, and once in each history, whatever happens to corrald meanwhile.
func TestWorkersOutOfReachAreNamed(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_LEASE=30s") // a sixth of that between signs of life
	u.must("up")
	glidein := u.must("glidein", "create", "--site", "local", "--hosts", "2", "--wait", "--timeout", "5m", "-q")
	run := u.must("run", u.workflow("fold", u.behind("go", 2, steps(4, 10*time.Millisecond))...), "--detach", "-q")
	u.until("a task runs", 2*time.Minute, func() bool { return u.run(run).Tasks.Running > 0 })
	signal := u.toWorkers()
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)

	all := func(o *corral.Outage) bool { return o != nil && o.Workers == 2 && o.Of == 2 }
	u.until("both are out of reach", 5*time.Minute, func() bool {
		return all(u.glidein(glidein).Unreachable) && all(u.run(run).Unreachable)
	})
	const says = "2 of 2 workers are out of reach since "
	for _, args := range [][]string{{"glidein", "list"}, {"glidein", "show", glidein}, {"runs", "list"}, {"runs", "show", run}} {
		if text := u.must(args...); !strings.Contains(text, says) {
			t.Errorf("%s: %s", strings.Join(args, " "), text)
		}
	}
	if a := u.corral("runs", "wait", run, "--timeout", "1s"); !strings.Contains(a.stderr, "running") || !strings.Contains(a.stderr, says) {
		t.Errorf("the progress is %s", a.stderr)
	}
	since := u.run(run).Unreachable.Since
	u.kill(u.running())
	u.must("up")
	u.until("the outage is reported again", 5*time.Minute, func() bool {
		return all(u.glidein(glidein).Unreachable) && all(u.run(run).Unreachable)
	})
	if again := u.run(run).Unreachable.Since; !again.Equal(since.Truncate(time.Second)) {
		t.Errorf("since %s after corrald started again, before: %s", again, since)
	}

	signal(syscall.SIGCONT)
	u.until("both are back", 5*time.Minute, func() bool {
		return u.glidein(glidein).Unreachable == nil && u.run(run).Unreachable == nil
	})
	u.let("go")
	u.must("runs", "wait", run)
	for what, entries := range u.histories(glidein, run) {
		var said []string
		for _, e := range entries {
			if e.Event == "out of reach" || e.Event == "within reach" {
				said = append(said, e.Event+": "+e.Reason)
			}
		}
		if len(said) != 2 || !strings.Contains(said[0], " of 2 workers are out of reach since ") ||
			!strings.HasPrefix(said[1], "within reach: all 2 workers are within reach again, after ") {
			t.Errorf("the history of the %s says %q", what, said)
		}
	}
	u.must("down")
}

// histories returns those of a glidein and of a run.
func (u *user) histories(glidein, run string) map[string][]corral.Entry {
	u.t.Helper()
	cl, err := api.New("unix:" + filepath.Join(u.dir, "run/corral/corrald.sock"))
	if err != nil {
		u.t.Fatal(err)
	}
	defer cl.Close()
	g, err := cl.GlideinHistory(u.t.Context(), u.glidein(glidein).ID)
	r, err2 := cl.RunHistory(u.t.Context(), u.run(run).ID)
	if err != nil || err2 != nil {
		u.t.Fatal(err, err2)
	}
	return map[string][]corral.Entry{"glidein": g, "run": r}
}

// toWorkers returns what sends a signal to the processes of the workers that are registered now, and to their pilots, as
// a batch system does that suspends a job. A pilot that keeps running replaces silent workers.
func (u *user) toWorkers() func(syscall.Signal) {
	pids := map[int]bool{}
	for _, w := range u.workers() {
		pids[w.PID] = true
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.PID))
		_, rest, _ := strings.Cut(string(stat), ") ") // a program's name may contain spaces
		fields := strings.Fields(rest)
		if err != nil || len(fields) < 2 {
			u.t.Fatalf("worker %s: %v, %q", w.ID, err, stat)
		}
		pilot, _ := strconv.Atoi(fields[1])
		pids[pilot] = true
	}
	return func(s syscall.Signal) {
		for pid := range pids {
			if pid <= 1 {
				u.t.Fatalf("no process of a worker: %d", pid)
			}
			_ = syscall.Kill(pid, s) // it may have ended, in the end
		}
	}
}
