package e2e

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// A second site: its workers come in through the TLS port, a run uses both sites, and a killed corrald
// finds them again at the address that they know.
func TestSecondSite(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	u.must("site", "create", "there", "--contact", "local:", "--batch", "fork", "--wait")
	u.must("glidein", "create", "--site", "there", "--wait", "--timeout", "5m")
	u.must("glidein", "create", "--site", "local", "--wait", "--timeout", "5m")
	tasks := u.behind("go", 4, slices.Concat(steps(4, 100*time.Millisecond), meeting(4, 2, u.dir)))
	run := u.must("run", u.workflow("steps", tasks...), "--detach", "-q")
	u.until("some tasks are done", 2*time.Minute, func() bool { return u.run(run).Tasks.Done >= 4 })
	before := pids(u.workers())
	u.kill(u.running())
	u.must("up")
	u.until("the workers to come back", time.Minute, func() bool { return len(u.workers()) == 2 })
	u.let("go")
	u.must("runs", "wait", run)
	got := u.run(run)
	if got.State != corral.RunSucceeded || got.Report.Requeued != 0 {
		t.Errorf("run is %s with %d requeued, want SUCCEEDED with none: %s", got.State, got.Report.Requeued, got.Reason)
	}
	if after := pids(u.workers()); after != before {
		t.Errorf("workers are processes %s, were %s", after, before)
	}
	for _, w := range u.workers() {
		if w.DoneTasks == 0 {
			t.Errorf("worker %s has done nothing", w.ID)
		}
	}
	wantOutputs(t, got.Dir, len(tasks))
	root := read[corral.Site](u, "site", "show", "there").Root
	u.must("site", "remove", "there", "--wait")
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the root of a removed site is there: %v", err)
	}
	u.must("down")
}
