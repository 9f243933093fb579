package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// A cluster that is scaled has no workers, gets some for a run's tasks, never more than the maximum, and loses them when
// nothing waits any more. That is so with a corrald that was started again in between.
func TestScaledCluster(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	terms := []string{"cluster", "scale", "default", "--site", "local", "--max", "2", "--walltime", "10m", "--idle", "2s"}
	u.must(terms...)
	if a := u.corral(terms...); a.code == 0 || !strings.Contains(a.stderr, "is already scaled") {
		t.Errorf("a second one: exit code %d: %s", a.code, a.stderr)
	}
	run := u.must("run", u.workflow("steps", u.behind("go", 2, steps(12, 100*time.Millisecond))...), "--detach", "-q")
	u.until("workers", 2*time.Minute, func() bool { return len(u.workers()) == 2 })
	scale := func() corral.Scale { return read[corral.Scale](u, "cluster", "scale", "default") }
	u.until("the limit in the report", time.Minute, func() bool {
		return strings.Contains(scale().Report, "the maximum of 2 cpus is reached")
	})
	u.kill(u.running())
	u.must("up")
	u.let("go")
	u.must("runs", "wait", run)
	u.until("the workers to leave", 2*time.Minute, func() bool { return len(u.workers()) == 0 })
	if all := read[[]corral.Glidein](u, "glidein", "list", "--all"); len(all) > 4 {
		t.Errorf("%d glideins for 14 tasks on 2 cpus", len(all))
	}
	u.must("cluster", "scale", "default", "--off")
	if a := u.corral("cluster", "scale", "default"); a.code == 0 || !strings.Contains(a.stderr, "not scaled") {
		t.Errorf("after --off: exit code %d: %s", a.code, a.stderr)
	}
	u.must("down")
}
