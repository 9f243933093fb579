package schedd

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// The job of the higher class is first, and within a class the job with the higher rank.
func TestPriority(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		class int
		rank  float64
		want  int64
	}{
		{0, 0, 0}, {0, 59.6, 60}, {0, 1e99, math.MaxInt32}, {0, -1e99, -math.MaxInt32},
		{1, 60, 1_000_060}, {1, 1e9, 1_999_999}, {2, 0, 2_000_000}, {-1, 60, -999_940}, {1 << 40, 0, math.MaxInt32},
	} {
		if got := Priority(tt.class, tt.rank); got != tt.want {
			t.Errorf("class %d, rank %g: %d, want %d", tt.class, tt.rank, got, tt.want)
		}
	}
}

func TestIDOf(t *testing.T) {
	t.Parallel()
	ad := classad.Ad{"ClusterId": int64(12), "ProcId": int64(3)}
	if got := IDOf(ad); got != (eventlog.JobID{Cluster: 12, Proc: 3}) {
		t.Errorf("%v", got)
	}
}

// One command changes the priority of many jobs; very many jobs need several commands.
func TestRankIsOneCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s|' \"$@\" >>" + dir + "/asked; echo >>" + dir + "/asked\n"
	err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "bin/condor_qedit"), []byte(script), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	me := condor.Account{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	c := Client{Tools: condor.Tools{Release: dir, Config: filepath.Join(dir, "config"), As: me}, Attribute: "CorralStream"}
	many := make([]eventlog.JobID, batchSize+1)
	for _, jobs := range [][]eventlog.JobID{nil, {{Cluster: 7, Proc: 1}, {Cluster: 8}}, many} {
		if err := c.Rank(t.Context(), "N", 60, jobs...); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	lines := strings.SplitAfter(string(asked), "\n")
	want := `-constraint|CorralStream =?= "N" && member(strcat(ClusterId, ".", ProcId), { "7.1", "8.0" })|JobPrio|60|` + "\n"
	if err != nil || len(lines) != 4 || lines[0] != want { // the last line is empty
		t.Errorf("%d commands, of which the first is %q, want %q; %v", len(lines)-1, lines[0], want, err)
	}
}

// A refusal means that the job does not exist; any other error leaves the result unknown.
func TestUnlessRefused(t *testing.T) {
	t.Parallel()
	silent := errors.New("no answer")
	for _, tt := range []struct{ err, want error }{{nil, nil}, {silent, silent}, {&condor.Refused{Tool: "condor_rm"}, nil}} {
		if got := unlessRefused(tt.err); !errors.Is(got, tt.want) {
			t.Errorf("%v becomes %v", tt.err, got)
		}
	}
}
