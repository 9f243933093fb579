package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/workflow/profile"
)

// A sized task is a task of a published run whose memory was measured.
type sized struct {
	kind string
	mib  int
	took float64 // seconds
}

// A sizer decides how much memory the tasks of one kind get. Tasks run one after another.
type sizer interface {
	first(asked int) int       // memory of a task's first attempt
	killed(had, kills int) int // a task was killed; returns the memory of its next attempt
	done(mib, kills int)       // a task needed mib, after this number of kills
}

// alone lets each task double its memory, as if it were the only one of its kind.
type alone struct{}

func (alone) first(asked int) int   { return asked }
func (alone) killed(had, _ int) int { return 2 * had }
func (alone) done(int, int)         {}

// maximum gives tasks the maximum of their kind so far as soon as one was killed, and doubles it.
type maximum struct {
	most   int
	learns bool
}

func (m *maximum) first(asked int) int {
	if m.learns {
		return max(asked, m.most)
	}
	return asked
}

func (m *maximum) killed(had, _ int) int {
	if m.learns = true; m.most > had {
		return m.most
	}
	return 2 * had
}

func (m *maximum) done(mib, _ int) { m.most = max(m.most, mib) }

// learned is Corral's rule.
type learned struct{ sizes profile.Sizes }

func (l *learned) first(asked int) int { return l.sizes.Start(asked) }

func (l *learned) killed(had, kills int) int {
	l.sizes.Killed(had, kills > 1)
	return l.sizes.Next()
}

func (l *learned) done(mib, kills int) { l.sizes.Ended(mib, kills > 0) }

// sizers lists the rules.
var sizers = []struct {
	name string
	of   func() sizer
}{
	{"each task doubles", func() sizer { return alone{} }},
	{"maximum of the kind", func() sizer { return &maximum{} }},
	{"Corral's: by kind", func() sizer { return &learned{} }},
}

// A waste sums what a rule gave to tasks and what they used, in MiB seconds.
type waste struct {
	given, used         float64
	tasks, kills, twice int // twice: tasks killed more than once
}

// run adds the tasks of a run, each of which asks for a share of the most that any task of its kind needs. A killed
// attempt holds its memory for the task's whole runtime, as in the simulations of Sizey's authors.
func (w *waste) run(tasks []sized, of func() sizer, share float64) {
	most, sizers := map[string]int{}, map[string]sizer{}
	for _, t := range tasks {
		if most[t.kind] = max(most[t.kind], t.mib); sizers[t.kind] == nil {
			sizers[t.kind] = of()
		}
	}
	for _, t := range tasks {
		s, kills := sizers[t.kind], 0
		mib := s.first(max(1, int(share*float64(most[t.kind]))))
		for ; mib < t.mib; kills++ {
			w.given += float64(mib) * t.took
			mib = s.killed(mib, kills+1)
		}
		s.done(t.mib, kills)
		w.given += float64(mib) * t.took
		w.used += float64(t.mib) * t.took
		w.tasks, w.kills, w.twice = w.tasks+1, w.kills+kills, w.twice+min(1, kills/2)
	}
}

// sizedOf returns the tasks of a run with measured memory, parents first.
func sizedOf(p published) (tasks []sized) {
	subjects := profile.Tasks(p.flow)
	for _, i := range p.flow.Graph.Order() {
		if t := &p.flow.Tasks[i]; t.MemoryBytes > 0 && t.Runtime > 0 {
			kind := strings.TrimRight(subjects[i].Transformation, "0123456789")
			tasks = append(tasks, sized{kind, int((t.MemoryBytes + 1<<20 - 1) >> 20), t.Runtime.Seconds()})
		}
	}
	return tasks
}

// fewestSized is the minimum number of tasks with measured memory of a run that counts.
const fewestSized = 20

// memory prints the waste and the kills of each rule, for tasks that ask for too little.
func (d desk) memory(ctx context.Context) error {
	all, err := readPublished(ctx, d.instances)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b published) int { return cmp.Compare(a.application(), b.application()) })
	d.say("## Memory by kind\n")
	t := results{{"application", "asked", "rule", "tasks", "kills", "killed more than once", "waste"}}
	for _, share := range []float64{0.25, 0.5, 0.75} {
		for k := 0; k < len(all); {
			app, wastes := all[k].application(), make([]waste, len(sizers))
			for ; k < len(all) && all[k].application() == app; k++ {
				if tasks := sizedOf(all[k]); len(tasks) >= fewestSized {
					for r := range sizers {
						wastes[r].run(tasks, sizers[r].of, share)
					}
				}
			}
			for r, w := range wastes {
				if w.tasks > 0 {
					t.add("%s|%.0f %%|%s|%d|%d|%d|%.0f %%", app, 100*share, sizers[r].name, w.tasks, w.kills, w.twice,
						100*(w.given/w.used-1))
				}
			}
		}
	}
	if len(t) == 1 {
		return fmt.Errorf("no run in %s has %d tasks with measured memory", d.instances, fewestSized)
	}
	return d.show("memory", t)
}
