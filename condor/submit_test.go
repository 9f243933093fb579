package condor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/condor/classad"
)

// full sets every field.
func full() Submit {
	return Submit{
		Executable: "/opt/my app/$run", Dir: "/tmp", Log: "jobs.log", BatchName: "run 7",
		Requirements: `TARGET.GlideinSite == "here"`, Rank: "Mips", Priority: -3,
		Request:    Request{Cpus: 2, GPUs: 1, MemoryMiB: 512, DiskMiB: 100},
		Transfer:   Transfer{When: "YES", Executable: true, Input: []string{"a.in", "$b.in"}, Output: []string{"a.out"}},
		Attributes: classad.Ad{"CorralRun": "r7", "Limit": int64(3), "Quote": `say "$(hi)"`},
		Procs: []Proc{
			{Attributes: classad.Ad{"First": true}, Arguments: []string{"plain", "two  words", "it's", `"q"`, "", "$$(X)", "a,b\tc"}, Environment: map[string]string{"B": "it's b", "A": "1"}, Stdin: "in", Stdout: "0.out", Stderr: "0.err"},
			{Attributes: classad.Ad{"Task": "second"}},
		},
	}
}

func TestSubmitGolden(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if _, err := full().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "full.sub")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]func(s *Submit){
		"line break in an argument":  func(s *Submit) { s.Procs[0].Arguments = []string{"a\nqueue 1000"} },
		"line break in a path":       func(s *Submit) { s.Dir = "/tmp\nqueue 1000" },
		"line break in the env":      func(s *Submit) { s.Procs[0].Environment = map[string]string{"A": "b\nc"} },
		"no name of a variable":      func(s *Submit) { s.Procs[0].Environment = map[string]string{"A B": "c"} },
		"line break in requirements": func(s *Submit) { s.Requirements = "true\nqueue" },
		"line break in an attribute": func(s *Submit) { s.Attributes = classad.Ad{"A": "b\nc"} },
		"no name of an attribute":    func(s *Submit) { s.Attributes = classad.Ad{"A = 1\nB": "c"} },
		"continued line":             func(s *Submit) { s.Log = `log\` },
		"white space at the end":     func(s *Submit) { s.Log = "log " },
		"comma in a file":            func(s *Submit) { s.Transfer.Input = []string{"a,b"} },
		"file without a name":        func(s *Submit) { s.Transfer.Output = []string{""} },
	}
	for name, change := range tests {
		s := full()
		change(&s)
		var text strings.Builder
		if _, err := s.WriteTo(&text); !errors.Is(err, ErrUnquotable) || text.Len() != 0 {
			t.Errorf("%s: %v and %d bytes, want a refusal", name, err, text.Len())
		}
	}
	if _, err := (Submit{Executable: "/bin/true"}).WriteTo(&strings.Builder{}); err == nil {
		t.Error("a submission without jobs was written")
	}
}

// TestSubmitToFolders submits jobs with folders of their own, whose program's path is defined by their worker.
func TestSubmitToFolders(t *testing.T) {
	t.Parallel()
	s := Submit{ExecutableOf: "PilotPath", Dir: "/a", Procs: []Proc{{Dir: "/b"}, {}}}
	var text strings.Builder
	if _, err := s.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "executable") || strings.HasPrefix(line, "initialdir") || strings.HasPrefix(line, "queue") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{"executable = $$(PilotPath)", "initialdir = /a", "initialdir = $(Own2)", "queue Own0, Own2 from ("}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s.ExecutableOf = "a)b"
	if _, err := s.WriteTo(&text); !errors.Is(err, ErrUnquotable) {
		t.Errorf("attribute %q: %v, want an error", s.ExecutableOf, err)
	}
}
