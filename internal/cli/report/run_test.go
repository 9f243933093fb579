package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/report"
	"github.com/corral-pilot/corral/workflow"
)

// runFacts returns the data of two pilots of one cpu, the second of which starts at 10 s, and of a workflow in which
// two tasks wait for the first task. The first worker needs 1 s between one task and the next.
func runFacts(t *testing.T) report.RunFacts {
	t.Helper()
	at := func(s float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))).UTC()
	}
	flow := &workflow.Workflow{Name: "fork"}
	b := workflow.NewBuilder(flow, workflow.Options{})
	for _, id := range []string{"a", "b", "c", "d"} {
		kind := "use"
		if id == "a" {
			kind = "make"
		}
		if err := b.Add(workflow.Task{ID: id, Name: kind, Argv: []string{"true"}}, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, child := range []string{"b", "c", "d"} {
		b.Edge("a", child, workflow.Place{})
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	task := func(id, worker string, from, to float64) api.TaskStatus {
		return api.TaskStatus{ID: id, State: corral.TaskDone, Worker: worker, StartedAt: at(from), EndedAt: at(to), Attempts: 1}
	}
	failed := task("d", "two/0", 13, 16)
	failed.State = corral.TaskFailed
	pilot := func(tag string, from, to float64) corral.Glidein {
		j := corral.Job{Tag: tag, StartedAt: at(from)}
		if to != 0 {
			j.EndedAt = at(to)
		}
		return corral.Glidein{Shape: corral.Shape{Hosts: 1, CPUs: 1}, Attempts: []corral.Job{j}}
	}
	return report.RunFacts{
		Run: corral.Run{ID: 7, Workflow: "fork", State: corral.RunFailed, CreatedAt: at(0), EndedAt: at(17),
			Tasks: corral.RunTasks{Total: 4, Done: 3, Failed: 1}},
		Flow:     flow,
		Tasks:    []api.TaskStatus{task("a", "one/0", 1, 5), task("b", "one/0", 6, 12), task("c", "two/0", 10, 13), failed},
		Glideins: []corral.Glidein{pilot("one", -100, 12), pilot("two", 10, 0), pilot("old", -100, -50)},
		Now:      at(100),
	}
}

// The time of two cpus until the last task's end is divided into its uses: running, held and idle with or without a
// ready task, and not held although a task was ready.
func TestWhereTheTimeWent(t *testing.T) {
	t.Parallel()
	r := report.OfRun(runFacts(t))
	second := corral.Seconds(time.Second)
	want := report.TimeUse{
		Running:  16 * second, // 4 + 6 + 3 + 3
		Dispatch: 2 * second,  // the first second, before a, and the second between a and b
		Idle:     1 * second,  // after d, until the run's end
		// c waits between a and b and while b runs alone from 6 to 10; d waits from 12 to 13, when the first pilot is
		// gone
		Waiting: 6 * second,
		// not needed until a has ended, while d runs, and after that
		Unneeded: 9 * second,
	}
	if diff := cmp.Diff(want, r.Spent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Span != 17*second || r.Workers != 2 || r.PeakCPUs != 2 {
		t.Errorf("span %s, %d workers, %d cpus at most", r.Span, r.Workers, r.PeakCPUs)
	}
	kinds := []report.Measurement{
		{Name: "use", Tasks: 3, Failed: 1, Sum: 12 * second, Mean: 4 * second, Most: 6 * second},
		{Name: "make", Tasks: 1, Sum: 4 * second, Mean: 4 * second, Most: 4 * second},
	}
	if diff := cmp.Diff(kinds, r.Kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// In an unfinished run, tasks run until now: as many as their worker has cpus; the others are ready, as are those
// without a worker. A ready task counts with the number of its cpus. Measurements of an earlier execution are not
// shown.
func TestARunThatGoesOn(t *testing.T) {
	t.Parallel()
	f := runFacts(t)
	second := corral.Seconds(time.Second)
	f.Run.State, f.Run.EndedAt = corral.RunRunning, time.Time{}
	f.Now = f.Run.CreatedAt.Add(20 * time.Second)
	f.Glideins = f.Glideins[:1]
	f.Glideins[0].Attempts[0].EndedAt = time.Time{}
	f.Flow.Tasks[0].MemoryBytes = 1 << 30
	f.Flow.Tasks[3].CPUs = 8
	running := func(id string, from time.Duration) api.TaskStatus {
		return api.TaskStatus{ID: id, State: corral.TaskRunning, Worker: "one/0", StartedAt: f.Run.CreatedAt.Add(from)}
	}
	f.Tasks = []api.TaskStatus{f.Tasks[0], running("b", 6*time.Second), running("c", 7*time.Second),
		{ID: "d", State: corral.TaskReady}}
	r := report.OfRun(f)
	want := report.TimeUse{Running: 18 * second, Dispatch: 2 * second}
	if diff := cmp.Diff(want, r.Spent); diff != "" || r.Span != 20*second || r.Workers != 1 {
		t.Errorf("span %s, %d workers (-want +got):\n%s", r.Span, r.Workers, diff)
	}
	if len(r.Kinds) != 1 || r.Kinds[0].Tasks != 1 || r.Kinds[0].MemoryBytes != 0 {
		t.Errorf("kinds %+v", r.Kinds)
	}
	f.Glideins = nil // then b and c run side by side, and two cpus are held from 6 on
	f.Tasks[3].State = corral.TaskWaiting
	if r := report.OfRun(f); r.PeakCPUs != 2 || r.Spent.Running != (4+14+13)*second {
		t.Errorf("%d cpus, %+v", r.PeakCPUs, r.Spent)
	}
}

// For a worker without a pilot of ours, only its tasks are known.
func TestWorkersWithoutPilots(t *testing.T) {
	t.Parallel()
	f := runFacts(t)
	f.Glideins = nil
	r := report.OfRun(f)
	if r.PeakCPUs != 2 || r.Spent.Running != corral.Seconds(16*time.Second) {
		t.Errorf("%d cpus, %s of tasks", r.PeakCPUs, r.Spent.Running)
	}
}

// A run without any executed task also has a page, and the page needs no other files.
func TestPageOfARun(t *testing.T) {
	t.Parallel()
	none := runFacts(t)
	none.Tasks, none.Glideins = nil, nil
	none.Run.State, none.Run.Reason = corral.RunRunning, "task a needs <a worker>"
	for _, f := range []report.RunFacts{runFacts(t), none} {
		var page bytes.Buffer
		r := report.OfRun(f)
		if err := r.Write(&page); err != nil {
			t.Fatal(err)
		}
		text := page.String()
		for _, outside := range []string{"<script", "<link", "<img", "src=", "<a worker>"} {
			if strings.Contains(text, outside) {
				t.Errorf("the page has %q", outside)
			}
		}
		if n := strings.Count(text, "<svg"); n != 3 || len(r.Figures()) != n {
			t.Errorf("the page has %d pictures, and the report %d, want 3", n, len(r.Figures()))
		}
	}
}
