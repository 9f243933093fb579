package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"time"
)

// What bounds a whole run to four minutes: one measurement of the bare loop should take at most
// limitSpan, so that a slower machine gets fewer tasks; and after roundsSpan no round begins.
const (
	limitSpan  = 7 * time.Second
	roundsSpan = 100 * time.Second
)

const (
	warmUp    = 1000 // tasks that are run before anything is measured
	xargsPart = 4    // xargs gets this part of the tasks
	perJob    = 100  // tasks in each clustered job, about
)

// A throughput is what was measured of independent tasks: in each round the bare loop, Corral, and
// Corral with clustering took turns.
type throughput struct {
	tasks      int
	clustering string
	xargs      sample
	limit      []sample
	corral     []sample
	clustered  []sample
}

// A rig is what measurements need: a directory, Corral, and a place to say what goes on.
type rig struct {
	dir    string
	stand  *stand
	stderr io.Writer
}

func (r rig) say(format string, args ...any) { fmt.Fprintf(r.stderr, "bench: "+format+"\n", args...) }

// throughput measures rounds of at most so many independent tasks; at least one, and then until
// roundsSpan is over.
func (r rig) throughput(ctx context.Context, most, rounds int) (t throughput, err error) {
	if t.tasks, err = r.warmUp(ctx, most); err != nil {
		return t, err
	}
	t.clustering = "horizontal=" + strconv.Itoa(max(width, t.tasks/perJob))
	document, err := independent(t.tasks)
	if err != nil {
		return t, err
	}
	if t.xargs, err = xargs(ctx, max(1, t.tasks/xargsPart)); err != nil {
		return t, err
	}
	began := time.Now()
	for i := 0; i < rounds && time.Since(began) < roundsSpan; i++ {
		if err := r.round(ctx, &t, document); err != nil {
			return t, err
		}
		l, c, h := t.limit[i].rate(), t.corral[i].rate(), t.clustered[i].rate()
		r.say("round %d: bare loop %.0f, corral %.0f (%.2f), %s %.0f (%.2f) tasks/s", i+1, l, c, c/l, t.clustering, h, h/l)
	}
	return t, nil
}

// warmUp has both sides run some tasks, and returns how many a measurement should have.
func (r rig) warmUp(ctx context.Context, most int) (int, error) {
	n := min(most, warmUp)
	document, err := independent(n)
	if err != nil {
		return 0, err
	}
	if _, err := r.stand.run(ctx, document, n, "none"); err != nil {
		return 0, err
	}
	s, err := limit(ctx, r.dir, n, width)
	return min(most, max(n, int(s.rate()*limitSpan.Seconds()))), err
}

// round measures all three, each on a disk that has nothing left to do for the one before.
func (r rig) round(ctx context.Context, t *throughput, document []byte) error {
	for _, m := range []struct {
		into    *[]sample
		measure func() (sample, error)
	}{
		{&t.limit, func() (sample, error) { return limit(ctx, r.dir, t.tasks, width) }},
		{&t.corral, func() (sample, error) { return r.stand.run(ctx, document, t.tasks, "none") }},
		{&t.clustered, func() (sample, error) { return r.stand.run(ctx, document, t.tasks, t.clustering) }},
	} {
		syscall.Sync()
		s, err := m.measure()
		if err != nil {
			return err
		}
		*m.into = append(*m.into, s)
	}
	return nil
}

// ratios compares the rates of two sides, round by round.
func ratios(of, to []sample) spread { return quotients(rates(of), rates(to)) }

// thrifts compares what a task costs on two sides in processor time, round by round: where processors
// are what is short, it is the ratio of the rates, and other people's load hardly changes it.
func thrifts(of, to []sample) spread { return quotients(costs(to, cost.sum), costs(of, cost.sum)) }

func quotients(of, by spread) (all spread) {
	for i := range of {
		all = append(all, of[i]/by[i])
	}
	return all
}

func rates(of []sample) spread { return figures(of, sample.rate) }

// costs returns what one part, or all of them together, took for each task, in µs.
func costs(of []sample, cost func(cost) time.Duration) spread {
	return figures(of, func(s sample) float64 { return float64(cost(s.cost).Nanoseconds()) / 1e3 / float64(s.tasks) })
}

// perTask is milliseconds from one task to the next.
func perTask(of []sample) spread {
	return figures(of, func(s sample) float64 { return s.span.Seconds() * 1e3 / float64(s.tasks) })
}

func figures(of []sample, figure func(sample) float64) (all spread) {
	for _, s := range of {
		all = append(all, figure(s))
	}
	return all
}

// latency is what was measured of a dependent chain.
type latency struct{ limit, corral []sample }

// latency runs chains of no-op tasks, and as many tasks in one bare loop.
func (r rig) latency(ctx context.Context, hops, rounds int) (l latency, err error) {
	document, err := chain(hops)
	if err != nil {
		return l, err
	}
	for range rounds {
		bare, err := limit(ctx, r.dir, hops, 1)
		if err != nil {
			return l, err
		}
		through, err := r.stand.run(ctx, document, hops, "none")
		if err != nil {
			return l, err
		}
		l.limit, l.corral = append(l.limit, bare), append(l.corral, through)
	}
	r.say("chain: %.2f ms a hop", perTask(l.corral).median())
	return l, nil
}
