package revision_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow/dag"
)

// anyWork generates a workflow of levels: each task has parents in the previous level.
func anyWork(t *rapid.T) execution.Spec {
	var s execution.Spec
	var edges [][2]int
	var before []int
	for level := range rapid.IntRange(1, 4).Draw(t, "levels") {
		var now []int
		estimate := rapid.IntRange(10, 300).Draw(t, "seconds")
		for range rapid.IntRange(1, 12).Draw(t, "width") {
			i := len(s.Tasks)
			s.Tasks = append(s.Tasks, execution.TaskSpec{ID: fmt.Sprintf("%c%d", 'a'+level, i), CPUs: 1, MemoryMiB: 100,
				Estimate: time.Duration(estimate) * time.Second, Retries: 3})
			for _, p := range before {
				if p == before[0] || rapid.Bool().Draw(t, "edge") {
					edges = append(edges, [2]int{p, i})
				}
			}
			now = append(now, i)
		}
		before = now
	}
	var err error
	if s.Graph, err = dag.New(len(s.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	return s
}

// erring makes runtimes differ from their estimates by up to 30 % either way.
func erring(t *rapid.T) func(*sim.Scenario) {
	seed := uint64(rapid.IntRange(0, 1000).Draw(t, "seed"))
	return func(s *sim.Scenario) { s.Runtime = sim.Runtimes(s.Work, sim.Uniform(s.Work, 0.3, seed)) }
}

// A spending is a life with a budget, given as a percentage above the planned cost, with a billing period, and with the
// times after which the site ends the pilots; each may be tried twice more.
type spending struct {
	life
	billing string
	more    int
	lost    []int // seconds, by the number of the pilot's start; 0: it is not lost
}

func anySpending(r *rapid.T) spending {
	wait := time.Duration(rapid.IntRange(0, 60).Draw(r, "wait")) * time.Second
	return spending{life{anyWork(r), wait, erring(r)},
		rapid.SampledFrom([]string{"1s", "1m", "10m-minimum"}).Draw(r, "billing"),
		rapid.IntRange(0, 20).Draw(r, "percent more"),
		rapid.SliceOfN(rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 300)), 0, 6).Draw(r, "lost")}
}

// TestTheBudgetIsKept: for any runtimes, losses of pilots and billing, pilots never cost more than the budget. Work that the budget
// does not cover waits, and this is announced. The soak test uses new cases each time.
func TestTheBudgetIsKept(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(anySpending)
	for i := range 8 {
		keepBudget(t, t, draw.Example(i))
	}
}

func keepBudget(t *testing.T, r interface{ Fatalf(string, ...any) }, s spending) {
	t.Helper()
	at := hpc(s.wait)
	var err error
	if at.Tariff.Billing, err = cost.ParseBilling(s.billing); err != nil {
		r.Fatalf("%v", err)
	}
	c, _, ok := play(t, s.work, at, plan.Goal{Objective: plan.Makespan}, nil)
	if !ok {
		r.Fatalf("there is no plan without a goal")
	}
	budget := c.plan.Cost
	budget.Money += budget.Money / 100 * cost.Money(s.more)
	goal := plan.Goal{Objective: plan.Makespan, Budget: &budget}
	c, tr, ok := play(t, s.work, at, goal, func(x *sim.Scenario) {
		s.err(x)
		x.Failures.Pilot = func(_ string, n int) (time.Duration, bool) {
			if n >= len(s.lost) || s.lost[n] == 0 {
				return 0, false
			}
			return time.Duration(s.lost[n]) * time.Second, true
		}
		for i := range x.Asks {
			x.Asks[i].Resubmit.Retries = 2
		}
	})
	if !ok {
		r.Fatalf("%s suffice, and %s do not", c.plan.Cost, budget)
	}
	if got := paid(tr, at.Tariff); got > budget.Money {
		r.Fatalf("%s of %s were spent: %s", got, budget, story(c))
	}
	if tr.Ending != sim.Done && !said(c, revision.Broke) {
		r.Fatalf("%s (%s), and the budget was not reported: %s", tr.Ending, tr.Why, story(c))
	}
}

// A life is a workflow, the wait of its site, and the error of its runtimes.
type life struct {
	work execution.Spec
	wait time.Duration
	err  func(*sim.Scenario)
}

// lives generates the same lives each time: the tested properties are not guaranteed, and would fail for about one in
// several hundred.
func lives(most time.Duration, n int) (all []life) {
	draw := rapid.Custom(func(r *rapid.T) life {
		wait := time.Duration(rapid.IntRange(0, int(most/time.Second)).Draw(r, "wait")) * time.Second
		return life{anyWork(r), wait, erring(r)}
	})
	for i := range n {
		all = append(all, draw.Example(i))
	}
	return all
}

// TestDeadlinesWithSlackAreMet: 99 in 100 plans with 30 % of slack meet their deadlines with runtimes that differ by up
// to 30 %. The other plans are slightly late, because when the delay is noticed, the remaining work is a single chain
// of tasks, which pilots cannot shorten; the lateness is announced in advance.
func TestDeadlinesWithSlackAreMet(t *testing.T) { meetDeadlines(t, 20) }

func meetDeadlines(t *testing.T, cases int) {
	t.Helper()
	t.Parallel()
	missed := 0
	for _, l := range lives(10*time.Second, cases) {
		at := hpc(l.wait)
		first, _, _ := play(t, l.work, at, plan.Goal{Objective: plan.Tradeoff, Tradeoff: 0.5}, nil)
		c := &control{tb: t, every: time.Second, problem: first.problem}
		p := *first.plan
		p.Goal = plan.Goal{Objective: plan.Cost, Deadline: p.Makespan + p.Makespan*3/10}
		c.plan = &p
		scenario := sim.Scenario{Work: l.work, Sites: []sim.Site{at}, Cluster: sim.Cluster{Cluster: c.problem.Cluster},
			Control: c.steer, Every: c.every}
		for _, q := range p.Pilots {
			c.pilots = append(c.pilots, asked{Pilot: q})
		}
		scenario.Asks = sim.AsksFor(p.Pilots, 0, time.Minute)
		l.err(&scenario)
		tr := sim.Run(scenario)
		late := corral.Seconds(tr.Makespan()) - p.Goal.Deadline
		if tr.Ending == sim.Done && late <= 0 {
			continue
		}
		missed++
		if tr.Ending != sim.Done || late > p.Goal.Deadline/50 || !said(c, revision.Late) {
			t.Errorf("%s (%s) after %s, planned were %s, the deadline is %s: %s", tr.Ending, tr.Why, tr.Makespan(),
				p.Makespan, p.Goal.Deadline, story(c))
		}
	}
	t.Logf("%d of %d deadlines were missed", missed, cases)
	if missed > cases/100 {
		t.Errorf("%d of %d deadlines were missed, want %d at most", missed, cases, cases/100)
	}
}

// TestDecisionsComeToRest: decisions that change pilots are separated by at least the shortest pause, except for the
// release of idle pilots. If everything goes as planned, such decisions are rare: pilots are added at most once,
// because tasks run where there is room, not where the plan's witness places them. Pilots that are released before
// their submission do not count.
func TestDecisionsComeToRest(t *testing.T) { comeToRest(t, 20) }

func comeToRest(t *testing.T, cases int) {
	t.Helper()
	t.Parallel()
	for _, l := range lives(time.Minute, cases) {
		c, tr, _ := play(t, l.work, hpc(l.wait), plan.Goal{Objective: plan.Tradeoff, Tradeoff: 0.5}, nil)
		last, added := time.Duration(-1), 0
		for i, d := range c.said {
			if len(d.Add) > 0 && wereAsked(c, tr, i) {
				added++
			}
			if d.News == revision.Nothing && !onlyIdle(d) && last >= 0 && c.at[i] < last+5*time.Second {
				t.Fatalf("two decisions within %s: %s", c.at[i]-last, story(c))
			}
			last = c.at[i]
		}
		if added > 1 || len(c.said) > 2*len(c.pilots) {
			t.Fatalf("all goes as planned, and pilots come and go: %s", story(c))
		}
		if tr.Ending != sim.Done || float64(tr.Makespan()) > 1.2*float64(c.plan.Makespan)+15e9 {
			t.Fatalf("%s after %s, planned were %s: %s", tr.Ending, tr.Makespan(), c.plan.Makespan, story(c))
		}
	}
}

// onlyIdle reports whether a decision only releases idle pilots.
func onlyIdle(d revision.Decision) bool {
	return len(d.Add) == 0 && !slices.ContainsFunc(d.Drop, func(p revision.Drop) bool { return !p.Idle })
}

// wereAsked reports whether any pilot that a decision added was submitted in the end.
func wereAsked(c *control, tr *sim.Trace, decision int) bool {
	first := len(c.plan.Pilots)
	for _, d := range c.said[:decision] {
		first += len(d.Add)
	}
	for _, h := range tr.Pilots {
		if n := int(h.Glidein) - 1 - first; n >= 0 && n < len(c.said[decision].Add) {
			return true
		}
	}
	return false
}

func said(c *control, news revision.News) bool {
	for _, d := range c.said {
		if d.News == news {
			return true
		}
	}
	return false
}

// story describes the decisions, for messages.
func story(c *control) (text string) {
	for i, d := range c.said {
		text += fmt.Sprintf("\n%s: %q, limits %q, drops %+v", c.at[i], d.Reasons, d.Limits, d.Drop)
		for _, q := range d.Add {
			text += fmt.Sprintf("\n\tadds %+v", q)
		}
	}
	return text
}
