package baseline

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// The decisions of each policy, worked out by hand from its source. Pilots have 4 cpus unless a case specifies
// otherwise.
func TestDecisions(t *testing.T) {
	t.Parallel()
	wms := func(change func(*GlideinWMS)) *GlideinWMS {
		p := DefaultGlideinWMS()
		change(p)
		return p
	}
	same := func(*GlideinWMS) {}
	parsl := func(most int, parallelism float64) *Parsl {
		return &Parsl{Max: most, Parallelism: parallelism, begun: true}
	}
	for _, tt := range []struct {
		name   string
		policy Strategy
		sight  Sight
		want   int
	}{
		{"static: at the beginning", Static{8}, Sight{}, 8},
		{"static: what ended is replaced", Static{8}, Sight{Present: 5, Pending: 1}, 2},
		{"static: never fewer", Static{8}, Sight{Present: 9}, 0},

		{"greedy: one for each task", Greedy{}, Sight{Queued: 10}, 10},
		{"greedy: those that wait count", Greedy{}, Sight{Queued: 10, Pending: 4, Present: 9}, 6},
		{"greedy: no task", Greedy{}, Sight{Pending: 4}, 0},

		{"falkon: what all need", &Falkon{}, Sight{Queued: 10}, 3},
		{"falkon: those that wait count", &Falkon{}, Sight{Queued: 10, Pending: 3}, 0},
		{"falkon: one at first", &Falkon{Doubling: true}, Sight{Queued: 100}, 1},
		{"falkon: then twice as many", &Falkon{Doubling: true, next: 4}, Sight{Queued: 100, Pending: 7}, 8},
		{"falkon: no more than needed", &Falkon{Doubling: true, next: 16}, Sight{Queued: 100, Pending: 20}, 5},

		{"glideinWMS: a third", wms(same), Sight{Queued: 120}, 10},
		{"glideinWMS: old jobs have a reserve", wms(func(p *GlideinWMS) { p.before = 120 }), Sight{Queued: 120}, 15},
		{"glideinWMS: those that wait count", wms(same), Sight{Queued: 120, Pending: 7}, 3},
		{"glideinWMS: not more than may wait", wms(same), Sight{Queued: 4000}, 100},
		{"glideinWMS: workers without work are used", wms(same), Sight{Queued: 8, CPUs: 16, Busy: 4, Present: 4}, 0},
		{"glideinWMS: half at a curb", wms(func(p *GlideinWMS) { p.CurbIdle = 2 }),
			Sight{Queued: 128, CPUs: 8, Present: 2}, 5},
		{"glideinWMS: none at a limit", wms(func(p *GlideinWMS) { p.MaxRunning = 4 }), Sight{Queued: 100, Present: 4}, 0},
		{"glideinWMS: never more than run and are needed", wms(func(p *GlideinWMS) { p.Attenuation = 1; p.Fraction = 1 }),
			Sight{Queued: 4, Present: 3, Pending: 0}, 1},

		{"cobald: grows while all is used", &COBalD{Low: 0.5, High: 0.5, Rate: 1, demand: 8},
			Sight{Now: 8 * time.Second, CPUs: 8, Busy: 8, Present: 2}, 2},
		{"cobald: shrinks while little is", &COBalD{Low: 0.5, High: 0.5, Rate: 1, demand: 16},
			Sight{Now: 8 * time.Second, CPUs: 16, Busy: 4, Present: 4}, -2},
		{"cobald: stays between", &COBalD{Low: 0.3, High: 0.9, Rate: 1, demand: 16},
			Sight{Now: 8 * time.Second, CPUs: 16, Busy: 8, Present: 4}, 0},
		{"cobald: asks although there is no queue", DefaultCOBalD(), Sight{Now: 4 * time.Second}, 1},

		{"hyperqueue: a backlog of one", HyperQueue{Backlog: 1}, Sight{Queued: 100}, 1},
		{"hyperqueue: that is full", HyperQueue{Backlog: 1}, Sight{Queued: 100, Pending: 1}, 0},
		{"hyperqueue: none for what fits those that are there", HyperQueue{Backlog: 4}, Sight{Queued: 6, CPUs: 8}, 0},
		{"hyperqueue: none for what fits those that wait", HyperQueue{Backlog: 4}, Sight{Queued: 8, Pending: 2}, 0},
		{"hyperqueue: several workers in each", HyperQueue{Backlog: 2, Workers: 4}, Sight{Queued: 100}, 8},
		{"hyperqueue: never over the maximum", HyperQueue{Backlog: 9, Most: 3}, Sight{Queued: 100, Present: 2}, 1},

		{"parsl: the first block", DefaultParsl(), Sight{}, 1},
		{"parsl 1: nothing to do", parsl(10, 1), Sight{Present: 3}, 0},
		{"parsl 2a: all blocks are there", parsl(3, 1), Sight{Queued: 100, Present: 2, Pending: 1}, 0},
		{"parsl 2b: a slot for each task", parsl(10, 1), Sight{Queued: 14, Busy: 4, Present: 1}, 4},
		{"parsl 2b: half a slot for each", parsl(10, 0.5), Sight{Queued: 14, Busy: 4, Present: 1}, 2},
		{"parsl 2b: up to the maximum", parsl(3, 1), Sight{Queued: 100, Present: 1}, 2},
		{"parsl 3: no slots, but tasks", parsl(10, 0), Sight{Queued: 14}, 1},
		{"parsl: enough", parsl(10, 1), Sight{Busy: 4, Present: 1}, 0},
	} {
		tt.sight.Each = 4
		if got := tt.policy.Decide(tt.sight); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Among surplus pilots, queued pilots are removed first, and each is removed only once.
func TestWhoGoesFirst(t *testing.T) {
	t.Parallel()
	m := Method{New: func() Strategy { return &shrinking{} }}
	control := m.Control(Setting{Most: 10})
	view := sim.View{Pilots: []sim.Held{
		{Glidein: 1, Ready: 5, End: -1}, {Glidein: 2, Ready: -1, End: -1}, {Glidein: 3, Ready: 6, End: -1},
		{Glidein: 4, Ready: 7, End: 8},
	}}
	var order []int
	for range 4 {
		for _, a := range control(0, view) {
			order = append(order, int(a.Glidein))
		}
	}
	if len(order) != 3 || order[0] != 2 || order[1] != 3 || order[2] != 1 {
		t.Errorf("pilots %v are let go, want 2, 3 and 1", order)
	}
}

type shrinking struct{}

func (shrinking) Decide(Sight) int { return -1 }

// A policy that drains its pilots before they work requests further ones until it reaches the limit of requests.
func TestLimitOfRequests(t *testing.T) {
	t.Parallel()
	m := Method{New: func() Strategy { return Static{2} }}
	control := m.Control(Setting{Pilot: plan.Pilot{Shape: corral.Shape{CPUs: 1}}, Most: 4, Requests: 5})
	sum := 0
	for i := range 10 {
		sum += len(control(time.Duration(i)*time.Second, sim.View{Tasks: corral.RunTasks{Ready: 4}}))
	}
	if sum != 5 {
		t.Errorf("%d pilots are requested, want 5", sum)
	}
}
