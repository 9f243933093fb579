package slurm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// States are accepted by name and by code, in any case.
func TestParseState(t *testing.T) {
	for _, s := range states {
		for _, text := range []string{string(s.state), s.code, strings.ToLower(s.code)} {
			if got, ok := parseState(text); got != s.state || !ok {
				t.Errorf("%s is %s, %v; want %s", text, got, ok, s.state)
			}
		}
		if got := s.state.code(); got != s.code {
			t.Errorf("%s has the code %s, want %s", s.state, got, s.code)
		}
	}
	for _, text := range []string{"", "X", "PEND", "R "} {
		if got, ok := parseState(text); ok {
			t.Errorf("%q is %s", text, got)
		}
	}
	if got := state("NONE").code(); got != "?" {
		t.Errorf("an unknown state has the code %s", got)
	}
}

// A command that requests the tasks in some states gets every job in the wanted states.
func TestTasksInProperty(t *testing.T) {
	ended := []string{"", corral.CauseMemory, corral.CauseTime, corral.CauseWithdrawn, corral.CauseLostWorker, "unheard-of"}
	skipped := []string{"", corral.CauseNever, corral.CauseWithdrawn}
	rapid.Check(t, func(rt *rapid.T) {
		s := spec{Dependency: rapid.SampledFrom([]string{"", "afterok:1"}).Draw(rt, "dependency"), KillOrphan: rapid.Bool().Draw(rt, "kill")}
		task := api.TaskStatus{
			State: rapid.SampledFrom(corral.TaskStates).Draw(rt, "state"), Cause: rapid.SampledFrom(ended).Draw(rt, "cause"),
			Attempts: rapid.IntRange(0, 2).Draw(rt, "attempts"), Grown: &api.Grown{Number: 1, Attributes: attributesOf(t, s)},
		}
		if task.State == corral.TaskSkipped {
			task.Cause = rapid.SampledFrom(skipped).Draw(rt, "cause of a skipped task")
		}
		j := newReader(Folder{}).job(task)
		if requested := tasksIn([]state{j.State}); !slices.Contains(requested, task.State) {
			rt.Errorf("a %s task is a %s job, for which only %v are requested", task.State, j.State, requested)
		}
		if j.State == pending && (j.Node != "" || !j.Started.IsZero()) {
			rt.Errorf("a pending job has begun: %+v", j)
		}
		if over := task.State.Over(); j.State.over() && !over || over && !j.State.over() && j.Reason != neverSatisfied {
			rt.Errorf("a %s task is a %s job", task.State, j.State)
		}
	})
}

// Each case is a list of states in -t, and what is selected.
func TestInStates(t *testing.T) {
	for text, want := range map[string][]state{
		"PD": {pending}, "r,cg": {running, completing}, "completed,F": {completed, failed}, "all": nil, "PD,all": nil, "all,X": nil,
	} {
		q, err := parseSqueue([]string{"-t", text}, func(string) string { return "" }, "me")
		if err != nil {
			t.Errorf("-t %s: %v", text, err)
		} else if diff := cmp.Diff(want, q.states); diff != "" {
			t.Errorf("-t %s:\n%s", text, diff)
		}
	}
	_, err := parseSqueue([]string{"-t", "PD,X"}, func(string) string { return "" }, "me")
	want := "Invalid job state specified: X\nValid job states include: PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL," +
		"PREEMPTED,BOOT_FAIL,DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED," +
		"SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
	if err == nil || err.Error() != want {
		t.Errorf("-t PD,X: %v, want %s", err, want)
	}
}
