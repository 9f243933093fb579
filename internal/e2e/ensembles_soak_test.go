//go:build soak

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// An ensemble on the embedded cluster, with more workflows than its budget pays for: as many are completed as in the
// simulation, but for one at most, within the budget, and corrald is killed twice meanwhile.
func TestEnsembleEmbedded(t *testing.T) {
	t.Parallel()
	u := newUser(t, "CORRALD_LEASE=5s")
	u.must("up")
	u.playEnsemble(staged{budget: 0.05, deadline: 178 * time.Second, takes: 4 * time.Second, delay: 2 * time.Second})
	u.must("down")
}

// A staged ensemble is one of six workflows, each of ten tasks in three levels.
type staged struct {
	budget   float64 // in cpu-hours
	deadline time.Duration
	takes    time.Duration // a task
	delay    time.Duration // until a pilot has its workers, as it is simulated
	flags    []string      // of corral ensemble run
}

func (u *user) playEnsemble(s staged) {
	u.t.Helper()
	var files []string
	for k := range 6 {
		files = append(files, u.workflow(fmt.Sprintf("w%d", k), forkJoin(8, s.takes)...))
	}
	budget := fmt.Sprintf("%gch", s.budget)
	asked := []string{"--algorithm", "wa-dpds", "--budget", budget, "--deadline", s.deadline.String(), "--most", "4"}
	var simulated struct {
		Completed string `json:"completed"`
	}
	plan := append([]string{"plan", "--billing", "1s", "--overhead", s.delay.String(), "-o", "json"}, asked...)
	if err := json.Unmarshal([]byte(u.must(append(plan, files...)...)), &simulated); err != nil {
		u.t.Fatal(err)
	}
	run := append(append([]string{"ensemble", "run", "--detach", "--key", "night", "-q"}, asked...), s.flags...)
	id := u.must(append(run, files...)...)
	show := func() record.Ensemble { return read[record.Ensemble](u, "ensemble", "show", id) }
	for _, standing := range []record.Standing{record.Begun, record.Completed} {
		u.until("a workflow that is "+string(standing), 5*time.Minute, func() bool {
			for _, m := range show().Members {
				if m.Standing == standing {
					return true
				}
			}
			return false
		})
		u.kill(u.running())
		u.must("up")
	}
	if again := u.must(append(run, files...)...); again != id {
		u.t.Errorf("the same key makes ensemble %s, and made %s", again, id)
	}
	var e record.Ensemble
	u.until("the ensemble's end", 10*time.Minute, func() bool { e = show(); return e.State == record.Ended })
	u.checkEnsemble(e, s.budget)
	want := strings.Count(simulated.Completed, "1")
	u.t.Logf("%d of 6 workflows are completed for %s of %s, %d in the simulation", e.Completed(), e.Spent, budget, want)
	if d := e.Completed() - want; d < -1 || d > 1 {
		u.t.Errorf("%d workflows are completed, %d in the simulation: %+v", e.Completed(), want, e.Members)
	}
}

// checkEnsemble holds an ensemble that has ended against its runs, and what it has spent against the accounts.
func (u *user) checkEnsemble(e record.Ensemble, budget float64) {
	u.t.Helper()
	runs := read[[]corral.Run](u, "runs", "list", "--all")
	began := 0
	for k, m := range e.Members {
		if m.Run == 0 {
			continue
		}
		began++
		r := u.run(strconv.FormatInt(int64(m.Run), 10))
		succeeded := r.State == corral.RunSucceeded
		if succeeded != (m.Standing == record.Completed) || r.Labels["workflow"] != strconv.Itoa(k) {
			u.t.Errorf("workflow %d is %s, its run %s with %v", k, m.Standing, r.State, r.Labels)
		}
	}
	if len(runs) != began {
		u.t.Errorf("there are %d runs of %d workflows that were begun", len(runs), began)
	}
	spent, err := strconv.ParseFloat(strings.TrimSuffix(e.Spent, "ch"), 64)
	if err != nil || spent > budget || spent == 0 {
		u.t.Errorf("%s of %gch is spent", e.Spent, budget)
	}
	var held float64
	for _, g := range read[[]corral.Glidein](u, "glidein", "list", "--all") {
		for _, a := range u.glidein(strconv.FormatInt(int64(g.ID), 10)).Attempts {
			if !a.StartedAt.IsZero() {
				held += a.EndedAt.Sub(a.StartedAt).Hours() * float64(g.CPUs)
			}
			if a.Live() {
				u.t.Errorf("attempt %d of glidein %d is live", a.Number, g.ID)
			}
		}
	}
	if held > spent {
		u.t.Errorf("pilots have held %.6f core-hours, and the ledger has %s", held, e.Spent)
	}
}

// forkJoin makes a task, n after it, and one after those.
func forkJoin(n int, takes time.Duration) (tasks []task) {
	script := fmt.Sprintf("sleep %g", takes.Seconds())
	tasks = append(tasks, task{id: "first", script: script, estimate: takes})
	last := task{id: "last", script: script, estimate: takes}
	for i := range n {
		id := fmt.Sprintf("middle%d", i)
		tasks = append(tasks, task{id: id, script: script, parents: []string{"first"}, estimate: takes})
		last.parents = append(last.parents, id)
	}
	return append(tasks, last)
}
