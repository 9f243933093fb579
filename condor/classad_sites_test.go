//go:build sites

package condor

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/corral-pilot/corral/condor/classad"
)

// TestQueriesOfTheRealPool stores the output of the real tools in golden files, and parses both.
func TestQueriesOfTheRealPool(t *testing.T) {
	t.Parallel()
	p := common(t)
	job := Submit{Executable: "/bin/true", Requirements: "false && Cpus > 1", Attributes: classad.Ad{"Text": `a "b" \c`}, Procs: []Proc{{}}}
	cluster, err := p.Tools().Submit(soon(t), job)
	if err != nil {
		t.Fatal(err)
	}
	for file, args := range map[string][]string{
		"condor_q.json":       {"condor_q", "-json", strconv.Itoa(cluster)},
		"condor_status.json":  {"condor_status", "-schedd", "-json"},
		"condor_history.json": {"condor_history", "-json", "-constraint", "false"},
		"nothing.json":        {"condor_q", "-json", "-constraint", "false"},
	} {
		out, err := p.Tools().Run(soon(t), nil, args[0], args[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(golden, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{out, kept} {
			checkQuery(t, file, text)
		}
	}
}

func checkQuery(t *testing.T, file string, text []byte) {
	t.Helper()
	ads, err := classad.ParseAds(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	switch file {
	case "condor_q.json":
		cmd, _ := ads[0].Text("Cmd")
		text, _ := ads[0].Text("Text")
		status, ok := ads[0].Int("JobStatus")
		if _, isExpr := ads[0]["Requirements"].(classad.Expr); cmd != "/bin/true" || status != 1 || !ok || !isExpr || text != `a "b" \c` {
			t.Errorf("%s: Cmd = %q, JobStatus = %d, Text = %q, Requirements = %v", file, cmd, status, text, ads[0]["Requirements"])
		}
	case "condor_status.json":
		if kind, _ := ads[0].Text("MyType"); len(ads) != 1 || kind != "Scheduler" {
			t.Errorf("%s: %d ads of %q", file, len(ads), kind)
		}
	default:
		if len(ads) != 0 {
			t.Errorf("%s: %d ads, want none", file, len(ads))
		}
	}
}
