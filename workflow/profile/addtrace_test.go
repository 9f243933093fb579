package profile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A task that reads its input 3.6 times, and allocates 34 times as much memory as it uses, is reported: these are the
// two defects that the thesis found with its traces.
func TestTracesAreSamples(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{
		Transformation: "seis", ID: "1", Mode: trace.IO,
		StartedAt: time.Unix(100, 0), EndedAt: time.Unix(110, 0),
		Processes: []trace.Process{{Threads: 1, End: 10 * time.Second, Usage: trace.Usage{
			UserCPU: 5 * time.Second, PeakBytes: 1 << 20, VirtualBytes: 34 << 20,
		}}},
		Account: trace.Account{
			Kinds: map[trace.Kind]trace.Sum{trace.Regular: {Read: 3600, Written: 7}},
			Files: []trace.File{{Path: "/in", Kind: trace.Regular, Sum: trace.Sum{Read: 3600}, Size: 1000}},
		},
	}
	s := Traced(tr, "file")
	want := Sample{Subject: Subject{Transformation: "seis", Level: AllLevels}, Run: "file", ID: "1"}
	for m, v := range map[Metric]float64{
		Runtime: 10, CPU: 5, Memory: 1 << 20, Virtual: 34 << 20, Read: 3600, Written: 7, Input: 1000,
	} {
		want.Values.Set(m, v)
	}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(Values{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p, err := Of([]Sample{s})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range p.Findings() {
		said = append(said, f.Sentence)
	}
	if diff := cmp.Diff([]string{"reads 3.6 × its input", "allocates 34 × what it uses"}, said); diff != "" {
		t.Errorf("findings, -want +got:\n%s", diff)
	}
	tr.Run = "night"
	if s := Traced(tr, "file"); s.Run != "night" {
		t.Errorf("the run is %q, want that which the trace names", s.Run)
	}
}
