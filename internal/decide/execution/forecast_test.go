package execution_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// The end of a run can be forecast if the number of cpus is known, a task is done, and it is not years away.
func TestEndsIsUnknown(t *testing.T) {
	t.Parallel()
	const year = 366 * 24 * time.Hour
	for _, tt := range []struct {
		name  string
		done  bool // of the first task
		cpus  int
		rest  time.Duration // estimate of the second task
		known bool
	}{
		{"nothing is done", false, 1, time.Hour, false},
		{"an hour", true, 1, time.Hour, true},
		{"no cpus", true, 0, time.Hour, false},
		{"no cpus for no time", true, 0, 0, false},
		{"a year", true, 1, year, true},
		{"more than a year", true, 1, year + time.Second, false},
	} {
		spec := flat(t, 1, 1)
		spec.Tasks[0].Estimate, spec.Tasks[1].Estimate = 10*time.Minute, tt.rest
		x := execution.New(spec)
		if x.Apply(assigned(0, 1, "w", 0, 1)); tt.done {
			x.Apply(ended(0, 10, 1, "w", 0, 1, execution.Done))
		}
		end, ok := x.Ends(after(20).Time(), tt.cpus)
		if want := after(20).Time().Add(tt.rest); ok != tt.known || ok && !end.Equal(want) {
			t.Errorf("%s: it ends at %s, %t, want %s", tt.name, end, ok, want)
		}
	}
}

// TestEndsByKind: a task that is done corrects the estimates of its own kind only. With the run's default it corrects
// all other defaults, unless a task of the kind is done.
func TestEndsByKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		kinds  [3]int32 // the first task is done; it took 100 min
		usual  [3]bool
		second time.Duration // expected of the second task, which is as long as the third is short
	}{
		{"of another kind", [3]int32{1, 2, 2}, [3]bool{}, 50 * time.Minute},
		{"of the same kind", [3]int32{1, 1, 2}, [3]bool{}, 75 * time.Minute},
		{"the default of the same kind", [3]int32{1, 1, 2}, [3]bool{true, true, false}, 100 * time.Minute},
		{"the default of another kind", [3]int32{1, 2, 2}, [3]bool{true, true, false}, 100 * time.Minute},
		{"only the first is the default", [3]int32{1, 1, 2}, [3]bool{true, false, false}, 50 * time.Minute},
		{"only the second is the default", [3]int32{1, 1, 2}, [3]bool{false, true, false}, 50 * time.Minute},
	} {
		spec := flat(t, 1, 1, 1)
		for i := range spec.Tasks {
			spec.Tasks[i].Kind, spec.Tasks[i].Usual, spec.Tasks[i].Estimate = tt.kinds[i], tt.usual[i], 50*time.Minute
		}
		spec.Tasks[2].Estimate = time.Minute
		x := execution.New(spec)
		x.Apply(assigned(0, 1, "w", 0, 1))
		x.Apply(ended(0, 100, 1, "w", 0, 1, execution.Done))
		if end, ok := x.Ends(after(100).Time(), 10); !ok || !end.Equal(after(100).Time().Add(tt.second)) {
			t.Errorf("%s: it ends at %s, %t, want in %s", tt.name, end, ok, tt.second)
		}
	}
}
