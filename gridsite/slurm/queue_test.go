package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// asked is a site's output for a queue.
func asked(name, processors, jobs, config string) string {
	var out strings.Builder
	for _, s := range [][2]string{{"name", name}, {"processors", processors}, {"jobs", jobs}, {"config", config}} {
		out.WriteString("\nMARK begin " + s[0] + "\n" + s[1] + "\nMARK end " + s[0] + " 0 \n")
	}
	return out.String()
}

// The cases contain running and waiting jobs, as printed by squeue 22.05 and 24.11. Jobs that wait for anything but
// processors are counted separately, and processors that no listed job holds are hidden.
func TestQueue(t *testing.T) {
	t.Parallel()
	const jobs = "squeue: a remark of the site\nRUNNING|8|1-00:00:00|2:03|1795000000|None\n" +
		"CONFIGURING|2|30:00|29:59|1795000100|None\n" +
		"PENDING|16|UNLIMITED|0:00|N/A|Priority\n" +
		"PENDING|4|12:00:00|0:00|1795003600|Resources\n" +
		"PENDING|1|5:00|0:00|N/A|Dependency\n" +
		"PENDING|1|5:00|0:00|N/A|QOSMaxJobsPerUserLimit\n" +
		"PENDING|1|5:00|0:00|N/A|JobHeldUser\n"
	got, err := New(transcript{out: asked("long|up", "12/4/2/18", jobs, "PrivateData = usage,jobs")}, "/x").Backlog(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	got.At = time.Time{}
	want := corral.Backlog{Queue: "long", Processors: 16, Hidden: 2, Ineligible: 3,
		Running: []corral.QueuedJob{
			{Processors: 8, Limit: corral.Seconds(24 * time.Hour), Elapsed: corral.Seconds(123 * time.Second), StartsAt: time.Unix(1795000000, 0).UTC()},
			{Processors: 2, Limit: corral.Seconds(30 * time.Minute), Elapsed: corral.Seconds(1799 * time.Second), StartsAt: time.Unix(1795000100, 0).UTC()},
		},
		Waiting: []corral.QueuedJob{{Processors: 16}, {Processors: 4, Limit: corral.Seconds(12 * time.Hour), StartsAt: time.Unix(1795003600, 0).UTC()}},
		Notes:   []string{"Slurm hides the jobs of other users (PrivateData): the jobs ahead of ours are not known"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		out, want string
		kind      corral.Kind
	}{
		"no queue":        {asked("", "", "", ""), "no default partition", corral.Invalid},
		"no processors":   {asked("a|up", "", "", ""), "no processors in it", corral.NotFound},
		"a queue is down": {asked("a|down", "1/1/0/2", "", ""), "queue a is down", corral.Unsatisfiable},
		"no answer":       {"\nMARK begin name\nMARK end name 1 Unable to contact slurm controller\n", "does not answer", corral.Unavailable},
		"no Slurm":        {"nothing", "the survey of the site failed", corral.Failed},
		"words":           {asked("a|up", "1/x/0/2", "", ""), "sinfo printed", ""},
		"a short line":    {asked("a|up", "1/1/0/2", "RUNNING|1|1:00", ""), "squeue printed", ""},
		"no number":       {asked("a|up", "1/1/0/2", "RUNNING|-1|1:00|0:01|N/A|None", ""), "squeue printed", ""},
		"no time":         {asked("a|up", "1/1/0/2", "RUNNING|1|soon|0:01|N/A|None", ""), "squeue printed", ""},
		"a time too much": {asked("a|up", "1/1/0/2", "RUNNING|1|1:1:1:1|0:01|N/A|None", ""), "squeue printed", ""},
	} {
		_, err := New(transcript{out: c.out}, "/x").Backlog(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != "" && corral.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %s: %s", name, err, c.kind, c.want)
		}
	}
}

// The processors of a job outside the queue's nodes are not counted as processors of the queue.
func TestJobsBeyondTheQueue(t *testing.T) {
	t.Parallel()
	got, err := New(transcript{out: asked("a|up", "4/4/0/8", "RUNNING|6|1:00|0:01|N/A|None\nRUNNING|1|1:00|0:01|N/A|None", "")}, "/x").
		Backlog(t.Context(), "a")
	if err != nil || got.Hidden != 0 || got.Running[0].Processors != 3 || got.Running[1].Processors != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Any output of squeue is parsed or rejected.
func FuzzQueueJobs(f *testing.F) {
	f.Add("RUNNING|8|1-00:00:00|2:03|1795000000|None\n")
	f.Add("PENDING|16|UNLIMITED|0:00|N/A|Priority\n")
	f.Fuzz(func(t *testing.T, out string) {
		var q corral.Backlog
		if addJobs(&q, out) != nil {
			return
		}
		for _, j := range append(q.Running, q.Waiting...) {
			if j.Processors < 0 || j.Limit < 0 || j.Elapsed < 0 {
				t.Errorf("%+v of %q", j, out)
			}
		}
	})
}
