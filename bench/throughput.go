package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// limitSpan is how long one measurement of the bare loop should take at most; a slower machine gets
// fewer tasks, so that a whole run stays bounded.
const limitSpan = 8 * time.Second

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

// throughput measures rounds of at most so many independent tasks.
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
	for i := range rounds {
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

func (r rig) round(ctx context.Context, t *throughput, document []byte) error {
	for _, m := range []struct {
		into    *[]sample
		measure func() (sample, error)
	}{
		{&t.limit, func() (sample, error) { return limit(ctx, r.dir, t.tasks, width) }},
		{&t.corral, func() (sample, error) { return r.stand.run(ctx, document, t.tasks, "none") }},
		{&t.clustered, func() (sample, error) { return r.stand.run(ctx, document, t.tasks, t.clustering) }},
	} {
		s, err := m.measure()
		if err != nil {
			return err
		}
		*m.into = append(*m.into, s)
	}
	return nil
}

// ratios compares the rates of two sides, round by round.
func ratios(of, to []sample) spread {
	var all spread
	for i := range of {
		all = append(all, of[i].rate()/to[i].rate())
	}
	return all
}

func rates(of []sample) spread {
	var all spread
	for _, s := range of {
		all = append(all, s.rate())
	}
	return all
}

// costs returns what one part, or all of them together, took for each task, in µs.
func costs(of []sample, cost func(cost) time.Duration) spread {
	var all spread
	for _, s := range of {
		all = append(all, float64(cost(s.cost).Nanoseconds())/1e3/float64(s.tasks))
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

// perTask is milliseconds from one task to the next.
func perTask(of []sample) spread {
	var all spread
	for _, s := range of {
		all = append(all, s.span.Seconds()*1e3/float64(s.tasks))
	}
	return all
}
