package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/report"
	"github.com/corral-pilot/corral/workflow"
)

// runFacts are of two pilots of one cpu, the second of which starts at 10 s, and of a workflow in which two tasks wait
// for a first one. The first worker takes 1 s from one task to the next.
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
	task := func(id, worker string, from, to float64) api.Task {
		return api.Task{ID: id, State: corral.TaskDone, Worker: worker, StartedAt: at(from), EndedAt: at(to), Attempts: 1}
	}
	failed := task("d", "two/0", 13, 16)
	failed.State = corral.TaskFailed
	pilot := func(tag string, from, to float64) corral.Glidein {
		j := corral.Job{Tag: tag, StartedAt: at(from)}
		if to != 0 {
			j.EndedAt = at(to)
		}
		return corral.Glidein{Hosts: 1, CPUs: 1, Attempts: []corral.Job{j}}
	}
	return report.RunFacts{
		Run: corral.Run{ID: 7, Workflow: "fork", State: corral.RunFailed, CreatedAt: at(0), EndedAt: at(17),
			Tasks: corral.RunTasks{Total: 4, Done: 3, Failed: 1}},
		Flow:     flow,
		Tasks:    []api.Task{task("a", "one/0", 1, 5), task("b", "one/0", 6, 12), task("c", "two/0", 10, 13), failed},
		Glideins: []corral.Glidein{pilot("one", -100, 12), pilot("two", 10, 0), pilot("old", -100, -50)},
		Now:      at(100),
	}
}

// The time of two cpus until the last task's end is told apart: what ran, what was held and idle, with or without a task
// that was ready, and what was not held while a task was ready for it.
func TestWhereTheTimeWent(t *testing.T) {
	t.Parallel()
	r := report.OfRun(runFacts(t))
	second := corral.Seconds(time.Second)
	want := report.Spent{
		Running: 16 * second, // 4 + 6 + 3 + 3
		// the first second, before a; and between a and b
		Dispatch: 2 * second,
		// b runs from 6 to 10, and c and d are ready
		Waiting: 5 * second, // and for c between a and b
	}
	want.Waiting += 1 * second // from 12 to 13 the first pilot is gone, and d is ready
	if diff := cmp.Diff(want, r.Spent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Span != 16*second || r.Workers != 2 || r.PeakCPUs != 2 {
		t.Errorf("span %s, %d workers, %d cpus at most", r.Span, r.Workers, r.PeakCPUs)
	}
	kinds := []report.Measured{
		{Name: "use", Tasks: 3, Failed: 1, Sum: 12 * second, Mean: 4 * second, Most: 6 * second},
		{Name: "make", Tasks: 1, Sum: 4 * second, Mean: 4 * second, Most: 4 * second},
	}
	if diff := cmp.Diff(kinds, r.Kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// Of a worker that no pilot of ours brought, what ran there is all that is known.
func TestWorkersWithoutPilots(t *testing.T) {
	t.Parallel()
	f := runFacts(t)
	f.Glideins = nil
	r := report.OfRun(f)
	if r.PeakCPUs != 2 || r.Spent.Running != corral.Seconds(16*time.Second) {
		t.Errorf("%d cpus, %s of tasks", r.PeakCPUs, r.Spent.Running)
	}
}

// A run of which nothing has run has a page all the same, and the page needs nothing from elsewhere.
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
