package plan_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// Numbers that no planner assumes are reported; numbers that mean "not known" are valid.
func TestAssumedCheck(t *testing.T) {
	t.Parallel()
	back := -corral.Seconds(time.Second)
	queue := func(change func(*plan.Queue)) func(*plan.Assumed) {
		return func(a *plan.Assumed) { change(&a.Queues[0]) }
	}
	for _, c := range []struct {
		want   string
		change func(*plan.Assumed)
	}{
		{"", func(*plan.Assumed) {}},
		{"hop_s is -1s", func(a *plan.Assumed) { a.Hop = back }},
		{"reuse_s is -1s", func(a *plan.Assumed) { a.Reuse = back }},
		{"leave_s is -1s", func(a *plan.Assumed) { a.Leave = back }},
		{"tasks_per_s is -2", func(a *plan.Assumed) { a.Rate = -2 }},
		{"the speed of here is -1", func(a *plan.Assumed) { a.Speeds = map[string]corral.Speed{"here": -1} }},
		{"transfers[0]: latency_s is -1s, bytes_per_s 0", func(a *plan.Assumed) {
			a.Transfers = []plan.SiteTransfer{{Site: "here", Latency: back}}
		}},
		{`errors of "k": the ratios are missing, negative or not in ascending order`, func(a *plan.Assumed) {
			a.Errors = plan.Errors{"k": {Ratios: []float64{2, 1}}}
		}},
		{"queues[0]: overhead_s is -1s", queue(func(q *plan.Queue) { q.Overhead = back })},
		{"queues[0]: margin_s is -1s", queue(func(q *plan.Queue) { q.Margin = back })},
		{"queues[0]: a limit, the speed or the price is negative", queue(func(q *plan.Queue) { q.Hosts = -1 })},
		{"queues[0]: a limit, the speed or the price is negative", queue(func(q *plan.Queue) { q.Price = -1 })},
		{"queues[0]: waits[0]: the waits are negative or not in ascending order", queue(func(q *plan.Queue) {
			q.Waits = []plan.ShapeWaits{{CPUs: 1, Waits: plan.Spread{2, 1}}}
		})},
		{"queues[0]: waits[0]: the waits are negative or not in ascending order", queue(func(q *plan.Queue) {
			q.Waits = []plan.ShapeWaits{{CPUs: 1, Planned: back}}
		})},
	} {
		a := &plan.Assumed{Hop: 1, Spread: "0", Queues: []plan.Queue{{Site: "here", Waits: []plan.ShapeWaits{{CPUs: 1}}}}}
		c.change(a)
		got := ""
		if err := a.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("Check = %q, want %q", got, c.want)
		}
	}
}
