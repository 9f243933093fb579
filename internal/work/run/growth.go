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
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// An open run has a plan that grows by the additions in its journal. What tasks run is in these records, but for their
// notes, which are files of the run's data: so a note travels to workers as any input does.

// notesDir is the folder of notes in a run's data. A note is called after the first task that has it.
const notesDir = "notes"

// A grown is what the tasks of an open run are, in the order in which they were added.
type grown struct {
	groups   []group
	keys     map[string]once // :: idempotency key → what was added under it
	unless   []int           // exit statuses that no retry follows
	priority int             // of the run
	usual    time.Duration   // runtime of a task of which nothing is said
	swept    time.Time       // when spent notes were looked for last
}

// A group is tasks that were added together and are alike.
type group struct {
	first, count int
	body
}

// A body is what tasks of an addition run. It is in journals, which outlive versions of corrald.
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
	Request    string            `json:"q,omitempty"` // digest of it
}

// A once is what was added by a request with a key.
type once struct {
	request string
	added   api.AddedTasks
}

// newOpenPlan is the plan of an open run as it begins.
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

// noteOf is the name of a note in the run's data.
func noteOf(first int) string { return notesDir + "/" + execution.TaskID(first) }

// grow adds the tasks of an addition to the plan. It must follow those before it.
func (p *plan) grow(a *execution.Addition) error {
	if p.grown == nil || int(a.First) != len(p.flow.Tasks) {
		return errors.New("it does not follow what was added before")
	}
	g := group{first: int(a.First), count: int(a.Count)}
	if err := json.Unmarshal(a.Body, &g.body); err != nil {
		return err
	}
	// The task is the same for all of them but for its id, and shares its words with the record.
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

// added are the numbers of a group's tasks, as its request was answered.
func (g *group) added() api.AddedTasks { return api.AddedTasks{First: g.first + 1, Count: g.count} }

// of returns the group that a task is in.
func (g *grown) of(task int) *group {
	k := sort.Search(len(g.groups), func(k int) bool { return g.groups[k].first > task })
	return &g.groups[k-1]
}

// complete adds to a task what a workflow's tasks do not have.
func (g *group) complete(t *execution.Task) {
	t.Dir, t.Env, t.Grace = g.Dir, slices.Clip(g.Env), time.Duration(g.Grace)
	if g.Array {
		t.Env = append(t.Env, corral.ElementVariable+"="+strconv.Itoa(t.Index-g.first))
	}
	if g.Note {
		t.Note = noteOf(g.first)
	}
}

// tell adds to a task of a list what is to be said of one that was added.
func (g *group) tell(t *api.Task, i int, info *execution.TaskInfo) {
	t.Grown = &api.Grown{
		Number: i + 1, Name: g.Name, AddedAt: info.AddedAt, OverAt: info.OverAt, Attributes: g.Attributes,
	}
	if g.Array {
		t.Array, t.Element = g.first+1, i-g.first
	}
}

// snapshot is the workflow as it is now, for others than the goroutine that owns the plan.
func (p *plan) snapshot() *workflow.Workflow {
	if p.grown == nil {
		return p.flow
	}
	flow := *p.flow
	flow.Tasks = slices.Clip(flow.Tasks)
	if g, err := dag.New(len(flow.Tasks), nil); err == nil { // always: it has no edges
		flow.Graph = g
	}
	return &flow
}

// openDocument is what stands in the directory of an open run for its workflow: a directory without one is not taken
// for a run's.
func openDocument(name string) []byte {
	text, _ := json.Marshal(map[string]string{"name": name, "open": "its tasks are in the journal"})
	return append(text, '\n')
}

// grownWorkflow is the document of an open run: its tasks as they are now, with what was measured of them.
func grownWorkflow(ctx context.Context, row corral.Run) (io.ReadCloser, error) {
	s, err := readState(ctx, row)
	if err != nil {
		return nil, err
	}
	if len(s.plan.flow.Tasks) == 0 {
		return nil, corral.Errorf(corral.NotFound, "run %d has no workflow: nothing was added to it yet", row.ID)
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

// number finds a task of an open run by its id, which is its number.
func (p *plan) number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n - 1, err == nil && n >= 1 && n <= len(p.flow.Tasks) && execution.TaskID(n-1) == id
}

// addition makes the record of what is to be added next, or says why it cannot be.
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
		a.After = append(a.After, execution.Wait{Task: int32(w.Task - 1), When: execution.When(w.When)})
	}
	text, err := json.Marshal(body{
		Name: in.Name, Argv: in.Argv, Dir: in.Directory, Env: in.Environment, Limit: in.TimeLimit, Grace: in.Grace,
		Note: in.Note != "", Array: in.Elements > 0, Attributes: in.Attributes, Key: of.Key, Request: of.Request,
	})
	a.Body = text
	return a, err
}

// estimate is how long a task is believed to run: a limit says only that it is not longer.
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

// spoolNote writes the note of what is to be added. The file belongs to no task until the addition is in the journal:
// the next addition uses the same name.
func (p *plan) spoolNote(first int, note string) error {
	path := filepath.Join(p.dir, executor.DataDir, noteOf(first))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Remove(path) // a task may have an earlier file of that name open
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path, []byte(note), 0o600)
	}
	if err != nil {
		return corral.ErrorAt(corral.Failed, "note", "keeping it in the run's directory: %w", err)
	}
	return nil
}

// dropNote removes a note that nothing needs.
func (p *plan) dropNote(first int) {
	_ = os.Remove(filepath.Join(p.dir, executor.DataDir, noteOf(first)))
}
