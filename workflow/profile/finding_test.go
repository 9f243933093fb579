package profile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow/profile"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	odd := values{
		profile.Runtime: 10, profile.CPU: 15.3, profile.Read: 36, profile.Input: 10,
		profile.Memory: 53.68, profile.Virtual: 1847,
	}
	p := of(t, []profile.Sample{
		sample("r", "1", "seisgen", 0, odd),
		sample("r", "2", "seisgen", 0, odd),
		sample("r", "3", "wait", 0, values{profile.Runtime: 10, profile.CPU: 0.3}),
		sample("r", "4", "sound", 0, values{
			profile.Runtime: 10, profile.CPU: 10.2, profile.Read: 11, profile.Input: 10,
		}),
	}, runtimes("r", "spread", 0, 1, 1, 1, 20))
	var got []string
	for _, f := range p.Findings() {
		got = append(got, fmt.Sprintf("%s %s %.2f: %s", f.Transformation, f.Rule, f.Number, f.Sentence))
	}
	want := []string{
		"seisgen rereads 3.60: reads 3.6 × its input",
		"seisgen overallocates 34.41: allocates 34 × what it uses",
		"seisgen parallel 1.53: uses 153 % of a cpu: it needs 2 cpus",
		"spread scattered 1.65: varies: the standard deviation of its runtime is 1.65 × the mean",
		"wait waits 0.03: uses 3 % of a cpu: it waits, most likely for input and output",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
