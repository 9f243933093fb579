package workload_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// record returns a line with a submit time, a runtime, allocated and requested processors, and a requested time.
func record(submit, runtime, given, requested, time string) string {
	return strings.Join([]string{"1", submit, "-1", runtime, given, "-1", "-1", requested, time,
		"-1", "1", "7", "-1", "-1", "-1", "-1", "-1", "-1"}, " ") + "\n"
}

func read(text string) (*workload.Trace, error) {
	return workload.ReadJobs(context.Background(), strings.NewReader(text), "t.swf")
}

func TestReadJobs(t *testing.T) {
	t.Parallel()
	text := "; Version: 2.2\n;MaxProcs:  128 (of 130)\n; MaxNodes: 64\n; Note: a: b\n\n" +
		record("100", "50", "4", "8", "60") + // the requested number counts
		record("90", "7.5", "4", "-1", "-1") + // sorted by submission; nothing requested
		record("110", "0", "1", "1", "0") + // the job requests a second
		record("120", "-1", "4", "4", "60") + // cancelled while it waited
		record("130", "5", "-1", "0", "60")
	got, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []queue.Job{
		{User: 7, Processors: 4, Requested: 7500 * time.Millisecond, Runtime: 7500 * time.Millisecond},
		{User: 7, Submit: 10 * time.Second, Processors: 8, Requested: time.Minute, Runtime: 50 * time.Second},
		{User: 7, Submit: 20 * time.Second, Processors: 1, Requested: time.Second},
	}
	if diff := cmp.Diff(want, got.Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if n, ok := got.Header.Machine(); !ok || n != 128 || got.LeftOut != 2 || got.Exact != 2 || got.Header["Version"] != "2.2" {
		t.Errorf("%d processors, %d left out, %d exact, header %v", n, got.LeftOut, got.Exact, got.Header)
	}
}

func TestWhatIsWrongHasAPlace(t *testing.T) {
	t.Parallel()
	good := record("0", "1", "1", "1", "1")
	for text, want := range map[string]string{
		"":                               "t.swf: it contains no jobs",
		"; Version: 2.2\n":               "t.swf: it contains no jobs",
		record("0", "-1", "1", "1", "1"): "t.swf: none of its 1 jobs has a known runtime and number of processors",
		good + record("0", "-5", "1", "1", "1"): "t.swf:2: the run time, field 4, is -5: the only negative value allowed " +
			"is -1, for unknown",
		good + "\n1 2 3\n":                      "t.swf:3: the line must have 18 fields, not 3",
		record("x", "1", "1", "1", "1"):         `t.swf:1: field 2, "x", is not a number`,
		record("0", "NaN", "1", "1", "1"):       `t.swf:1: field 4, "NaN", is not a number`,
		record("0", "1", "1", "1", "1e10"):      "t.swf:1: field 9 is 1e10, which is beyond 1000000000",
		record("0", "1", "1", "-Inf", "1"):      "t.swf:1: field 8 is -Inf, which is beyond 1000000000",
		good + strings.Repeat("1 ", 40_000):     "t.swf:2: the line is longer than 64 KiB",
		"\x1f\x8bno":                            "t.swf: decompressing: unexpected EOF",
		strings.TrimSpace(good) + " 1\n" + good: "t.swf:1: the line must have 18 fields, not 19",
	} {
		_, err := read(text)
		if err == nil || err.Error() != want || corral.KindOf(err) != corral.Invalid {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := workload.ReadJobs(ctx, strings.NewReader(good), "t.swf"); err != why {
		t.Errorf("after its context: %v", err)
	}
}

func TestTextMayBeCompressed(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, "; MaxNodes: 5\n"+record("0", "1", "1", "1", "1"))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := read(packed.String())
	if err != nil || len(got.Jobs) != 1 || got.Header["MaxNodes"] != "5" {
		t.Errorf("%v, %v", got, err)
	}
}

// The first 3,000 jobs of KTH-SP2 (Parallel Workloads Archive; acknowledge Lars Malinowsky).
func TestKTH(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/kth-sp2-3000.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := workload.ReadJobs(t.Context(), f, f.Name())
	if err != nil {
		t.Fatal(err)
	}
	n, ok := got.Header.Machine()
	if !ok || n != 100 || len(got.Jobs) != 3000 || got.LeftOut != 0 || got.Exact != 0 {
		t.Errorf("%d processors, %d jobs, %d left out, %d exact", n, len(got.Jobs), got.LeftOut, got.Exact)
	}
	want := queue.Job{User: 39, Submit: 1006*time.Hour + 6*time.Minute + 24*time.Second, Processors: 1,
		Requested: 4 * time.Hour, Runtime: 3*time.Hour + 59*time.Minute + 53*time.Second}
	if diff := cmp.Diff(want, got.Jobs[len(got.Jobs)-1]); diff != "" {
		t.Errorf("the last job (-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("; MaxProcs: 4\n" + record("0", "1", "1", "1", "1")))
	f.Add([]byte(record("5", "1.5", "-1", "2", "-1") + record("0", "0", "1", "1", "0")))
	f.Add([]byte(record("0", "-2", "1", "1", "1")))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte("1 2 3"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := workload.ReadJobs(t.Context(), bytes.NewReader(b), "t.swf")
		var e *corral.Error
		if err != nil {
			if !errors.As(err, &e) || e.Kind != corral.Invalid || !strings.HasPrefix(e.Place, "t.swf") {
				t.Errorf("%#v is not Invalid with a place", err)
			}
			return
		}
		before := time.Duration(0)
		for i, j := range got.Jobs {
			if j.Submit < before || j.Processors < 1 || j.Requested < time.Second || j.Runtime < 0 || i == 0 && j.Submit != 0 {
				t.Errorf("job %d: %+v", i, j)
			}
			before = j.Submit
		}
	})
}
