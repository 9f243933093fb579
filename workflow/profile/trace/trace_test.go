package trace

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// process returns a process that existed from start to end, in seconds, and had the given memory peak in bytes.
func process(start, end int, peak int64) Process {
	return Process{
		Threads: 1, Start: time.Duration(start) * time.Second, End: time.Duration(end) * time.Second,
		Usage: Usage{PeakBytes: peak, VirtualBytes: 10 * peak, UserCPU: time.Second, ReadBytes: 7},
	}
}

// some returns a trace of the given processes, in mode io.
func some(processes ...Process) *Trace {
	t := &Trace{
		Version: Version, Transformation: "t", ID: "1", Mode: IO, Argv: []string{"t"},
		StartedAt: time.Unix(1_700_000_000, 0).UTC(), EndedAt: time.Unix(1_700_000_010, 0).UTC(),
		Processes: processes,
		Account: Account{
			Kinds: map[Kind]Sum{Regular: {Read: 360, Written: 5, Reads: 4, Writes: 1}, Pipe: {Read: 40, Reads: 1}},
			Files: []File{
				{Path: "/in", Kind: Regular, Sum: Sum{Read: 300, Reads: 3}, Opens: 3, Size: 100},
				{Path: "/lib", Kind: Regular, Sum: Sum{Read: 60, Reads: 1}, Opens: 1, Size: 5000},
			},
		},
	}
	return t
}

// The peak is a sum over processes that existed at the same time; if a process ends at the instant at which the next
// begins, the two are not added.
func TestPeak(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		of   []Process
		want int64
	}{
		{"one", []Process{process(0, 5, 100)}, 100},
		{"overlapping", []Process{process(0, 5, 100), process(4, 9, 100)}, 200},
		{"in turn", []Process{process(0, 5, 100), process(5, 9, 100)}, 100},
		{"parent and two children in turn", []Process{process(0, 9, 10), process(1, 5, 100), process(5, 8, 90)}, 110},
		{"of no duration", []Process{process(3, 3, 100)}, 0},
	} {
		tr := some(c.of...)
		if got := tr.Peak(); got != c.want {
			t.Errorf("%s: Peak() = %d, want %d", c.name, got, c.want)
		}
		if got := tr.Virtual(); got != 10*c.want {
			t.Errorf("%s: Virtual() = %d, want %d", c.name, got, 10*c.want)
		}
	}
}

func TestSums(t *testing.T) {
	t.Parallel()
	tr := some(process(0, 10, 1), process(0, 10, 1))
	if tr.Runtime() != 10*time.Second || tr.CPU() != 2*time.Second || tr.Utilization() != 0.2 {
		t.Errorf("runtime %v, cpu %v, utilization %v", tr.Runtime(), tr.CPU(), tr.Utilization())
	}
	if got, want := tr.Bytes(), (Sum{Read: 400, Written: 5, Reads: 5, Writes: 1}); got != want {
		t.Errorf("Bytes() = %+v, want %+v", got, want)
	}
	if got, ok := tr.Distinct(); !ok || got != 200 { // /in was read three times, but only the beginning of /lib
		t.Errorf("Distinct() = %d, %v, want 200", got, ok)
	}
	tr.Mode = Processes
	if got := tr.Bytes(); got.Read != 14 {
		t.Errorf("by the kernel's count: %+v, want 14 bytes read", got)
	}
	if _, ok := tr.Distinct(); ok {
		t.Error("Distinct() is known without files")
	}
}

// Files of traces are joined by writing one after the other.
func TestReadWhatWasWritten(t *testing.T) {
	t.Parallel()
	want := []*Trace{some(process(0, 10, 1)), some(process(0, 1, 2), process(1, 2, 3))}
	var text []byte
	for _, tr := range want {
		line, err := tr.Line()
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
	}
	if !Sniff(text) {
		t.Error("Sniff does not know what Line writes")
	}
	var got []*Trace
	if err := Read(bytes.NewReader(text), "f", func(tr *Trace) error { got = append(got, tr); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	line, _ := some(process(0, 10, 1)).Line()
	good := string(line)
	for _, c := range []struct{ name, text, want string }{
		{"another version", strings.Replace(good, `{"corral_trace":1`, `{"corral_trace":2`, 1), "f:1: the version of the trace must be 1, not 2"},
		{"an unknown field", strings.Replace(good, `"mode"`, `"mood":"","mode"`, 1), "f:1: the line is not a trace"},
		{"another mode", strings.Replace(good, `"mode":"io"`, `"mode":"all"`, 1), "f:1: mode"},
		{"two on a line", strings.TrimSpace(good) + good, "f:1: there is text after the end"},
		{"one that was cut off", good + "\n" + good[:50], "f:3: the line is not a trace"},
		{"negative bytes", strings.Replace(good, `"peak_bytes":1`, `"peak_bytes":-1`, 1), "f:1: process 0"},
		{"too many bytes", strings.Replace(good, `"written_bytes":5`, `"written_bytes":9999999999999999`, 1), `f:1: kind "file"`},
		{"an end before the start", strings.Replace(good, `"end_ns":10000000000`, `"end_ns":-1`, 1), "f:1: process 0"},
		{"no process", strings.Replace(good, `"processes":[`, `"processes":[],"argv":[`, 1), "f:1: "},
	} {
		err := Read(strings.NewReader(c.text), "f", func(*Trace) error { return nil })
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that begins with %q", c.name, err, c.want)
		}
	}
}

// Every trace that can be read can be written, and reading the output yields the same trace; its sums are possible
// measurements.
func FuzzRead(f *testing.F) {
	for _, tr := range []*Trace{some(process(0, 10, 1)), some(process(0, 1, 2), process(1, 2, 3))} {
		line, _ := tr.Line()
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = Read(bytes.NewReader(text), "f", func(tr *Trace) error {
			line, err := tr.Line()
			if err != nil {
				t.Fatalf("Line: %v", err)
			}
			again, err := parse(line)
			if err != nil {
				t.Fatalf("what was written is refused: %v\n%s", err, line)
			}
			if next, _ := again.Line(); !bytes.Equal(line, next) {
				t.Fatalf("it changes:\n%s%s", line, next)
			}
			if d, _ := tr.Distinct(); min(tr.Peak(), tr.Virtual()) < 0 || d > tr.Bytes().Read {
				t.Fatalf("impossible sums: %d, %d, %d", tr.Peak(), tr.Virtual(), d)
			}
			return nil
		})
	})
}
