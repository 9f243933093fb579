package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
	"pgregory.net/rapid"
)

// For any requests in any order: each request is executed or refused for a reason the caller can act on, never because
// the schema had to prevent it; a glidein's state always matches its attempts and its site; and the history leads to
// the state.
func TestAnyOrderOfOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{T: rt, w: w}
		m.do(func(tx *store.Tx) (err error) {
			m.site, err = tx.CreateSite(newSite(fmt.Sprint("site-", tags.Add(1))))
			return err
		})
		rt.Repeat(map[string]func(*rapid.T){
			"move site":     m.moveSite,
			"create":        m.createGlidein,
			"ask glidein":   m.askGlidein,
			"settle":        m.settle,
			"create pilot":  m.createPilot,
			"create setup":  m.createSetup,
			"move job":      m.moveJob,
			"move job more": m.moveJob, // the most frequent operation
			"ask job":       m.askJob,
			"lease":         m.lease,
			"workers":       m.workers,
			"create run":    m.createRun,
			"move run":      m.moveRun,
			"create plan":   m.createPlan,
			"move plan":     m.movePlan,
		})
		m.check(rt)
	})
	checkHistory(t, raw(t, w.path))
	checkIntegrity(t, raw(t, w.path))
}

// A machine draws operations on one new site of the world.
type machine struct {
	*rapid.T
	w        *world
	site     corral.Site
	glideins []corral.GlideinID
	jobs     []corral.JobID
	runs     []corral.RunID
	plans    []corral.PlanID
}

// do runs one operation; a refusal must be due to the caller's request.
func (m *machine) do(fn func(*store.Tx) error) bool {
	err := storetest.All(m.w.db).Write(m.w.t.Context(), actor, fn)
	switch corral.KindOf(err) {
	case "":
		return true
	case corral.Conflict, corral.NotFound, corral.Invalid:
		return false
	}
	m.Fatalf("refused for no fault of the caller: %v", err)
	return false
}

func draw[T any](rt *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(rt, label)
}

// pick draws the id of a created object, or an unused id.
func pick[T ~int64](rt *rapid.T, ids []T) T {
	if len(ids) == 0 {
		return 1 << 40
	}
	return rapid.SampledFrom(ids).Draw(rt, "id")
}

func (m *machine) moveSite(rt *rapid.T) {
	move := draw(rt, "move", corral.SiteStage, corral.SiteStaged, corral.SiteStage, corral.SiteStaged, corral.SiteFail,
		corral.SiteRemove, corral.SiteEmptied, corral.SiteUnstaged, corral.SiteForget)
	m.do(func(tx *store.Tx) error { _, err := tx.MoveSite(m.site.ID, move, "drawn"); return err })
}

func (m *machine) createGlidein(rt *rapid.T) {
	g := m.w.newGlidein()
	g.Site = m.site.ID
	g.Resubmit = draw(rt, "policy", resubmit.Policy{}, resubmit.Policy{Mode: resubmit.Times, Limit: 1, Retries: 1},
		resubmit.Policy{Mode: resubmit.Forever, Retries: 2}, resubmit.Policy{Mode: resubmit.Until, Deadline: time.Unix(0, 0)})
	if rapid.Bool().Draw(rt, "later") {
		g.NotBefore = time.Now().Add(time.Hour)
	}
	if m.do(func(tx *store.Tx) (err error) { g, err = tx.CreateGlidein(g); return err }) {
		m.glideins = append(m.glideins, g.ID)
	}
}

func (m *machine) askGlidein(rt *rapid.T) {
	id, ask := pick(rt, m.glideins), draw(rt, "ask", corral.AskNothing, corral.AskDrain, corral.AskCancel)
	m.do(func(tx *store.Tx) error { _, err := tx.AskGlidein(id, ask, "drawn"); return err })
}

func (m *machine) settle(rt *rapid.T) {
	id := pick(rt, m.glideins)
	m.do(func(tx *store.Tx) error { _, err := tx.SettleGlidein(id, corral.Lack{}); return err })
}

func (m *machine) createPilot(rt *rapid.T) {
	m.createJob(newPilot(corral.Glidein{ID: pick(rt, m.glideins), Site: m.site.ID}))
}

func (m *machine) createSetup(rt *rapid.T) {
	m.createJob(corral.Job{Kind: draw(rt, "kind", corral.SetupJob, corral.CleanupJob), Site: m.site.ID,
		Tag: fmt.Sprintf("tag-%d", tags.Add(1))})
}

func (m *machine) createJob(j corral.Job) {
	if m.do(func(tx *store.Tx) (err error) { j, err = tx.CreateJob(j); return err }) {
		m.jobs = append(m.jobs, j.ID)
	}
}

func (m *machine) moveJob(rt *rapid.T) {
	e := corral.JobEvent{
		Move:      draw(rt, "move", corral.JobSubmit, corral.JobQueue, corral.JobStart, corral.JobEnd),
		SiteJobID: draw(rt, "site job", "", "4711"),
		Reason:    "drawn",
	}
	switch ago := draw(rt, "ago", -time.Hour, 0, time.Millisecond, time.Hour, -1); ago {
	case -1: // the zero time
	default:
		e.At = time.Now().Add(-ago)
	}
	if e.Move == corral.JobEnd {
		e.Outcome = rapid.SampledFrom(corral.Outcomes).Draw(rt, "outcome")
		e.Transient = rapid.Bool().Draw(rt, "transient")
		e.ExitStatus = draw(rt, "exit", nil, new(int))
	}
	id := pick(rt, m.jobs)
	m.do(func(tx *store.Tx) error { _, err := tx.MoveJob(id, e); return err })
}

func (m *machine) askJob(rt *rapid.T) {
	id, ask := pick(rt, m.jobs), draw(rt, "ask", corral.AskNothing, corral.AskDrain, corral.AskCancel)
	m.do(func(tx *store.Tx) error { _, err := tx.AskJob(id, ask, "drawn"); return err })
}

func (m *machine) lease(rt *rapid.T) {
	id, holder := pick(rt, m.jobs), draw(rt, "holder", "", "a", "b")
	m.do(func(tx *store.Tx) error { _, err := tx.LeaseJob(id, holder, holder); return err })
}

func (m *machine) workers(rt *rapid.T) {
	id, n := pick(rt, m.jobs), rapid.IntRange(0, 4).Draw(rt, "workers")
	m.do(func(tx *store.Tx) error { _, err := tx.NoteWorkers(id, n); return err })
}

func (m *machine) createRun(rt *rapid.T) {
	r := m.w.newRun(fmt.Sprintf("/runs/%d-%d", m.site.ID, rapid.IntRange(1, 3).Draw(rt, "dir")))
	if m.do(func(tx *store.Tx) (err error) { r, err = tx.CreateRun(r); return err }) {
		m.runs = append(m.runs, r.ID)
	}
}

func (m *machine) moveRun(rt *rapid.T) {
	id := pick(rt, m.runs)
	move := draw(rt, "move", corral.RunSucceed, corral.RunFail, corral.RunStall, corral.RunCancel, corral.RunCancelEnd,
		corral.RunResume, corral.RunRemove)
	m.do(func(tx *store.Tx) error {
		if _, err := tx.MoveRun(id, move, "drawn"); err != nil {
			return err
		}
		_, err := tx.SetRun(id, corral.RunTasks{Total: 2, Ready: 1, Done: 1}, draw(rt, "report", nil, &corral.RunReport{}))
		return err
	})
}

func (m *machine) createPlan(rt *rapid.T) {
	p := m.w.newPlan()
	p.State = draw(rt, "state", corral.PlanReady, corral.PlanInfeasible)
	if m.do(func(tx *store.Tx) (err error) { p, err = tx.CreatePlan(p); return err }) {
		m.plans = append(m.plans, p.ID)
	}
}

func (m *machine) movePlan(rt *rapid.T) {
	id := pick(rt, m.plans)
	move := draw(rt, "move", corral.PlanProvision, corral.PlanRelease, corral.PlanRemove)
	m.do(func(tx *store.Tx) error { _, err := tx.MovePlan(id, move, "drawn"); return err })
}

// check checks every glidein of the site.
func (m *machine) check(rt *rapid.T) {
	err := storetest.All(m.w.db).View(m.w.t.Context(), func(tx *store.Tx) error {
		site, err := tx.Site(m.site.ID)
		if err != nil {
			return err
		}
		gs, err := tx.Glideins(store.GlideinFilter{Site: m.site.ID, Filter: store.Filter{All: true}})
		for _, g := range gs {
			checkGlidein(rt, g, site.State)
		}
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
}

func checkGlidein(rt *rapid.T, g corral.Glidein, site corral.SiteState) {
	derived, reason := g.Derive(site, corral.Hold{}, corral.Lack{}, g.UpdatedAt)
	if derived != g.State {
		rt.Fatalf("glidein %d is %s, its attempts say %s (%s)", g.ID, g.State, derived, reason)
	}
	if g.State == corral.GlideinNew {
		rt.Fatalf("glidein %d was left %s", g.ID, g.State)
	}
	if g.State.Terminal() && len(g.Live()) > 0 {
		rt.Fatalf("glidein %d is %s with live attempts", g.ID, g.State)
	}
	numbers := func(a, b corral.Job) int { return a.Number - b.Number }
	if !slices.IsSortedFunc(g.Attempts, numbers) || len(g.Attempts) > 0 && g.Attempts[len(g.Attempts)-1].Number != len(g.Attempts) {
		rt.Fatalf("glidein %d has attempts %v", g.ID, g.Attempts)
	}
}
