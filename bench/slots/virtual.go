package main

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// epoch is the instant 0 of a simulation.
var epoch = time.Unix(0, 0).UTC()

// waits returns the waits of a trace's jobs as an observer of all of them knows them at an instant.
func waits(held []queue.Held, at time.Duration) (all []corral.Wait) {
	const latest = 4000 // more than any class of like jobs uses
	n, _ := slices.BinarySearchFunc(held, at, func(h queue.Held, at time.Duration) int {
		if h.Submit < at {
			return -1
		}
		return 1
	})
	for _, h := range held[max(0, n-latest):n] {
		if h.Start < 0 {
			continue // the machine refused the job
		}
		w := corral.Wait{Hosts: 1, CPUs: h.Processors, Walltime: corral.Seconds(h.Requested),
			SubmittedAt: epoch.Add(h.Submit)}
		if h.Start < at {
			w.StartedAt = epoch.Add(h.Start)
		}
		all = append(all, w)
	}
	return all
}

// predictor returns a predictor that knows the waits before an instant.
func predictor(held []queue.Held, at time.Duration) *queueing.Predictor {
	return queueing.NewPredictor(waits(held, at), epoch.Add(at))
}

// virtual reserves on a plain queue whose jobs request more than they run, and compares this with the site's own
// reservations at prices, and with a combination of both (chapter 6). It requests 32 and 64 processors for one and four
// hours that begin in one, four and eight hours, at a hundred instants. Each request is simulated alone in the original
// queue. virtual asserts that predictions agree with the outcome within 10 points on the second half of the trace
// (F31); that for each request the combination has a lower mean cost than the site's reservations alone; and that eight
// hours ahead it succeeds more often than either (F32).
func (d *desk) virtual() error {
	m, err := d.lublin(256)
	if err != nil {
		return err
	}
	m = m.loaded(0.75)
	m.jobs = inexact(m.jobs)
	held := queue.Replay(m.Machine, m.jobs)
	calibrated(d, held)
	n := d.pick(100, 300)
	d.printf("\nReservations of a plain queue (V), of the site at prices (A), and both combined (C), 256 processors "+
		"at 75 %% load, %s, requests of more than is run, %d instants. Success in %%, cost in the mean of "+
		"successes beyond processor time, as a part of that:\n\n", m.name, n)
	d.printf("| processors | for | in | success V | A | C | cost V | at most | A | C |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	states := m.states(n)
	for _, processors := range []int{32, 64} {
		for _, length := range []time.Duration{time.Hour, 4 * time.Hour} {
			for _, lead := range []time.Duration{time.Hour, 4 * time.Hour, 8 * time.Hour} {
				var t trial
				for _, q := range states {
					w := virtual.Wanted{Start: q.Now() + lead, Length: length, Processors: processors}
					t.add(w, q, predictor(held, q.Now()))
				}
				t.tell(d, processors, length, lead)
			}
		}
	}
	return nil
}

// A trial accumulates the outcomes of one request at many instants.
type trial struct {
	n, virtual, sold, both int // successes
	idle, fees, paid       cost.Money
}

// penalty is the share of a fee that a cancellation costs (Singh 2008, equation 23).
const penalty = plan.Whole / 10

// add simulates a request.
func (t *trial) add(w virtual.Wanted, q *queue.Queue, p *queueing.Predictor) {
	h := held{Penalty: penalty}
	site := market.New("1", q, unit)
	one, sold := site.At(w.Start, w.Length, w.Processors)
	h.Fee, h.Sold = one.Fee, sold
	odds := func(processors int, walltime, within time.Duration) float64 {
		share, _ := p.Estimate(processors, walltime, within)
		return share
	}
	if s, err := virtual.Plan(q.Now(), w, 0, odds); err == nil {
		var began time.Duration
		if began, h.Started = submitted(q, w, s); h.Started {
			h.Idle = idle(w, began, unit)
		}
	}
	t.n++
	if h.Started {
		t.virtual, t.idle = t.virtual+1, t.idle+h.Idle
	}
	if h.Sold {
		t.sold, t.fees = t.sold+1, t.fees+h.Fee
	}
	if kept, paid := combine(h); kept != keepNeither {
		t.both, t.paid = t.both+1, t.paid+paid
	}
}

// submitted simulates a submission, and returns when the job started if it started by the wanted time.
func submitted(q *queue.Queue, w virtual.Wanted, s virtual.Submission) (began time.Duration, ok bool) {
	const ours = -4 // a user number that no other job has
	c := q.Clone()
	c.Advance(s.At, nil)
	c.Submit(queue.Job{User: ours, Processors: w.Processors, Requested: s.Walltime, Runtime: s.Walltime})
	c.Advance(w.Start, func(j queue.Job, at time.Duration) {
		if j.User == ours {
			began, ok = at, true
		}
	})
	return began, ok
}

// tell prints a trial and checks its assertions.
func (t trial) tell(d *desk, processors int, length, lead time.Duration) {
	base := float64(processors) * length.Hours()
	mean := func(m cost.Money, n int) float64 { return m.Units() / float64(max(1, n)) / base }
	share := func(n int) int { return int(math.Round(100 * float64(n) / float64(t.n))) }
	most := lead.Hours() / length.Hours()
	d.printf("| %d | %s | %s | %d | %d | %d | %.2f | %.2f | %.1f | %.1f |\n", processors, length, lead,
		share(t.virtual), share(t.sold),
		share(t.both), mean(t.idle, t.virtual), most, mean(t.fees, t.sold), mean(t.paid, t.both))
	if mean(t.idle, t.virtual) > most {
		d.breaks("holding %d processors idle costs more than holding them from now on", processors)
	}
	if mean(t.paid, t.both) >= mean(t.fees, t.sold) {
		d.breaks("the combination costs %.2f for %d processors for %s in %s, the site's reservation alone %.2f",
			mean(t.paid, t.both), processors, length, lead, mean(t.fees, t.sold))
	}
	if lead == 8*time.Hour && t.both <= max(t.virtual, t.sold) {
		d.breaks("the combination succeeds %d times, the better single one %d times", t.both, max(t.virtual, t.sold))
	}
}

// calibrated compares predictions for jobs of the second half of a trace, each for its own shape and a drawn time
// limit, with the outcome.
func calibrated(d *desk, held []queue.Held) {
	type bin struct{ said, came, bounded, kept, n float64 }
	var bins [10]bin
	for k := len(held) / 2; k < len(held); k++ {
		h := held[k]
		if h.Start < 0 {
			continue
		}
		within := time.Duration(float64(time.Minute) * math.Pow(24*60, chance.Draw(5, "within", chance.Number(k))))
		got := predictor(held, h.Submit).Predict(h.Processors, h.Requested, within)
		b := &bins[min(9, int(got.Estimate*10))]
		b.n, b.said = b.n+1, b.said+got.Estimate
		in := 0.0
		if h.Wait() <= within {
			in = 1
		}
		b.came += in
		if got.Bound > 0 {
			b.bounded, b.kept = b.bounded+got.Bound, b.kept+in
		}
	}
	d.printf("\nPredictions that a job starts in time, on the second half of the trace, in %%:\n\n" +
		"| predicted | in the mean | happened | jobs |\n|---|---|---|---|\n")
	var bounded, kept float64
	for i, b := range bins {
		bounded, kept = bounded+b.bounded, kept+b.kept
		if b.n == 0 {
			continue
		}
		d.printf("| %d–%d | %.0f | %.0f | %.0f |\n", i*10, i*10+10, 100*b.said/b.n, 100*b.came/b.n, b.n)
		if b.n >= 30 && math.Abs(b.said-b.came)/b.n > 0.1 {
			d.breaks("%.0f jobs were predicted to start in time with probability %.2f, and a share of %.2f did",
				b.n, b.said/b.n, b.came/b.n)
		}
	}
	d.printf("\nWhere there is a bound, the bounds add up to %.0f jobs, and %.0f started in time.\n", bounded, kept)
	if kept < bounded {
		d.breaks("the bounds promise %.0f starts in time, and %.0f jobs started in time", bounded, kept)
	}
}
