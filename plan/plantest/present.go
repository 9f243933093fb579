package plantest

import (
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// AddPresent adds one to three pilots to a problem, drawn from a seed, that are present before it is planned: some come
// later, some leave soon, and some run the problem's first tasks.
func AddPresent(p *plan.Problem, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 'p'))
	begun := 0
	for range 1 + rng.IntN(3) {
		q := presentPilot(rng)
		q.Site, q.Pace = p.Sites[0].Name, p.Sites[0].Pace
		switch rng.IntN(3) {
		case 0:
			q.Ready = minutes(rng, 20)
		case 1:
			q.Idle = minutes(rng, 1)
		default:
			for host := range q.Hosts {
				begun = begin(p, &q, host, begun, rng)
			}
			if len(q.Running) > 0 && rng.IntN(4) == 0 {
				q.End = 0 // it leaves after its tasks
			}
		}
		p.Present = append(p.Present, q)
	}
}

func minutes(rng *rand.Rand, most int) time.Duration {
	return time.Duration(rng.IntN(most*60)) * time.Second
}

func presentPilot(rng *rand.Rand) plan.Present {
	q := plan.Present{Hosts: 1 + rng.IntN(2), End: 10*time.Minute + minutes(rng, 300), Keep: plan.Unbounded,
		Host: corral.Resources{CPUs: 1 + rng.IntN(8), MemoryMiB: 64_000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited}}
	if rng.IntN(2) == 0 {
		q.Keep = time.Minute + minutes(rng, 30)
	}
	return q
}

// begin lets tasks run on a host of a present pilot, from the given one on as far as they are ready and fit. It returns
// the next task.
func begin(p *plan.Problem, q *plan.Present, host, task int, rng *rand.Rand) int {
	left := q.Host
	for ; task < len(p.Work.Tasks) && len(p.Work.Graph.Parents(task)) == 0 && rng.IntN(4) > 0; task++ {
		t := &p.Work.Tasks[task]
		if !t.Needs.FitIn(left) {
			break
		}
		left = left.Minus(t.Needs)
		t.Runtime, t.Bytes = (t.Runtime / 2).Round(time.Millisecond), plan.Here
		q.Running = append(q.Running, plan.Running{Task: task, Host: host})
	}
	return task
}
