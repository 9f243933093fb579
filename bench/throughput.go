package main

// This file compares Corral with the bare loop in rounds. The machine's speed changes from one minute to the next, so
// figures of different minutes are never compared: each ratio is taken within one round, and the report contains the
// median of the ratios, not the ratio of the medians.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
)

// These limit a whole run to four minutes: one measurement of the bare loop should take at most limitSpan, so that a
// slower machine gets fewer tasks; and no round begins after roundsSpan.
const (
	limitSpan  = 7 * time.Second
	roundsSpan = 100 * time.Second
)

const (
	warmUp = 1000 // tasks that run before the first measurement
	perJob = 100  // approximate number of tasks in each clustered job
)

// A throughput holds the results of independent tasks: in each round the bare loop, Corral, Corral that keeps the
// directories of all tasks, and Corral with clustering take turns.
type throughput struct {
	tasks      int
	clustering string
	limit      []sample
	corral     []sample
	kept       []sample // with --keep-tasks
	clustered  []sample
}

// A contest holds what the measurements need: the plan, a directory, and Corral's stand.
type contest struct {
	plan
	dir   string
	stand *stand
}

// onStand calls measure with a stand that has a one-CPU pilot for each task that runs at once.
func (p plan) onStand(ctx context.Context, dir string, measure func(contest) error) (err error) {
	s, err := newStand(ctx, filepath.Join(dir, "s"))
	defer func() { err = errors.Join(err, s.takeDown()) }()
	if err == nil {
		err = s.provision(ctx, width)
	}
	if err != nil {
		return err
	}
	return measure(contest{p, dir, s})
}

// A side takes one measurement of one of the compared systems.
type side func() (sample, error)

// turns measures each side once per round, and returns each side's measurements, round by round. It continues while
// more, which gets the measurements so far, returns true. It syncs the disk before each measurement, so that the writes
// of the previous one do not disturb it.
func turns(more func(measured [][]sample) bool, sides ...side) ([][]sample, error) {
	measured := make([][]sample, len(sides))
	for more(measured) {
		for i, measure := range sides {
			syscall.Sync()
			s, err := measure()
			if err != nil {
				return nil, err
			}
			measured[i] = append(measured[i], s)
		}
	}
	return measured, nil
}

// bare runs that many tasks in bare loops, wide of which run in parallel.
func (r contest) bare(ctx context.Context, tasks, wide int) side {
	return func() (sample, error) { return limit(ctx, r.dir, tasks, wide) }
}

// through runs a workflow of that many tasks on the stand.
func (r contest) through(ctx context.Context, document []byte, tasks int, options corral.RunOptions) side {
	return func() (sample, error) { return r.stand.run(ctx, document, tasks, options) }
}

// throughput measures rounds of independent tasks: at least one, and further ones until roundsSpan is over. Clustering
// is chosen so that a clustered job has about perJob tasks.
func (r contest) throughput(ctx context.Context) (t throughput, err error) {
	if t.tasks, err = r.warmUp(ctx); err != nil {
		return t, err
	}
	t.clustering = "horizontal=" + strconv.Itoa(max(width, t.tasks/perJob))
	document, err := independent(t.tasks)
	if err != nil {
		return t, err
	}
	began := time.Now()
	measured, err := turns(func(m [][]sample) bool {
		done := len(m[0])
		if done > 0 {
			r.say("round %d, tasks/s of bare loop, corral, --keep-tasks, %s: %s", done, t.clustering, lastRound(m))
		}
		return done == 0 || done < r.rounds && time.Since(began) < roundsSpan
	}, r.bare(ctx, t.tasks, width), r.through(ctx, document, t.tasks, corral.RunOptions{}),
		r.through(ctx, document, t.tasks, corral.RunOptions{KeepTasks: true}),
		r.through(ctx, document, t.tasks, corral.RunOptions{Clustering: t.clustering}))
	if err != nil {
		return t, err
	}
	t.limit, t.corral, t.kept, t.clustered = measured[0], measured[1], measured[2], measured[3]
	return t, nil
}

// lastRound returns each side's rate in the last round, and its ratio to the first side's rate.
func lastRound(measured [][]sample) string {
	var words []string
	for _, side := range measured {
		i := len(side) - 1
		words = append(words, fmt.Sprintf("%.0f (%.2f)", side[i].rate(), side[i].rate()/measured[0][i].rate()))
	}
	return strings.Join(words, ", ")
}

// warmUp makes both sides run some tasks, because first runs are slower while caches are cold. It returns the number of
// tasks for a measurement: as many as the bare loop runs in limitSpan, but at most the plan's number.
func (r contest) warmUp(ctx context.Context) (int, error) {
	n := min(r.tasks, warmUp)
	document, err := independent(n)
	if err != nil {
		return 0, err
	}
	if _, err := r.stand.run(ctx, document, n, corral.RunOptions{}); err != nil {
		return 0, err
	}
	s, err := limit(ctx, r.dir, n, width)
	return min(r.tasks, max(n, int(s.rate()*limitSpan.Seconds()))), err
}

// ratios compares the rates of two sides, round by round.
func ratios(of, to []sample) spread { return quotients(rates(of), rates(to)) }

// thrifts compares the processor time per task of two sides, round by round. Where processors are the bottleneck, this
// equals the ratio of the rates, and other load on the machine hardly changes it.
func thrifts(of, to []sample) spread { return quotients(costs(to, cost.sum), costs(of, cost.sum)) }

// quotients divides the figures of the same rounds.
func quotients(of, by spread) (all spread) {
	for i := range of {
		all = append(all, of[i]/by[i])
	}
	return all
}

// rates returns tasks per second.
func rates(of []sample) spread { return figures(of, sample.rate) }

// costs returns the processor time per task of one part, or of all parts together, in µs.
func costs(of []sample, cost func(cost) time.Duration) spread {
	return figures(of, func(s sample) float64 { return float64(cost(s.cost).Nanoseconds()) / 1e3 / float64(s.tasks) })
}

// perTask returns the milliseconds from one task to the next.
func perTask(of []sample) spread {
	return figures(of, func(s sample) float64 { return s.span.Seconds() * 1e3 / float64(s.tasks) })
}

// figures returns one figure of each sample.
func figures(of []sample, figure func(sample) float64) (all spread) {
	for _, s := range of {
		all = append(all, figure(s))
	}
	return all
}

// latency holds the results of a dependent chain.
type latency struct{ limit, corral []sample }

// latency runs chains of no-op tasks, and the same number of tasks in one bare loop. In a chain only one task can run
// at any time, so the time beyond the bare loop's is the time from one task's end to the next one's start.
func (r contest) latency(ctx context.Context) (l latency, err error) {
	document, err := chain(r.hops)
	if err != nil {
		return l, err
	}
	measured, err := turns(func(m [][]sample) bool { return len(m[0]) < r.rounds },
		r.bare(ctx, r.hops, 1), r.through(ctx, document, r.hops, corral.RunOptions{}))
	if err != nil {
		return l, err
	}
	l.limit, l.corral = measured[0], measured[1]
	r.say("chain: %.2f ms a hop", perTask(l.corral).median())
	return l, nil
}
