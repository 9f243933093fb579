package slurm

import (
	"testing"

	"github.com/corral-pilot/corral"
)

// A job is refused only if each existing worker has reported that it does not see the directory.
func TestJudge(t *testing.T) {
	t.Parallel()
	late, lost := probe{begun: true}, probe{worker: "a", begun: true, over: true}
	sees := probe{worker: "a", begun: true, over: true, sees: true}
	blind := func(worker string) probe {
		return probe{worker: worker, begun: true, over: true, blind: worker + " is blind"}
	}
	two := []corral.Worker{{ID: "a"}, {ID: "b"}}
	for what, test := range map[string]struct {
		probes  []probe
		workers []corral.Worker
		want    sighting
		why     string
	}{
		"nobody has looked":             {[]probe{late, {}}, two, undecided, ""},
		"one sees it":                   {[]probe{blind("b"), sees}, two, isSeen, ""},
		"one sees it, one is late":      {[]probe{late, sees}, two, isSeen, ""},
		"none sees it":                  {[]probe{blind("a"), blind("b")}, two, notSeen, "b is blind"},
		"one was asked twice":           {[]probe{blind("a"), blind("a")}, two, undecided, ""},
		"one is blind, one is late":     {[]probe{blind("a"), late}, two, undecided, ""},
		"one could not say":             {[]probe{lost}, two[:1], undecided, ""},
		"one could not, one had better": {[]probe{lost, blind("a")}, two[:1], notSeen, "a is blind"},
	} {
		if got, why := judge(test.probes, test.workers); got != test.want || why != test.why {
			t.Errorf("%s: %v, %q; want %v, %q", what, got, why, test.want, test.why)
		}
	}
}

// A worker that cannot begin a probe immediately is not sent one.
func TestFree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		w    corral.Worker
		want bool
	}{
		{corral.Worker{Connected: true, CPUsFree: 1, RunningTasks: 3}, true},
		{corral.Worker{Connected: true, RunningTasks: 1}, false},
		{corral.Worker{Connected: true}, true}, // its share waits for the next job
		{corral.Worker{CPUsFree: 1}, false},
		{corral.Worker{Connected: true, CPUsFree: 1, Draining: true}, false},
	} {
		if got := free(test.w); got != test.want {
			t.Errorf("%+v is free: %v", test.w, got)
		}
	}
}
