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
		seen    bool
		why     string
	}{
		"without a look":                {[]probe{late, {}}, two, false, ""},
		"one sees it":                   {[]probe{blind("b"), sees}, two, true, ""},
		"one sees it, one is late":      {[]probe{late, sees}, two, true, ""},
		"none sees it":                  {[]probe{blind("a"), blind("b")}, two, false, "b is blind"},
		"one was asked twice":           {[]probe{blind("a"), blind("a")}, two, false, ""},
		"one is blind, one is late":     {[]probe{blind("a"), late}, two, false, ""},
		"one could not say":             {[]probe{lost}, two[:1], false, ""},
		"one could not, one had better": {[]probe{lost, blind("a")}, two[:1], false, "a is blind"},
	} {
		if seen, why := judge(test.probes, test.workers); seen != test.seen || why != test.why {
			t.Errorf("%s: %v, %q; want %v, %q", what, seen, why, test.seen, test.why)
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
