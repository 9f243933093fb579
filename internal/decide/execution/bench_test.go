package execution_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// wide returns a workflow of one task, then n parallel tasks, then one. Ranks differ, so that jobs have an order.
func wide(b *testing.B, n int) execution.Spec {
	s := execution.Spec{Tasks: make([]execution.TaskSpec, n+2)}
	var edges [][2]int
	for i := range s.Tasks {
		estimate := time.Duration(1+i%100) * time.Second
		s.Tasks[i] = execution.TaskSpec{ID: fmt.Sprint(i), CPUs: 1, Estimate: estimate, Retries: 3}
		if i > 0 && i <= n {
			edges = append(edges, [2]int{0, i}, [2]int{i, n + 1})
		}
	}
	g, err := dag.New(n+2, edges)
	if err != nil {
		b.Fatal(err)
	}
	s.Graph = g
	return s
}

// BenchmarkEvents measures the cost of the two events of an attempt, each with the release that follows it. Every task
// first fails twice and then waits for the end of its back-off, so that thousands of back-offs run at once.
func BenchmarkEvents(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5} {
		spec := wide(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			events := 0
			for b.Loop() {
				x, now := execution.New(spec), time.Unix(1e9, 0)
				var queued []execution.Job
				tell := func(r execution.Record) {
					r.At = execution.ToMsec(now)
					x.Apply(r)
					queued = append(queued, x.Release(now, execution.Offer{})...)
					now = now.Add(10 * time.Microsecond)
					events++
				}
				for queued = x.Release(now, execution.Offer{}); !x.Done(); {
					if len(queued) == 0 {
						now, _ = x.Next()
						queued = x.Release(now, execution.Offer{})
						continue
					}
					j := queued[0]
					queued = queued[1:]
					task := &j.Tasks[0]
					part := execution.Part{Task: int32(task.Index), Attempt: int32(task.Attempt)}
					status := execution.Done
					if task.Attempt <= 2 {
						status = execution.Failed
					}
					parts := []execution.Part{part}
					tell(execution.Record{Assigned: &execution.Assignment{Seq: j.Seq, Worker: "w", Parts: parts}})
					tell(execution.Record{Finished: &execution.Outcome{
						Seq: j.Seq, Task: part.Task, Attempt: part.Attempt, Status: status, Worker: "w",
						Started: execution.ToMsec(now), Ended: execution.ToMsec(now),
					}})
				}
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
