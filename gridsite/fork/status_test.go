package fork

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/gridsite"
)

func TestParsePoll(t *testing.T) {
	zero := 0
	at := time.Unix(1700000000, 0).UTC()
	out := "a 12.345 running 1700000000.250000000\n" +
		"b.1 12.346 ended 1700000000.000000000 1700000000.%N 0 -\n" +
		"c_1 12.347 ended 1700000000 1700000000 - disappeared\n" +
		"d unstarted.0 ended 1700000000 1700000000 - cancel\nend\n"
	want := map[string]gridsite.JobStatus{
		"a":   {Tag: "a", ID: "12.345", Phase: gridsite.Running, StartedAt: at.Add(time.Second / 4)},
		"b.1": {Tag: "b.1", ID: "12.346", Phase: gridsite.Ended, Exit: &zero, StartedAt: at, EndedAt: at},
		"c_1": {Tag: "c_1", ID: "12.347", Phase: gridsite.Ended, Killed: gridsite.ByDisappeared, StartedAt: at, EndedAt: at},
		"d":   {Tag: "d", ID: "unstarted.0", Phase: gridsite.Ended, Killed: gridsite.ByCancel, StartedAt: at, EndedAt: at},
	}
	got, err := parsePoll([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parsePoll (-want +got):\n%s", diff)
	}
}

func TestParsePollRefuses(t *testing.T) {
	for _, out := range []string{
		"",
		"a 1.2 running 17\n",                    // truncated: no end
		"a 1.2 running 17 end\n",                // end is not on a line of its own
		"a 1.2 runni\nend\n",                    // too few fields
		"a 1.2 queued 17\nend\n",                // another phase
		"a 1.2 running 17 18 0 -\nend\n",        // the fields of another phase
		"-a 1.2 running 17\nend\n",              // not a tag of ours
		"a 12 running 17\nend\n",                // not an id of ours
		"a 1.2 running soon\nend\n",             // not a time
		"a 1.2 ended 17 late 0 -\nend\n",        // not a time
		"a 1.2 ended 17 18 256 -\nend\n",        // not an exit status
		"a 1.2 ended 17 18 -1 -\nend\n",         // not an exit status
		"a 1.2 ended 17 18 0 lightning\nend\n",  // not a cause of an end
		"a 1.2 ended 17 18 0 - more\nend\n",     // too many fields
		"a 1.2 running 17\nend\ngarbage behind", // not the end
	} {
		if jobs, err := parsePoll([]byte(out)); err == nil {
			t.Errorf("parsePoll(%q) = %v, want an error", out, jobs)
		}
	}
}

// Any accepted status can be formatted like poll.sh's output and then has the same meaning.
func FuzzParsePoll(f *testing.F) {
	f.Add([]byte("end\n"))
	f.Add([]byte("a 12.345 running 1700000000.25\nend\n"))
	f.Add([]byte("a 12.345 ended 1700000000.000000001 1700000001.%N 137 walltime\nend\n"))
	f.Add([]byte("a unstarted.0 ended 1 2 - cancel\nb 1.2 ended 1 2 0 -\nend\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		jobs, err := parsePoll(out)
		if err != nil {
			return
		}
		again, err := parsePoll(printPoll(jobs))
		if err != nil {
			t.Fatalf("printed again: %v", err)
		}
		if diff := cmp.Diff(jobs, again); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}

func printPoll(jobs map[string]gridsite.JobStatus) (out []byte) {
	seconds := func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
	for _, job := range jobs {
		out = fmt.Appendf(out, "%s %s %s %s", job.Tag, job.ID, job.Phase, seconds(job.StartedAt))
		if job.Phase == gridsite.Ended {
			exit, killed := "-", "-"
			if job.Exit != nil {
				exit = fmt.Sprint(*job.Exit)
			}
			if job.Killed != gridsite.NotKilled {
				killed = string(job.Killed)
			}
			out = fmt.Appendf(out, " %s %s %s", seconds(job.EndedAt), exit, killed)
		}
		out = append(out, '\n')
	}
	return append(out, "end\n"...)
}
