package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/survey"
)

// asked is a site's output for a queue.
func asked(name, processors, jobs, config string) string {
	var out strings.Builder
	for _, s := range [][2]string{{"name", name}, {"processors", processors}, {"nodes", ""}, {"jobs", jobs}, {"reservations", ""},
		{"config", config}} {
		out.WriteString("\nMARK begin " + s[0] + "\n" + s[1] + "\nMARK end " + s[0] + " 0 \n")
	}
	return out.String()
}

// The cases contain running and waiting jobs, as printed by squeue 22.05 and 24.11. Jobs that wait for anything but
// processors are counted separately, and processors that no listed job holds are hidden.
func TestQueue(t *testing.T) {
	t.Parallel()
	const jobs = "squeue: a remark of the site\nRUNNING|8|1-00:00:00|2:03|1795000000|7|7|long|2|NO|100M|n[1-2]|(null)|None|.\n" +
		"CONFIGURING|2|30:00|29:59|1795000100|8|5|long|1|OK|1G|n3|(null)|None|.\n" +
		"PENDING|16|UNLIMITED|0:00|N/A|9|9|long|2|OK|0|||Priority|.\n" +
		"PENDING|4|12:00:00|0:00|1795003600|10|10|other|1|USER|100M|||Resources|.\n" +
		"PENDING|1|5:00|0:00|N/A|11|11|long|1|OK|100M||afterany:7(unfulfilled),afterok:8_2(unfulfilled)|Dependency|.\n" +
		"PENDING|1|5:00|0:00|1795007200|12|12|long|1|OK|100M|||BeginTime|.\n" +
		"PENDING|1|5:00|0:00|N/A|13|5|long|1|OK|100M|||JobArrayTaskLimit|.\n" +
		"PENDING|1|5:00|0:00|N/A|14|14|long|1|OK|100M||singleton(unfulfilled)|Dependency|.\n" +
		"PENDING|1|5:00|0:00|N/A|15|15|long|1|OK|100M|||QOSMaxJobsPerUserLimit|.\n" +
		"PENDING|1|5:00|0:00|N/A|16|16|long|1|OK|100M|||JobHeldUser|.\n"
	got, err := New(transcript{out: asked("long|up", "12/4/2/18", jobs, "PrivateData = usage,jobs")}, "/x").Backlog(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	got.At = time.Time{}
	const m = corral.Seconds(time.Minute)
	begin := time.Unix(1795007200, 0).UTC()
	want := corral.Backlog{Queue: "long", Processors: 16, Hidden: 2, Ineligible: 3, Reserved: true,
		Running: []corral.QueuedJob{
			{ID: "7", Queue: "long", Processors: 8, Limit: corral.Seconds(24 * time.Hour), Elapsed: corral.Seconds(123 * time.Second),
				StartsAt: time.Unix(1795000000, 0).UTC(), Nodes: 2, Whole: true, MemoryMiB: 100, On: []string{"n1", "n2"}},
			{ID: "8", Queue: "long", Array: "5", Processors: 2, Limit: 30 * m, Elapsed: corral.Seconds(1799 * time.Second),
				StartsAt: time.Unix(1795000100, 0).UTC(), Nodes: 1, MemoryMiB: 1024, On: []string{"n3"}},
		},
		Waiting: []corral.QueuedJob{{ID: "9", Queue: "long", Processors: 16, Nodes: 2},
			{ID: "10", Queue: "other", Processors: 4, Limit: 720 * m, StartsAt: time.Unix(1795003600, 0).UTC(), Nodes: 1, MemoryMiB: 100},
			{ID: "11", Queue: "long", Processors: 1, Limit: 5 * m, Nodes: 1, MemoryMiB: 100, After: []string{"7", "8"}},
			{ID: "12", Queue: "long", Processors: 1, Limit: 5 * m, StartsAt: begin, NotBefore: begin, Nodes: 1, MemoryMiB: 100},
			{ID: "13", Queue: "long", Processors: 1, Limit: 5 * m, Nodes: 1, MemoryMiB: 100, Array: "5"},
		},
		Notes: []string{"Slurm hides the jobs of other users (PrivateData): the jobs ahead of ours are not known"},
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
		"cut short": {asked("a|up", "1/1/0/2", "RUNNING|1|1:00|0:01|N/A|1|1|a|1|OK|1M|n1||None|.\n"+
			"PENDING|1|1:00|0:00|N/A|2|2|a|1|OK|1M|||Reso", ""), "squeue printed", ""},
		"no nodes":        {asked("a|up", "1/1/0/2", "RUNNING|1|1:00|0:01|N/A|1|1|a|1|OK|1M|n[1-||None|.", ""), "squeue printed", ""},
		"no number":       {asked("a|up", "1/1/0/2", "RUNNING|-1|1:00|0:01|N/A|1|1|a|1|OK|1M|n1||None|.", ""), "squeue printed", ""},
		"no time":         {asked("a|up", "1/1/0/2", "RUNNING|1|soon|0:01|N/A|1|1|a|1|OK|1M|n1||None|.", ""), "squeue printed", ""},
		"a time too much": {asked("a|up", "1/1/0/2", "RUNNING|1|1:1:1:1|0:01|N/A|1|1|a|1|OK|1M|n1||None|.", ""), "squeue printed", ""},
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
	got, err := New(transcript{out: asked("a|up", "4/4/0/8", "RUNNING|6|1:00|0:01|N/A|1|1|a|1|OK|1M|n1||None|.\n"+
		"RUNNING|1|1:00|0:01|N/A|2|2|a|1|OK|1M|n1||None|.", "")}, "/x").
		Backlog(t.Context(), "a")
	if err != nil || got.Hidden != 0 || got.Running[0].Processors != 3 || got.Running[1].Processors != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Any output of squeue is parsed or rejected.
func FuzzQueueJobs(f *testing.F) {
	f.Add("RUNNING|8|1-00:00:00|2:03|1795000000|7|7|long|2|NO|100M|n[1-2,07],m|(null)|None|.\n")
	f.Add("PENDING|16|UNLIMITED|0:00|N/A|9|9|long|2|OK|1G||afterany:1(unfulfilled)|Dependency|.\n")
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

// The nodes in working order are known with the queues that have them, and so are the reservations that are not over.
func TestNodesAndReservations(t *testing.T) {
	t.Parallel()
	out := "\nMARK begin nodes\nn1|a|8|4000|2/6/0/8|.\nn1|b|8|4000|2/6/0/8|.\nn2|a|8|4000|0/0/8/8|.\n" +
		"n3|a|8|4000|0/8/0/8|.\n\nMARK end nodes 0 \n\nMARK begin reservations\n" +
		"ReservationName=m StartTime=1795000000 EndTime=1795014400 Duration=04:00:00 Nodes=n[1-3] NodeCnt=3 Flags=MAINT,IGNORE_JOBS TRES=cpu=8\n" +
		"ReservationName=old StartTime=1794000000 EndTime=1794990000 Nodes=n1 Flags=\n" +
		"ReservationName=far StartTime=1795000000 EndTime=1795014400 Nodes=x1 Flags=\n" +
		"ReservationName=r StartTime=1795000000 EndTime=1795014400 Nodes=n3 Flags=DAILY\n\nMARK end reservations 0 \n"
	said, _, err := survey.Ask(t.Context(), transcript{out: out}, "/x", "", "")
	if err != nil {
		t.Fatal(err)
	}
	got := corral.Backlog{At: time.Unix(1794999000, 0)}
	addNodesAndReservations(said, &got)
	from, to := time.Unix(1795000000, 0).UTC(), time.Unix(1795014400, 0).UTC()
	want := corral.Backlog{At: got.At,
		Nodes: []corral.QueueNode{{Name: "n1", CPUs: 8, MemoryMiB: 4000, Held: 2, Queues: []string{"a", "b"}},
			{Name: "n3", CPUs: 8, MemoryMiB: 4000, Queues: []string{"a"}}},
		Reserved: true,
		Reservations: []corral.QueueReservation{{Name: "m", From: from, To: to, Nodes: []string{"n1", "n3"}, Maintenance: true},
			{Name: "r", From: from, To: to, Nodes: []string{"n3"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = corral.Backlog{}
	if addNodesAndReservations(survey.Sections{}, &got); len(got.Notes) != 1 {
		t.Errorf("%+v", got)
	}
}
