package queueing_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// waitOf returns an attempt that waited for the given number of minutes and then started.
func waitOf(minutes int) corral.Wait {
	return corral.Wait{Queue: "long", Hosts: 1, CPUs: 2, Walltime: corral.Seconds(time.Hour), SubmittedAt: noon, StartedAt: noon.Add(time.Duration(minutes) * time.Minute)}
}

// gaveUp returns an attempt that was ended after the given number of minutes in the queue.
func gaveUp(minutes int) corral.Wait {
	w := waitOf(minutes)
	w.StartedAt, w.EndedAt, w.Outcome = time.Time{}, w.StartedAt, corral.OutcomeRemoved
	return w
}

// waiting returns an attempt that is still in the queue after the given number of minutes, at 13:00.
func waiting(minutes int) corral.Wait {
	w := waitOf(0)
	w.SubmittedAt, w.StartedAt = noon.Add(time.Hour-time.Duration(minutes)*time.Minute), time.Time{}
	return w
}

func TestStats(t *testing.T) {
	t.Parallel()
	within := func(minutes int) corral.Quantile {
		return corral.Quantile{Wait: corral.Seconds(time.Duration(minutes) * time.Minute)}
	}
	beyond := func(minutes int) corral.Quantile {
		q := within(minutes)
		q.AtLeast = true
		return q
	}
	for _, tt := range []struct {
		name        string
		waits       []corral.Wait
		median, p90 corral.Quantile
		max         int
		censored    int
	}{
		{"one", []corral.Wait{waitOf(7)}, within(7), within(7), 7, 0},
		{"ten", []corral.Wait{waitOf(1), waitOf(2), waitOf(10), waitOf(4), waitOf(5), waitOf(6), waitOf(7), waitOf(8), waitOf(9), waitOf(3)}, within(5), within(9), 10, 0},
		{"all alike", []corral.Wait{waitOf(3), waitOf(3), waitOf(3)}, within(3), within(3), 3, 0},
		{"none started: nothing but a bound is known", []corral.Wait{gaveUp(5), waiting(10)}, beyond(10), beyond(10), 0, 2},
		{"most gave up: the median is not what the one that started waited", []corral.Wait{waitOf(1), gaveUp(5), gaveUp(5), gaveUp(5)}, beyond(5), beyond(5), 1, 3},
		{"gave up at once: it says nothing of the others", []corral.Wait{gaveUp(0), waitOf(4), waitOf(6)}, within(4), within(6), 6, 1},
		{"one still waits", []corral.Wait{waitOf(1), waitOf(2), waitOf(3), waiting(30)}, within(2), beyond(30), 3, 1},
		{"one gave up between", []corral.Wait{waitOf(1), gaveUp(2), waitOf(3), waitOf(4)}, within(3), within(4), 4, 1},
		{"gave up when another started", []corral.Wait{waitOf(2), gaveUp(2)}, within(2), beyond(2), 2, 1},
		{"gave up when another started, in another order", []corral.Wait{gaveUp(2), waitOf(2), gaveUp(2), waitOf(2)}, within(2), beyond(2), 2, 2},
		{"the site's clock is behind", []corral.Wait{waitOf(-1)}, within(0), within(0), 0, 0},
	} {
		want := []corral.WaitStats{{Queue: "long", Hosts: 1, CPUs: 2, Walltime: corral.Seconds(time.Hour), Count: len(tt.waits), Censored: tt.censored,
			Median: tt.median, P90: tt.p90, Max: corral.Seconds(time.Duration(tt.max) * time.Minute)}}
		if diff := cmp.Diff(want, queueing.Stats(tt.waits, noon.Add(time.Hour))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Attempts whose start was not observed or which were lost have waits of unknown length.
func TestWaitsOfUnknownLength(t *testing.T) {
	t.Parallel()
	waits := []corral.Wait{waitOf(1), waitOf(3)}
	want := queueing.Stats(waits, noon)
	for _, o := range []corral.Outcome{corral.OutcomeExpired, corral.OutcomeIdle, corral.OutcomeDrained, corral.OutcomePreempted, corral.OutcomeDuplicate, corral.OutcomeLost} {
		unseen := gaveUp(2)
		unseen.Outcome = o
		if diff := cmp.Diff(want, queueing.Stats(append(waits, unseen), noon)); diff != "" {
			t.Errorf("with one that ended as %s (-want +got):\n%s", o, diff)
		}
	}
	for _, o := range []corral.Outcome{corral.OutcomeRemoved, corral.OutcomeFailed} { // in the queue: it waited too long, for example
		censored := gaveUp(2)
		censored.Outcome = o
		if got := queueing.Stats(append(waits, censored), noon); got[0].Censored != 1 {
			t.Errorf("with one that ended as %s: %+v", o, got)
		}
	}
}

func TestStatsByShape(t *testing.T) {
	t.Parallel()
	wide, big, short, long := waitOf(50), waitOf(20), waitOf(2), waitOf(9)
	wide.Hosts, big.CPUs, short.Queue, long.Walltime = 4, 8, "debug", corral.Seconds(2*time.Hour)
	type line struct {
		queue    string
		hosts    int
		walltime corral.Seconds
		median   corral.Seconds
	}
	var got []line
	for _, s := range queueing.Stats([]corral.Wait{wide, big, waitOf(1), long, short}, noon) {
		got = append(got, line{s.Queue, s.Hosts, s.Walltime, s.Median.Wait})
	}
	minutes := func(n int) corral.Seconds { return corral.Seconds(time.Duration(n) * time.Minute) }
	want := []line{{"debug", 1, minutes(60), minutes(2)}, {"long", 1, minutes(60), minutes(1)}, {"long", 1, minutes(120), minutes(9)},
		{"long", 1, minutes(60), minutes(20)}, {"long", 4, minutes(60), minutes(50)}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := queueing.Stats(nil, noon); got != nil {
		t.Errorf("of no waits: %v", got)
	}
}

// A bound is the wait of the rank that the binomial distribution yields: of 100 waits, which count as 5, the longest
// bounds the median. Attempts that have not started yet count as longer waits.
func TestBound(t *testing.T) {
	t.Parallel()
	many := func(n int) (all []corral.Wait) {
		for i := range n {
			all = append(all, waitOf(1+i))
		}
		return all
	}
	for _, tt := range []struct {
		name    string
		waits   []corral.Wait
		share   float64
		want    int
		atLeast bool
	}{
		{"none", nil, 0.5, 0, true},
		{"too few for any bound: the longest", many(99), 0.5, 99, true},
		{"just enough: the longest", many(100), 0.5, 100, false},
		{"9 of 10", many(200), 0.5, 180, false},
		{"no more than twice as many as it takes: 9 of 10 of the latest 200", many(300), 0.5, 280, false},
		{"too few for the tail", many(200), 0.9, 200, true},
		{"57 of 58", many(1160), 0.9, 1140, false},
		{"the longest of all", many(200), 1, 200, true},
		{"one waits for longer than all", append(many(198), gaveUp(500), gaveUp(600)), 0.9, 600, true},
	} {
		got := queueing.Bound(tt.waits, tt.share, noon.Add(time.Hour))
		want := corral.Quantile{Wait: corral.Seconds(time.Duration(tt.want) * time.Minute), AtLeast: tt.atLeast}
		if got != want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
	}
	for share, want := range map[float64]int{0: 20, 1: 59_900, 0.5: 100, 0.75: 220, 0.9: 580, 0.95: 1180} {
		if got := queueing.BoundNeeds(share); got != want {
			t.Errorf("BoundNeeds(%g) = %d, want %d", share, got, want)
		}
	}
}

// A bound is based on the starts among the latest waits: for a median, among the latest 200 of known length.
func TestBoundRests(t *testing.T) {
	t.Parallel()
	all := []corral.Wait{waitOf(1), waitOf(2)}
	for range 199 {
		all = append(all, gaveUp(5))
	}
	lost := waitOf(3)
	lost.StartedAt, lost.Outcome = time.Time{}, corral.OutcomeLost
	if got := queueing.BoundRests(append(all, lost), 0.5); got != 1 {
		t.Errorf("on %d, want the second alone", got)
	}
}

// With independent waits the bound is above the true quantile in at least 95 % of cases, whatever their number.
func TestBoundIsAboveTheTrueQuantile(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(95, 5))
	for _, share := range []float64{0.5, 0.75, 0.9} {
		for _, n := range []int{queueing.BoundNeeds(share), 2 * queueing.BoundNeeds(share)} {
			above := 0
			const cases = 400
			for range cases {
				waits := make([]corral.Wait, n)
				for i := range waits { // the true quantile is share × 1000 minutes
					if i%20 == 0 {
						waits[i] = waitOf(rng.IntN(1000))
					} else { // neighbours wait for similar times
						waits[i] = waits[i-1]
					}
				}
				if queueing.Bound(waits, share, noon).Wait >= corral.Seconds(share*float64(1000*time.Minute)) {
					above++
				}
			}
			if above < cases*93/100 { // 95 %, less two standard deviations
				t.Errorf("share %g, %d waits: above in %d of %d cases", share, n, above, cases)
			}
		}
	}
}

// Waits in another queue do not count; waits whose queue is unknown, and all waits if the queue is, do.
func TestIn(t *testing.T) {
	t.Parallel()
	asked, byDefault, other, unknown := waitOf(1), waitOf(2), waitOf(3), waitOf(4)
	byDefault.Queue, byDefault.Default = "", "long"
	other.Queue, other.Default = "short", "long"
	unknown.Queue = ""
	all := []corral.Wait{asked, byDefault, other, unknown}
	for queue, want := range map[string][]corral.Wait{
		"long": {asked, byDefault, unknown}, "short": {other, unknown}, "gpu": {unknown}, "": all,
	} {
		if diff := cmp.Diff(want, queueing.In(queue, all)); diff != "" {
			t.Errorf("in %q (-want +got):\n%s", queue, diff)
		}
	}
}

// Pilots with half to twice as many cpus are near.
func TestNear(t *testing.T) {
	t.Parallel()
	var all []corral.Wait
	for _, hosts := range []int{1, 2, 3, 4, 8, 9} { // of two cpus
		w := waitOf(1)
		w.Hosts = hosts
		all = append(all, w)
	}
	for cpus, want := range map[int][]corral.Wait{8: all[1:5], 7: all[1:4], 2: all[:2], 100: {}} {
		if diff := cmp.Diff(want, queueing.Near(cpus, all)); diff != "" {
			t.Errorf("near %d (-want +got):\n%s", cpus, diff)
		}
	}
}
