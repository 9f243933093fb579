package matching

import (
	"math"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// The pace of a run corrects the estimates of its jobs. It weighs long jobs more than short ones, and follows a run
// whose later tasks differ: 64 observations later, a change counts for almost two thirds.
func TestPace(t *testing.T) {
	t.Parallel()
	type seen struct {
		times             int
		actual, estimated time.Duration
		speed             corral.Speed
	}
	for name, c := range map[string]struct {
		seen []seen
		want float64 // expected duration of a job with an estimate of a second, in seconds
	}{
		"nothing":              {nil, 1},
		"as estimated":         {[]seen{{500, time.Minute, time.Minute, 0}}, 1},
		"twice as long":        {[]seen{{500, 2 * time.Second, time.Second, 0}}, 2},
		"one long, many short": {[]seen{{9, time.Second, time.Second, 0}, {1, 991 * time.Second, 91 * time.Second, 0}}, 10},
		"later tasks differ":   {[]seen{{2000, time.Second, time.Second, 0}, {64, 11 * time.Second, time.Second, 0}}, 11 - 10/math.E},
		"long ago":             {[]seen{{2000, 9 * time.Second, time.Second, 0}, {2000, time.Second, time.Second, 0}}, 1},
		"a clock set back":     {[]seen{{1, time.Second, time.Second, 0}, {1, -time.Hour, time.Second, 0}}, 0.5},
		"a slow host":          {[]seen{{500, 2 * time.Second, time.Second, 0.5}}, 1},
		"slow, and too long":   {[]seen{{250, 4 * time.Second, time.Second, 0.5}, {250, 2 * time.Second, time.Second, 1}}, 2},
		"no estimates":         {[]seen{{1, time.Second, 0, 0}}, 1},
	} {
		var run Run[int]
		for _, s := range c.seen {
			for range s.times {
				run.Observe(s.actual, s.estimated, s.speed)
			}
		}
		j := &Job[int]{Run: &run, Needs: Resources{Time: time.Second}}
		if got := j.expect().Seconds(); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s: a job of a second is expected to take %.3f s, want %.3f", name, got, c.want)
		}
	}
	if got := (&Job[int]{Needs: Resources{Time: time.Minute}}).expect(); got != time.Minute {
		t.Errorf("without a run a job of a minute is expected to take %s", got)
	}
}

// The classes of jobs are so narrow that the jobs in each differ by at most 9 %, and so wide that any jobs have few.
func TestClasses(t *testing.T) {
	t.Parallel()
	for name, needs := range map[string]func(n int) Resources{
		"memory": func(n int) Resources { return Resources{Resources: corral.Resources{MemoryMiB: n}} },
		"disk":   func(n int) Resources { return Resources{Resources: corral.Resources{DiskMiB: n}} },
		"time":   func(n int) Resources { return Resources{Time: time.Duration(n) * time.Millisecond} },
	} {
		var m Matcher[int]
		var run Run[int]
		const most = 4096
		for n := range most + 1 {
			m.Push(&Job[int]{Run: &run, Needs: needs(n)})
		}
		jobs, waiting := 0, m.Waiting()
		for _, c := range waiting { // the jobs are in the order of their needs
			if first := jobs; float64(first+c.Jobs-1) > 1.09051*float64(first) && c.Jobs > 1 {
				t.Errorf("%s: jobs of %d to %d are in one class", name, first, first+c.Jobs-1)
			}
			jobs += c.Jobs
		}
		if jobs != most+1 || len(waiting) > 1+1+8*12 { // none, one, and an eighth of an octave each
			t.Errorf("%s: %d jobs in %d classes", name, jobs, len(waiting))
		}
	}
	var m Matcher[int]
	var run Run[int]
	for _, estimate := range []time.Duration{0, 1100 * time.Microsecond} {
		m.Push(&Job[int]{Run: &run, Needs: Resources{Time: estimate}})
	}
	if got := len(m.Waiting()); got != 2 {
		t.Errorf("%d classes, want one for no time and one for a millisecond", got)
	}
}
