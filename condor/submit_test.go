package condor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// full has something in every field.
func full() Submit {
	return Submit{
		Executable: "/opt/my app/$run", Dir: "/tmp", Log: "jobs.log", BatchName: "run 7", Requirements: `TARGET.GlideinSite == "here"`,
		Rank: "Mips", Priority: -3, Cpus: 2, GPUs: 1, MemoryMiB: 512, DiskMiB: 100, TransferFiles: "YES", TransferExecutable: true,
		InputFiles: []string{"a.in", "$b.in"}, OutputFiles: []string{"a.out"},
		Attributes: Ad{"CorralRun": "r7", "Limit": int64(3), "Quote": `say "$(hi)"`},
		Procs: []Proc{
			{Attributes: Ad{"First": true}, Arguments: []string{"plain", "two  words", "it's", `"q"`, "", "$$(X)", "a,b\tc"}, Environment: map[string]string{"B": "it's b", "A": "1"}, Stdin: "in", Stdout: "0.out", Stderr: "0.err"},
			{Attributes: Ad{"Task": "second"}},
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

// TestSubmitMeansWhatItSays has the real condor_submit make ads of a description, without a schedd.
func TestSubmitMeansWhatItSays(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	s := full()
	s.InputFiles = nil // condor_submit looks for them, and for the executable
	s.Executable = filepath.Join(filepath.Dir(p.config.Dir), "my $run app")
	if err := os.WriteFile(s.Executable, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if _, err := s.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	cmd := p.Tools().command(soon(t), "condor_submit", "-dry-run", "-", "-")
	cmd.Stdin = strings.NewReader(text.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	ads := dryAds(string(out))
	if len(ads) != 2 {
		t.Fatalf("%d jobs, want 2:\n%s", len(ads), out)
	}
	if strings.Contains(strings.ToLower(string(out)), "deprecated") {
		t.Errorf("condor_submit warns:\n%s", out)
	}
	want := Ad{
		"Cmd": s.Executable, "Iwd": "/tmp", "UserLog": "/tmp/jobs.log", "JobBatchName": "run 7", "RequestCpus": int64(2),
		"RequestGPUs": int64(1), "RequestMemory": int64(512), "RequestDisk": int64(102400), "JobPrio": int64(-3), "Rank": Expr("Mips"),
		"Arguments": `plain two'  'words it''''s "q" '' $$(DOLLARDOLLAR)(X) a,b'` + "\t'c", "Environment": `A=1 B='it''s b'`, "First": true,
		"In": "in", "Out": "0.out", "Err": "0.err",
		"CorralRun": "r7", "Limit": int64(3), "Quote": `say "$(hi)"`, "TransferOutput": "a.out", "JobUniverse": int64(5),
	}
	for name := range want {
		got, _ := ads[0].Lookup(name)
		if got != want[name] {
			t.Errorf("%s = %#v, want %#v", name, got, want[name])
		}
	}
	second := Ad{"Arguments": "", "Environment": "", "In": "/dev/null", "Out": "/dev/null", "Err": "/dev/null",
		"Task": "second", "First": Undefined, "CorralRun": "r7"}
	for name, want := range second {
		if got, _ := ads[1].Lookup(name); got != want {
			t.Errorf("second job: %s = %#v, want %#v", name, got, want)
		}
	}
}

// dryAds reads what condor_submit -dry-run prints of each job: the changes of its ad, and then the whole ad.
func dryAds(out string) []Ad {
	var ads []Ad
	for _, block := range strings.Split(out, "\n** Proc ")[1:] {
		ad := Ad{}
		for line := range strings.Lines(block) {
			if strings.TrimSpace(line) == "" {
				break
			}
			if name, value, ok := strings.Cut(line, " = "); ok {
				ad[name] = ParseOld(value)
			}
		}
		ads = append(ads, ad)
	}
	return ads
}

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]func(s *Submit){
		"line break in an argument":  func(s *Submit) { s.Procs[0].Arguments = []string{"a\nqueue 1000"} },
		"line break in a path":       func(s *Submit) { s.Dir = "/tmp\nqueue 1000" },
		"line break in the env":      func(s *Submit) { s.Procs[0].Environment = map[string]string{"A": "b\nc"} },
		"no name of a variable":      func(s *Submit) { s.Procs[0].Environment = map[string]string{"A B": "c"} },
		"line break in requirements": func(s *Submit) { s.Requirements = "true\nqueue" },
		"line break in an attribute": func(s *Submit) { s.Attributes = Ad{"A": "b\nc"} },
		"no name of an attribute":    func(s *Submit) { s.Attributes = Ad{"A = 1\nB": "c"} },
		"continued line":             func(s *Submit) { s.Log = `log\` },
		"white space at the end":     func(s *Submit) { s.Log = "log " },
		"comma in a file":            func(s *Submit) { s.InputFiles = []string{"a,b"} },
		"file without a name":        func(s *Submit) { s.OutputFiles = []string{""} },
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

func TestManyJobsOneCluster(t *testing.T) {
	t.Parallel()
	p := common(t)
	s := Submit{Executable: "/bin/true", Procs: make([]Proc, 500), Requirements: "false"}
	start := time.Now()
	cluster, err := p.Tools().Submit(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("500 jobs in %v", time.Since(start).Round(time.Millisecond))
	if got := idle(t, p, cluster); got != 500 {
		t.Errorf("%d jobs wait, want 500", got)
	}
}

func TestRefusedIsNotUnknown(t *testing.T) {
	t.Parallel()
	stopped := newPool(t)
	if err := stopped.prepare(); err != nil {
		t.Fatal(err)
	}
	running := common(t)
	picky := newPool(t)
	picky.config.Extra = "SUBMIT_REQUIREMENT_NAMES = NONE\nSUBMIT_REQUIREMENT_NONE = false\nSUBMIT_REQUIREMENT_NONE_REASON = \"no jobs today\"\n"
	if err := picky.Start(soon(t)); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	tests := map[string]struct {
		err  error
		said bool
	}{
		"no such executable": {submit(t, running, Submit{Executable: "/no/such", TransferExecutable: true, Procs: []Proc{{}}}), true},
		"bad requirements":   {submit(t, running, Submit{Executable: "/bin/true", Requirements: "1 +", Procs: []Proc{{}}}), true},
		"words of the user":  {submit(t, running, Submit{Executable: "/bin/true", Procs: []Proc{{Dir: "/no/connection refused/timeout"}}}), true},
		"not committed":      {submit(t, picky, Submit{Executable: "/bin/true", Procs: []Proc{{}}}), true},
		"nobody there":       {submit(t, stopped, Submit{Executable: "/bin/true", Procs: []Proc{{}}}), false},
		"nothing to remove":  {run(soon(t), stopped, "condor_rm", "1"), false},
		"no such tool":       {run(soon(t), running, "condor_no_such"), false},
		"cancelled":          {run(ended, running, "condor_q"), false},
	}
	for name, test := range tests {
		var refused *Refused
		if said := errors.As(test.err, &refused); test.err == nil || said != test.said {
			t.Errorf("%s: %v; is it a refusal: %v, want %v", name, test.err, said, test.said)
		}
	}
}

func submit(t *testing.T, p *Pool, s Submit) error {
	t.Helper()
	_, err := p.Tools().Submit(soon(t), s)
	return err
}

func run(ctx context.Context, p *Pool, tool string, args ...string) error {
	_, err := p.Tools().Run(ctx, nil, tool, args...)
	return err
}

// TestSubmitToFolders shows jobs with folders of their own, whose program is where their worker says.
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
