//go:build soak

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// kills is how often something is killed, as KILLS says; once by default.
func kills(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("KILLS"))
	if err != nil {
		return 1
	}
	return n
}

// corrald killed at any instant of a run whose plan it revises: no pilot is asked for twice, the budget is kept, the run
// is done, people are told nothing twice, and in the end what they are told of a run in which nothing was killed. How
// many pilots are added may differ, and for a while what is expected: while corrald is away, time goes by.
func TestCorraldKilledWhileItRevises(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("up")
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	undisturbed := u.revised(0, -1)
	for i := range max(3, kills(t)) {
		at := time.Duration(rng.IntN(9_000)) * time.Millisecond
		if got := u.revised(i+1, at); got != undisturbed {
			t.Errorf("killed %s after the beginning: %s, want %s", at, got, undisturbed)
		}
	}
	u.must("down")
}

// revised runs a workflow with a plan of its own, kills corrald so long after the run's beginning (negative: not at all),
// and tells what came of it.
func (u *user) revised(number int, killed time.Duration) string {
	u.t.Helper()
	tasks := steps(3, 1300*time.Millisecond) // a third longer than estimated, and then four times as long
	for i := range tasks {
		tasks[i].estimate = time.Second
	}
	last := task{id: "last", script: "sleep 9", estimate: time.Second}
	for _, k := range tasks {
		last.parents = append(last.parents, k.id)
	}
	name := fmt.Sprintf("auto%d", number)
	began := time.Now()
	run := u.must("run", u.workflow(name, append(tasks, last)...), "--auto", "--deadline", "8s", "--objective",
		"cost", "--budget", "0.1ch", "--default-runtime", "1s", "--no-learn", "--detach", "-q")
	if killed >= 0 {
		u.until("the instant", time.Minute, func() bool { return time.Since(began) >= killed })
		u.kill(u.running())
		u.must("up")
	}
	u.must("runs", "wait", run)
	plan := u.run(run).Labels["plan"]
	u.must("plan", "release", plan)
	return u.outcome(run, plan)
}

// outcome sums up a run and the pilots of its plan.
func (u *user) outcome(run, plan string) string {
	pilots := map[string]bool{}
	var hours float64
	for _, g := range read[[]corral.Glidein](u, "glidein", "list", "--all", "-l", "plan="+plan) {
		if n := g.Labels["pilot"]; pilots[n] || len(g.Attempts) > 1 {
			u.t.Errorf("pilot %s of plan %s was asked for twice: %+v", n, plan, g)
		}
		pilots[g.Labels["pilot"]] = true
		for _, a := range g.Attempts {
			if end := a.EndedAt; !a.StartedAt.IsZero() {
				if end.IsZero() {
					end = time.Now()
				}
				hours += float64(g.Hosts*g.CPUs) * end.Sub(a.StartedAt).Hours()
			}
		}
	}
	if hours > 0.1 {
		u.t.Errorf("the pilots of plan %s held %.4f core-hours of 0.1", plan, hours)
	}
	var told string
	for i, r := range read[[]corral.Revision](u, "plan", "revisions", plan) {
		if r.Number != i+1 {
			u.t.Errorf("revision %d of plan %s has the number %d", i+1, plan, r.Number)
		}
		if r.News != "late" && r.News != "in time" {
			continue
		}
		if r.News == told {
			u.t.Errorf("revision %d of plan %s says again that the run is %s", r.Number, plan, told)
		}
		told = r.News
	}
	return fmt.Sprintf("%s, said to be %s", u.run(run).State, told)
}
