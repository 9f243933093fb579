package execution

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// A release does not examine arrays of which nothing waits any more, regardless of their number.
func TestParkedForgets(t *testing.T) {
	t.Parallel()
	x, now := New(Spec{Open: true}), time.Unix(1e9, 0)
	for k := range int32(50) {
		x.Apply(Record{Added: &Addition{First: 3 * k, Count: 3, Needs: corral.Resources{CPUs: 1}, Estimate: 1000, AtOnce: 2}})
	}
	jobs := x.Release(now, Offer{})
	if len(jobs) != 100 || len(x.order.categories) != 50 {
		t.Fatalf("%d jobs of 50 arrays, %d of which have more", len(jobs), len(x.order.categories))
	}
	for n := 0; len(jobs) > 0; n++ {
		j := jobs[0]
		part := Part{int32(j.Tasks[0].Index), int32(j.Tasks[0].Attempt)}
		x.Apply(Record{Assigned: &Assignment{Seq: j.Seq, Worker: "w", Parts: []Part{part}}})
		x.Apply(Record{Finished: &Outcome{Seq: j.Seq, Task: part.Task, Attempt: part.Attempt, Status: Done, Worker: "w"}})
		jobs = append(jobs[1:], x.Release(now, Offer{})...)
	}
	if c := x.Counts(); c.Done != 150 || len(x.order.categories)+len(x.order.agendas) != 0 {
		t.Errorf("%+v, and the arrays %v are looked at", c, x.order.categories)
	}
}
