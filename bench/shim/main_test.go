package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The first side is what the others are compared with; what was not measured is a dash.
func TestReport(t *testing.T) {
	ms := func(list ...int) (d []time.Duration) {
		for _, n := range list {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	got := report([]measured{
		{name: "shim", plan: plan{jobs: 100}, submits: ms(9, 5, 7), noops: ms(30, 20), queues: ms(150), pending: 10_000,
			jobs: 51 * time.Second, makeflow: 52 * time.Second},
		{name: "other", plan: plan{jobs: 10}, submits: ms(10), noops: ms(2000), jobs: 100 * time.Second,
			makeflow: 104 * time.Second},
	})
	want := `|  | shim | other |
| --- | --- | --- |
| sbatch, ms, median | 7.0 | 10.0 |
| sbatch -W of no work, ms, median | 20.0 | 2000.0 |
| squeue of pending jobs, ms, median | 150.0 (of 10000) | – |
| sleeping jobs by sbatch | 100 in 51.0 s: 98 % | 10 in 100.0 s: 5 % |
| sleeping jobs by Makeflow | 100 in 52.0 s: 96 % | 10 in 104.0 s: 5 % |
| Makeflow's jobs a second ÷ this side's | 1.0 | 20.0 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-jobs", "0"}, {"-deferred", "0"}, {"more"}, {"-x"}} {
		var stdout, stderr bytes.Buffer
		if code := execute(t.Context(), args, &stdout, &stderr); code != 2 || stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("%v: exit code %d, %q and %q", args, code, &stdout, &stderr)
		}
	}
}
