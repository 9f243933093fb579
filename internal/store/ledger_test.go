package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/internal/store"
)

const ch = cost.Money(1_000_000)

// priced is a site of its own with these terms.
func (w *world) priced(terms corral.SiteTerms) (s corral.Site) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		s = newSite(fmt.Sprint("site-", tags.Add(1)))
		s.SiteTerms = terms
		s, err = tx.CreateSite(s)
		return err
	})
	return s
}

// begun is a plan that is provisioned.
func (w *world) begun() corral.PlanID {
	w.t.Helper()
	p := w.createPlan(w.newPlan())
	w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(p.ID, corral.PlanProvision, ""); return err })
	return p.ID
}

func (w *world) reserve(plan corral.PlanID, site corral.Site, amount cost.Money) func(*store.Tx) error {
	return func(tx *store.Tx) error { return tx.Reserve(plan, site.ID, amount) }
}

func (w *world) ledger(site corral.Site) (l cost.Ledger) {
	w.t.Helper()
	w.view(func(tx *store.Tx) (err error) { l, err = tx.Ledger(site.ID); return err })
	return l
}

// TestReserve: a plan's promise at a site is raised, lowered, refused and freed, at each site by itself.
func TestReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site, other := w.priced(corral.SiteTerms{Allocation: "10ch"}), w.priced(corral.SiteTerms{Price: "2USD/cpu-hour"})
	one, two := w.begun(), w.begun()
	w.write(w.reserve(one, site, 6*ch))
	w.write(w.reserve(one, other, 100*ch))
	w.refused(corral.Conflict, w.reserve(two, site, 5*ch))
	w.refused(corral.Unsatisfiable, w.reserve(two, site, 11*ch))
	w.write(w.reserve(one, site, 5*ch))
	w.write(w.reserve(two, site, 5*ch))
	if l := w.ledger(site); *l.Left() != 0 || len(l.Plans) != 2 || l.Plans[0].Reserved != 5*ch {
		t.Errorf("ledger %+v", l)
	}
	if l := w.ledger(other); l.Left() != nil || l.Committed() != 100*ch || l.Unit != "USD" {
		t.Errorf("ledger of the other site %+v", l)
	}
	w.write(func(tx *store.Tx) error { return tx.Free(one) })
	if l := w.ledger(site); *l.Left() != 5*ch || w.ledger(other).Committed() != 0 {
		t.Errorf("ledger after the release %+v", l)
	}
	w.refused(corral.NotFound, w.reserve(99, site, ch))
	w.refused(corral.NotFound, w.reserve(one, corral.Site{ID: 99}, ch))
	w.refused(corral.Conflict, w.reserve(w.createPlan(w.newPlan()).ID, site, ch))
	w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(two, corral.PlanRelease, ""); return err })
	w.refused(corral.Conflict, w.reserve(two, site, ch))
}

// TestPilotsAreCharged: an attempt is charged from its start to its end, or as long as it holds, with its plan or with
// none; what is billed are whole periods. A label that names no plan counts as none.
func TestPilotsAreCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now().UTC().Truncate(time.Millisecond).Add(-90 * time.Minute)
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(w.site.ID, func(s *corral.Site) { s.Price, s.Billing = "0.5USD/cpu-hour", "1h" })
		return err
	})
	hold := func(label string, length time.Duration) {
		g := w.newGlidein()
		g.Hosts, g.CPUs = 2, 4
		if label != "" {
			g.Labels = map[string]string{"plan": label}
		}
		j := w.attempt(w.createGlidein(g))
		w.backdate(j, began, length)
	}
	hold("7", 90*time.Minute)
	hold("7", 30*time.Minute)
	hold("", time.Hour)
	hold("lunch", time.Hour)
	hold("-3", time.Hour)
	hold("8", 0) // it holds still
	l := w.ledger(w.site)
	usd := func(used, billed cost.Money, hours, paid float64) cost.Spending {
		return cost.Spending{Used: used * ch, Billed: billed * ch, UsedHours: hours, BilledHours: paid}
	}
	if len(l.Plans) != 2 || l.Plans[0].Plan != 7 || l.Plans[0].Spending != usd(8, 12, 16, 24) {
		t.Errorf("plan 7 was charged %+v", l.Plans)
	}
	if l.Others != usd(12, 12, 24, 24) {
		t.Errorf("others were charged %+v", l.Others)
	}
	if s := l.Plans[1]; s.Plan != 8 || s.UsedHours < 12 || s.UsedHours > 16 || s.Billed != 8*ch {
		t.Errorf("plan 8, which holds since an hour and a half, was charged %+v", s)
	}
}

// TestBatchSystemsAllowance: what the batch system said is left bounds the balance, beside what was billed before it said
// so; an allocation that is less counts instead.
func TestBatchSystemsAllowance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now().UTC().Truncate(time.Millisecond).Add(-2 * time.Hour)
	w.backdate(w.attempt(w.createGlidein(w.newGlidein())), began, time.Hour) // 8 cpu-hours, of which 4 were known
	set := func(fn func(*corral.Site)) {
		w.write(func(tx *store.Tx) error { _, err := tx.SetSite(w.site.ID, fn); return err })
	}
	set(func(s *corral.Site) {
		s.Facts = &corral.SiteFacts{At: began.Add(30 * time.Minute), Queues: []corral.SiteQueue{{CPUs: 16}},
			Allowance: &corral.Allowance{CPUMinutes: 1000, Used: 400}}
	})
	if l := w.ledger(w.site); *l.Balance != 14*ch || *l.Left() != 6*ch {
		t.Errorf("10ch were left when 4ch of 8ch were used: %d of %d is left", *l.Left(), *l.Balance)
	}
	set(func(s *corral.Site) { s.Allocation = "9ch" })
	if l := w.ledger(w.site); *l.Left() != ch {
		t.Errorf("of an allocation of 9ch %d is left", *l.Left())
	}
	set(func(s *corral.Site) { s.SiteTerms = corral.SiteTerms{Price: "16USD/host-hour"} })
	if l := w.ledger(w.site); *l.Balance != 26*ch || *l.Left() != 0 {
		t.Errorf("at 16USD for a host of 16: %d of %d is left, want nothing of 10USD and the 16USD before", *l.Left(), *l.Balance)
	}
}

// backdate has an attempt begin at a time and hold for so long; 0: it holds still.
func (w *world) backdate(j corral.Job, began time.Time, length time.Duration) {
	w.t.Helper()
	at, end := began.UnixMilli(), began.Add(length).UnixMilli()
	query, args := `update jobs set state = 'RUNNING', created_at_ms = ?1, submitted_at_ms = ?1, started_at_ms = ?1
		where id = ?2`, []any{at, j.ID}
	if length > 0 {
		query = `update jobs set state = 'ENDED', outcome = 'expired', created_at_ms = ?1, submitted_at_ms = ?1,
			started_at_ms = ?1, ended_at_ms = ?3 where id = ?2`
		args = append(args, end)
	}
	if _, err := raw(w.t, w.path).Exec(query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// TestPlansAtOnceKeepToTheBalance: however many plans begin, grow and end at once, what they reserve together never
// exceeds the balance; and what was refused left nothing behind.
func TestPlansAtOnceKeepToTheBalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		balance := rapid.Int64Range(1, 100).Draw(rt, "balance")
		site := w.priced(corral.SiteTerms{Allocation: fmt.Sprintf("%dch", balance)})
		var all sync.WaitGroup
		for range rapid.IntRange(2, 8).Draw(rt, "plans") {
			amounts := rapid.SliceOfN(rapid.Int64Range(0, 60), 1, 3).Draw(rt, "amounts")
			ends := rapid.Bool().Draw(rt, "ends")
			p := w.createPlan(w.newPlan())
			all.Go(func() { w.live(rt, p.ID, site, amounts, ends) })
		}
		all.Wait()
		l := w.ledger(site)
		if l.Committed() > cost.Money(balance)*ch {
			rt.Errorf("%d of %d is promised: %+v", l.Committed(), cost.Money(balance)*ch, l)
		}
		for _, line := range l.Plans {
			w.view(func(tx *store.Tx) error {
				if p, err := tx.Plan(line.Plan); err != nil || p.State != corral.PlanProvisioned {
					rt.Errorf("plan %d is %s and reserves %d: %v", p.ID, p.State, line.Reserved, err)
				}
				return nil
			})
		}
	})
}

// live begins a plan with the first amount, changes it to the others, and ends it. Each look at the ledger on the way
// finds the balance kept.
func (w *world) live(rt *rapid.T, plan corral.PlanID, site corral.Site, amounts []int64, ends bool) {
	step := func(fn func(*store.Tx) error) bool {
		err := w.db.Write(w.t.Context(), actor, func(tx *store.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			if l, err := tx.Ledger(site.ID); err != nil || l.Committed() > *l.Balance {
				rt.Errorf("%+v: %v", l, err)
			}
			return nil
		})
		if kind := corral.KindOf(err); kind != "" && kind != corral.Conflict && kind != corral.Unsatisfiable {
			rt.Errorf("refused for another reason: %v", err)
		}
		return err == nil
	}
	for i, amount := range amounts {
		done := step(func(tx *store.Tx) error {
			if i == 0 {
				if _, err := tx.MovePlan(plan, corral.PlanProvision, ""); err != nil {
					return err
				}
			}
			return tx.Reserve(plan, site.ID, cost.Money(amount)*ch)
		})
		if i == 0 && !done {
			return
		}
	}
	if ends {
		step(func(tx *store.Tx) error {
			if err := tx.Free(plan); err != nil {
				return err
			}
			_, err := tx.MovePlan(plan, corral.PlanRelease, "")
			return err
		})
	}
}
