package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// answering returns a client for a server that sends these answers.
func answering(t *testing.T, answer func(*http.Request) any) *api.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(answer(r))
	}))
	t.Cleanup(s.Close)
	cl, err := api.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// A silent view shows nothing.
type silent struct{}

func (silent) Show(context.Context, corral.Run, time.Time) {}
func (silent) Close()                                      {}

// TestRevisionsAreAskedForOnceASecond: revisions are requested once a second, however often the run is shown, and once
// more at its end.
func TestRevisionsAreAskedForOnceASecond(t *testing.T) {
	t.Parallel()
	asked := 0
	cl := answering(t, func(*http.Request) any { asked++; return api.List[corral.Revision]{} })
	view := &revisionView{View: silent{}, auto: &autoRun{plan: corral.Plan{ID: 1}}, cl: cl}
	start := time.Unix(1000, 0)
	for ms := 0; ms <= 2000; ms += 200 {
		view.Show(t.Context(), corral.Run{State: corral.RunRunning}, start.Add(time.Duration(ms)*time.Millisecond))
	}
	if asked != 3 {
		t.Errorf("asked %d times within 2 s, want 3", asked)
	}
	view.Show(t.Context(), corral.Run{State: corral.RunSucceeded}, start.Add(2100*time.Millisecond))
	if asked != 4 {
		t.Error("not asked at the run's end")
	}
}

// TestReleaseHasOneDeadline: the wait for each pilot of a plan is limited to the time that the earlier waits have left.
func TestReleaseHasOneDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ timeout, spent, want time.Duration }{
		{0, time.Hour, 0},
		{time.Minute, 0, time.Minute},
		{time.Minute, 45 * time.Second, 15 * time.Second},
		{time.Minute, time.Hour, time.Millisecond},
	} {
		if got := remaining(c.timeout, c.spent); got != c.want {
			t.Errorf("of %s, after %s, %s are left, want %s", c.timeout, c.spent, got, c.want)
		}
	}
	waits := 0
	cl := answering(t, func(r *http.Request) any {
		if strings.HasSuffix(r.URL.Path, "/glideins") {
			pilot := corral.Glidein{State: corral.GlideinRemoving}
			return api.List[corral.Glidein]{Items: []corral.Glidein{pilot, pilot, {State: corral.GlideinDeleted}}}
		}
		waits++
		return corral.Glidein{State: corral.GlideinDeleted}
	})
	if err := awaitReleased(t.Context(), cl, 1, time.Minute); err != nil || waits != 2 {
		t.Errorf("%v after %d waits, want 2", err, waits)
	}
}

// TestSimulatedTasksNeedWhatTheWorkflowSays: the needs include gpus and disk as well as cpus and memory.
func TestSimulatedTasksNeedWhatTheWorkflowSays(t *testing.T) {
	t.Parallel()
	needs := corral.Resources{CPUs: 2, MemoryMiB: 300, GPUs: 1, DiskMiB: 40}
	w := &workflow.Workflow{Tasks: []workflow.Task{{ID: "a", Resources: needs}}}
	w.Graph, _ = dag.New(1, nil)
	work, err := workOf(&plan.Plan{}, w)
	if err != nil || work.Tasks[0].Needs != needs {
		t.Errorf("%+v, %v; want %+v", work.Tasks, err, needs)
	}
}

// TestScheduleThatLiesApart: a plan file without its schedule requires the schedule's file, and another plan's schedule
// is refused.
func TestScheduleThatLiesApart(t *testing.T) {
	t.Parallel()
	document := plan.Plan{Feasible: true, Evidence: plan.Evidence{Assumed: &plan.Assumed{Spread: "0"}}}
	for i := range plan.MostWithin + 1 {
		document.Schedule = append(document.Schedule, plan.Placement{ID: fmt.Sprint("t", i), End: 1e9})
	}
	var lines bytes.Buffer
	if err := document.Detach(&lines); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file, whole := write("plan.json", text), write("tasks.jsonl", lines.Bytes())
	other := write("other.jsonl", bytes.Replace(lines.Bytes(), []byte(`"end_s":1}`), []byte(`"end_s":2}`), 1))
	for _, c := range []struct {
		args   []string
		stdout string
		stderr string
	}{
		{[]string{"plan", "validate", file}, "", "corral: --schedule: the schedule of the plan is stored apart: name its file"},
		{[]string{"plan", "validate", file, "--schedule", other}, "schedule digest: the schedule has 10001 tasks", "rules"},
		{[]string{"plan", "validate", file, "--schedule", whole}, "pilot: task t0 is on pilot 0, but there are 0 pilots (and 10000 more)",
			"rules"},
		{[]string{"simulate", file, "no.json", "--schedule", other}, "", "it is the schedule of another plan"},
	} {
		var out, said bytes.Buffer
		code := run(t.Context(), append([]string{"corral"}, c.args...), stdio{strings.NewReader(""), &out, &said})
		if code != 2 || !strings.Contains(out.String(), c.stdout) || !strings.Contains(said.String(), c.stderr) {
			t.Errorf("%q: exit code %d\n%s\n%s", c.args, code, out.String(), said.String())
		}
	}
}

// TestMissedGoals: a run whose tasks are all done has missed its goal if it was late or cost too much; a cost that is not
// known misses nothing.
func TestMissedGoals(t *testing.T) {
	t.Parallel()
	budget := cost.Amount{Money: 2_000_000, Unit: "ch"}
	dear, cheap := cost.Amount{Money: 2_500_000, Unit: "ch"}, budget
	goal := plan.Goal{Deadline: corral.Seconds(time.Minute), Budget: &budget}
	for _, c := range []struct {
		goal  plan.Goal
		took  time.Duration
		spent *cost.Amount
		want  string
	}{
		{goal, time.Minute, &cheap, ""},
		{goal, time.Minute, nil, ""},
		{plan.Goal{}, time.Hour, &dear, ""},
		{goal, 61 * time.Second, &cheap, "run 3: all of its tasks are done, but it took 1m1s, longer than the deadline of 1m0s"},
		{goal, time.Minute, &dear, "run 3: all of its tasks are done, but it cost 2.5ch, more than the budget of 2ch"},
		{goal, time.Hour, &dear, "run 3: all of its tasks are done, but it took 1h0m0s, longer than the deadline of 1m0s; " +
			"and it cost 2.5ch, more than the budget of 2ch"},
	} {
		got, err := "", missed(3, c.goal, corral.Seconds(c.took), c.spent)
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && corral.KindOf(err) != corral.Missed {
			t.Errorf("%q, want %q of kind missed", got, c.want)
		}
	}
}
