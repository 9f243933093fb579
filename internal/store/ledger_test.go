package store_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/plan/cost"
)

const ch = cost.Money(1_000_000)

// priced creates a separate site with these terms.
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

// begun creates a PROVISIONED plan.
func (w *world) begun() corral.PlanID {
	w.t.Helper()
	p := w.createPlan(w.newPlan())
	w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(p.ID, corral.PlanProvision, ""); return err })
	return p.ID
}

// reserve creates pilots of a plan, and promises each an amount.
func (w *world) reserve(plan corral.PlanID, site corral.Site, amounts ...cost.Money) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := w.pilots(tx, plan, site, amounts...)
		return err
	}
}

func (w *world) pilots(tx *store.Tx, plan corral.PlanID, site corral.Site, amounts ...cost.Money) (
	all []corral.Glidein, err error) {
	promises := map[corral.GlideinID]cost.Money{}
	for _, amount := range amounts {
		g := w.newGlidein()
		g.Site, g.Hosts, g.CPUs, g.Labels = site.ID, 1, 1, map[string]string{"plan": fmt.Sprint(plan)}
		if g, err = tx.CreateGlidein(g); err != nil {
			return nil, err
		}
		all = append(all, g)
		promises[g.ID] = amount
	}
	return all, tx.Reserve(plan, site.ID, promises)
}

// drop cancels a pilot that was not submitted.
func (w *world) drop(g corral.Glidein) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := tx.AskGlidein(g.ID, corral.AskDrain, "not needed")
		return err
	}
}

func (w *world) ledger(site corral.Site) (l cost.Ledger) {
	w.t.Helper()
	w.view(func(tx *store.Tx) (err error) { l, err = tx.Ledger(site.ID); return err })
	return l
}

// TestReserve: promises to the pilots of plans are added up, refused and released, separately at each site.
func TestReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site, other := w.priced(corral.SiteTerms{Allocation: "10ch"}), w.priced(corral.SiteTerms{Price: "2USD/cpu-hour"})
	one, two := w.begun(), w.begun()
	var pilots []corral.Glidein
	w.write(func(tx *store.Tx) (err error) { pilots, err = w.pilots(tx, one, site, 4*ch, ch); return err })
	w.write(w.reserve(one, other, 100*ch))
	w.refused(corral.Conflict, w.reserve(two, site, 5*ch, ch))
	w.refused(corral.Unsatisfiable, w.reserve(two, site, 11*ch))
	w.write(w.reserve(two, site, 3*ch, 2*ch))
	if l := w.ledger(site); *l.Left() != 0 || len(l.Plans) != 2 || l.Plans[0].Reserved != 5*ch {
		t.Errorf("ledger %+v", l)
	}
	if l := w.ledger(other); l.Left() != nil || l.Committed() != 100*ch || l.Unit != "USD" {
		t.Errorf("ledger of the other site %+v", l)
	}
	w.write(w.drop(pilots[0]))
	if l := w.ledger(site); *l.Left() != 4*ch || w.ledger(other).Committed() != 100*ch {
		t.Errorf("ledger with a pilot less %+v", l)
	}
	w.write(w.reserve(one, site, 4*ch))
	w.refused(corral.Conflict, w.reserve(one, site, 1))
	not := func(pilot corral.GlideinID, at corral.SiteID) {
		w.refused(corral.NotFound, func(tx *store.Tx) error {
			return tx.Reserve(two, at, map[corral.GlideinID]cost.Money{pilot: 0})
		})
	}
	not(99, site.ID)
	not(1, 99)
	not(pilots[1].ID, site.ID) // it belongs to the other plan
	w.refused(corral.NotFound, w.reserve(99, site, ch))
	w.refused(corral.Conflict, w.reserve(w.createPlan(w.newPlan()).ID, site, ch))
	w.write(func(tx *store.Tx) error { _, err := tx.MovePlan(two, corral.PlanRelease, ""); return err })
	w.refused(corral.Conflict, w.reserve(two, site, 0))
}

// TestWhatAPilotDoesNotUseIsFree: when a pilot ends, the billed part of its promise stays spent and the rest becomes
// free. A pilot that is leaving keeps its promise until it has left, regardless of its plan's state.
func TestWhatAPilotDoesNotUseIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site := w.priced(corral.SiteTerms{Billing: "1h", Allocation: "10ch"})
	plan := w.begun()
	var pilots []corral.Glidein
	w.write(func(tx *store.Tx) (err error) { pilots, err = w.pilots(tx, plan, site, 3*ch, 4*ch); return err })
	holds := func(when string, reserved, billed cost.Money) {
		t.Helper()
		if s := w.ledger(site).Statement(); s.Reserved != reserved || s.Billed != billed ||
			*s.Left != 10*ch-reserved-billed || s.Plans[0].Reserved != reserved {
			t.Errorf("%s: %+v, want %d reserved and %d billed", when, s, reserved, billed)
		}
	}
	job := w.attempt(pilots[0])
	holds("asked for", 7*ch, 0)
	job = w.move(job, submitted, started)
	w.write(w.drop(pilots[1]))
	w.write(func(tx *store.Tx) error {
		_, err := tx.MovePlan(plan, corral.PlanRelease, "")
		if err == nil {
			_, err = tx.AskGlidein(pilots[0].ID, corral.AskDrain, "the plan was released")
		}
		return err
	})
	w.backdate(job, time.Now().Add(-time.Minute), 0)
	holds("released", 2*ch, ch)
	w.move(job, ended(corral.OutcomeDone))
	holds("over", 0, ch)
}

// TestPilotsAreCharged: an attempt is charged from its start to its end, or as long as it holds processors, to its
// plan or to none; whole periods are billed. A label that names no plan counts as none.
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
	one, other := w.begun(), w.begun()
	hold(fmt.Sprint(one), 90*time.Minute)
	hold(fmt.Sprint(one), 30*time.Minute)
	hold("", time.Hour)
	hold("lunch", time.Hour)
	hold("-3", time.Hour)
	hold(fmt.Sprint(other), 0) // it is still held
	l := w.ledger(w.site)
	usd := func(used, billed cost.Money, hours, paid float64) cost.Spending {
		return cost.Spending{Used: used * ch, Billed: billed * ch, UsedHours: hours, BilledHours: paid}
	}
	if len(l.Plans) != 2 || l.Plans[0].Plan != one || l.Plans[0].Spending != usd(8, 12, 16, 24) {
		t.Errorf("the first plan was charged %+v", l.Plans)
	}
	if l.Others != usd(12, 12, 24, 24) {
		t.Errorf("others were charged %+v", l.Others)
	}
	if s := l.Plans[1]; s.Plan != other || s.UsedHours < 12 || s.UsedHours > 16 || s.Billed != 8*ch {
		t.Errorf("the other plan, which holds since an hour and a half, was charged %+v", s)
	}
}

// TestSumsAreWhatAttemptsCost: the sums over ended attempts, at any time and with any terms, equal the result of
// reading each attempt.
func TestSumsAreWhatAttemptsCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		// No one-hour period ends within half a minute.
		now := time.Now().UTC().Truncate(time.Millisecond).Add(-30 * time.Second)
		site := w.priced(corral.SiteTerms{Billing: "1h"})
		plans := []corral.PlanID{0, w.begun(), w.begun()}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"hold", "hold", "reserve", "price", "ask"}).Draw(rt, "step") {
			case "hold":
				plan := rapid.SampledFrom(plans).Draw(rt, "plan")
				ago := rapid.IntRange(1, 300).Draw(rt, "ago")
				lasts := rapid.IntRange(0, min(90, ago)).Draw(rt, "minutes")
				w.hold(site, plan, now.Add(-time.Duration(ago)*time.Minute), time.Duration(lasts)*time.Minute)
			case "reserve":
				w.write(w.reserve(plans[1], site, ch))
			case "price":
				price := rapid.SampledFrom([]string{"2ch/cpu-hour", "3ch/host-hour"}).Draw(rt, "price")
				w.write(func(tx *store.Tx) error {
					_, err := tx.SetSite(site.ID, func(s *corral.Site) { s.Price = price })
					return err
				})
			case "ask":
				at := now.Add(-time.Duration(rapid.IntRange(1, 300).Draw(rt, "asked")) * time.Minute)
				w.write(func(tx *store.Tx) error {
					_, err := tx.SetSite(site.ID, func(s *corral.Site) {
						s.Facts = &corral.SiteFacts{At: at, Allowance: &corral.Allowance{CPUMinutes: 100_000}}
					})
					return err
				})
			}
		}
		read := time.Now()
		sums := w.ledger(site)
		if _, err := raw(t, w.path).Exec("delete from spending_terms"); err != nil {
			rt.Fatal(err)
		}
		each := w.ledger(site)
		const live = 12 * 8 // maximum number of CPUs still held between the two readings
		passed := 100 * time.Since(read).Hours() * live
		for _, l := range []*cost.Ledger{&sums, &each} {
			for i := range l.Plans {
				l.Plans[i].Used, l.Plans[i].UsedHours = 0, math.Round(l.Plans[i].UsedHours*100)
			}
			l.Others.Used, l.Others.UsedHours = 0, math.Round(l.Others.UsedHours*100)
		}
		if diff := cmp.Diff(each, sums, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1.5+passed)); diff != "" {
			rt.Errorf("(-each attempt +sums):\n%s", diff)
		}
	})
}

// hold creates an attempt at a site that began at a given time and lasted for length; 0: it is still live.
func (w *world) hold(site corral.Site, plan corral.PlanID, began time.Time, length time.Duration) {
	w.t.Helper()
	g := w.newGlidein()
	g.Site, g.Hosts, g.CPUs = site.ID, 2, 4
	if plan != 0 {
		g.Labels = map[string]string{"plan": fmt.Sprint(plan)}
	}
	w.backdate(w.attempt(w.createGlidein(g)), began, length)
}

// TestBatchSystemsAllowance: the remaining allowance reported by the batch system, together with the amount billed
// before the report, bounds the balance; a smaller allocation takes precedence.
func TestBatchSystemsAllowance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now().UTC().Truncate(time.Millisecond).Add(-2 * time.Hour)
	w.backdate(w.attempt(w.createGlidein(w.newGlidein())), began, time.Hour) // 8 CPU-hours, of which 4 were known
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

// backdate sets when an attempt began and for how long it held processors; 0: it still holds them.
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

// TestPlansAtOnceKeepToTheBalance: regardless of how many plans begin, get pilots and lose them concurrently, their
// reservations and spending never exceed the balance; when all have ended, exactly the billed amount is gone from the
// balance.
func TestPlansAtOnceKeepToTheBalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		balance := cost.Money(rapid.Int64Range(1, 40).Draw(rt, "balance")) * ch
		site := w.priced(corral.SiteTerms{Billing: "1h", Allocation: fmt.Sprintf("%dch", balance/ch)})
		lives := make([]*planned, rapid.IntRange(2, 6).Draw(rt, "plans"))
		var all sync.WaitGroup
		for i := range lives {
			l := &planned{world: w, site: site, plan: w.begun()}
			lives[i] = l
			steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 8).Draw(rt, "steps")
			all.Go(func() {
				for _, kind := range steps {
					l.step(rt, kind)
				}
			})
		}
		all.Wait()
		for _, l := range lives {
			l.release(rt)
		}
		l := w.ledger(site)
		var spent cost.Money
		for _, line := range l.Plans {
			spent = spent.Plus(line.Billed)
		}
		if s := l.Statement(); s.Reserved != 0 || l.Committed() != spent || *s.Left != balance-spent {
			rt.Errorf("after all is over: %+v", s)
		}
	})
}

// planned is a plan whose pilots start and end.
type planned struct {
	*world
	site   corral.Site
	plan   corral.PlanID
	pilots []corral.Glidein
	jobs   map[corral.GlideinID]corral.Job
}

// step requests up to three pilots of at least an hour each, starts one, or ends one. The balance must hold at the
// end of each transaction.
func (p *planned) step(rt *rapid.T, kind int) {
	var made []corral.Glidein
	act := func(tx *store.Tx) (err error) {
		switch {
		case kind < 3:
			promises := []cost.Money{ch, 3 * ch, 2 * ch}[:kind+1]
			made, err = p.world.pilots(tx, p.plan, p.site, promises...)
		case len(p.pilots) == 0:
		case kind == 3:
			err = p.begin(tx, p.pilots[0])
		default:
			err = p.end(tx, p.pilots[0])
		}
		return err
	}
	err := storetest.All(p.db).Write(p.t.Context(), actor, func(tx *store.Tx) error {
		if err := act(tx); err != nil {
			return err
		}
		if l, err := tx.Ledger(p.site.ID); err != nil || l.Committed() > *l.Balance {
			rt.Errorf("%+v: %v", l, err)
		}
		return nil
	})
	switch corral.KindOf(err) {
	case "":
		p.pilots = append(p.pilots, made...)
		if kind > 3 && len(p.pilots) > 0 {
			p.pilots = p.pilots[1:]
		}
	case corral.Conflict, corral.Unsatisfiable:
	default:
		rt.Errorf("refused for another reason: %v", err)
	}
}

// begin starts a pilot, once.
func (p *planned) begin(tx *store.Tx, g corral.Glidein) error {
	if _, ok := p.jobs[g.ID]; ok {
		return nil
	}
	j, err := tx.CreateJob(newPilot(g))
	for _, e := range []corral.JobEvent{submitted, started} {
		if err == nil {
			j, err = tx.MoveJob(j.ID, e)
		}
	}
	if p.jobs == nil {
		p.jobs = map[corral.GlideinID]corral.Job{}
	}
	p.jobs[g.ID] = j
	return err
}

// end cancels a pilot and ends its job if it has one.
func (p *planned) end(tx *store.Tx, g corral.Glidein) error {
	_, err := tx.AskGlidein(g.ID, corral.AskDrain, "not needed")
	if j, ok := p.jobs[g.ID]; ok && err == nil {
		_, err = tx.MoveJob(j.ID, ended(corral.OutcomeDone))
	}
	return err
}

// release ends all pilots and the plan.
func (p *planned) release(rt *rapid.T) {
	for len(p.pilots) > 0 {
		p.step(rt, 4)
	}
	p.write(func(tx *store.Tx) error { _, err := tx.MovePlan(p.plan, corral.PlanRelease, ""); return err })
}
