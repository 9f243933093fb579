package main

import (
	"strconv"
	"time"

	"github.com/corral-pilot/corral/bench/greedy"
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// greedy plans drawn workflows at a site that prices any reservation, and also on the slots that the site would
// advertise (figures 52 and 54). It asserts that the cheapest plan costs exactly as much as best effort and takes less
// time; that the fastest plan is faster than the fastest one on advertised slots, and costs more than best effort; that
// the mean cost falls as its weight grows; and that the site grants all reservations, each at the quoted price.
func (d *desk) greedy() error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	d.printf("\nReservations at prices, task by task, of workflows of levels on 256 processors, %s; ratios to best "+
		"effort. The fees of a plan, and what all its reservations cost others together, in SU:\n\n", base.name)
	d.printf("| %-26s | load | α | makespan | cost | fees | cost to others | advertised: makespan | cost |\n",
		"workflow")
	d.printf("|---|---|---|---|---|---|---|---|---|\n")
	narrow := typical
	narrow.Processors = 2
	for _, row := range []struct {
		what string
		grid plantest.Grid
		load float64
	}{{"100 tasks of 13 processors", typical, 0.65}, {"the same", typical, 0.80}, {"of 2 processors", narrow, 0.65}} {
		if err := (pricing{d}).priced(row.what, base.loaded(row.load), row.grid, row.load); err != nil {
			return err
		}
	}
	return nil
}

// A pricing is an experiment with sites that price reservations.
type pricing struct{ desk *desk }

// sweep holds the trade-offs of the thesis's chapters 5 and 7.
var sweep = []plan.Share{0, plan.Whole / 4, half, plan.Whole * 3 / 4, plan.Whole}

// priced prints the rows and checks the assertions for one machine and one kind of workflow.
func (d pricing) priced(what string, m machine, g plantest.Grid, load float64) error {
	bought, advertised := table{}, table{}
	fees, others := map[plan.Share]cost.Money{}, map[plan.Share]cost.Money{}
	states := m.states(d.desk.pick(30, 50))
	for k, q := range states {
		c, err := at(plantest.Levels(g, uint64(k)), q)
		if err != nil {
			return err
		}
		front, err := c.search(moga.Options{Seed: 1})
		if err != nil {
			return err
		}
		best, err := c.effort()
		if err != nil {
			return err
		}
		for _, alpha := range sweep {
			p, after, err := d.buy(c, alpha)
			if err != nil {
				return err
			}
			bought[alpha] = append(bought[alpha], pair{p.Point, best})
			advertised[alpha] = append(advertised[alpha], pair{published(front, alpha), best})
			fees[alpha] += p.Fees
			others[alpha] += market.Damage(q, after[0], unit)
		}
	}
	for _, alpha := range sweep {
		b, a, n := bought[alpha], advertised[alpha], float64(len(states))
		d.desk.printf("| %-26s | %.2f | %s | %s | %.3f | %.0f | %.0f | %.2f | %.3f |\n", what, load, alpha,
			ratioOf(b, makespans), ratioOf(b, costs).value, fees[alpha].Units()/n, others[alpha].Units()/n,
			ratioOf(a, makespans).value, ratioOf(a, costs).value)
		what = "the same"
	}
	d.cheapest(bought)
	if fast := ratioOf(bought[0], makespans).value; fast >= ratioOf(advertised[0], makespans).value {
		d.desk.breaks("the fastest plan at prices takes %.2f of best effort, no less than on advertised slots", fast)
	}
	return nil
}

// buy plans an instance at prices, and reserves the whole plan. It returns the queues after the reservations.
func (d pricing) buy(c instance, alpha plan.Share) (p greedy.Plan, after []*queue.Queue, err error) {
	var markets []market.Seller
	for k, q := range c.queues {
		site := market.New(strconv.Itoa(k+1), q.Clone(), unit)
		markets, after = append(markets, site), append(after, site.Queue)
	}
	if p, err = greedy.Make(c.Problem, markets, c.queues[0].Now(), alpha); err != nil {
		return p, nil, err
	}
	for _, t := range p.Taken {
		if err := markets[t.Site].Reserve(t.Slot); err != nil {
			d.desk.breaks("task %d of a plan at prices: %v", t.Task, err)
		}
	}
	return p, after, nil
}

// cheapest checks the assertions about plans with the least cost, and that faster plans cost more.
func (d pricing) cheapest(bought table) {
	for _, p := range bought[plan.Whole] {
		if p.plan.Cost != p.best.Cost {
			d.desk.breaks("the cheapest plan at prices costs %s, and best effort %s", p.plan.Cost, p.best.Cost)
			break
		}
	}
	if r := ratioOf(bought[plan.Whole], makespans); r.high >= 1 {
		d.desk.breaks("the cheapest plan at prices takes %s of best effort", r)
	}
	for k := range sweep[1:] {
		if ratioOf(bought[sweep[k]], costs).value < ratioOf(bought[sweep[k+1]], costs).value {
			d.desk.breaks("plans at prices cost more with a trade-off of %s than of %s", sweep[k+1], sweep[k])
		}
	}
}

// A claim is a job that reserves its time instead of waiting: the fee that it paid, and the time until its start.
type claim struct {
	fee  cost.Money
	wait time.Duration
}

// claims simulates some days of a machine on which a share of the jobs reserve, each at the price that its trade-off
// chooses, while the others wait (Singh 2008, section 5.3). The jobs that reserve are drawn at random. It returns the
// reservations and the waits of the others.
func claims(m machine, days int, share float64, seed uint64, tradeoff func(job int) plan.Share) (
	all []claim, waits []time.Duration,
) {
	q := queue.New(m.Machine, nil)
	site := market.New("1", q, unit)
	started := func(j queue.Job, at time.Duration) { waits = append(waits, at-j.Submit) }
	for i, j := range m.jobs {
		if j.Submit > time.Duration(days)*24*time.Hour {
			break
		}
		q.Advance(j.Submit, started)
		if !lucky(seed, i, share) {
			q.Submit(j)
			continue
		}
		offers := site.From(q.Now(), j.Requested, j.Processors)
		points := make([]cost.Point, len(offers))
		for k, o := range offers {
			points[k] = cost.Point{Makespan: o.Start, Cost: o.Fee}
		}
		if len(offers) == 0 {
			continue // the job is wider than the machine
		}
		o := offers[greedy.Choose(points, tradeoff(i))]
		if err := site.Reserve(o); err == nil {
			all = append(all, claim{o.Fee, o.Start - q.Now()})
		}
	}
	q.Advance(queue.Open, started)
	return all, waits
}
