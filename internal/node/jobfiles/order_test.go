package jobfiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// whole holds orders as corrald writes them.
var whole = []Order{
	{Tag: "corral-setup-1", Root: "/srv/site", Setup: &Setup{Package: "p", Digest: "sha256:00", SizeBytes: 7, Sources: []Source{{URL: "file:///p"}}}},
	{Tag: "corral-pilot-1", Root: "/srv/site", Pilot: &PilotOrder{Token: "t", Addresses: []string{"unix:/run/w"},
		Shape: corral.Shape{Hosts: 2, CPUs: 1, MemoryMiB: 512, Walltime: corral.Seconds(90 * time.Second)},
		Idle:  corral.Seconds(time.Second)}},
	{Tag: "corral-pilot-2", Root: "/srv/site", Pilot: &PilotOrder{Token: "t", Speed: 0.5,
		Shape: corral.Shape{Hosts: 2, CPUs: 1, MemoryMiB: 512, Walltime: corral.Seconds(90 * time.Second)}}},
	{Tag: "corral-cleanup-1", Root: "/srv/site", Cleanup: &Cleanup{}},
}

func TestOrderComesBack(t *testing.T) {
	t.Parallel()
	for _, o := range whole {
		b, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, File), b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir)
		if diff := cmp.Diff(o, got); err != nil || diff != "" {
			t.Errorf("Read of Encode (-want +got, %v):\n%s", err, diff)
		}
	}
}

func TestReadOfEmptyDirectory(t *testing.T) {
	t.Parallel()
	if o, err := Read(t.TempDir()); err == nil {
		t.Errorf("Read of a folder without an order = %+v", o)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":           ``,
		"no JSON":           `tag: x`,
		"an unknown field":  `{"tag": "x", "root": "/r", "cleanup": {}, "force": true}`,
		"no job":            `{"tag": "x", "root": "/r"}`,
		"two jobs":          `{"tag": "x", "root": "/r", "cleanup": {}, "setup": {}}`,
		"a relative root":   `{"tag": "x", "root": "r", "cleanup": {}}`,
		"no tag":            `{"root": "/r", "cleanup": {}}`,
		"a walltime in h:m": `{"tag": "x", "root": "/r", "pilot": {"walltime_s": "1:00"}}`,
	} {
		if o, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: Decode(%s) = %+v, want an error", name, text, o)
		}
	}
}

func TestReportComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := Report{Outcome: corral.OutcomeFailed, Transient: true, Reason: "no route", Log: []string{"tried"},
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), EndedAt: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)}
	if err := WriteReport(dir, want); err != nil {
		t.Fatal(err)
	}
	if err := WriteReport(filepath.Join(dir, "none"), want); err == nil {
		t.Error("a report was written in a folder that is not there")
	}
	b, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeReport(b)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("DecodeReport of WriteReport (-want +got, %v):\n%s", err, diff)
	}
}

// A report's words are stored: a word that the database refuses must be rejected earlier.
func TestDecodeReportRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{}`, `{"outcome": ""}`, `{"outcome": "splendid"}`, `{"outcome": 7}`} {
		if r, err := DecodeReport([]byte(text)); err == nil {
			t.Errorf("DecodeReport(%s) = %+v, want an error", text, r)
		}
	}
}

// A reason is a readable line; a gigabyte of stderr is shortened.
func TestReasonIsALine(t *testing.T) {
	t.Parallel()
	r, err := DecodeReport([]byte(`{"outcome": "failed", "reason": "a\nb ` + strings.Repeat("é", 2*MaxReason) + `"}`))
	if err != nil || len(r.Reason) > MaxReason || !strings.HasPrefix(r.Reason, "a b é") || strings.ContainsRune(r.Reason, '\uFFFD') {
		t.Errorf("reason has %d bytes: %.20q (%v)", len(r.Reason), r.Reason, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, o := range whole {
		b, err := o.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := Decode(text)
		if err != nil {
			return
		}
		b, err := o.Encode()
		if err != nil {
			t.Fatalf("Encode of what Decode took: %v", err)
		}
		if again, err := Decode(b); err != nil {
			t.Errorf("Decode(%s) = %+v, %v", b, again, err)
		}
	})
}

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(`{"outcome": "idle", "reason": "no task for 5s", "started_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T03:04:06Z"}`))
	f.Add([]byte(`{"outcome": "failed", "transient": true, "log": ["a", "b"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := DecodeReport(text)
		if err == nil && (r.Outcome == "" || len(r.Reason) > MaxReason || strings.ContainsAny(r.Reason, "\n\r")) {
			t.Errorf("DecodeReport(%q) = %+v", text, r)
		}
	})
}

// A walltime for a time leaves that time before the reserve, and not much more.
func TestLasting(t *testing.T) {
	t.Parallel()
	for d := time.Second; d < time.Hour; d += 1237 * time.Millisecond {
		walltime := Lasting(d)
		if left := walltime - Reserve(walltime); left < d || left > d+time.Second {
			t.Errorf("%s: a walltime of %s leaves %s", d, walltime, left)
		}
	}
}
