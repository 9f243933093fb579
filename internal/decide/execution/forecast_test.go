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
