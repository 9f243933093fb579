package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
)

// A state is a run's plan and the current state of its tasks. One goroutine owns it.
type state struct {
	plan  *plan
	x     *execution.Execution
	waits waits // of requests that wait for tasks
}

// newState returns the initial state of a plan.
func newState(p *plan) *state { return &state{plan: p, x: execution.New(p.spec)} }

// apply applies a record, and returns the jobs that are over as a result. An addition is first applied to the plan; if
// the plan refuses it, the execution does not see it.
func (s *state) apply(r execution.Record) (over []int64) {
	if r.Added != nil && execution.Takes(s.x) && s.plan.grow(r.Added) != nil {
		return nil
	}
	return s.x.Apply(r)
}

// replay applies a record from the journal. It ignores the jobs that are over, because nothing else knows them.
func (s *state) replay(r execution.Record) { s.apply(r) }

// row returns the listing of a task. A task without an ended attempt does not have an exit status.
func (s *state) row(i int, t *execution.TaskInfo) *api.TaskStatus {
	row := &api.TaskStatus{
		ID: s.plan.flow.Tasks[i].ID, State: t.State, Attempts: t.Begun, Worker: t.Worker,
		Reason: t.Reason, Cause: string(t.Cause), StartedAt: t.StartedAt, EndedAt: t.EndedAt,
		ChangedInputs: slices.Clone(t.Changed),
	}
	if !t.EndedAt.IsZero() {
		row.ExitStatus = new(t.Exit)
	}
	if s.plan.grown != nil {
		s.plan.grown.of(i).tell(row, i, t)
	}
	return row
}

// executions returns the measurements of each task that is done, and zeros for the others: an executed workflow
// contains results, not attempts.
func (s *state) executions() []workflow.Execution {
	all := make([]workflow.Execution, len(s.plan.flow.Tasks))
	for i := range all {
		t := s.x.Task(i)
		if t.State != corral.TaskDone {
			continue
		}
		all[i] = workflow.Execution{
			StartedAt: t.StartedAt, CPUTime: t.CPUTime, MemoryBytes: t.MaxRSSKiB << 10, Worker: t.Worker,
			ReadBytes: t.ReadBytes, WrittenBytes: t.WrittenBytes,
		}
		if !t.StartedAt.IsZero() {
			all[i].Runtime = max(0, t.EndedAt.Sub(t.StartedAt))
		}
	}
	return all
}

// failure returns a sentence about why the workflow failed: what aborted it, or which tasks failed permanently. If the
// first of these wrote to its error stream, the sentence names the file; a task that could not begin did not write
// anything.
func (s *state) failure(verdict execution.Verdict, exists func(path string) bool) string {
	failed := verdict.Tasks
	switch {
	case verdict.Abort != "":
		return verdict.Abort
	case len(failed) == 0 && len(verdict.Subs) > 0:
		return fmt.Sprintf("subworkflow %s failed: %s", verdict.Subs[0].Name, verdict.Subs[0].Why)
	case len(failed) == 0:
		return fmt.Sprintf("the workflow ended with exit status %d", verdict.Status)
	}
	t, task := s.x.Task(failed[0]), &s.plan.flow.Tasks[failed[0]]
	how := cmp.Or(t.Reason, fmt.Sprintf("exit status %d", t.Exit))
	text := fmt.Sprintf("task %s failed (%s)", task.ID, how)
	if t.Begun > 0 {
		text += fmt.Sprintf(" in attempt %d", t.Begun)
	} else {
		text += " before it began"
	}
	l := layout{s.plan.dir}
	left := l.attempt(task.ID, t.Begun) + "/" + cmp.Or(task.Stderr, LogStderr)
	for _, post := range []bool{false, true} {
		if strings.HasPrefix(how, scriptFailed(post)) {
			left = l.script(task.ID, post)
		}
	}
	if exists(left) {
		text += "; see " + left
	}
	if n := len(failed) - 1; n > 0 {
		text += fmt.Sprintf("; failed too: %s", s.names(failed[1:], 3))
	}
	if n := s.x.Counts().Skipped; n > 0 {
		text += fmt.Sprintf("; skipped below: %d", n)
	}
	return text
}

// names lists the ids of the first few tasks.
func (s *state) names(tasks []int, few int) string {
	var ids []string
	for _, i := range tasks[:min(few, len(tasks))] {
		ids = append(ids, s.plan.flow.Tasks[i].ID)
	}
	text := strings.Join(ids, ", ")
	if n := len(tasks) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
