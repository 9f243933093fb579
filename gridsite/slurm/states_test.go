package slurm

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
)

// A job in an unknown state of a later Slurm has not ended.
func TestSlurmStatesToCome(t *testing.T) {
	t.Parallel()
	sight, err := parseSight([]byte("queue\n7 POWER_UP_NODE began|None\n8 POWER_UP_NODE begins|None\njobs\nbegan 7 1700000000 -\nbegins 8 - -\nend\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"began", "begins"} {
		if job, ok := sight.status(tag); !ok || job.Phase != gridsite.Running {
			t.Errorf("%s: %+v, want it running", tag, job)
		}
	}
	if gone := sight.gone([]string{"began", "begins"}); gone != nil {
		t.Errorf("gone: %q", gone)
	}
}

// The scripts and the Go code agree on the states of an ended job.
func TestSlurmStatesOfScripts(t *testing.T) {
	t.Parallel()
	if want := "(" + strings.Join(ended, "|") + ")"; !strings.Contains(pollScript, want) {
		t.Errorf("the scripts do not have %s", want)
	}
}
