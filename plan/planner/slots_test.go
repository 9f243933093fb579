package planner

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Three tasks of an hour run in sequence in a queue of two cpus, which other jobs hold during the second hour. One
// pilot uses the time before, and a second pilot uses the time after it; the second pilot is queued from the beginning,
// because it is too long for the first hour.
func TestPilotsInSlots(t *testing.T) {
	t.Parallel()
	const h, s = time.Hour, time.Second
	room := slot.NewProfile(2, 0)
	room.Take(h+2*time.Minute, 2*h, 2)
	site := cloud()
	site.Overhead, site.Margin, site.Calendar.Room = 10*s, 20*s, room
	site.Host.CPUs, site.Hosts, site.CPUs = 1, 4, 4
	w := plan.Work{Name: "chain"}
	for range 3 {
		w.Tasks = append(w.Tasks, plan.Task{ID: "t", Runtime: h, Needs: corral.Resources{CPUs: 1}})
	}
	var err error
	if w.Graph, err = dag.New(3, [][2]int{{0, 1}, {1, 2}}); err != nil {
		t.Fatal(err)
	}
	choice := []Slot{
		{Site: site.Name, Queue: site.Queue, CPUs: 2, Span: plan.Span{From: 0, To: h + 2*time.Minute}},
		{Site: site.Name, Queue: site.Queue, CPUs: 2, Span: plan.Span{From: 2 * h, To: 12 * h}},
	}
	pl, err := Make(plan.Problem{Work: w, Sites: []plan.Site{site}}, plan.Goal{Objective: plan.Cost},
		Options{Slots: [][]Slot{choice[:1], choice}})
	if err != nil || !pl.Feasible || len(pl.Pilots) != 2 {
		t.Fatalf("%+v, %v", pl, err)
	}
	first, second := pl.Pilots[0], pl.Pilots[1]
	if first.Submit != 0 || first.Start != 0 || first.Early || time.Duration(first.Walltime) > h+2*time.Minute {
		t.Errorf("the first pilot is %+v", first)
	}
	if second.Submit != 0 || time.Duration(second.Start) != 2*h || !second.Early {
		t.Errorf("the second pilot is %+v", second)
	}
	if want := 4*h + 10*s; time.Duration(pl.Makespan) != want {
		t.Errorf("makespan %s, want %s", pl.Makespan, want)
	}
}

// If a site accepts one pilot at a time, the second pilot is queued once the first has left.
func TestPilotsInSlotsOneAtATime(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	site := cloud()
	site.Room, site.Pilots = slot.NewProfile(2, 0), 1
	pilots := []plan.Pilot{
		{Site: site.Name,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(2 * h)},
			End:   corral.Seconds(h)},
		{Site: site.Name,
			Shape: corral.Shape{Hosts: 1, CPUs: 2, Walltime: corral.Seconds(h)},
			Start: corral.Seconds(2 * h), End: corral.Seconds(3 * h)},
	}
	plan.Line([]plan.Site{site}, pilots, 0)
	if got := time.Duration(pilots[1].Submit); got != h {
		t.Errorf("the second is in line after %s, want after the first has gone", got)
	}
	site.Pilots = 2
	plan.Line([]plan.Site{site}, pilots, 0)
	if got := time.Duration(pilots[1].Submit); got != 0 {
		t.Errorf("with two at a time it is in line after %s", got)
	}
}

// Plans in slots are valid, or reported as impossible, for any room: Make checks each plan. The slots are the single
// steps of the room, so that pilots are cut off at the ends of these steps.
func TestEveryPlanInSlotsIsValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		problem := randomProblem(t, rng, 40)
		var choices [][]Slot
		for i := range problem.Sites {
			site := &problem.Sites[i]
			site.Tariff.Rate.Unit = cost.CPUHours
			if rng.IntN(4) == 0 {
				choices = append(choices, []Slot{{site.Name, site.Queue, site.CPUs, plan.Span{To: site.Walltime}}})
				continue
			}
			site.Room = randomRoom(rng)
			choices = append(choices, eachStep(site))
		}
		for k := 1; k < len(choices); k++ {
			choices[k] = append(choices[k], choices[k-1]...)
		}
		if _, err := Make(problem, plan.Goal{Objective: quick[rng.IntN(len(quick))]}, Options{Slots: choices}); err != nil {
			rt.Fatal(err)
		}
	})
}

// randomRoom returns the room that other jobs leave in a queue.
func randomRoom(rng *rand.Rand) *slot.Profile {
	room := slot.NewProfile(4+rng.IntN(60), 0)
	for range rng.IntN(12) {
		n, length := 1+rng.IntN(room.Processors()), time.Duration(1+rng.IntN(7200))*time.Second
		if at, ok := room.Fit(time.Duration(rng.IntN(7200))*time.Second, length, n); ok {
			room.Take(at, at+length, n)
		}
	}
	return room
}

// eachStep returns the slots of a room between two changes.
func eachStep(site *plan.Site) (all []Slot) {
	for at, free := range site.Room.Steps() {
		if n := len(all); n > 0 {
			all[n-1].To = min(at, all[n-1].From+site.Walltime)
		}
		all = append(all, Slot{site.Name, site.Queue, free, plan.Span{From: at, To: at + site.Walltime}})
	}
	return all
}
