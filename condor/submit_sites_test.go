//go:build sites

package condor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
)

// TestSubmitMeansWhatItSays makes the real condor_submit create ads from a description, without a schedd.
func TestSubmitMeansWhatItSays(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	s := full()
	s.Transfer.Input = nil // condor_submit checks that they and the executable exist
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
	want := classad.Ad{
		"Cmd": s.Executable, "Iwd": "/tmp", "UserLog": "/tmp/jobs.log", "JobBatchName": "run 7", "RequestCpus": int64(2),
		"RequestGPUs": int64(1), "RequestMemory": int64(512), "RequestDisk": int64(102400), "JobPrio": int64(-3), "Rank": classad.Expr("Mips"),
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
	second := classad.Ad{"Arguments": "", "Environment": "", "In": "/dev/null", "Out": "/dev/null", "Err": "/dev/null",
		"Task": "second", "First": classad.Undefined, "CorralRun": "r7"}
	for name, want := range second {
		if got, _ := ads[1].Lookup(name); got != want {
			t.Errorf("second job: %s = %#v, want %#v", name, got, want)
		}
	}
}

// dryAds parses the output of condor_submit -dry-run for each job: the changes of its ad, and then the whole ad.
func dryAds(out string) []classad.Ad {
	var ads []classad.Ad
	for _, block := range strings.Split(out, "\n** Proc ")[1:] {
		ad := classad.Ad{}
		for line := range strings.Lines(block) {
			if strings.TrimSpace(line) == "" {
				break
			}
			if name, value, ok := strings.Cut(line, " = "); ok {
				ad[name] = classad.ParseOld(value)
			}
		}
		ads = append(ads, ad)
	}
	return ads
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
		"no such executable": {submit(t, running, Submit{Executable: "/no/such", Transfer: Transfer{Executable: true}, Procs: []Proc{{}}}), true},
		"bad requirements":   {submit(t, running, Submit{Executable: "/bin/true", Requirements: "1 +", Procs: []Proc{{}}}), true},
		"words of the user":  {submit(t, running, Submit{Executable: "/bin/true", Procs: []Proc{{Dir: "/no/connection refused/timeout"}}}), true},
		"not committed":      {submit(t, picky, Submit{Executable: "/bin/true", Procs: []Proc{{}}}), true},
		"nobody there":       {submit(t, stopped, Submit{Executable: "/bin/true", Procs: []Proc{{}}}), false},
		"nobody to ping":     {run(soon(t), stopped, "condor_ping", "-type", "collector", "READ"), false},
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
