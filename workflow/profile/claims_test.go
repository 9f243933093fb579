package profile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
	"github.com/corral-pilot/corral/workflow/profile"
)

// published is a folder of five small executions of production workflows in WfFormat (WfInstances).
const published = "../formats/wfformat/testdata/wfcommons/instances"

// F68, on WfFormat: a profile of an executed workflow estimates every task: its runtime as a mean with quantiles,
// memory, and bytes read and written if the format has them. The quantiles ascend and enclose what was measured.
func TestAProfileEstimatesEveryTaskOfAPublishedWorkflow(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(published, "*", "*", "*.json.gz"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		flow, _, err := formats.ReadFile(t.Context(), file, workflow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		samples := profile.Samples(flow, filepath.Base(file))
		p := of(t, samples)
		e := profile.NewEstimator(p, nil)
		classes := p.Classes()
		for _, s := range samples {
			size, known := s.Values.Get(profile.Input)
			if !known {
				size = -1
			}
			x, ok := e.Estimate(s.Subject, int64(size))
			least, median, most := x.Quantile(0), x.Quantile(0.5), x.Quantile(1)
			if !ok || x.Samples == 0 || least > median || median > most || x.Mean < least-time.Millisecond ||
				x.Mean > most+time.Millisecond {
				t.Errorf("%s: %+v; %s, %s, %s", s.ID, x, least, median, most)
			}
			// A regression may miss the values to which it was fitted.
			if x.Model == profile.Mean || x.Model == profile.Median {
				runtime, _ := s.Values.Get(profile.Runtime)
				took := time.Duration(runtime * float64(time.Second))
				if took < least-time.Millisecond || took > most+time.Millisecond {
					t.Errorf("%s took %s, and outcomes are from %s to %s", s.ID, took, least, most)
				}
			}
			i := slices.IndexFunc(classes, func(c *profile.Class) bool {
				return c.Transformation == s.Transformation && (c.Level == s.Level || c.Level == profile.AllLevels)
			})
			for _, m := range []profile.Metric{profile.Memory, profile.Read, profile.Written} {
				v, measured := s.Values.Get(m)
				q := classes[i].Quantiles(m, 0, 0.5, 1)
				if measured && (len(q) != 3 || q[0] > v || v > q[2] || !slices.IsSorted(q) ||
					classes[i].Stat(m).Mean < q[0] || classes[i].Stat(m).Mean > q[2]) {
					t.Errorf("%s: %s of %g, quantiles %v, mean %g", s.ID, m, v, q, classes[i].Stat(m).Mean)
				}
			}
		}
	}
	if _, err := os.Stat(published); err != nil {
		t.Error(err)
	}
}

// F68: for runs of 10, 12 and 20 seconds, the error of each run that is left out equals the error of the mean of the
// other runs, calculated by hand.
func TestTheErrorOfRunsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	all := profile.Validate(of(t, runtimes("a", "map", 0, 10), runtimes("b", "map", 0, 12), runtimes("c", "map", 0, 20)), nil)
	if len(all) != 1 || all[0].Tasks != 3 || !near(all[0].Actual, 42) || !near(all[0].WrongByMean, 6+3+9) {
		t.Errorf("%+v", all)
	}
	if all[0].Error() <= 0 || !near(all[0].Error(), all[0].Wrong/42) {
		t.Errorf("error %g of %+v", all[0].Error(), all[0])
	}
}

// F6B: a host that is twice as fast halves the estimated runtime and nothing else: memory and bytes depend only on the
// task.
func TestMemoryAndBytesAreNotScaledByAHostsSpeed(t *testing.T) {
	t.Parallel()
	var samples []profile.Sample
	for host, factor := range map[string]float64{"slow": 1, "fast": 2} {
		for k := range 10 {
			for _, kind := range []string{"map", "sort"} {
				s := sample("r", host+kind+string(rune('a'+k)), kind, 0, values{profile.Runtime: 100 / factor,
					profile.Memory: 1 << 20, profile.Read: 1000, profile.Written: 500})
				s.Host = host
				samples = append(samples, s)
			}
		}
	}
	p := of(t, samples)
	e := profile.NewEstimator(p, p.Speeds())
	for host, want := range map[string]time.Duration{"slow": 100 * time.Second, "fast": 50 * time.Second} {
		x, ok := e.Estimate(profile.Subject{Transformation: "map", Host: host}, -1)
		if !ok || (x.Point-want).Abs() > time.Millisecond || x.MemoryBytes != 1<<20 || x.ReadBytes != 1000 ||
			x.WrittenBytes != 500 {
			t.Errorf("on %s: %+v, want %s, and the rest alike", host, x, want)
		}
	}
}
