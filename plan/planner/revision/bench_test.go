package revision_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/workflow/dag"
)

// crowd returns a run of tasks of a minute, in chains of ten, on pilots with eight cpus that have done half of the
// work. The pilots differ slightly, so that no two are equivalent.
func crowd(b *testing.B, tasks, pilots int) revision.View {
	b.Helper()
	var edges [][2]int
	for i := range tasks {
		if i%10 > 0 {
			edges = append(edges, [2]int{i - 1, i})
		}
	}
	g, err := dag.New(tasks, edges)
	if err != nil {
		b.Fatal(err)
	}
	span := time.Duration(tasks/(8*pilots)) * time.Minute
	v := revision.View{Now: span / 2, Period: time.Second, Grace: time.Second, Promise: span,
		Goal: plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(2 * span)}}
	v.Problem = plan.Problem{Work: plan.Work{Graph: g}, Sites: []plan.Site{hpc(0).Site}}
	for i := range tasks {
		v.Problem.Work.Tasks = append(v.Problem.Work.Tasks, plan.Task{ID: fmt.Sprint(i), Kind: fmt.Sprint(i % 10),
			Runtime: time.Minute + time.Duration(i%997)*time.Millisecond, Needs: corral.Resources{CPUs: 1}})
		t := revision.Task{State: corral.TaskWaiting, Pilot: -1}
		if i%10 < 5 {
			t.State, t.Took = corral.TaskDone, time.Minute
		} else if i%10 == 5 {
			t.State = corral.TaskReady
		}
		v.Tasks = append(v.Tasks, t)
	}
	for k := range pilots {
		q := onePilot(k, revision.Working)
		q.Began, q.CPUs, q.Host.CPUs, q.Keep = 0, 8, 8, time.Hour
		q.Walltime = corral.Seconds(4*span + time.Duration(k)*time.Second)
		q.Tariff.Rate.Price += cost.Money(k)
		v.Pilots = append(v.Pilots, q)
	}
	return v
}

// BenchmarkDecide measures a decision about a large run: it takes a single list schedule if all is well, several if
// releasing pilots is considered, and a search, which is cancelled by its context, if more pilots are needed.
func BenchmarkDecide(b *testing.B) {
	for _, tasks := range []int{10_000, 100_000, 1_000_000} {
		v := crowd(b, tasks, 100)
		well, dear, behind, mixed := v, v, v, v
		mixed.Problem.Work.Tasks = slices.Clone(v.Problem.Work.Tasks) // with a hundred different needs
		for i := range mixed.Problem.Work.Tasks {
			mixed.Problem.Work.Tasks[i].Needs.MemoryMiB = 1 + i%100
		}
		dear.Goal.Budget = &cost.Amount{Money: 1, Unit: cost.CPUHours} // replaced below
		d, err := revision.Decide(well)
		if err != nil {
			b.Fatal(err)
		}
		dear.Goal.Budget.Money = d.Predicted.Cost
		behind.Goal.Deadline = corral.Seconds(v.Now + (d.Predicted.End-v.Now)/2)
		behind.Goal.Budget = &cost.Amount{Money: 2 * d.Predicted.Cost, Unit: cost.CPUHours}
		for _, c := range []struct {
			name string
			v    revision.View
		}{{"well", well}, {"mixed", mixed}, {"dear", dear}, {"behind", behind}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, tasks), func(b *testing.B) {
				for b.Loop() {
					v := c.v
					ctx, cancel := context.WithTimeout(b.Context(), time.Second/3)
					v.Context = ctx
					if _, err := revision.Decide(v); err != nil {
						b.Fatal(err)
					}
					cancel()
				}
			})
		}
	}
}
