package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// An open run has a plan that grows by the additions in its journal. These records contain the commands of the tasks.
// Their notes are files in the run's data, so that a note is transferred to workers like any input.

// notesDir is the folder of notes in a run's data. A note is named after the first task that uses it.
const notesDir = "notes"

// A grown describes the tasks of an open run, in the order in which they were added.
type grown struct {
	groups   []group
	keys     map[string]once // :: idempotency key → the addition made with it
	unless   []int           // exit statuses after which a task is not retried
	priority int             // priority of the run
	usual    time.Duration   // default runtime
	swept    time.Time       // time of the last search for spent notes
}

// A group consists of similar tasks that were added together.
type group struct {
	first, count int
	body
}

// A body describes what the tasks of an addition run. It is in journals, which outlive versions of corrald.
type body struct {
	Name       string            `json:"n,omitempty"`
	Argv       []string          `json:"c"`
	Dir        string            `json:"d,omitempty"`
	Env        []string          `json:"v,omitempty"`
	Limit      corral.Seconds    `json:"l,omitempty"`
	Grace      corral.Seconds    `json:"g,omitempty"`
	Note       bool              `json:"note,omitempty"`
	Array      bool              `json:"arr,omitempty"`
	Attributes map[string]string `json:"at,omitempty"`
	Key        string            `json:"k,omitempty"` // of the request
	Request    string            `json:"q,omitempty"` // digest of the request
}

// A once records the addition made by a request with a key.
type once struct {
	request string
	added   api.AddedTasks
}

// newOpenPlan returns the plan of a new open run.
func newOpenPlan(name string, o corral.RunOptions) (*plan, error) {
	unless, err := execution.ExitStatuses(o.RetryUnless)
	if err != nil {
		return nil, err
	}
	g, err := dag.New(0, nil)
	if err != nil {
		return nil, err // unreachable
	}
	return &plan{
		flow: &workflow.Workflow{Name: name, Graph: g},
		spec: execution.Spec{Open: true, Losses: max(0, o.CrashLimit)},
		grown: &grown{keys: map[string]once{}, unless: unless, priority: o.Priority,
			usual: time.Duration(o.DefaultRuntime)},
	}, nil
}

// noteOf returns the name of a note in the run's data.
func noteOf(first int) string { return notesDir + "/" + execution.TaskID(first) }

// grow adds the tasks of an addition to the plan. The addition must follow the previous ones.
func (p *plan) grow(a *execution.Addition) error {
	if p.grown == nil || int(a.First) != len(p.flow.Tasks) {
		return errors.New("it does not follow the previous addition")
	}
	g := group{first: int(a.First), count: int(a.Count)}
	if err := json.Unmarshal(a.Body, &g.body); err != nil {
		return err
	}
	// All tasks are equal except for their ids, and share their strings with the record.
	t := workflow.Task{
		Name: g.Name, Argv: g.Argv, Resources: a.Needs, Estimate: time.Duration(a.Estimate) * time.Millisecond,
		Retries: &a.Retries, Timeout: time.Duration(g.Limit), Env: map[string]string{},
	}
	for _, pair := range g.Env {
		name, value, _ := strings.Cut(pair, "=")
		t.Env[name] = value
	}
	if g.Note {
		t.Inputs = []string{noteOf(g.first)}
	}
	for i := range g.count {
		t.ID = execution.TaskID(g.first + i)
		p.flow.Tasks = append(p.flow.Tasks, t)
	}
	p.grown.groups = append(p.grown.groups, g)
	if g.Key != "" {
		p.grown.keys[g.Key] = once{g.Request, g.added()}
	}
	return nil
}

// added returns the numbers of a group's tasks, in the form of the answer to its request.
func (g *group) added() api.AddedTasks { return api.AddedTasks{First: g.first + 1, Count: g.count} }

// of returns the group that contains a task.
func (g *grown) of(task int) *group {
	k := sort.Search(len(g.groups), func(k int) bool { return g.groups[k].first > task })
	return &g.groups[k-1]
}

// complete sets the properties of a task that the tasks of a workflow do not have.
func (g *group) complete(t *execution.Task) {
	t.Dir, t.Env, t.Grace = g.Dir, slices.Clip(g.Env), time.Duration(g.Grace)
	if g.Array {
		t.Env = append(t.Env, corral.ElementVariable+"="+strconv.Itoa(t.Index-g.first))
	}
	if g.Note {
		t.Note = noteOf(g.first)
	}
}

// tell adds the properties of an added task to its listing.
func (g *group) tell(t *api.TaskStatus, i int, info *execution.TaskInfo) {
	t.Grown = &api.Grown{
		Number: i + 1, Name: g.Name, AddedAt: info.AddedAt, OverAt: info.OverAt, Attributes: g.Attributes,
	}
	if g.Array {
		t.Array, t.Element = g.first+1, i-g.first
	}
}

// snapshot returns the current workflow, for use outside the goroutine that owns the plan.
func (p *plan) snapshot() *workflow.Workflow {
	if p.grown == nil {
		return p.flow
	}
	flow := *p.flow
	flow.Tasks = slices.Clip(flow.Tasks)
	if g, err := dag.New(len(flow.Tasks), nil); err == nil { // never fails without edges
		flow.Graph = g
	}
	return &flow
}

// openDocument returns the content of an open run's workflow file: a directory without this file is not recognized as a
// run's.
func openDocument(name string) []byte {
	text, _ := json.Marshal(map[string]string{"name": name, "open": "its tasks are in the journal"})
	return append(text, '\n')
}

// grownWorkflow returns the document of an open run: its current tasks, with their measurements.
func grownWorkflow(ctx context.Context, row corral.Run) (io.ReadCloser, error) {
	s, err := readState(ctx, row)
	if err != nil {
		return nil, err
	}
	if len(s.plan.flow.Tasks) == 0 {
		return nil, corral.Errorf(corral.NotFound, "run %d has no workflow: no tasks have been added to it", row.ID)
	}
	flow := s.plan.snapshot()
	if report := s.report(row.CreatedAt); report != nil {
		flow = flow.WithExecutions(row.CreatedAt, time.Duration(report.Makespan), s.executions())
	}
	var text bytes.Buffer
	if err := wfformat.Write(&text, flow); err != nil {
		return nil, err
	}
	return io.NopCloser(&text), nil
}

// number returns the index of a task of an open run, given its id, which is its number.
func (p *plan) number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n - 1, err == nil && n >= 1 && n <= len(p.flow.Tasks) && execution.TaskID(n-1) == id
}

// addition makes the record of the next addition, or returns the reason why it cannot be made.
func (p *plan) addition(in *api.NewTask, of Once) (*execution.Addition, error) {
	first, count := len(p.flow.Tasks), max(1, in.Elements)
	if count > execution.MostTasks-first {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "elements", "run %d has %d tasks, and may have %d: "+
			"start another run", p.run, first, execution.MostTasks)
	}
	a := &execution.Addition{
		First: int32(first), Count: int32(count), Needs: in.Resources, Estimate: p.grown.estimate(in),
		Retries: in.Retries, Once: !in.Requeue, Priority: sum(in.Priority, p.grown.priority), AtOnce: in.AtOnce,
		Unless: p.grown.unless,
	}
	for k, w := range in.After {
		if w.Task < 1 || w.Task > first {
			place := fmt.Sprintf("after[%d]", k)
			return nil, corral.ErrorAt(corral.Unsatisfiable, place, "run %d has no task %d", p.run, w.Task)
		}
		a.After = append(a.After, execution.Condition{Task: int32(w.Task - 1), When: execution.When(w.When)})
	}
	text, err := json.Marshal(body{
		Name: in.Name, Argv: in.Argv, Dir: in.Directory, Env: in.Environment, Limit: in.TimeLimit, Grace: in.Grace,
		Note: in.Note != "", Array: in.Elements > 0, Attributes: in.Attributes, Key: of.Key, Request: of.Request,
	})
	a.Body = text
	return a, err
}

// estimate returns the expected runtime of a task. A time limit is only an upper bound.
func (g *grown) estimate(in *api.NewTask) execution.Msec {
	estimate := time.Duration(in.Estimate)
	if estimate == 0 {
		estimate = g.usual
		if in.TimeLimit > 0 {
			estimate = min(estimate, time.Duration(in.TimeLimit))
		}
	}
	return execution.Msec(max(estimate, shortest).Milliseconds())
}

// spoolNote writes the note of the next addition. The file does not belong to a task until the addition is in the
// journal: until then, the next addition uses the same name.
func (p *plan) spoolNote(first int, note string) error {
	path := filepath.Join(p.dir, executor.DataDir, noteOf(first))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Remove(path) // a task may have an earlier file of this name open
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path, []byte(note), 0o600)
	}
	if err != nil {
		return corral.ErrorAt(corral.Failed, "note", "storing it in the run's directory: %w", err)
	}
	return nil
}

// dropNote removes a note that is not needed.
func (p *plan) dropNote(first int) {
	_ = os.Remove(filepath.Join(p.dir, executor.DataDir, noteOf(first)))
}
