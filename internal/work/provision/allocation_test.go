package provision

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

const brief = `{"objective":"makespan","tradeoff":0,"budget":{"amount":0.01,"unit":"ch"}}` // 36 s of a cpu

// TestTheBudgetHoldsForAnyPlan: a pilot of a plan that a user provisioned is ended before the plan costs more than its
// budget.
func TestTheBudgetHoldsForAnyPlan(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]corral.Ask{20 * time.Second: "", 34 * time.Second: corral.AskCancel} {
		s := newScene(t, brief, false)
		s.works(1)
		s.look(s.reviser(), s.pilots()[0].Attempts[0].StartedAt.Sub(s.plan.BeganAt)+after)
		if g := s.pilots()[0]; g.Asked != want {
			t.Errorf("after %s: asked %q, want %q", after, g.Asked, want)
		}
	}
}

// TestLostAttemptsCount: what the earlier attempts of a pilot cost counts, and so does an attempt that may follow.
func TestLostAttemptsCount(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	held := func(from, to int, state corral.JobState) corral.Job {
		j := corral.Job{State: state, StartedAt: began.Add(time.Duration(from) * time.Minute)}
		if state == corral.JobEnded {
			j.EndedAt = began.Add(time.Duration(to) * time.Minute)
		}
		return j
	}
	const ch = 1_000_000 / 60 // a cpu for a minute
	for _, tc := range []struct {
		name    string
		g       corral.Glidein
		spent   cost.Money
		follows bool
	}{
		{"none yet", corral.Glidein{}, 0, false},
		{"the first runs", corral.Glidein{Attempts: []corral.Job{held(0, 0, corral.JobRunning)}}, 0, false},
		{"lost", corral.Glidein{Attempts: []corral.Job{held(0, 3, corral.JobEnded)}}, 0, true},
		{"lost for good", corral.Glidein{State: corral.GlideinFailed,
			Attempts: []corral.Job{held(0, 3, corral.JobEnded)}}, 0, false},
		{"lost and told to end", corral.Glidein{Asked: corral.AskDrain,
			Attempts: []corral.Job{held(0, 3, corral.JobEnded)}}, 0, false},
		{"lost twice", corral.Glidein{Attempts: []corral.Job{held(0, 3, corral.JobEnded), held(4, 6, corral.JobEnded)}},
			3 * ch, true},
		{"the second runs", corral.Glidein{Attempts: []corral.Job{held(0, 3, corral.JobEnded),
			{State: corral.JobEnded}, held(4, 0, corral.JobRunning)}}, 3 * ch, false},
		{"the second overlaps the first", corral.Glidein{Attempts: []corral.Job{held(0, 0, corral.JobRunning),
			held(4, 0, corral.JobRunning)}}, 10 * ch, false},
	} {
		q := revision.Pilot{Pilot: plan.Pilot{Shape: corral.Shape{Hosts: 1, CPUs: 1}}, Tariff: plan.CoreHours}
		all := others(q, tc.g, began)
		follows := slices.ContainsFunc(all, func(q revision.Pilot) bool { return q.Phase == revision.Queued })
		got := revision.Spent(revision.View{Now: 10 * time.Minute, Beside: all})
		if max(got-tc.spent, tc.spent-got) > 10 || follows != tc.follows {
			t.Errorf("%s: %d, another follows: %t; want %d, %t", tc.name, got, follows, tc.spent, tc.follows)
		}
	}
}

// TestPilotsEndWithTheAllocation: a site's pilots end before they cost more than its allocation, those of plans and
// others.
func TestPilotsEndWithTheAllocation(t *testing.T) {
	t.Parallel()
	for allocation, want := range map[string]corral.Ask{"1ch": "", "0.001ch": corral.AskCancel} {
		s := newScene(t, `{}`, false)
		s.write(func(tx *store.Tx) error {
			_, err := tx.SetSite(s.glidein.Site, func(site *corral.Site) { site.Allocation = allocation })
			return err
		})
		s.works(1)
		busy, err := s.reviser().allocations(t.Context(), time.Second)
		if g := s.pilots()[0]; err != nil || !busy || g.Asked != want {
			t.Errorf("%s: busy %t, asked %q, %v; want %q", allocation, busy, g.Asked, err, want)
		}
	}
}
